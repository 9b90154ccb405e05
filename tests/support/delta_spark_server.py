"""delta-spark as a process: commands come as JSON lines, answers go back as JSON lines.

It runs in delta-spark's own virtual environment, so it imports nothing of the project's.
`delta_spark_peer.py` is the other end, and says what each command does.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import os
import sys
from typing import Any

# A neighbour of this file, found because Python runs a script with its folder on the path.
from delta_spark_transaction import (  # type: ignore[import-not-found]  # no package, there
    run_transaction,
)

# With the first compiler alone Java keeps 48 MB for its code, which Delta's plans overflow: what is
# thrown out is interpreted, and compiled once more.
# To verify the bytecode of Spark's own classes is a sixth of the start.
JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m "
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions "
    "-XX:-BytecodeVerificationRemote"
)


def _session(jars: str, confs: dict[str, str]) -> Any:
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
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        # Compiling well takes longer than a test's few rows.
        .config("spark.driver.extraJavaOptions", JAVA)
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    )
    for key, value in confs.items():
        builder = builder.config(key, value)
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


def main() -> None:
    """Serve until stdin closes."""
    # Spark's own words go to stderr; the answers keep the real stdout for themselves.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    server = Server(_session(sys.argv[1], json.loads(sys.argv[2])))
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
