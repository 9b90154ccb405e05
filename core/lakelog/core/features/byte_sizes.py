"""Sizes as Spark and Delta write them."""

from __future__ import annotations

import re
from typing import Final

_SIZE: Final = re.compile(r"\s*(\d+)\s*([kmgtp]?)(?:i?b)?\s*", re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def parse_byte_size(text: str) -> int:
    """A number of bytes: `134217728`, `128m`, `128MB`.

    Raises:
        ValueError: not a size, or not above 0; with the words that complete "must be …".
    """
    found = _SIZE.fullmatch(text)
    size = int(found[1]) << (10 * _POWERS[found[2].lower()]) if found else 0
    if size <= 0:
        raise ValueError("a size above 0 such as 134217728 or 128m")
    return size
