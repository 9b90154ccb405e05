"""EXPLAIN of statements that change tables of ours: the plan of the query that finds their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from lakelog.spark.sql_statements.commands.insert import insert_query
from lakelog.spark.sql_statements.commands.merge_statement import merge
from lakelog.spark.sql_statements.commands.row_changes import delete, update
from lakelog.spark.sql_statements.text.references import after_ctes
from lakelog.spark.sql_statements.text.statement import Statement
from lakelog.spark.types.path_forms import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from lakelog.spark.sql_statements.commands.context import Command, CommandContext
    from lakelog.spark.sql_statements.commands.row_changes import RowChange

_Query: TypeAlias = "Callable[[CommandContext], tuple[str, str] | None]"
"""Reads a statement; its table, and the query that finds its rows."""
_MODES = ("EXTENDED", "CODEGEN", "COST", "FORMATTED")


def explain(s: CommandContext) -> Command | None:
    """`EXPLAIN [EXTENDED | CODEGEN | COST | FORMATTED] DELETE | UPDATE | MERGE | INSERT …`.

    Queries are explained where they are run: their tables are all there is to see to.
    """
    c = s.cursor
    c.need("EXPLAIN")
    mode = c.need_any(*_MODES) if c.word in _MODES else ""
    begin = c.at
    ctes = ""
    if c.word == "WITH":
        count = after_ctes(c.tokens[begin:])
        ctes = c.text(begin, begin + count)
        c.at = begin + count
    what = c.word
    query = _QUERIES[what](s) if what in _QUERIES else None
    if query is None:
        return None
    s.is_ours = True
    target, text = query
    head = f"== Delta {what} of {target}, by lakelog; its rows are found by ==\n"

    def run() -> DataFrame:
        shown = s.runner.query(Statement(f"EXPLAIN {mode} {ctes} {text}")).first()
        return s.answer("plan string", (head + ("" if shown is None else shown[0]),))

    return run


def _row_change(read: Callable[[CommandContext], RowChange | None]) -> _Query:
    def query(s: CommandContext) -> tuple[str, str] | None:
        change = read(s)
        if change is None:
            return None
        alias, rows = quoted(change.alias), "*"
        if change.values is not None:
            new = [
                f"{value.text} AS {quoted(name)}"
                for name, value in change.values.items()
                if value.text.upper() != "DEFAULT"
            ]
            rows = ", ".join([f"{alias}.*", *new])
        where = "" if change.condition is None else f" WHERE {change.condition}"
        return change.place.text, f"SELECT {rows} FROM {change.place.text} AS {alias}{where}"

    return query


def _merge(s: CommandContext) -> tuple[str, str] | None:
    found = merge(s)
    return None if found is None else (found.place.text, found.shown_query())


def _insert(s: CommandContext) -> tuple[str, str] | None:
    found = insert_query(s)
    return None if found is None else (found[0].text, found[1].text)


_QUERIES: dict[str, _Query] = {
    "DELETE": _row_change(delete),
    "UPDATE": _row_change(update),
    "MERGE": _merge,
    "INSERT": _insert,
}
