"""One query's checkpoint, continued in turns by us and by delta-spark."""

from __future__ import annotations

import json
import re
import shutil
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, StreamingQueryException

import lakelog.spark as delta
from lakelog.core import DeltaLog, delete_rows, table_changes, update_rows, write_arrow
from lakelog.core.alter import add_columns, rename_column
from support.delta_spark_peer import DeltaSparkError
from support.to_end import to_end

LIMIT = {"maxFilesPerTrigger": "2"}


def append(path, *ids):
    for i in ids:
        write_arrow(path, pa.table({"id": [i], "p": [f"x {i % 2}"]}), mode="append")


def by_us(spark, source, sink, checkpoint, options=LIMIT):
    frame = delta.read_stream(spark).options(**options).load(source)
    writer = delta.write_stream(frame).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(checkpoint))
    to_end(lambda: writer.start(sink))


def ids(path):
    return sorted(DeltaLog.for_table(path).snapshot.to_arrow()["id"].to_pylist())


def offsets(checkpoint):
    """The offset of each batch, as the checkpoint has it."""
    found = {}
    for path in (checkpoint / "offsets").glob("[0-9]*"):
        found[int(path.name)] = json.loads(path.read_text().splitlines()[2])
    return [found[batch] for batch in sorted(found)]


def back_to_first_batch(checkpoint):
    """As if the query had been stopped after its first batch."""
    for folder in ("offsets", "commits"):
        for path in (checkpoint / folder).iterdir():
            if path.name.strip(".").split(".")[0] != "0":
                path.unlink()


@pytest.mark.one_day_in(3)
def test_a_checkpoint_is_continued_in_turns(delta_spark, spark, tmp_path):
    source, sink, checkpoint = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"
    append(source, 1, 2, 3)
    delta_spark.stream(source, sink, checkpoint, LIMIT)
    append(source, 4, 5, 6)
    by_us(spark, source, sink, checkpoint)
    append(source, 7, 8, 9)
    delta_spark.stream(source, sink, checkpoint, LIMIT)
    append(source, 10)
    by_us(spark, source, sink, checkpoint)
    assert ids(sink) == list(range(1, 11))
    # One query wrote all of it: a commit for each batch, under one id.
    query = json.loads((checkpoint / "metadata").read_text())["id"]
    history = DeltaLog.for_table(sink).history()
    assert {each.operation for each in history} == {"STREAMING UPDATE"}
    assert {each.parameters["queryId"] for each in history} == {query}
    engines = ["lakelog" in (each.engine_info or "") for each in reversed(history)]
    batches = [int(each.parameters["epochId"]) for each in reversed(history)]
    assert batches == list(range(len(history)))
    assert True in engines
    assert False in engines
    for offset in offsets(checkpoint):
        assert list(offset) == [
            "sourceVersion", "reservoirId", "reservoirVersion", "index", "isStartingVersion",
        ]  # fmt: skip


@pytest.mark.one_day_in(3, 1)
def test_the_first_rows_are_continued_in_the_middle(delta_spark, spark, tmp_path):
    source = tmp_path / "in"
    append(source, *range(5))
    delete_rows(source, "id = 3")
    for name, first, second in (
        ("theirs", delta_spark.stream, None),
        ("ours", None, delta_spark.stream),
    ):
        checkpoint = tmp_path / f"checkpoint-{name}"
        one, two, sink = (tmp_path / f"{name}-{part}" for part in ("one", "two", "all"))
        for run, target in ((first, sink), (second, two)):
            if run is None:
                by_us(spark, source, target, checkpoint)
            else:
                run(source, target, checkpoint, LIMIT)
            if target == sink:
                # The rows of the first batch alone, and the checkpoint as it was then.
                state = DeltaLog.for_table(sink).snapshot_at(0).to_arrow()
                write_arrow(one, state, mode="append")
                back_to_first_batch(checkpoint)
                assert offsets(checkpoint)[0]["isStartingVersion"]
        assert sorted(ids(one) + ids(two)) == [0, 1, 2, 4], name
        shutil.rmtree(sink)


