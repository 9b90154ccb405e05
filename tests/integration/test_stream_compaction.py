"""Auto compaction after the batches of a query, where the property of the table asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import lakelog.spark as delta
from lakelog.core import DeltaLog, create_table, read_arrow, write_arrow
from lakelog.spark import DeltaTable, once_per_batch
from support.to_end import to_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_LEAST = "spark.databricks.delta.autoCompact.minNumFiles"
_PROPERTY = {"delta.autoOptimize.autoCompact": "true"}
_BATCHES = 4


@pytest.fixture
def compacting(classic_spark: SparkSession) -> Iterator[SparkSession]:
    """A session in which three small files are many."""
    delta.enable(classic_spark)
    classic_spark.conf.set(_LEAST, "3")
    yield classic_spark
    classic_spark.conf.unset(_LEAST)
    delta.disable(classic_spark)


def _source(folder: Path) -> str:
    """A table of as many files as a query is to have batches."""
    source = str(folder / "source")
    for number in range(_BATCHES):
        write_arrow(source, {"id": [number]}, mode="append")
    return source


def _run(writer: Any, folder: Path, *path: str) -> None:
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    to_end(lambda: writer.trigger(availableNow=True).start(*path))


def _operations(path: str) -> list[str | None]:
    return [each.operation for each in reversed(DeltaLog.for_table(path).history())]


def _ids(path: str) -> list[int]:
    return sorted(read_arrow(path)["id"].to_pylist())


def test_files_of_batches_are_put_together(compacting: SparkSession, tmp_path: Path) -> None:
    source, path = _source(tmp_path), str(tmp_path / "t")
    create_table(path, "id bigint", properties=_PROPERTY)
    stream = compacting.readStream.format("delta").option("maxFilesPerTrigger", 1)
    _run(stream.load(source).writeStream.format("delta"), tmp_path, path)
    assert _operations(path) == [
        "CREATE TABLE", *["STREAMING UPDATE"] * 3, "OPTIMIZE", "STREAMING UPDATE",
    ]  # fmt: skip
    log = DeltaLog.for_table(path)
    assert log.history(2)[1].parameters["auto"] is True
    assert (_ids(path), log.snapshot.num_files) == ([0, 1, 2, 3], 2)
    # What reads the table as a stream meanwhile gets no row again.
    later = compacting.readStream.format("delta").option("startingVersion", 1).load(path)
    copy = str(tmp_path / "copy")
    _run(later.writeStream.format("delta"), tmp_path / "later", copy)
    assert _ids(copy) == [0, 1, 2, 3]


@pytest.mark.parametrize("command", ["append", "merge"])
def test_compaction_is_no_second_commit_of_a_batch(
    compacting: SparkSession, tmp_path: Path, command: str
) -> None:
    source, path = _source(tmp_path), str(tmp_path / "t")
    create_table(path, "id bigint", properties=_PROPERTY)

    def change(batch: DataFrame, _: int) -> None:
        if command == "append":
            batch.write.format("delta").mode("append").save(path)
            return
        table = DeltaTable.forPath(batch.sparkSession, path).alias("t")
        merge = table.merge(batch.alias("s"), "t.id = s.id")
        merge.whenNotMatchedInsertAll().execute()

    once = once_per_batch(path, change, app_id="q")
    stream = compacting.readStream.format("delta").option("maxFilesPerTrigger", 1)
    frame = stream.load(source)
    _run(frame.writeStream.foreachBatch(once), tmp_path)
    operation = {"append": "WRITE", "merge": "MERGE"}[command]
    expected = ["CREATE TABLE", *[operation] * 3, "OPTIMIZE", operation]
    assert _operations(path) == expected
    assert DeltaLog.for_table(path).snapshot.transactions == {"q": _BATCHES - 1}
    # Tried again, as after a crash, a batch that was compacted away is known all the same.
    once(compacting.range(2), 2)
    assert (_operations(path), _ids(path)) == (expected, [0, 1, 2, 3])
