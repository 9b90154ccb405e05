"""delta-spark as a process: commands come as JSON lines, answers go back as JSON lines.

It runs in delta-spark's own virtual environment, so it imports nothing of the project's but for a
session that is bridged. `delta_spark_peer.py` is the other end, and says what each command does.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import os
import runpy
import sys
from typing import TYPE_CHECKING, Any

# A neighbour of this file, found because Python runs a script with its folder on the path.
from delta_spark_transaction import (  # type: ignore[import-not-found]  # no package, there
    run_transaction,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def _session(jars: str, confs: dict[str, str], how: list[str]) -> Any:
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .appName("delta-spark-peer")
        .config("spark.jars", jars)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    )
    for key, value in confs.items():
        builder = builder.config(key, value)
    if "bridged" in how:
        import lakelog.spark

        builder = lakelog.spark.bridge(builder, jars=jars.split(","))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


class Server:
    """One public method a command."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark

    def sql(self, text: str) -> list[dict[str, Any]]:
        return self._rows(self.spark.sql(text))

    def write(
        self,
        path: str,
        *,
        source: str,
        mode: str = "append",
        partition_by: list[str] | None = None,
        options: dict[str, str] | None = None,
    ) -> None:
        frame = self.spark.read.parquet(source)
        writer = frame.write.format("delta").mode(mode).options(**(options or {}))
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        writer.save(path)

    def append_rows(self, path: str, *, schema: str, batches: list[list[list[Any]]]) -> None:
        for rows in batches:
            frame = self.spark.createDataFrame([tuple(row) for row in rows], schema)
            frame.coalesce(1).write.format("delta").mode("append").save(path)

    def append_rows_by_lakelog(self, path: str, *, schema: str, rows: list[list[Any]]) -> None:
        import lakelog.spark

        frame = self.spark.createDataFrame([tuple(row) for row in rows], schema)
        lakelog.spark.write(frame).mode("append").save(path)

    def read(self, path: str, *, target: str, options: dict[str, str], where: str | None) -> None:
        self._load(path, options, where).coalesce(1).write.mode("overwrite").parquet(target)

    def count(self, path: str, *, options: dict[str, str], where: str | None) -> int:
        return int(self._load(path, options, where).count())

    def schema(self, path: str, *, options: dict[str, str]) -> str:
        return str(self._load(path, options, None).schema.json())

    def history(self, path: str) -> list[dict[str, Any]]:
        return self.sql(f"DESCRIBE HISTORY delta.`{path}`")

    def detail(self, path: str) -> dict[str, Any]:
        return self.sql(f"DESCRIBE DETAIL delta.`{path}`")[0]

    def stream(self, path: str, *, sink: str, checkpoint: str, options: dict[str, str]) -> None:
        frame = self.spark.readStream.format("delta").options(**options).load(path)
        writer = frame.writeStream.format("delta").trigger(availableNow=True)
        writer.option("checkpointLocation", checkpoint).start(sink).awaitTermination()

    def stream_rows(
        self, path: str, *, checkpoint: str, options: dict[str, str], columns: list[str]
    ) -> list[list[Any]]:
        found: list[list[Any]] = []

        def take(batch: Any, _batch_id: int) -> None:
            names = [each for each in columns if each in batch.columns]
            found.extend(list(row) for row in batch.select(names).collect())

        frame = self.spark.readStream.format("delta").options(**options).load(path)
        writer = frame.writeStream.foreachBatch(take).trigger(availableNow=True)
        writer.option("checkpointLocation", checkpoint).start().awaitTermination()
        return found

    def java_function(self, name: str, *, kind: str, returns: str) -> None:
        self.spark.udf.registerJavaFunction(name, kind, returns)

    def script(self, path: str, *, function: str, args: list[str], alone: bool) -> Any:
        """Whether it stands alone is for those who remember what it did."""
        del alone
        return runpy.run_path(path)[function](self.spark, *args)

    def checkpoint(self, path: str) -> int:
        version = self.version(path)
        self._log(path).checkpoint()
        return version

    def version(self, path: str) -> int:
        none = self.spark._jvm.scala.Option.empty()
        return int(self._log(path).update(False, none, none).version())

    def transaction(self, path: str, *, steps: list[list[Any]]) -> int | None:
        version: int | None = run_transaction(self.spark, path, steps)
        return version

    def row_changes(self, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Run one DELETE or UPDATE after another: nothing, or how it fails."""
        answers: list[dict[str, Any]] = []
        for job in jobs:
            try:
                self._row_change(**job)
                answers.append({})
            except Exception as exc:
                answers.append({"error": _failure(exc)})
        return answers

    def _row_change(
        self, path: str, condition: str | None, values: dict[str, str], alias: str | None
    ) -> None:
        table = self.spark._jvm.io.delta.tables.DeltaTable.forPath(self.spark._jsparkSession, path)
        if alias is not None:
            table = getattr(table, "as")(alias)
        given = [] if condition is None else [condition]
        if values:
            table.updateExpr(*given, values)
        else:
            table.delete(*given)

    def merges(self, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Run one MERGE after another: what it returns, or how it fails."""
        answers: list[dict[str, Any]] = []
        for job in jobs:
            try:
                answers.append({"metrics": self._merge(**job)})
            except Exception as exc:
                answers.append({"error": _failure(exc)})
        return answers

    def _merge(
        self,
        path: str,
        source: str,
        condition: str,
        clauses: list[dict[str, Any]],
        evolution: bool,
    ) -> list[dict[str, Any]]:
        from pyspark.sql import DataFrame

        tables = self.spark._jvm.io.delta.tables.DeltaTable
        rows = getattr(self.spark.read.parquet(source).alias("s"), "_jdf")  # noqa: B009
        table = tables.forPath(self.spark._jsparkSession, path)
        builder = getattr(table, "as")("t").merge(rows, condition)
        if evolution:
            builder = builder.withSchemaEvolution()
        whens = {
            "matched": "whenMatched",
            "not_matched": "whenNotMatched",
            "by_source": "whenNotMatchedBySource",
        }
        for each in clauses:
            when = getattr(builder, whens[each["kind"]])
            clause = when() if each["condition"] is None else when(each["condition"])
            match each["action"]:
                case "delete":
                    builder = clause.delete()
                case "update_all":
                    builder = clause.updateAll()
                case "insert_all":
                    builder = clause.insertAll()
                case "update":
                    builder = clause.updateExpr(each["values"])
                case "insert":
                    builder = clause.insertExpr(each["values"])
        return self._rows(DataFrame(builder.execute(), self.spark))

    def _load(self, path: str, options: dict[str, str], where: str | None) -> Any:
        frame = self.spark.read.format("delta").options(**options).load(path)
        return frame.where(where) if where else frame

    def _log(self, path: str) -> Any:
        logs = self.spark._jvm.org.apache.spark.sql.delta.DeltaLog
        return logs.forTable(self.spark._jsparkSession, path)

    def _rows(self, frame: Any) -> list[dict[str, Any]]:
        return [row.asDict(recursive=True) for row in frame.collect()]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.date | datetime.datetime):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, decimal.Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form here")


def _failure(exc: Exception) -> dict[str, str]:
    java = getattr(exc, "_origin", None) or getattr(exc, "java_exception", None)
    kind = java.getClass().getSimpleName() if java is not None else type(exc).__name__
    return {"kind": kind, "message": str(exc)[:8000]}


def main(session: Callable[[str, dict[str, str], list[str]], Any] = _session) -> None:
    """Serve until stdin closes, by what `session` makes of the process's arguments."""
    # Spark's own words go to stderr; the answers keep the real stdout for themselves.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    jars, confs, *how = sys.argv[1:]
    server = Server(session(jars, json.loads(confs), how))
    print(json.dumps({"result": server.spark.version}), file=answers)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            method = getattr(server, command["op"])
            answer = {"result": method(*command["args"], **command["kwargs"])}
            text = json.dumps(answer, default=_plain)
        except Exception as exc:
            text = json.dumps({"error": _failure(exc)})
        print(text, file=answers)
    server.spark.stop()


if __name__ == "__main__":
    main()
