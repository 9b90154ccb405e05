"""DELETE, UPDATE and TRUNCATE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.core import Operation
from lakelog.core.engine.commit import end_command
from lakelog.spark.dml.delete_update import delete as delete_rows
from lakelog.spark.dml.delete_update import update as update_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakelog.core import DeltaLog
    from lakelog.spark.sql_statements.commands.context import Command, CommandContext
    from lakelog.spark.sql_statements.queries.named_tables import Place
    from lakelog.spark.sql_statements.text.statement import Statement

_AFFECTED = "num_affected_rows bigint"


@dataclass(frozen=True, slots=True)
class RowChange:
    """A DELETE or UPDATE, ready to run."""

    s: CommandContext
    place: Place
    alias: str
    values: dict[str, Statement] | None
    """The new values of an UPDATE."""
    condition: str | None

    def __call__(self) -> DataFrame:
        """Run it, and answer with how many rows it changed."""
        s, log = self.s, self.s.table(self.place).log
        if self.values is None:
            done = delete_rows(s.spark, log, self.condition, self.alias)
        else:
            given = {name: s.runner.expression(value) for name, value in self.values.items()}
            done = update_rows(s.spark, log, given, self.condition, self.alias)
        return s.answer(_AFFECTED, (done,))


def delete(s: CommandContext) -> RowChange | None:
    """`DELETE FROM t [alias] [WHERE condition]`."""
    s.cursor.need("DELETE", "FROM")
    place = s.written("DELETE")
    if place is None:
        return None
    alias = s.target(place, "WHERE")
    return RowChange(s, place, alias, None, _condition(s))


def update(s: CommandContext) -> RowChange | None:
    """`UPDATE t [alias] SET a = 1, … [WHERE condition]`."""
    s.cursor.need("UPDATE")
    place = s.written("UPDATE")
    if place is None:
        return None
    alias = s.target(place, "SET")
    s.cursor.need("SET")
    values = s.assignments("WHERE")
    return RowChange(s, place, alias, values, _condition(s))


def _condition(s: CommandContext) -> str | None:
    found = s.expression().text if s.cursor.took("WHERE") else None
    s.cursor.end()
    return found


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
