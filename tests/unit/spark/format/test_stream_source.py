"""The stream reader as Spark's planner and executors use it, without either."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from lakelog.core import DeltaLog, delete_rows, table_changes, update_rows, write_arrow
from lakelog.core.alter import add_columns
from lakelog.core.streaming.stream_options import StreamOptions
from lakelog.core.streaming.table_source import StreamSource
from lakelog.spark.format import stream_source
from lakelog.spark.format.data_source import LakelogSource
from lakelog.spark.format.stream_source import stream_reader

if TYPE_CHECKING:
    from pathlib import Path

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles
except ImportError:
    pytest.skip("PySpark before 4.2 has no limits", allow_module_level=True)

WAYS: list[dict[str, str]] = [
    {},
    {"delta.enableDeletionVectors": "true"},
    {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"},
]


def _append(path: Path, *ids: int, **options: Any) -> None:
    rows = pa.table({"a.b": pa.array(ids, pa.int64()), "p": [f"x/{i % 2}" for i in ids]})
    write_arrow(path, rows, mode="append", **options)


def _schema(path: Path) -> StructType:
    text = DeltaLog.for_table(path).snapshot.schema.to_json()
    return StructType.fromJson(json.loads(text))


def _reader(path: Path, **options: Any) -> Any:
    log, wanted = DeltaLog.for_table(path), StreamOptions(**options)
    return stream_reader(log, wanted, _schema(path), changes=False)


def _rows(reader: Any, start: Any, end: Any) -> list[tuple[Any, ...]]:
    """The rows of a batch, each task with nothing but what travels to an executor."""
    found: list[tuple[Any, ...]] = []
    for each in reader.partitions(start, end):
        there, task = pickle.loads(pickle.dumps((reader, each)))
        for batch in there.read(task):
            found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return found


def _copy(reader: Any, at: Any, limit: Any) -> tuple[list[list[int]], Any]:
    batches = []
    while (end := reader.latestOffset(at, limit)) != at:
        batches.append(sorted(row[0] for row in _rows(reader, at, end)))
        reader.commit(end)
        at = json.loads(json.dumps(end))
    return batches, at


@pytest.mark.parametrize("properties", WAYS)
def test_rows_come_once_and_with_their_partition(tmp_path: Path, properties: Any) -> None:
    _append(tmp_path, 1, 2, 3, 4, partition_by=["p"], properties=properties)
    delete_rows(tmp_path, "`a.b` = 3")
    _append(tmp_path, 5)
    reader = _reader(tmp_path, max_files=1)
    start = reader.initialOffset()
    assert start["isStartingVersion"]
    assert [len(each) for each in _copy(reader, start, reader.getDefaultReadLimit())[0]] == [
        len(each) for each in _copy(_reader(tmp_path, max_files=1), start, ReadMaxFiles(1))[0]
    ]
    batches, end = _copy(_reader(tmp_path, max_files=1), start, ReadMaxFiles(1))
    assert sorted(sum(batches, [])) == [1, 2, 4, 5]  # noqa: RUF017
    assert len(batches) == 3
    _append(tmp_path, 6)
    later = _reader(tmp_path)
    assert _copy(later, end, later.getDefaultReadLimit())[0] == [[6]]
    whole = _reader(tmp_path, max_files=1)
    rows = _rows(
        whole, start := whole.initialOffset(), whole.latestOffset(start, ReadAllAvailable())
    )
    assert sorted(rows) == [(i, f"x/{i % 2}") for i in (1, 2, 4, 5, 6)]


def test_a_run_over_what_is_available_stops_there(tmp_path: Path) -> None:
    _append(tmp_path, 1)
    reader = _reader(tmp_path)
    reader.prepareForTriggerAvailableNow()
    _append(tmp_path, 2)
    assert _copy(reader, reader.initialOffset(), ReadMaxFiles(9))[0] == [[1]]


def test_the_limit_that_spark_gets(tmp_path: Path) -> None:
    _append(tmp_path, 1)
    assert _reader(tmp_path).getDefaultReadLimit() == ReadMaxFiles(1000)
    assert _reader(tmp_path, max_files=7, max_bytes=1).getDefaultReadLimit() == ReadMaxFiles(7)
    only_bytes = _reader(tmp_path, max_files=None, max_bytes=1).getDefaultReadLimit()
    assert isinstance(only_bytes, ReadMaxFiles)
    assert isinstance(_reader(tmp_path, max_files=None).getDefaultReadLimit(), ReadAllAvailable)


def test_before_limits_a_batch_takes_all_that_is_new(tmp_path: Path) -> None:
    _append(tmp_path, 1)
    options = StreamOptions(max_files=1)
    source = StreamSource(DeltaLog.for_table(tmp_path), options)
    jobs = stream_source._RowJobs(source, _schema(tmp_path))
    reader = stream_source._WholeReader(jobs, options)
    start = reader.initialOffset()
    _append(tmp_path, 2)
    _append(tmp_path, 3)
    end = reader.latestOffset()
    assert sorted(row[0] for row in _rows(reader, start, end)) == [1, 2, 3]
    assert reader.latestOffset() == end
    assert reader.partitions(end, end) == []


def _changes(path: Path, limit: Any = None, **options: Any) -> list[list[tuple[Any, ...]]]:
    """The changes of each batch, without their times."""
    source = _source(path, readChangeFeed="true", **options)
    schema = source.schema()
    assert schema.names[-3:] == ["_change_type", "_commit_version", "_commit_timestamp"]
    reader: Any = source.streamReader(schema)
    at, batches = reader.initialOffset(), []
    while (end := reader.latestOffset(at, limit or reader.getDefaultReadLimit())) != at:
        rows = _rows(reader, at, end)
        assert all(row[-1] is not None for row in rows)
        batches.append(sorted(row[:-1] for row in rows))
        reader.commit(end)
        at = json.loads(json.dumps(end))
    return batches


@pytest.mark.parametrize("properties", WAYS)
def test_changes_come_as_a_batch_read_has_them(tmp_path: Path, properties: Any) -> None:
    on = {"delta.enableChangeDataFeed": "true", **properties}
    _append(tmp_path, 1, 2, 3, 4, partition_by=["p"], properties=on)
    delete_rows(tmp_path, "`a.b` = 3")
    update_rows(tmp_path, {"a.b": "`a.b` + 10"}, "`a.b` IN (1, 2)")
    _append(tmp_path, 5)
    delete_rows(tmp_path, "p = 'x/0'")
    expected = table_changes(tmp_path, 0).read_all().drop_columns(["_commit_timestamp"])
    rows = sorted(zip(*(column.to_pylist() for column in expected.columns), strict=True))
    assert {row[2] for row in rows} == {
        "insert", "delete", "update_preimage", "update_postimage",
    }  # fmt: skip
    assert _changes(tmp_path, startingVersion=0) == [rows]
    for limits in ({"maxFilesPerTrigger": 1}, {"maxBytesPerTrigger": 1}):
        batches = _changes(tmp_path, startingVersion=0, **limits)
        assert sorted(sum(batches, [])) == rows  # noqa: RUF017
        assert len(batches) >= 5
        # Both images of an update are in one batch.
        updated = [each for each in batches if any(row[2].startswith("update") for row in each)]
        assert len(updated) == 1
    for names in (["_change_type", "a.b"], ["_commit_version"], ["p"]):
        source = _source(
            tmp_path, readChangeFeed="true", startingVersion=0, columns=", ".join(names)
        )
        assert source.schema().names == names
        reader: Any = source.streamReader(source.schema())
        start = reader.initialOffset()
        found = _rows(reader, start, reader.latestOffset(start, ReadAllAvailable()))
        places = [("a.b", "p", "_change_type", "_commit_version").index(name) for name in names]
        assert sorted(found) == sorted(tuple(row[at] for at in places) for row in rows)


def test_changes_without_a_start_begin_with_all_rows(tmp_path: Path) -> None:
    on = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
    _append(tmp_path, 1, 2, properties=on)
    delete_rows(tmp_path, "`a.b` = 1")
    assert _changes(tmp_path) == [[(2, "x/0", "insert", 1)]]
    assert _changes(tmp_path, startingVersion="latest") == []


def _source(path: Path, **options: Any) -> LakelogSource:
    return LakelogSource({"path": str(path), **{k: str(v) for k, v in options.items()}})


def test_what_the_format_refuses_as_a_stream(tmp_path: Path) -> None:
    _append(tmp_path, 1)
    schema = _source(tmp_path).schema()
    assert _source(tmp_path, maxFilesPerTrigger=1).streamReader(schema).initialOffset()
    for options, message in (
        ({"versionAsOf": 0}, "TIME_TRAVEL_VIEWS.*Use startingVersion"),
        ({"maxFilesPerTrigger": 0}, "DELTA_ILLEGAL_OPTION"),
        ({"readChangeFeed": "yes"}, "DELTA_ILLEGAL_OPTION.*readChangeFeed"),
        ({"maxFilePerTrigger": 1}, "did you mean maxFilesPerTrigger"),
    ):
        with pytest.raises(RuntimeError, match=message):
            _source(tmp_path, **options).streamReader(schema)
    add_columns(tmp_path, pa.schema([("n", pa.int64())]))
    # A DataFrame that was made before would lose the column without a word.
    with pytest.raises(RuntimeError, match=r"DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART.* n "):
        _source(tmp_path).streamReader(schema)
    assert _source(tmp_path, columns="a.b, p").streamReader(schema).initialOffset()
