"""Spark's SQL where sqlglot's Spark grammar reads it otherwise, string literals above all.

To Spark 4 `'it''s'` is one text with a quote in it; only texts with something between them, as in
`'it' 's'`, are put together. sqlglot puts both together and loses the quote. Of the escapes they
agree on some. Of `TIMESTAMP WITHOUT TIME ZONE` sqlglot keeps the first word.
"""

from __future__ import annotations

import re
from typing import Final

_PIECES: Final = re.compile(
    # In a raw text a backslash begins no escape, and two quotes are an end and a beginning.
    r"""(?<!\w)[rR](?:'[^']*'|"[^"]*")"""
    r"|(?P<single>'(?:[^'\\]|\\.|'')*+')"
    r'|(?P<double>"(?:[^"\\]|\\.|"")*+")'
    r"|`[^`]*+`"
    r"|--[^\n]*+"
    r"|/\*.*?\*/"
    r"|\bTIMESTAMP(?P<gap>\s+WITHOUT\s+TIME\s+ZONE)\b",
    re.DOTALL | re.IGNORECASE,
)
_NO_ZONE: Final = re.compile(r"\bWITHOUT\s+TIME\s+ZONE\b", re.IGNORECASE)
# Escapes that sqlglot and every Spark read alike.
_PLAIN_ESCAPES: Final = frozenset("\\'\"ntr")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_SINGLE: Final = re.compile(r"(\\.)|''", re.DOTALL)
_DOUBLE: Final = re.compile(r'(\\.)|""', re.DOTALL)


def for_sqlglot(sql: str) -> str:
    r"""The same text with `\'` for `''` in strings, and the short name of a time without zone.

    Every character stays at its position.

    Source: `spark.sql.legacy.consecutiveStringLiterals.enabled`, which Spark 4.0 has, off.
    """
    if "''" not in sql and '""' not in sql and _NO_ZONE.search(sql) is None:
        return sql
    return _PIECES.sub(_escaped, sql)


def has_odd_escapes(sql: str) -> bool:
    """Whether a backslash may mean something else to sqlglot than to Spark."""
    return not _PLAIN_ESCAPES.issuperset(_ESCAPE.findall(sql))


def _escaped(match: re.Match[str]) -> str:
    text = match[0]
    if match["gap"]:
        return f"TIMESTAMP_NTZ{' ' * (len(match['gap']) - len('_NTZ'))}"
    quotes, quote = (_SINGLE, "'") if match["single"] else (_DOUBLE, '"')
    if not (match["single"] or match["double"]) or len(text) <= 2:
        return text
    inner = quotes.sub(lambda found: found[1] or f"\\{quote}", text[1:-1])
    return f"{quote}{inner}{quote}"
