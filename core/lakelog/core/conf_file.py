"""The text of a `spark-defaults.conf`: Java properties, as Spark reads them.

The rules are those of `java.util.Properties.load`: a key ends at the first `=`, `:` or white space
that no backslash precedes, `#` and `!` open comments, a backslash at a line's end joins the
next line. Values are trimmed, as Spark's `Utils.getPropertiesFromFile` does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PAIR = re.compile(r"((?:\\.|[^\\=:\s])*)(?:\s*[=:]\s*|\s+|$)(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Read keys and values; of a key that comes twice the last counts.

    Args:
        text: the whole file.
    """
    found = {}
    for line in _logical_lines(text):
        match = _PAIR.fullmatch(line)
        if match:
            found[_unescaped(match[1])] = _unescaped(match[2]).strip()
    return found


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for raw in text.splitlines():
        line = raw.lstrip()
        if not pending and (not line or line[0] in "#!"):
            continue
        whole = pending + line
        if (len(whole) - len(whole.rstrip("\\"))) % 2:
            pending = whole[:-1]
            continue
        pending = ""
        yield whole
    if pending:
        yield pending


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _character(match[1]), text)


def _character(escaped: str) -> str:
    if len(escaped) > 1:
        return chr(int(escaped[1:], 16))
    return _CONTROLS.get(escaped, escaped)
