"""DESCRIBE: the columns of a table, or one of them, as its log has them; HISTORY and DETAIL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.engine.schemas import nearest_field
from lakelog.spark.sql_statements.queries.named_tables import place_of
from lakelog.spark.types.type_sql import type_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakelog.core.schema import StructField
    from lakelog.spark.sql_statements.commands.context import Command, CommandContext
    from lakelog.spark.sql_statements.queries.named_tables import Place

_INFO = "info_name string, info_value string"
_COLUMNS = "col_name string, data_type string, comment string"


def describe(s: CommandContext) -> Command | None:
    """`DESCRIBE HISTORY t [LIMIT n]` and `DESCRIBE DETAIL t`."""
    c = s.cursor
    c.need_any("DESC", "DESCRIBE")
    what = c.need_any("HISTORY", "DETAIL")
    if c.word in ("", ".") and (c.token is None or c.word == "."):
        return None  # a table of that name
    place = s.ours(f"DESCRIBE {what}")
    if what == "DETAIL":
        c.end()
        return lambda: s.table(place).detail()
    limit = c.expression(what="a number").text if c.took("LIMIT") else None
    c.end()

    def run() -> DataFrame:
        return s.table(place).history(None if limit is None else int(s.runner.value(limit)))

    return run


def describe_table(s: CommandContext) -> Command | None:
    """`DESCRIBE [TABLE] [EXTENDED|FORMATTED] t [column]`."""
    c = s.cursor
    c.need_any("DESC", "DESCRIBE")
    if c.ahead(1) != ".":
        c.took("TABLE")
    # A table may also have these names.
    follows = c.at + 1 < len(c.tokens) and c.ahead(1) != "."
    extended = follows and (c.took("EXTENDED") or c.took("FORMATTED"))
    name = c.name()
    if extended and c.has("AS", "JSON") and place_of(s.spark, name.parts) is not None:
        s.is_ours = True
        raise c.error(
            "[NOT_SUPPORTED_COMMAND_FOR_V2_TABLE] DESCRIBE TABLE AS JSON is not supported for "
            "Delta tables. Use DESCRIBE DETAIL, whose row has a toJSON, or the schema of "
            "spark.table(…).schema.json()"
        )
    column = None
    if c.at + 1 == len(c.tokens) and c.token is not None and c.token.name is not None:
        column = c.identifier()
    place = place_of(s.spark, name.parts) if c.at == len(c.tokens) else None
    if place is None:
        return None
    if column is not None:
        return lambda: _described_column(s, place, column)
    return lambda: _described(s, place, extended=extended)


def _described(s: CommandContext, place: Place, *, extended: bool) -> DataFrame:
    snapshot = s.log(place).update()
    rows = [_row(each) for each in snapshot.schema]
    if snapshot.partition_columns:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += [_row(f) for n in snapshot.partition_columns if (f := snapshot.schema.get(n))]
    if extended:
        metadata = snapshot.metadata
        properties = sorted(metadata.configuration.items())
        said = {
            "Name": place.text,
            "Location": snapshot.table,
            "Provider": "delta",
            **({} if metadata.description is None else {"Comment": metadata.description}),
            "Table Properties": f"[{','.join(f'{key}={value}' for key, value in properties)}]",
        }
        rows += [("", "", ""), ("# Detailed Table Information", "", "")]
        rows += [
            (key, value if key != "Table Properties" else f"[{value}]", "")
            for key, value in said.items()
        ]
    return s.answer(_COLUMNS, *rows)


def _described_column(s: CommandContext, place: Place, column: str) -> DataFrame:
    snapshot = s.log(place).update()
    _, field = nearest_field(snapshot.schema, (column,))
    name, kind, comment = _row(field)
    rows = ("col_name", name), ("data_type", kind), ("comment", comment or "NULL")
    return s.answer(_INFO, *rows)


def _row(field: StructField) -> tuple[str, str, str | None]:
    comment = field.metadata.get("comment")
    kind = type_sql(field.data_type).replace("`", "").replace(": ", ":").replace(", ", ",")
    return field.name, kind, None if comment is None else str(comment)
