"""EXPLAIN of statements that change tables of ours: the plan of the query that finds their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.spark.sql_statements.text.statement import Statement
from lakelog.spark.types.path_forms import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakelog.spark.sql_statements.commands.context import Command, CommandContext

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
        from lakelog.spark.sql_statements.text.references import after_ctes

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


def _delete(s: CommandContext) -> tuple[str, str] | None:
    c = s.cursor
    c.need("DELETE", "FROM")
    place = s.written("DELETE")
    if place is None:
        return None
    alias = s.target(place, "WHERE")
    where = _where(s)
    c.end()
    return place.text, f"SELECT * FROM {place.text} AS {quoted(alias)}{where}"


def _update(s: CommandContext) -> tuple[str, str] | None:
    c = s.cursor
    c.need("UPDATE")
    place = s.written("UPDATE")
    if place is None:
        return None
    alias = s.target(place, "SET")
    c.need("SET")
    values = s.assignments("WHERE")
    where = _where(s)
    c.end()
    new = ", ".join(
        f"{value.text} AS {quoted(name)}"
        for name, value in values.items()
        if value.text.upper() != "DEFAULT"
    )
    rows = f"{quoted(alias)}.*" + (f", {new}" if new else "")
    return place.text, f"SELECT {rows} FROM {place.text} AS {quoted(alias)}{where}"


def _where(s: CommandContext) -> str:
    c = s.cursor
    return f" WHERE {s.expression().text}" if c.took("WHERE") else ""


def _merge(s: CommandContext) -> tuple[str, str] | None:
    from lakelog.spark.sql_statements.commands.merge_statement import merge_source

    c = s.cursor
    c.need("MERGE")
    c.took("WITH", "SCHEMA", "EVOLUTION")
    c.need("INTO")
    place = s.written("MERGE")
    if place is None:
        return None
    alias = s.target(place, "USING")
    c.need("USING")
    source = merge_source(s)
    c.need("ON")
    condition = s.expression("WHEN", what="the condition").text
    first = c.at
    c.skip()
    clauses = " ".join(each.upper for each in c.tokens[first : c.at])
    c.end()
    inserts = "THEN INSERT" in clauses
    join = "INNER"
    if "NOT MATCHED BY SOURCE" in clauses:
        join = "FULL OUTER" if inserts else "LEFT OUTER"
    elif inserts:
        join = "RIGHT OUTER"
    other = source.text
    if source.alias is not None and not source.names_itself:
        other += f" AS {quoted(source.alias)}"
    return (
        place.text,
        f"SELECT * FROM {place.text} AS {quoted(alias)} {join} JOIN {other} ON {condition}",
    )


def _insert(s: CommandContext) -> tuple[str, str] | None:
    from lakelog.spark.sql_statements.commands.insert import insert_query

    found = insert_query(s)
    return None if found is None else (found[0].text, found[1].text)


_QUERIES = {"DELETE": _delete, "UPDATE": _update, "MERGE": _merge, "INSERT": _insert}
