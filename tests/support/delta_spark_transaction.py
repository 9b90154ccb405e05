"""One transaction of delta-spark's own, step by step; runs in delta-spark's process.

`support/differential/scenario.py` says what the steps are. It imports nothing of the project's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONFS = {
    # Several operations fail without the metrics that their commands measure.
    "spark.databricks.delta.history.metricsEnabled": "false",
    # The rest is speed: tables of two files, hundreds of times.
    "spark.databricks.delta.snapshotCache.storageLevel": "NONE",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


def run_transaction(spark: Any, path: str, steps: list[list[Any]]) -> int | None:
    """Run one transaction on a table.

    Returns:
        The version that its last step committed, or None for a commit that was not needed.
    """
    before = {key: spark.conf.get(key, None) for key in _CONFS}
    for key, value in _CONFS.items():
        spark.conf.set(key, value)
    try:
        return JvmTransaction(spark, path).run(steps)
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


class JvmTransaction:
    """`OptimisticTransaction` on the JVM, driven by py4j.

    Args:
        spark: the session.
        path: the table.
    """

    def __init__(self, spark: Any, path: str) -> None:
        self._spark = spark._jsparkSession
        self._jvm = spark._jvm
        self._delta = spark._jvm.org.apache.spark.sql.delta
        self._path = path
        self._log = self._delta.DeltaLog.forTable(self._spark, path)
        self._txn = self._log.startTransaction()
        self._next = self._txn.readVersion() + 1

    def run(self, steps: list[list[Any]]) -> int | None:
        """Run all steps; the last one commits."""
        done = None
        for kind, args in steps:
            done = getattr(self, kind)(*args)
        return done

    def reads(self, condition: str | None) -> None:
        if condition is None:
            self._txn.filterFiles()
        else:
            self._txn.filterFiles(self._seq(list(_conjuncts(self._resolved(condition)))), False)

    def reads_whole_table(self) -> None:
        self._txn.readWholeTable()

    def reads_app(self, app_id: str) -> None:
        self._txn.txnVersion(app_id)

    def replaces_partitions_of(self, adds: list[Any]) -> None:
        self._txn.filterFiles(self._actions(adds))

    def sets_metadata(self, line: Any) -> None:
        self._txn.updateMetadata(self._action(line), False)

    def wins(self, lines: list[Any]) -> None:
        file = Path(self._path) / "_delta_log" / f"{self._next:020d}.json"
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        self._next += 1

    def commits(self, operation: str, lines: list[Any]) -> int:
        return int(self._txn.commit(self._actions(lines), self._operation(operation)))

    def commits_if_needed(self, operation: str, lines: list[Any]) -> int | None:
        no_tags = getattr(self._txn, "commitIfNeeded$default$3")()
        done = self._txn.commitIfNeeded(self._actions(lines), self._operation(operation), no_tags)
        return int(done.get()) if done.isDefined() else None

    def _resolved(self, condition: str) -> Any:
        """The condition as a command of delta-spark's has it: bound to the table's columns."""
        nothing = self._jvm.java.util.ArrayList()
        rows = self._spark.createDataFrame(nothing, self._txn.snapshot().schema())
        return rows.filter(condition).queryExecution().analyzed().condition()

    def _operation(self, name: str) -> Any:
        kinds = self._delta.DeltaOperations
        none = self._jvm.scala.Option.empty()
        nothing = self._seq([])
        match name:
            case "WRITE":
                append = self._jvm.org.apache.spark.sql.SaveMode.Append
                return kinds.Write(append, none, none, none, none, none, none, none, none)
            case "DELETE":
                return kinds.Delete(nothing)
            case "UPDATE":
                return kinds.Update(none)
            case "TRUNCATE":
                return kinds.Truncate()
            case "OPTIMIZE":
                return kinds.Optimize(nothing, nothing, False, none, False)
            case "SET TBLPROPERTIES":
                return kinds.SetTableProperties(self._no_map())
            case "UPGRADE PROTOCOL":
                return kinds.UpgradeProtocol(self._txn.protocol())
            case "RESTORE":
                return kinds.Restore(none, none)
            case "ROW TRACKING BACKFILL":
                return kinds.RowTrackingBackfill(0)
            case "ROW TRACKING UNBACKFILL":
                return kinds.RowTrackingUnBackfill(0)
            case "Manual Update":
                return getattr(kinds, "ManualUpdate$").__getattr__("MODULE$")
            case _:
                raise ValueError(f"no operation {name!r} here")

    def _no_map(self) -> Any:
        return getattr(self._jvm.scala.collection.immutable, "Map$").__getattr__("MODULE$").empty()

    def _actions(self, lines: list[Any]) -> Any:
        return self._seq([self._action(line) for line in lines])

    def _action(self, line: Any) -> Any:
        return self._delta.actions.Action.fromJson(json.dumps(line))

    def _seq(self, items: list[Any]) -> Any:
        return self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(items)


def _conjuncts(condition: Any) -> Iterator[Any]:
    """Its parts, as commands of delta-spark's split it before they ask for files."""
    if condition.getClass().getSimpleName() == "And":
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition
