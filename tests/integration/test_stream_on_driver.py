"""Streams whose rows the driver's process reads, by the option `readOnDriver`."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, StreamingQueryException

import lakelog.spark as delta
from lakelog.core import delete_rows, read_arrow, write_arrow
from lakelog.spark.format.stream_on_driver import CAN_READ_ON_DRIVER
from support.to_end import to_end

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.skipif(
    not CAN_READ_ON_DRIVER, reason="PySpark before 4.2 has no limits for such readers"
)

FEED = {"delta.enableChangeDataFeed": "true"}
KINDS = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("d", pa.decimal128(20, 3)),
        pa.field("t", pa.timestamp("us", "UTC")),
        pa.field("n", pa.timestamp("us")),
        pa.field("day", pa.date32()),
        pa.field("b", pa.binary()),
        pa.field("l", pa.list_(pa.struct([("x", pa.int16()), ("y", pa.string())]))),
        pa.field("m", pa.map_(pa.string(), pa.float32())),
    ]
)


def _row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "d": decimal.Decimal(number) / 8,
        "t": dt.datetime(1900, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=number),
        "n": dt.datetime.fromisoformat("2026-01-01") + dt.timedelta(hours=number),
        "day": dt.date(1582, 10, 15),
        "b": bytes([number]),
        "l": [{"x": number, "y": None}] * number,
        "m": [("é", 0.5)],
    }


def _append(path: Path, *numbers: int, **options: Any) -> None:
    rows = pa.Table.from_pylist([*map(_row, numbers), dict.fromkeys(KINDS.names)], KINDS)
    write_arrow(path, rows.slice(0, len(numbers)), mode="append", **options)


def _copied(
    spark: SparkSession, tmp_path: Path, name: str = "out", **options: Any
) -> tuple[list[int], list[dict[str, Any]]]:
    """The sizes of the batches of a query that goes on, and what its sink has."""
    frame = delta.read_stream(spark).option("readOnDriver", True).options(**options)
    writer = delta.write_stream(frame.load(tmp_path / "in")).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / f"{name} checkpoint"))
    started = to_end(lambda: query.start(str(tmp_path / name)))
    sizes = [each.numInputRows for each in started.recentProgress if each.numInputRows]
    return sizes, read_arrow(str(tmp_path / name)).sort_by("id").to_pylist()


def test_a_query_begins_goes_on_and_keeps_to_its_limits(
    classic_spark: SparkSession, tmp_path: Path
) -> None:
    source = tmp_path / "in"
    _append(source, 1, 2, 3, properties={"delta.enableDeletionVectors": "true"})
    delete_rows(str(source), "id = 2")
    _append(source, 4)
    sizes, rows = _copied(classic_spark, tmp_path, maxFilesPerTrigger=1)
    assert sizes == [2, 1]
    wanted = read_arrow(str(source)).sort_by("id").to_pylist()
    assert rows == wanted
    assert [row["id"] for row in rows] == [1, 3, 4]
    for number in (5, 6):
        _append(source, number)
    assert _copied(classic_spark, tmp_path, maxBytesPerTrigger="1b")[0] == [1, 1]
    # By tasks again, and back: the offsets are the same ones.
    _append(source, 7)
    assert _copied(classic_spark, tmp_path, readOnDriver=False)[0] == [1]
    _append(source, 8, 9)
    sizes, rows = _copied(classic_spark, tmp_path)
    assert sizes == [2]
    assert [row["id"] for row in rows] == [1, 3, 4, 5, 6, 7, 8, 9]
    assert _copied(classic_spark, tmp_path)[0] == []


def test_the_rows_come_with_the_plan(classic_spark: SparkSession, tmp_path: Path) -> None:
    """No task reads a file: there is none any more when the first could."""
    source = tmp_path / "in"
    _append(source, 1, 2)
    found: list[int] = []

    def use(batch: DataFrame, _: int) -> None:
        for file in source.glob("*.parquet"):
            file.unlink()
        found.extend(row["id"] for row in batch.collect())

    frame = delta.read_stream(classic_spark).option("readOnDriver", True).load(source)
    query = frame.writeStream.foreachBatch(use).trigger(availableNow=True)
    to_end(query.option("checkpointLocation", str(tmp_path / "checkpoint")).start)
    assert sorted(found) == [1, 2]


@pytest.mark.connect
def test_changes_are_read_as_well(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    _append(source, 1, 2, properties=FEED)
    delete_rows(str(source), "id = 1")
    _, rows = _copied(spark, tmp_path, readChangeFeed=True, startingVersion=0)
    found = sorted((row["id"], row["_change_type"], row["_commit_version"]) for row in rows)
    assert found == [(1, "delete", 1), (1, "insert", 0), (2, "insert", 0)]


def test_a_batch_that_was_planned_before_a_restart_is_read_again(
    classic_spark: SparkSession, tmp_path: Path
) -> None:
    """By a task: the process that had its rows is gone."""
    source = tmp_path / "in"
    found: list[tuple[int, list[int]]] = []

    def use(batch: DataFrame, number: int) -> None:
        found.append((number, sorted(row["id"] for row in batch.collect())))

    def go_on() -> None:
        frame = delta.read_stream(classic_spark).option("readOnDriver", True).load(source)
        query = frame.writeStream.foreachBatch(use).trigger(availableNow=True)
        to_end(query.option("checkpointLocation", str(tmp_path / "checkpoint")).start)

    _append(source, 1, 2)
    go_on()
    _append(source, 3)
    go_on()
    for name in ("1", ".1.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink(missing_ok=True)
    _append(source, 4)
    go_on()
    assert found == [(0, [1, 2]), (1, [3]), (1, [3]), (2, [4])]


def test_what_it_refuses(classic_spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    _append(source, 1)
    with pytest.raises((PySparkException, StreamingQueryException), match=r"readOnDriver.*true"):
        _copied(classic_spark, tmp_path, readOnDriver="maybe")
    with pytest.raises((PySparkException, StreamingQueryException), match="TIME_TRAVEL_VIEWS"):
        _copied(classic_spark, tmp_path, versionAsOf=0)
    with pytest.raises((PySparkException, StreamingQueryException), match="ILLEGAL_OPTION"):
        _copied(classic_spark, tmp_path, maxFilesPerTrigger=0)
    delete_rows(str(source), "id = 1")
    with pytest.raises(StreamingQueryException, match="DELTA_SOURCE_IGNORE_DELETE"):
        _copied(classic_spark, tmp_path, startingVersion=0)
