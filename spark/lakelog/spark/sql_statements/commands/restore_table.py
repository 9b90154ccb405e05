"""RESTORE, and AS OF, which names a version of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakelog.spark.sql_statements.commands.context import Command, CommandContext

_VERSION = ("VERSION", "SYSTEM_VERSION")
_TIME = ("TIMESTAMP", "SYSTEM_TIME")


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
