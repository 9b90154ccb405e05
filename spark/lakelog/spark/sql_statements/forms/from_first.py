"""`FROM q INSERT INTO t SELECT …`: the form of INSERT that has its table in the middle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.spark.sql_statements.text.statement import Statement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.spark.sql_statements.text.tokens import Token

_SELECTS = frozenset({"SELECT", "MAP", "REDUCE"})


def inserts_first(statement: Statement) -> list[Statement]:
    """The same as statements `INSERT INTO t FROM q SELECT …`, one for each INSERT.

    Args:
        statement: the statement.

    Returns:
        Nothing if it is another statement, or an INSERT of it has no SELECT.
    """
    sql, tokens = statement.text, statement.tokens
    if not tokens or tokens[0].upper != "FROM":
        return []
    depth = 0
    inserts: list[tuple[int, int]] = []
    for number, each in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(each.text, 0)
        if depth or tokens[number - 1].text == ".":
            continue
        if each.upper == "INSERT":
            if inserts and not inserts[-1][1]:
                return []
            inserts.append((number, 0))
        elif inserts and not inserts[-1][1] and each.upper in _SELECTS:
            inserts[-1] = inserts[-1][0], number
    if not inserts or not inserts[-1][1]:
        return []
    query = sql[: tokens[inserts[0][0]].start]
    ends = [tokens[insert].start for insert, _ in inserts[1:]] + [tokens[-1].end]
    found = []
    for (insert, select), end in zip(inserts, ends, strict=True):
        start, middle = tokens[insert].start, tokens[select].start
        found.append(Statement(f"{sql[start:middle]} {query} {sql[middle:end]}"))
    return found


def target_at(tokens: Sequence[Token]) -> int:
    """The token that the name of the table begins with, of a statement that begins with INSERT."""
    words = [each.upper for each in tokens[:6]]
    at = 5 if words[1:4] == ["WITH", "SCHEMA", "EVOLUTION"] else 2
    return at + 1 if len(tokens) > at + 1 and words[at] == "TABLE" else at
