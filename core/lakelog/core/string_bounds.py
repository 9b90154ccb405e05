"""Cutting the string bounds of statistics: shorter, and still bounds.

Lengths are counted in UTF-16 units, as in Delta, and a pair of surrogates is never split. Bounds
are compared by code point: the order of UTF-8 bytes, in Parquet and in Spark.
"""

from __future__ import annotations

__all__ = ["truncate_max", "truncate_min"]

_LAST = "\U0010ffff"
_ASCII_LAST = "\x7f"


def _units(text: str) -> int:
    return len(text) + sum(c > "\uffff" for c in text)


def _prefix(text: str, length: int) -> str:
    """The longest prefix of whole characters in `length` UTF-16 units."""
    units = 0
    for index, c in enumerate(text):
        units += 2 if c > "\uffff" else 1
        if units > length:
            return text[:index]
    return text


def truncate_min(text: str, length: int) -> str | None:
    """A text of at most `length` UTF-16 units that is no greater than `text`.

    Returns:
        The bound, or `None` where `length` leaves no room for one.
    """
    if _units(text) <= length:
        return text
    return _prefix(text, length) if length > 0 else None


def truncate_max(text: str, length: int) -> str | None:
    """A text of about `length` UTF-16 units that is no less than any text with this beginning.

    The beginning, and then a character above the first that was dropped: U+007F if that is
    enough, else U+10FFFF. Dropped characters that are U+10FFFF themselves have none above, so
    they stay, up to twice the length.

    Returns:
        The bound; `text` itself where it ends before a bound is found; `None` where there is no
        short one.
    """
    if _units(text) <= length:
        return text
    if length <= 0:
        return None
    end = len(_prefix(text, length))
    while end < len(text) and text[end] == _LAST:
        end += 1
    if end == len(text):
        return text
    if _units(text[:end]) > 2 * length:
        return None
    return text[:end] + (_ASCII_LAST if text[end] < _ASCII_LAST else _LAST)
