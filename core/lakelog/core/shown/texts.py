"""Values as the texts that people read, in terminals and on pages."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB")
_UNSEEN: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of characters that a terminal obeys or hides, or that can't be encoded."""
_JOINERS: Final = "\u200c\u200d"
"""Between letters of Persian and Hindi, and within emoji."""
_LONGEST: Final = 60


def printable(text: str, *, line_breaks: bool = False) -> str:
    r"""Text of a table as a terminal may have it: what it would obey, or hide, is escaped.

    A comment or a column's name may hold anything, such as `ESC ] 52`, which sets the clipboard,
    or marks that turn the order of letters around. They come out as `\x1b` and `\u202e`.

    Args:
        text: anything.
        line_breaks: whether line feeds stay, for text of lakelog's own lines.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        each if not is_unseen(each) or (line_breaks and each == "\n") else _escaped(each)
        for each in text
    )


def is_unseen(character: str) -> bool:
    """Whether a terminal obeys a character, or shows nothing for it."""
    if character.isprintable() or character in _JOINERS:
        return False
    return unicodedata.category(character) in _UNSEEN


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def html_text(value: object, longest: int = _LONGEST) -> str:
    """A text for an element or an attribute of HTML; the only way in for what a table says.

    Args:
        value: anything; what would reorder or hide letters is escaped as in `printable`.
        longest: characters after which it is cut.
    """
    # Its table of entities is long, and commands are imported where no notebook is.
    from html import escape

    text = str(value)
    return escape(printable(text if len(text) <= longest else f"{text[:longest]}…"))


def time_text(milliseconds: int | None) -> str | None:
    """ISO 8601 in UTC, to the millisecond; None for none."""
    if milliseconds is None:
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def bytes_text(count: int) -> str:
    """`512 B`, `1.5 MiB`."""
    if count < 1024:
        return f"{count} B"
    size, unit = count / 1024, 0
    # 1023.96 would be shown as 1024.0.
    while size >= 1023.95 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f}".removesuffix(".0") + f" {_UNITS[unit]}"


def count_text(count: int, one: str, many: str = "") -> str:
    """`1 file`, `1,234 files`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
