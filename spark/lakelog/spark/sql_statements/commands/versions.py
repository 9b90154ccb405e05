"""DESCRIBE HISTORY and DETAIL, RESTORE, CONVERT TO DELTA."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.create.convert import convert_to_delta
from lakelog.spark.session.session import session_conf
from lakelog.spark.sql_statements.named_tables import path_in
from lakelog.spark.table.convert import parquet_folder, partition_schema
from lakelog.spark.table.delta_table import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakelog.spark.sql_statements.commands.base import Command, CommandContext

_VERSION = ("VERSION", "SYSTEM_VERSION")
_TIME = ("TIMESTAMP", "SYSTEM_TIME")


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


def as_of(s: CommandContext, *stops: str) -> tuple[str, str] | None:
    """Go past `[FOR] VERSION|TIMESTAMP AS OF …`; which of them, and the expression."""
    c = s.cursor
    c.took("FOR")
    if c.word not in (*_VERSION, *_TIME):
        return None
    travel = "version" if c.need_any(*_VERSION, *_TIME) in _VERSION else "timestamp"
    c.need("AS", "OF")
    return travel, c.expression(*stops, what=f"a {travel}").text


def restore(s: CommandContext) -> Command | None:
    """`RESTORE [TABLE] t [TO] VERSION|TIMESTAMP AS OF …`."""
    c = s.cursor
    c.need("RESTORE")
    if c.word == "TABLE" and c.ahead(1) not in ("TO", *_VERSION, *_TIME, "."):
        c.need("TABLE")
    place = s.ours("RESTORE")
    c.took("TO")
    when = as_of(s)
    if when is None:
        raise c.unexpected("VERSION AS OF", "TIMESTAMP AS OF")
    c.end()
    travel, text = when

    def run() -> DataFrame:
        table, moment = s.table(place), s.runner.moment(travel, text)
        if travel == "version":
            return table.restoreToVersion(int(moment))
        return table.restoreToTimestamp(moment)

    return run


def convert(s: CommandContext) -> Command | None:
    """`CONVERT TO DELTA parquet.`/path` [NO STATISTICS] [PARTITIONED BY (columns)]`."""
    c = s.cursor
    c.need("CONVERT", "TO", "DELTA")
    s.is_ours = True
    name = c.name()
    statistics = not c.took("NO", "STATISTICS")
    columns = None
    if c.took("PARTITIONED"):
        c.need("BY")
        columns = c.group().text
    if c.took("NO", "STATISTICS"):
        statistics = False
    c.end()

    def run() -> DataFrame:
        path = path_in(name.parts)
        if path is not None:  # a table already, or an error that there is none
            DeltaTable.forPath(s.spark, path)
            return s.nothing()
        text = f"{name.parts[0]}.`{name.parts[-1]}`" if len(name.parts) > 1 else name.text
        convert_to_delta(
            parquet_folder(text),
            partition_schema(s.spark, columns),
            conf=session_conf(s.spark),
            collect_stats=statistics,
        )
        return s.nothing()

    return run
