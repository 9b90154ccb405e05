"""The lines of a JSON file of the log, however many of them are blank."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WRITTEN = re.compile(rb"[^\s][^\n]*")
_FEW = 1000


def numbered_lines(data: bytes) -> Iterable[tuple[int, bytes]]:
    """The lines and their numbers, from 1; blank ones may or may not be among them.

    Hundreds of millions of blank lines cost a scan, and no object each.
    """
    return _written(data) if is_mostly_blank(data) else enumerate(data.split(b"\n"), 1)


def is_mostly_blank(data: bytes) -> bool:
    """Whether many lines do not begin with an action, so that they are not worth an object each."""
    actions = data.count(b"\n{") + data.startswith(b"{")
    return data.count(b"\n") - actions > _FEW


def _written(data: bytes) -> Iterator[tuple[int, bytes]]:
    number, seen = 1, 0
    for found in _WRITTEN.finditer(data):
        number += data.count(b"\n", seen, found.start())
        seen = found.start()
        yield number, found[0]
