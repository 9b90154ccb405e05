"""A page of the docs that is written from the code, by one of the scripts beside this one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_or_compare(page: Path, text: str, command: str) -> int:
    """Write a page or, with `--check`, compare it.

    Args:
        page: where it is.
        text: what it has to be.
        command: writes it; for whoever has to.

    Returns:
        The exit code: 1 where the page and the code differ.
    """
    if "--check" not in sys.argv[1:]:
        page.write_text(text, encoding="utf-8")
        return 0
    if page.exists() and page.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{page.name} is not what the code says: run {command}\n")
    return 1
