"""`FROM q INSERT INTO t SELECT …`: the form of INSERT that has its table in the middle."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.spark.sql_statements.tokens import Token

__all__ = ["insert_first"]

_SELECTS = frozenset({"SELECT", "MAP", "REDUCE"})


def insert_first(sql: str, tokens: Sequence[Token]) -> str | None:
    """The same statement as `INSERT INTO t FROM q SELECT …`.

    Args:
        sql: the statement.
        tokens: its tokens.

    Returns:
        `None` if it is another one; so is one with several INSERTs, which no single commit can be.
    """
    if not tokens or tokens[0].upper != "FROM":
        return None
    depth, insert, select = 0, 0, 0
    for number, each in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(each.text, 0)
        if depth or tokens[number - 1].text == ".":
            continue
        if each.upper == "INSERT":
            if insert:
                return None
            insert = number
        elif insert and not select and each.upper in _SELECTS:
            select = number
    if not select:
        return None
    start, middle = tokens[insert].start, tokens[select].start
    return f"{sql[start:middle]} {sql[:start]} {sql[middle:]}"
