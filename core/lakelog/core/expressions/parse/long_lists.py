"""Long lists of plain values, cut out of SQL text before it is parsed.

`IN (…)` with a hundred thousand values is nearly all of a condition, and each of its tokens would
cost the parser a walk through its whole grammar. What is between the parentheses is read here by
one regular expression; the parser sees a mark in its place. A list with anything in it that is
not plainly a number, a string, a date or a timestamp stays where it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PlainValue = tuple[str | None, "int | Decimal | str | None"]
"""The word before it (`DATE`, `TIMESTAMP`, or none), and the value."""

_WORTH_IT = 256
"""Characters; the cost of parsing a shorter list is too small to measure."""
_MARK = "\ue000"
"""From the private use area; SQL that contains it is left as it is."""
_MARKED = re.compile(f"'{_MARK}(\\d+){_MARK}'")
# Two texts in a row are one to Spark, and a backslash begins an escape: neither is plain.
_TEXT = r"'[^'\\]*+'"
_VALUE = rf"(?:-?\d++(?:\.\d++)?+|(?:(?:DATE|TIMESTAMP)\s++)?+{_TEXT}|NULL)"
_RAW = re.compile(r"""\br['"]""", re.IGNORECASE)
"""In a raw text a backslash ends nothing and begins nothing; such SQL is left as it is."""
_PIECES = re.compile(
    r"'(?:[^'\\]|\\.)*+'"
    r'|"(?:[^"\\]|\\.)*+"'
    r"|`[^`]*+`"
    r"|--[^\n]*+"
    r"|/\*.*?\*/"
    rf"|(?<![\w.])IN\s*+\((?P<list>\s*+{_VALUE}(?:\s*+,\s*+{_VALUE})*+\s*+)\)",
    re.IGNORECASE | re.DOTALL,
)
_LONG_DIGITS = 20
"""Of a BIGINT, with its sign."""
_EACH = re.compile(
    r"(?P<number>-?\d++(?:\.\d++)?+)|(?:(?P<word>DATE|TIMESTAMP)\s++)?+'(?P<text>[^']*+)'|NULL",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CutText:
    """SQL text without its long lists."""

    sql: str
    lists: tuple[str, ...] = ()
    _spans: tuple[tuple[int, int], ...] = ()
    """Where a mark ends, and how much longer the list was."""

    def values(self, text: str) -> Iterator[PlainValue] | None:
        """The values of the list that a mark replaces; `None` if the text is not a mark."""
        match = _MARKED.fullmatch(f"'{text}'")
        if match is None or not self.lists:
            return None
        return _values(self.lists[int(match[1])])

    def whole(self, sql: str) -> str:
        """A part of the parsed text with its lists back in place."""
        if not self.lists:
            return sql
        return _MARKED.sub(lambda match: self.lists[int(match[1])], sql)

    def position(self, at: int) -> int:
        """The position in the whole text for one in the cut text."""
        return at + sum(longer for end, longer in self._spans if end <= at)


def cut_lists(sql: str) -> CutText:
    """Replace every long list of plain values by a mark."""
    if len(sql) < _WORTH_IT or _MARK in sql or _RAW.search(sql):
        return CutText(sql)
    lists: list[str] = []
    spans: list[tuple[int, int]] = []
    pieces: list[str] = []
    done = length = 0
    for match in _PIECES.finditer(sql):
        found = match["list"]
        if found is None or len(found) < _WORTH_IT:
            continue
        mark = f"'{_MARK}{len(lists)}{_MARK}'"
        before = sql[done : match.start("list")]
        pieces += (before, mark)
        length += len(before) + len(mark)
        spans.append((length, len(found) - len(mark)))
        lists.append(found)
        done = match.end("list")
    return CutText("".join((*pieces, sql[done:])), tuple(lists), tuple(spans))


def _values(text: str) -> Iterator[PlainValue]:
    for match in _EACH.finditer(text):
        number, word, plain = match.groups()
        if number is not None:
            # Python converts no text of thousands of digits to an `int`.
            is_exact = "." in number or len(number) > _LONG_DIGITS
            yield None, Decimal(number) if is_exact else int(number)
        else:
            yield word and word.upper(), plain
