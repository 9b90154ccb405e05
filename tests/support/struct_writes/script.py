"""Writes structs to tables whose structs differ from them, by either engine.

It runs in delta-spark's own environment, too, and so imports nothing of the project's.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

__all__ = ["played"]

_AUTO = "spark.databricks.delta.schema.autoMerge.enabled"
_CONDITION = re.compile(r"\[([A-Z][A-Z_]+)")


def played(spark: Any, folder: str, jobs: str) -> list[Any]:
    """Schema and rows after each write, or the condition of its error.

    Args:
        spark: the session; `delta` is a format of it.
        folder: has nothing yet.
        jobs: as JSON, of each what `cases.StructWrite.job` says.
    """
    made: dict[str, str] = {}
    found = []
    for number, job in enumerate(json.loads(jobs)):
        start = made.get(job["kind"])
        if start is None:
            start = made[job["kind"]] = f"{folder}/made{len(made)}"
            _make(spark, start, job["kind"], job["there"])
        path = f"{folder}/{number}"
        shutil.copytree(start, path)
        spark.conf.set(_AUTO, job["conf"])
        try:
            _write(spark, path, **job["write"])
        except Exception as exc:
            condition = _CONDITION.search(str(exc))
            found.append(condition[1] if condition else type(exc).__name__)
        else:
            frame = spark.read.format("delta").load(path)
            rows = [row.asDict(recursive=True) for row in frame.collect()]
            found.append([frame.schema.simpleString(), sorted(rows, key=json.dumps)])
        finally:
            spark.conf.set(_AUTO, "false")
        shutil.rmtree(path)
    return found


def _make(spark: Any, path: str, kind: str, there: str) -> None:
    """A table with a row. What SQL has no word for is said in its log."""
    is_strict, widens = kind.startswith("NO NULLS IN "), kind.startswith("WIDENED ")
    kind = kind.removeprefix("NO NULLS IN ").removeprefix("WIDENED ")
    properties = "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')" if widens else ""
    spark.sql(f"CREATE TABLE delta.`{path}` (id INT, s {kind}) USING delta {properties}")
    spark.sql(f"INSERT INTO delta.`{path}` SELECT 1, {there}")
    if is_strict:
        log = Path(path, "_delta_log")
        first = log / f"{0:020}.json"
        said, count = re.subn(r'(ontainsNull\\":)true', r"\1false", first.read_text("utf-8"))
        assert count == 1
        first.write_text(said, "utf-8")
        for each in list(log.glob("*.crc")):
            each.unlink()


def _write(
    spark: Any, path: str, *, way: str, query: str, sql: str = "", options: dict[str, str]
) -> None:
    if sql:
        spark.sql(sql.replace("{t}", f"delta.`{path}`"))
        return
    frame = spark.sql(query)
    if way == "stream":
        _stream(spark, path, frame, options)
        return
    if way == "writeTo":
        frame.writeTo(f"delta.`{path}`").options(**options).append()
        return
    writer = frame.write.format("delta").options(**options).mode("append")
    if way == "save":
        writer.save(path)
        return
    name = f"struct_writes_{Path(path).name}"
    spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{path}'")
    try:
        if way == "saveAsTable":
            writer.saveAsTable(name)
        else:
            frame.write.options(**options).insertInto(name)
    finally:
        spark.sql(f"DROP TABLE {name}")


def _stream(spark: Any, path: str, frame: Any, options: dict[str, str]) -> None:
    source, checkpoint = f"{path}-source", f"{path}-checkpoint"
    frame.write.format("delta").save(source)
    rows = spark.readStream.format("delta").load(source)
    writer = rows.writeStream.format("delta").options(checkpointLocation=checkpoint, **options)
    writer.trigger(availableNow=True).start(path).awaitTermination()
