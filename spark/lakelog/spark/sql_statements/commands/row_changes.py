"""DELETE, UPDATE and TRUNCATE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core import Operation
from lakelog.core.engine.commit import end_command
from lakelog.spark.dml.delete_update import delete as delete_rows
from lakelog.spark.dml.delete_update import update as update_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakelog.core import DeltaLog
    from lakelog.spark.sql_statements.commands.context import Command, CommandContext

_AFFECTED = "num_affected_rows bigint"


def delete(s: CommandContext) -> Command | None:
    """`DELETE FROM t [alias] [WHERE condition]`."""
    c = s.cursor
    c.need("DELETE", "FROM")
    place = s.written("DELETE")
    if place is None:
        return None
    alias = s.target(place, "WHERE")
    condition = s.expression().text if c.took("WHERE") else None
    c.end()

    def run() -> DataFrame:
        table = s.table(place)
        return s.answer(_AFFECTED, (delete_rows(s.spark, table.log, condition, alias),))

    return run


def update(s: CommandContext) -> Command | None:
    """`UPDATE t [alias] SET a = 1, … [WHERE condition]`."""
    c = s.cursor
    c.need("UPDATE")
    place = s.written("UPDATE")
    if place is None:
        return None
    alias = s.target(place, "SET")
    c.need("SET")
    values = s.assignments("WHERE")
    condition = s.expression().text if c.took("WHERE") else None
    c.end()

    def run() -> DataFrame:
        table = s.table(place)
        given = {name: s.runner.expression(value) for name, value in values.items()}
        done = update_rows(s.spark, table.log, given, condition, alias)
        return s.answer(_AFFECTED, (done,))

    return run


def truncate(s: CommandContext) -> Command | None:
    """`TRUNCATE TABLE t`; a partition of it can't be named."""
    c = s.cursor
    c.need("TRUNCATE", "TABLE")
    place = s.place()
    if place is None:
        return None
    if c.word == "PARTITION":
        raise c.error(
            "[DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED] Operation not allowed: TRUNCATE TABLE "
            "on Delta tables does not support partition predicates; use DELETE"
        )
    c.end()

    def run() -> DataFrame:
        _truncate(s.log(place))
        return s.nothing()

    return run


def _truncate(log: DeltaLog) -> None:
    """Take all files out of a table, in one commit that says so."""
    txn = log.start_transaction()
    txn.changes.terms.check_writable(log.table)
    txn.changes.assert_removable()
    began, now = log.clock.monotonic(), log.clock.now_ms()
    removed = [each.remove(now) for each in txn.filter_files()]
    metrics = {
        "numRemovedFiles": len(removed),
        "executionTimeMs": round(1000 * (log.clock.monotonic() - began)),
    }
    end_command(txn, removed, Operation("TRUNCATE", {}, metrics))
