"""A query from a table into a table, over either kind of session: started, stopped, taken over."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import lakelog.spark as delta
from lakelog.core import DeltaLog, create_table, delete_rows, read_arrow, write_arrow
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import ConcurrentAppendException, ConcurrentTransactionException
from lakelog.spark.session.session import session_conf
from lakelog.spark.streaming.sink import BatchSink
from lakelog.spark.writing.options import WriteOptions
from support.to_end import to_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    delta.enable(spark)
    yield spark
    delta.disable(spark)


def _started(
    spark: SparkSession,
    folder: Path,
    name: str = "copy",
    trigger: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """A query from the table `source` into the one of a name, with a checkpoint of that name."""
    frame = spark.readStream.format("delta").options(**options).load(str(folder / "source"))
    writer = frame.writeStream.format("delta").trigger(**(trigger or {"availableNow": True}))
    writer = writer.option("checkpointLocation", str(folder / f"{name}-checkpoint"))
    return writer.start(str(folder / name))


def _ids(path: Path) -> list[int]:
    return sorted(read_arrow(str(path))["id"].to_pylist())


def _checkpoint(folder: Path, source: str, batches: int) -> None:
    """What Spark notes of a query that reads one Delta table, before each batch."""
    (folder / "offsets").mkdir(parents=True)
    (folder / "metadata").write_text(json.dumps({"id": "one"}))
    offset = json.dumps({"sourceVersion": 1, "reservoirId": source, "reservoirVersion": 1})
    for batch in range(batches):
        (folder / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{offset}")


def _sink(spark: SparkSession, path: str, checkpoint: Path) -> BatchSink:
    conf = session_conf(spark)
    options = WriteOptions.from_options("append", None, {}, DeltaConf.from_mapping(conf))
    return BatchSink(path, conf, options, str(checkpoint))


@pytest.mark.connect
def test_rows_and_changes_of_a_table_arrive(enabled: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    write_arrow(source, {"id": [1, 2]}, properties=FEED)
    to_end(lambda: _started(enabled, tmp_path))
    write_arrow(source, {"id": [3]}, mode="append")
    to_end(lambda: _started(enabled, tmp_path))
    assert _ids(tmp_path / "copy") == [1, 2, 3]

    delete_rows(source, "id = 2")
    feed: dict[str, Any] = {"readChangeFeed": "true", "startingVersion": 0}
    to_end(lambda: _started(enabled, tmp_path, "feed", **feed))
    found = read_arrow(str(tmp_path / "feed"), ["id", "_change_type", "_commit_version"])
    assert sorted(map(tuple, (row.values() for row in found.to_pylist()))) == [
        (1, "insert", 0),
        (2, "delete", 2),
        (2, "insert", 0),
        (3, "insert", 1),
    ]


@pytest.mark.connect
def test_a_query_that_was_stopped_goes_on(enabled: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    write_arrow(source, {"id": [1]})
    query = _started(enabled, tmp_path, trigger={"processingTime": "0 seconds"})
    assert query.isActive
    query.processAllAvailable()
    query.stop()
    assert not query.isActive
    assert query.exception() is None
    write_arrow(source, {"id": [2]}, mode="append")
    again = to_end(lambda: _started(enabled, tmp_path))
    assert again.id == query.id
    assert _ids(tmp_path / "copy") == [1, 2]


def test_a_second_query_with_the_checkpoint_takes_over(
    enabled: SparkSession, tmp_path: Path
) -> None:
    """Spark ends the first one, of whatever session of the application it is."""
    source = str(tmp_path / "source")
    write_arrow(source, {"id": [1]})
    first = _started(enabled, tmp_path, trigger={"processingTime": "0 seconds"})
    first.processAllAvailable()
    second = _started(enabled, tmp_path, trigger={"processingTime": "0 seconds"})
    try:
        assert (first.isActive, second.isActive) == (False, True)
        assert first.id == second.id
        write_arrow(source, {"id": [2]}, mode="append")
        second.processAllAvailable()
        assert _ids(tmp_path / "copy") == [1, 2]
    finally:
        second.stop()


def test_one_of_two_applications_writes_a_batch(
    classic_spark: SparkSession, tmp_path: Path
) -> None:
    """What Spark does not see of each other meets at the table, which has each batch once."""
    path, checkpoint = str(tmp_path / "t"), tmp_path / "checkpoint"
    create_table(path, "id bigint")
    frame = classic_spark.range(3)
    begin = threading.Barrier(2)
    _checkpoint(checkpoint, "another", 3)

    def write(batch: int) -> str:
        sink = _sink(classic_spark, path, checkpoint)
        begin.wait()
        try:
            sink(frame, batch)
        except ConcurrentTransactionException as exc:
            return str(exc)
        return "written, or there already"

    with ThreadPoolExecutor(2) as pool:
        said = [each for batch in range(3) for each in pool.map(write, [batch, batch])]
    assert len(_ids(tmp_path / "t")) == 9
    history = DeltaLog.for_table(path).history(3)
    assert [entry.parameters["epochId"] for entry in history] == ["2", "1", "0"]
    assert said.count("written, or there already") >= 3
    for each in said:
        assert each == "written, or there already" or "DELTA_CONCURRENT_TRANSACTION" in each


@pytest.mark.connect
def test_what_reads_the_table_that_it_writes_is_no_blind_append(
    enabled: SparkSession, tmp_path: Path
) -> None:
    source = str(tmp_path / "source")
    write_arrow(source, {"id": [1, 2]})
    to_end(lambda: _started(enabled, tmp_path))
    to_end(lambda: _started(enabled, tmp_path, "source"))
    assert _ids(tmp_path / "source") == [1, 1, 2, 2]
    (other,) = DeltaLog.for_table(tmp_path / "copy").history()
    newest, _ = DeltaLog.for_table(source).history()
    assert (newest.operation, newest.is_blind_append) == ("STREAMING UPDATE", False)
    assert other.is_blind_append


@pytest.mark.parametrize("reads_itself", [True, False])
def test_a_batch_made_of_its_table_minds_what_others_append(
    classic_spark: SparkSession, tmp_path: Path, reads_itself: bool
) -> None:
    """Of its own files it could not know all; one that reads another table need not know them."""
    path, checkpoint = str(tmp_path / "t"), tmp_path / "checkpoint"
    create_table(path, "id bigint")
    own = DeltaLog.for_table(path).snapshot.metadata.id
    _checkpoint(checkpoint, own if reads_itself else "another", 1)

    def interfere(batches: Any) -> Any:
        write_arrow(path, {"id": [7]}, mode="append")
        yield from batches

    frame = classic_spark.range(1).coalesce(1).mapInArrow(interfere, "id long")
    sink = _sink(classic_spark, path, checkpoint)
    if not reads_itself:
        sink(frame, 0)
        assert _ids(tmp_path / "t") == [0, 7]
        return
    with pytest.raises(ConcurrentAppendException, match="DELTA_CONCURRENT_APPEND"):
        sink(frame, 0)
    assert _ids(tmp_path / "t") == [7]
    sink(classic_spark.range(1), 0)
    assert _ids(tmp_path / "t") == [0, 7]
