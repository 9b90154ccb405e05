"""MERGE INTO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelog.spark.sql_statements.text.statement import Statement
from lakelog.spark.types.path_forms import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from lakelog.spark.dml.merge_builder import DeltaMergeBuilder
    from lakelog.spark.sql_statements.commands.context import CommandContext
    from lakelog.spark.sql_statements.queries.named_tables import Place

_ALL = "*"
_Clause = tuple[str, str, str | None, Any]
"""When, what, the condition, and the values."""


@dataclass(frozen=True, slots=True)
class _Source:
    """What is merged."""

    text: str
    """As it stands after FROM."""
    alias: str | None
    """What expressions call it."""
    names_itself: bool = False
    """Whether the text has the alias, because it has names of columns."""


@dataclass(frozen=True, slots=True)
class MergeCommand:
    """The statement, ready to run."""

    s: CommandContext
    place: Place
    alias: str
    source: _Source
    condition: str
    clauses: Sequence[_Clause]
    evolves: bool

    def __call__(self) -> DataFrame:
        """Run it, and answer with how many rows it changed."""
        s, source = self.s, self.source
        table = s.table(self.place, self.alias)
        frame = s.runner.query(Statement(f"{s.ctes} SELECT * FROM {source.text}"))
        if source.alias is not None:
            frame = frame.alias(source.alias)
        builder = table.merge(frame, self.condition)
        if self.evolves:
            builder = builder.withSchemaEvolution()
        for when, what, test, values in self.clauses:
            if isinstance(values, dict):
                values = {name: s.runner.expression(value) for name, value in values.items()}
            builder = _with(builder, (when, what, test, values))
        return builder.execute()

    def shown_query(self) -> str:
        """The query that finds its rows."""
        inserts = any(what == "insert" for _, what, _, _ in self.clauses)
        join = "RIGHT OUTER" if inserts else "INNER"
        if any(when == "not matched by source" for when, _, _, _ in self.clauses):
            join = "FULL OUTER" if inserts else "LEFT OUTER"
        source = self.source
        other = source.text
        if source.alias is not None and not source.names_itself:
            other += f" AS {quoted(source.alias)}"
        table = f"{self.place.text} AS {quoted(self.alias)}"
        return f"SELECT * FROM {table} {join} JOIN {other} ON {self.condition}"


def merge(s: CommandContext) -> MergeCommand | None:
    """`MERGE [WITH SCHEMA EVOLUTION] INTO t USING source ON condition WHEN … THEN …`."""
    c = s.cursor
    c.need("MERGE")
    evolves = c.took("WITH", "SCHEMA", "EVOLUTION")
    c.need("INTO")
    place = s.written("MERGE")
    if place is None:
        return None
    alias = s.target(place, "USING")
    c.need("USING")
    source = _merge_source(s)
    c.need("ON")
    condition = s.expression("WHEN", what="the condition").text
    clauses = []
    while c.word == "WHEN":
        clauses.append(_clause(s))
    if not clauses:
        raise c.error(
            "[MERGE_WITHOUT_WHEN] There must be at least one WHEN clause in a MERGE statement"
        )
    c.end()
    return MergeCommand(s, place, alias, source, condition, clauses, evolves)


def _merge_source(s: CommandContext) -> _Source:
    """Go past the source."""
    c = s.cursor
    first = c.at
    name = None
    if c.word == "(":
        c.skip_group()
    else:
        name = c.name()
        if c.word == "(":
            c.skip_group()
        else:
            if c.word in ("FOR", "VERSION", "TIMESTAMP"):
                c.skip("ON", "AS")
            if c.took("AS", "OF"):
                c.at += 1
                c.skip("ON", "AS")
    end = c.at
    alias = s.alias("ON")
    if alias is None and name is not None:
        alias = name.parts[-1]
        s.qualifiers.add(name.parts, alias)
    shown = c.text(first, end)
    if alias is not None and c.word == "(":
        columns = c.at
        c.skip_group()
        shown = f"{shown} AS {quoted(alias)}{c.text(columns, c.at)}"
        return _Source(shown, alias, names_itself=True)
    return _Source(shown, alias)


def _clause(s: CommandContext) -> _Clause:
    c = s.cursor
    c.need("WHEN")
    if c.took("MATCHED"):
        when = "matched"
    else:
        c.need("NOT", "MATCHED")
        when = "not matched"
        if c.took("BY", "SOURCE"):
            when = "not matched by source"
        elif c.took("BY"):
            c.need("TARGET")
    condition = None
    if c.took("AND"):
        condition = s.expression("THEN", what="a condition").text
    c.need("THEN")
    if when == "not matched":
        c.need("INSERT")
        return when, "insert", condition, _inserted(s)
    if c.need_any("DELETE", "UPDATE") == "DELETE":
        return when, "delete", condition, None
    c.need("SET")
    if c.took(_ALL):
        if when != "matched":
            raise c.error(
                "[PARSE_SYNTAX_ERROR] UPDATE SET * needs a row of the source, and WHEN NOT MATCHED "
                "BY SOURCE has none: set columns by name",
                c.at - 1,
            )
        return when, "update", condition, _ALL
    return when, "update", condition, s.assignments("WHEN")


def _inserted(s: CommandContext) -> Any:
    c = s.cursor
    if c.took(_ALL):
        return _ALL
    first = c.at
    names = c.names()
    c.need("VALUES")
    begin = c.at
    c.need("(")
    values = [s.expression(",")]
    while c.took(","):
        values.append(s.expression(","))
    c.need(")")
    if len(names) != len(values):
        raise c.error(
            f"[INSERT_COLUMN_ARITY_MISMATCH] {len(names)} columns are named, but there are "
            f"{len(values)} values",
            begin,
        )
    found: dict[str, Statement] = {}
    for name, value in zip(names, values, strict=True):
        if name.text.lower() in {each.lower() for each in found}:
            raise c.error(
                f"[DELTA_DUPLICATE_COLUMNS_ON_INSERT] The column {name.text} is named twice",
                first,
            )
        found[name.text] = value
    return found


def _with(builder: DeltaMergeBuilder, clause: _Clause) -> DeltaMergeBuilder:
    when, what, condition, values = clause
    if what == "insert":
        if values == _ALL:
            return builder.whenNotMatchedInsertAll(condition)
        return builder.whenNotMatchedInsert(condition, values)
    if when == "matched":
        if what == "delete":
            return builder.whenMatchedDelete(condition)
        if values == _ALL:
            return builder.whenMatchedUpdateAll(condition)
        return builder.whenMatchedUpdate(condition, values)
    if what == "delete":
        return builder.whenNotMatchedBySourceDelete(condition)
    return builder.whenNotMatchedBySourceUpdate(condition, values)
