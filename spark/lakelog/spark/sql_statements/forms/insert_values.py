"""`INSERT INTO t VALUES …`, where nothing but the name of the table can be ours.

Such a text may be long, and finding its tokens would cost more than the rest of the front.
"""

from __future__ import annotations

import re

_LONG = 2000
"""A shorter text has its tokens found in less than a millisecond, and its name asked for once."""
_NAME = r"(?:(?!(?:TABLE|IDENTIFIER)\b)[^\W\d]\w*|`(?:[^`]|``)+`)"
_HEAD = re.compile(
    rf"""\s*INSERT\s+(?:INTO|OVERWRITE)\s+(?:TABLE\s+)?
    (?P<name>{_NAME}(?:\.{_NAME})*)
    \s*(?:\([^()'"`/-]*\)\s*)?
    VALUES\s*\(""",
    re.VERBOSE | re.IGNORECASE,
)
_MAY_NAME_TABLES = re.compile(r"FROM|JOIN|TABLE|IDENTIFIER|INSERT", re.IGNORECASE)
_STRING = re.compile(r"'[^']*'|\"[^\"]*\"")
_OTHER_QUOTING = re.compile(r"--|/\*|[$`\\]")
"""Beside these a quote may stand that neither begins nor ends a string."""


def inserted_values(sql: str) -> str | None:
    """The name of the table that values are inserted into.

    Args:
        sql: the text of a statement.

    Returns:
        `None` if it is another statement, or one that may name a second table.
    """
    head = _HEAD.match(sql) if len(sql) > _LONG else None
    if head is None:
        return None
    at = head.end()
    if _MAY_NAME_TABLES.search(sql, at) is None:
        return head["name"]
    if _OTHER_QUOTING.search(sql, at) is not None:
        return None
    return None if _MAY_NAME_TABLES.search(_STRING.sub("''", sql[at:])) else head["name"]
