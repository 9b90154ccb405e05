"""Columns with the whole name of their table before them: `db.t.a`, where `t` is the alias."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.spark.types.path_forms import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.spark.sql_statements.text.statement import Edit, Statement
    from lakelog.spark.sql_statements.text.tokens import Token


class Qualifiers:
    """The names of several parts that expressions of a statement may have before columns."""

    def __init__(self) -> None:
        """None yet."""
        self._aliases: dict[tuple[str, ...], str] = {}

    def add(self, parts: tuple[str, ...], alias: str) -> None:
        """Let a table's name stand for its alias.

        Args:
            parts: the name; one of a single part is the alias already.
            alias: what expressions call the table.
        """
        if len(parts) > 1:
            self._aliases[tuple(each.lower() for each in parts)] = alias

    def path(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """The name of a column, with the alias alone before it."""
        for width in range(len(parts) - 1, 1, -1):
            alias = self._aliases.get(tuple(each.lower() for each in parts[:width]))
            if alias is not None:
                return (alias, *parts[width:])
        return parts

    def shortened(self, expression: Statement) -> Statement:
        """An expression with aliases in the places of such names."""
        if not self._aliases:
            return expression
        return expression.replaced(_edits(expression.tokens, self._aliases))


def _edits(tokens: Sequence[Token], aliases: Mapping[tuple[str, ...], str]) -> list[Edit]:
    found: list[Edit] = []
    at = 0
    while at < len(tokens):
        end = at
        names = []
        while end < len(tokens) and (name := tokens[end].name) is not None:
            names.append(name.lower())
            if end + 1 >= len(tokens) or tokens[end + 1].text != ".":
                break
            end += 2
        for width in range(len(names) - 1, 1, -1):
            alias = aliases.get(tuple(names[:width]))
            if alias is not None:
                last = tokens[at + 2 * width - 2]
                found.append((tokens[at].start, last.end, quoted(alias)))
                break
        at = max(end, at) + 1
    return found
