"""Streams out of Delta tables: batches, restarts, limits, and what ends a query."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException

import lakelog.spark as delta
from lakelog.core import DeltaLog, delete_rows, write_arrow
from lakelog.core.alter import add_columns
from lakelog.core.errors import DeltaAnalysisError, TableNotFoundError
from support.to_end import to_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def enabled(classic_spark: SparkSession) -> Iterator[SparkSession]:
    delta.enable(classic_spark)
    yield classic_spark
    delta.disable(classic_spark)


def _append(path: Path, *ids: int, **options: Any) -> None:
    rows = pa.table({"a.b": pa.array(ids, pa.int64()), "p": [f"x/{i % 2}" for i in ids]})
    write_arrow(path, rows, mode="append", **options)


def _copy(frame: DataFrame, tmp_path: Path, **trigger: Any) -> Any:
    """Run a query into a table of its own, to the end."""
    writer = frame.writeStream.format("delta").trigger(**(trigger or {"availableNow": True}))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    return to_end(lambda: query.start(str(tmp_path / "out")))


def _sizes(query: Any) -> list[int]:
    return [each.numInputRows for each in query.recentProgress if each.numInputRows]


def _copied(tmp_path: Path) -> list[tuple[int, str]]:
    rows = DeltaLog.for_table(tmp_path / "out").snapshot.to_arrow()
    return sorted(zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True))


def _expected(*ids: int) -> list[tuple[int, str]]:
    return [(i, f"x/{i % 2}") for i in ids]


@pytest.mark.one_day_in(2, 1)
@pytest.mark.parametrize(
    "properties",
    [
        {"delta.enableDeletionVectors": "true"},
        {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"},
    ],
)
def test_a_table_is_copied_batch_by_batch(
    enabled: SparkSession, tmp_path: Path, properties: dict[str, str]
) -> None:
    source = tmp_path / "in"
    _append(source, 1, 2, 3, 4, partition_by=["p"], properties=properties)
    delete_rows(source, "`a.b` = 3")
    _append(source, 5)
    stream = enabled.readStream.format("delta").option("maxFilesPerTrigger", 1)
    query = _copy(stream.load(str(source)), tmp_path)
    assert _copied(tmp_path) == _expected(1, 2, 4, 5)
    assert sorted(_sizes(query)) == [1, 1, 2]
    _append(source, 6)
    _append(source, 7)
    again = _copy(stream.load(str(source)), tmp_path)
    assert _sizes(again) == [1, 1]
    assert _copied(tmp_path) == _expected(1, 2, 4, 5, 6, 7)
    assert _sizes(_copy(stream.load(str(source)), tmp_path)) == []


def test_once_takes_everything_whatever_the_limits(enabled: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    for number in range(3):
        _append(source, number)
    stream = delta.read_stream(enabled).option("maxBytesPerTrigger", "1b")
    query = _copy(stream.option("startingVersion", 1).load(source), tmp_path, once=True)
    assert _sizes(query) == [2]
    assert _copied(tmp_path) == _expected(1, 2)


def test_changes_and_new_columns_end_a_query(enabled: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    _append(source, 1, 2)
    stale = delta.read_stream(enabled).load(source)
    _copy(stale, tmp_path)
    delete_rows(source, "`a.b` = 1")
    with pytest.raises(StreamingQueryException, match="DELTA_SOURCE_TABLE_IGNORE_CHANGES"):
        _copy(stale, tmp_path)
    skipping = delta.read_stream(enabled).option("skipChangeCommits", True)
    frame = skipping.load(source)
    _copy(frame, tmp_path)
    add_columns(source, pa.schema([("n", pa.int64())]))
    _append(source, 5)
    _copy(skipping.load(source).drop("n"), tmp_path)
    assert _copied(tmp_path) == _expected(1, 2, 5)


def test_what_a_stream_refuses(enabled: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    _append(source, 1)
    stream = enabled.readStream.format("delta")
    with pytest.raises(DeltaAnalysisError, match="needs the path"):
        stream.load()
    with pytest.raises(DeltaAnalysisError, match="did you mean maxFilesPerTrigger"):
        stream.load(str(source), maxFilePerTrigger=1)
    for load in (enabled.readStream.format("delta").load, delta.read_stream(enabled).load):
        with pytest.raises(TableNotFoundError) as missing:
            load(str(tmp_path / "nothing"))
        with pytest.raises(TableNotFoundError) as of_batch:
            delta.read(enabled).load(str(tmp_path / "nothing"))
        # The sentence of a batch's read, and no traceback; scripts catch Spark's class.
        assert str(missing.value) == str(of_batch.value)
        assert isinstance(missing.value, AnalysisException)
    for options, message in (
        ({"versionAsOf": 0}, "TIME_TRAVEL_VIEWS.*Use startingVersion"),
        ({"readChangeFeed": True}, "DELTA_MISSING_CHANGE_DATA"),
        ({"maxFilesPerTrigger": 0}, "DELTA_ILLEGAL_OPTION"),
    ):
        with pytest.raises((StreamingQueryException, PySparkException), match=message):
            _copy(delta.read_stream(enabled).options(**options).load(source), tmp_path)
    other = enabled.readStream.format("rate").load()
    assert other.isStreaming


def test_a_table_that_is_read_and_written_by_one_query(
    enabled: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    _append(table, 1, 2, 3)
    for _ in range(3):
        frame = delta.read_stream(enabled).load(table).where("`a.b` < 10")
        shifted = frame.selectExpr("`a.b` + 10 AS `a.b`", "p")
        query = delta.write_stream(shifted).trigger(availableNow=True)
        query = query.option("checkpointLocation", str(tmp_path / "c"))
        to_end(partial(query.start, table))
    rows = DeltaLog.for_table(table).snapshot.to_arrow()["a.b"].to_pylist()
    assert sorted(rows) == [1, 2, 3, 11, 12, 13]


def test_files_that_vacuum_took_are_named_with_the_way_out(
    enabled: SparkSession, tmp_path: Path
) -> None:
    source = tmp_path / "in"
    _append(source, 1, 2)
    (only,) = source.glob("*.parquet")
    only.unlink()
    frame = delta.read_stream(enabled).load(source)
    with pytest.raises(StreamingQueryException) as caught:
        _copy(frame, tmp_path)
    assert only.name in str(caught.value)
    assert "another checkpointLocation" in str(caught.value)
