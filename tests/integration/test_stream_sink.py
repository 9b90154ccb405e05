"""Streams into Delta tables: what a batch commits, once, and how queries are refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import lakelog.spark as delta
from lakelog.core import write_arrow
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import DeltaAnalysisError
from support.to_end import to_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    delta.enable(spark)
    yield spark
    delta.disable(spark)


def _drop(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    """Add a file to the folder that the stream reads, in one step."""
    folder.mkdir(exist_ok=True)
    draft = folder.parent / f"{name}.draft"
    draft.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    draft.rename(folder / f"{name}.json")


def _stream(spark: SparkSession, folder: Path, schema: str = "id long, p string") -> DataFrame:
    reader = spark.readStream.format("json").schema(schema).option("maxFilesPerTrigger", 1)
    return reader.load(str(folder))


def _run(frame: DataFrame, path: Path, source: str = "delta", **options: Any) -> Any:
    writer = frame.writeStream.format(source).trigger(availableNow=True)
    options = {"checkpointLocation": str(path.parent / "checkpoint"), **options}
    return to_end(lambda: writer.options(**options).start(str(path)))


def _query_id(path: Path) -> str:
    return str(json.loads((path.parent / "checkpoint" / "metadata").read_text())["id"])


def _ids(spark: SparkSession, path: Path) -> list[int]:
    return sorted(row.id for row in delta.read(spark).load(str(path)).collect())


def test_each_batch_is_one_commit_that_names_its_query(
    enabled: SparkSession, tmp_path: Path
) -> None:
    folder, path = tmp_path / "in", tmp_path / "t"
    for number in range(3):
        _drop(folder, f"f{number}", {"id": number, "p": "a/b"}, {"id": 10 + number, "p": "c"})
    frame = _stream(enabled, folder)
    query = frame.writeStream.format("delta").partitionBy("p").outputMode("append")
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).queryName("q")
    started = to_end(lambda: query.trigger(availableNow=True).start(str(path)))
    assert started.name == "q"
    log = DeltaLog.for_table(path)
    assert log.snapshot.partition_columns == ["p"]
    assert _ids(enabled, path) == [0, 1, 2, 10, 11, 12]
    history = log.history()
    assert [entry.operation for entry in history] == ["STREAMING UPDATE"] * 3
    entry = history[0]
    assert entry.parameters == {
        "outputMode": "Append",
        "queryId": _query_id(path),
        "epochId": "2",
    }
    assert entry.is_blind_append
    metrics = dict(entry.metrics)
    assert int(metrics.pop("numOutputBytes")) > 0
    assert metrics == {"numAddedFiles": "2", "numRemovedFiles": "0", "numOutputRows": "2"}
    assert log.snapshot.transactions[_query_id(path)] == 2


def test_a_query_goes_on_where_it_was_and_repeats_no_batch(
    enabled: SparkSession, tmp_path: Path
) -> None:
    folder, path = tmp_path / "in", tmp_path / "t"
    _drop(folder, "f0", {"id": 0})
    _drop(folder, "f1", {"id": 1})
    frame = _stream(enabled, folder)
    _run(frame, path)
    # As if Spark had been killed after our commit and before its own note that the batch is done.
    commits = tmp_path / "checkpoint" / "commits"
    (commits / "1").unlink()
    (commits / ".1.crc").unlink(missing_ok=True)
    _run(frame, path)
    assert DeltaLog.for_table(path).snapshot.version == 1
    _drop(folder, "f2", {"id": 2})
    _run(frame, path, "lakelog")
    assert _ids(enabled, path) == [0, 1, 2]
    assert DeltaLog.for_table(path).snapshot.version == 2


def test_complete_mode_replaces_the_rows_with_each_batch(
    enabled: SparkSession, tmp_path: Path
) -> None:
    folder, path = tmp_path / "in", tmp_path / "t"
    _drop(folder, "f0", {"id": 1, "p": "x"}, {"id": 2, "p": "y"})
    _drop(folder, "f1", {"id": 3, "p": "x"})
    counts = _stream(enabled, folder).groupBy("p").count()
    query = delta.write_stream(counts).outputMode("complete").trigger(availableNow=True)
    to_end(lambda: query.start(path, checkpointLocation=str(tmp_path / "checkpoint")))
    rows = delta.read(enabled).load(str(path)).collect()
    assert sorted(tuple(row) for row in rows) == [("x", 2), ("y", 1)]
    history = DeltaLog.for_table(path).history()
    # The first one too, which found no table: it would have replaced what was there.
    assert [each.is_blind_append for each in history] == [False] * len(history)
    entry = history[0]
    assert entry.parameters["outputMode"] == "Complete"
    assert int(dict(entry.metrics)["numRemovedFiles"]) > 0


def test_a_batch_without_rows_is_recorded(enabled: SparkSession, tmp_path: Path) -> None:
    folder, path = tmp_path / "in", tmp_path / "t"
    _drop(folder, "f0", {"id": 0})
    _run(_stream(enabled, folder).where("id > 5"), path)
    snapshot = DeltaLog.for_table(path).snapshot
    assert (snapshot.version, snapshot.num_files) == (0, 0)
    assert snapshot.transactions[_query_id(path)] == 0


def test_new_columns_need_merge_schema(enabled: SparkSession, tmp_path: Path) -> None:
    folder, path = tmp_path / "in", tmp_path / "t"
    _drop(folder, "f0", {"id": 0})
    _run(_stream(enabled, folder), path)
    _drop(folder, "f1", {"id": 1, "p": "x", "n.ew": 7})
    wider = _stream(enabled, folder, "id long, p string, `n.ew` long")
    with pytest.raises(StreamingQueryException, match=r"n\.ew"):
        _run(wider, path)
    assert _ids(enabled, path) == [0]
    _run(wider, path, mergeSchema=True)
    assert DeltaLog.for_table(path).snapshot.schema.names == ["id", "p", "n.ew"]
    assert _ids(enabled, path) == [0, 1]


def test_a_table_is_copied_into_another(enabled: SparkSession, tmp_path: Path) -> None:
    source, path = tmp_path / "in", tmp_path / "t"
    feed = {"delta.enableChangeDataFeed": "true"}
    write_arrow(source, pa.table({"id": [1, 2, 3]}), properties=feed)
    for more in (4, 5):
        stream = enabled.readStream.format("delta").option("maxFilesPerTrigger", 1)
        _run(stream.load(str(source)).selectExpr("id", "id % 2 AS odd"), path)
        write_arrow(source, pa.table({"id": [more]}), mode="append")
    assert _ids(enabled, path) == [1, 2, 3, 4]
    assert DeltaLog.for_table(path).snapshot.transactions == {_query_id(path): 1}
    changes = enabled.readStream.format("delta").option("readChangeFeed", True)
    writer = changes.option("startingVersion", 1).load(str(source)).writeStream
    writer = writer.format("delta").option("checkpointLocation", str(tmp_path / "c2"))
    to_end(lambda: writer.trigger(availableNow=True).start(str(tmp_path / "changes")))
    rows = delta.read(enabled).load(str(tmp_path / "changes")).collect()
    assert sorted((row.id, row._change_type, row._commit_version) for row in rows) == [
        (4, "insert", 1),
        (5, "insert", 2),
    ]


@pytest.mark.connect
def test_what_is_refused_before_a_query_starts(enabled: SparkSession, tmp_path: Path) -> None:
    folder, path = tmp_path / "in", tmp_path / "t"
    _drop(folder, "f0", {"id": 0})
    frame = _stream(enabled, folder)
    writer = frame.writeStream.format("delta")
    with pytest.raises(DeltaAnalysisError, match="checkpointLocation must be specified"):
        writer.start(str(path))
    located = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(DeltaAnalysisError, match="needs the path"):
        located.start()
    with pytest.raises(DeltaAnalysisError, match="checkpointLocation must be specified"):
        frame.writeStream.format("delta").toTable("t")
    with pytest.raises(DeltaAnalysisError, match="DELTA_UNSUPPORTED_OUTPUT_MODE"):
        located.outputMode("update").start(str(path))
    with pytest.raises(DeltaAnalysisError, match="did you mean mergeSchema"):
        located.outputMode("append").start(str(path), mergeShema="true")
    void = frame.selectExpr("id", "null AS v").writeStream.format("delta")
    with pytest.raises(DeltaAnalysisError, match=r"DELTA_NULL_SCHEMA_IN_STREAMING_WRITE.*v of"):
        void.option("checkpointLocation", str(tmp_path / "checkpoint")).start(str(path))
    assert not path.exists()
    assert not (tmp_path / "checkpoint").exists()


def test_other_sinks_are_sparks_own(enabled: SparkSession, tmp_path: Path) -> None:
    folder, path = tmp_path / "in", tmp_path / "t"
    _drop(folder, "f0", {"id": 0})
    writer = _stream(enabled, folder).writeStream.format("parquet").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start(str(path))
    query.awaitTermination()
    assert not (path / "_delta_log").exists()
    assert enabled.read.parquet(str(path)).count() == 1


def test_few_rows_are_written_by_the_driver_and_state_is_kept(
    enabled: SparkSession, tmp_path: Path
) -> None:
    folder, path = tmp_path / "in", tmp_path / "t"
    for number in range(4):
        _drop(folder, f"f{number}", {"id": number % 2, "p": str(number)})
    frame = _stream(enabled, folder).dropDuplicates(["id"])
    _run(frame, path)
    assert _ids(enabled, path) == [0, 1]
    assert DeltaLog.for_table(path).snapshot.version == 3
