"""Columns with the whole name of their table before them: `db.t.a`, where `t` is the alias."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.spark.sql_statements.tokens import tokenize
from lakelog.spark.types.paths import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping


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

    def shortened(self, text: str) -> str:
        """An expression with aliases in the places of such names."""
        return text if not self._aliases else _shortened(text, self._aliases)


def _shortened(text: str, aliases: Mapping[tuple[str, ...], str]) -> str:
    tokens = tokenize(text)
    parts, done, at = [], 0, 0
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
                parts += [text[done : tokens[at].start], quoted(alias)]
                done = tokens[at + 2 * width - 2].end
                break
        at = max(end, at) + 1
    return "".join([*parts, text[done:]])