FEED = {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"}
VECTORS = {**FEED, "delta.enableDeletionVectors": "true"}


def changes(rows):
    """What happened to which row in which version, at what time."""
    names = ["id", "p", "_change_type", "_commit_version", "_commit_timestamp"]
    return sorted(zip(*(rows[name].to_pylist() for name in names), strict=True))


@pytest.mark.one_day_in(3, 2)
def test_changes_are_continued_in_turns(delta_spark, spark, tmp_path):
    for name, properties in (("plain", FEED), ("vectors", VECTORS)):
        source, sink = tmp_path / name, tmp_path / f"{name}-out"
        checkpoint = tmp_path / f"{name}-checkpoint"
        options = {**LIMIT, "readChangeFeed": "true", "startingVersion": "0"}
        rows = pa.table({"id": [1, 2, 3, 4], "p": ["x 1", "x 0", "x 1", "x 0"]})
        write_arrow(source, rows, mode="append", partition_by=["p"], properties=properties)
        delete_rows(source, "id = 1")
        delta_spark.stream(source, sink, checkpoint, options)
        update_rows(source, {"id": "id + 10"}, "id IN (2, 3)")
        append(source, 5, 6, 7)
        by_us(spark, source, sink, checkpoint, options)
        delete_rows(source, "p = 'x 0'")
        append(source, 8)
        delta_spark.stream(source, sink, checkpoint, options)
        delete_rows(source, "id = 7")
        by_us(spark, source, sink, checkpoint, options)
        seen = changes(DeltaLog.for_table(sink).snapshot.to_arrow())
        assert seen == changes(table_changes(source, 0).read_all())
        assert {row[2] for row in seen} == {
            "insert", "delete", "update_preimage", "update_postimage",
        }  # fmt: skip


@pytest.mark.one_day_in(3)
def test_changes_that_begin_with_all_rows_are_the_same(delta_spark, spark, tmp_path):
    source = tmp_path / "in"
    for i in range(5):
        rows = pa.table({"id": [i], "p": [f"x {i % 2}"]})
        write_arrow(source, rows, mode="append", properties=VECTORS if not i else None)
    delete_rows(source, "id = 3")
    options = {**LIMIT, "readChangeData": "true"}
    seen: list[tuple[list[Any], list[Any]]] = []
    for run in (delta_spark.stream, lambda *given: by_us(spark, *given)):
        sink, checkpoint = tmp_path / f"out-{len(seen)}", tmp_path / f"checkpoint-{len(seen)}"
        run(source, sink, checkpoint, options)
        seen.append((changes(DeltaLog.for_table(sink).snapshot.to_arrow()), offsets(checkpoint)))
    assert seen[0] == seen[1]
    assert [row[2:4] for row in seen[0][0]] == [("insert", 5)] * 4


@pytest.mark.one_day_in(3, 1)
def test_columns_are_tracked_in_turns(delta_spark, spark, tmp_path):
    source, sink, checkpoint = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"
    options = {**LIMIT, "schemaTrackingLocation": str(checkpoint / "columns")}
    mapped = {"delta.columnMapping.mode": "name"}
    rows = pa.table({"id": [1], "p": ["x 1"]})
    write_arrow(source, rows, mode="append", properties=mapped)
    delta_spark.stream(source, sink, checkpoint, options)
    append(source, 2)
    add_columns(source, pa.schema([("n", pa.int64())]))
    append(source, 3)
    with pytest.raises(StreamingQueryException, match="DELTA_STREAMING_METADATA_EVOLUTION"):
        by_us(spark, source, sink, checkpoint, options)
    assert ids(sink) == [1, 2]
    add_columns(sink, pa.schema([("n", pa.int64())]))
    delta_spark.stream(source, sink, checkpoint, options)
    assert ids(sink) == [1, 2, 3]
    rename_column(source, "p", "renamed")
    write_arrow(source, pa.table({"id": [4], "renamed": ["x"]}), mode="append")
    with pytest.raises(DeltaSparkError, match="DELTA_STREAMING_METADATA_EVOLUTION"):
        delta_spark.stream(source, sink, checkpoint, options)
    condition = "CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
    with pytest.raises(DeltaSparkError, match=condition) as theirs:
        delta_spark.stream(source, sink, checkpoint, options)
    with pytest.raises(PySparkException, match=condition) as ours:
        by_us(spark, source, sink, checkpoint, options)
    # By the same names the change can be allowed.
    asked = [re.findall(r"allowSource\w+(?:\.ckpt_-?\d+)?", str(e.value)) for e in (theirs, ours)]
    assert set(asked[0]) == set(asked[1])
    add_columns(sink, pa.schema([("renamed", pa.string())]))
    allowed = {**options, "allowSourceColumnRename": "always"}
    by_us(spark, source, sink, checkpoint, allowed)
    more = pa.table({"id": [5], "renamed": ["y"]})
    write_arrow(source, more, mode="append")
    delta_spark.stream(source, sink, checkpoint, allowed)
    found = DeltaLog.for_table(sink).snapshot.to_arrow().sort_by("id")
    assert found["id"].to_pylist() == [1, 2, 3, 4, 5]
    assert found["renamed"].to_pylist() == [None, None, None, "x", "y"]
    entries = sorted((checkpoint / "columns").glob("_schema_log_*/[0-9]*"))
    versions = [json.loads(each.read_text().splitlines()[1]) for each in entries]
    paths = {each["sourceMetadataPath"] for each in versions}
    assert paths == {f"file:{checkpoint}/sources/0"}
    assert len({frozenset(each) for each in versions}) == 1
