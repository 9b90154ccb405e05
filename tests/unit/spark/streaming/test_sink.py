"""The sink of a query, without a session: which batches are fetched, what is refused."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.actions import AddFile
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.streaming import sink as module
from lakelog.spark.streaming.query_checkpoint import checkpoint_location, query_id
from lakelog.spark.streaming.sink import BatchSink
from lakelog.spark.streaming.stream_writer import DeltaStreamWriter
from lakelog.spark.writing.by_driver import fetched_if_held
from lakelog.spark.writing.options import WriteOptions

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.spark.writing.save import StreamBatch
_SCHEMA = StructType([StructField("id", LongType())])


def _add(rows: int | None, size: int = 100) -> AddFile:
    stats = None if rows is None else f'{{"numRecords":{rows}}}'
    return AddFile(
        path="f", partition_values={}, size=size, modification_time=0, data_change=True, stats=stats
    )


def test_a_batch_is_fetched_only_after_a_small_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    results: list[Any] = [
        [_add(10)], [_add(20_000)], [_add(1)], [_add(1, 9 << 20)], [], None, [_add(None)], [],
    ]  # fmt: skip
    seen: list[StreamBatch] = []

    def save(_: Any, __: Any, options: WriteOptions, batch: StreamBatch) -> Any:
        assert options.batch == ("q", batch.batch_id)
        seen.append(batch)
        return results[len(seen) - 1]

    monkeypatch.setattr(module, "save_batch", save)
    monkeypatch.setattr(module, "query_id", lambda *_: "q")
    monkeypatch.setattr(module, "streamed_tables", lambda *_: frozenset({"another"}))
    monkeypatch.setattr(
        module, "opened_log", lambda _, path, conf, **__: DeltaLog.for_table(path, conf)
    )
    sink = BatchSink(str(tmp_path), {}, WriteOptions(mode="append"), "c")
    frame = cast("Any", SimpleNamespace(schema=_SCHEMA, sparkSession=None))
    for number in range(8):
        sink(frame, number)
    assert [each.fetched for each in seen] == [
        False, True, False, True, False, True, True, False,
    ]  # fmt: skip
    # What travels to a Connect server is what was asked for, and nothing of this process.
    again = pickle.loads(pickle.dumps(sink))
    results.append([])
    again(frame, 8)
    assert not seen[-1].fetched


@pytest.mark.parametrize("target", ["lake.sales.orders", "/its/path"])
def test_a_sink_takes_the_login_of_its_own_catalog_alone_along(target: str) -> None:
    conf = {
        "spark.sql.catalog.lake.uri": "https://unity.example",
        "spark.sql.catalog.lake.auth.token": "for-lake",
        "spark.sql.catalog.other.auth.token": "for-other",
        "spark.hadoop.fs.s3a.secret.key": "for-files",
        "spark.lakelog.commit.service.token": "for-commits",
    }
    sent = pickle.dumps(BatchSink(target, conf, WriteOptions(mode="append"), "c"))
    assert (b"for-lake" in sent) == target.startswith("lake")
    assert b"for-other" not in sent
    assert b"for-commits" not in sent
    assert b"for-files" in sent


def test_a_checkpoint_of_another_table_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "save_batch", lambda *_: [])
    monkeypatch.setattr(module, "query_id", lambda *_: "q")
    monkeypatch.setattr(module, "streamed_tables", lambda *_: frozenset({"another"}))
    monkeypatch.setattr(
        module, "opened_log", lambda _, path, conf, **__: DeltaLog.for_table(path, conf)
    )
    rows, frame = pa.table({"id": [1]}), cast("Any", SimpleNamespace(schema=_SCHEMA))
    frame.sparkSession = None
    write_arrow(tmp_path / "other", rows, app_id="q2", app_version=3)
    write_arrow(tmp_path / "same", rows, app_id="q", app_version=3)
    for name, batch_id, warnings in (
        ("none", 0, 0), ("none", 4, 1), ("other", 0, 0), ("other", 4, 1), ("same", 4, 0),
    ):  # fmt: skip
        caplog.clear()
        sink = BatchSink(str(tmp_path / name), {}, WriteOptions(mode="append"), "/c")
        sink(frame, batch_id)
        sink(frame, batch_id + 1)
        text = f"none of the batches before {batch_id} of the query q"
        assert [text in each for each in caplog.messages].count(True) == warnings


class _Frame:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def toArrow(self) -> Any:  # noqa: N802
        raise self._error


def test_rows_that_spark_does_not_hand_over_are_given_to_a_job() -> None:
    too_big = RuntimeError("Total size of serialized results of 3 tasks (2.0 GiB) is bigger than "
                           "spark.driver.maxResultSize (1024.0 MiB)")  # fmt: skip
    assert fetched_if_held(cast("Any", _Frame(too_big))) is None
    with pytest.raises(RuntimeError, match="cast"):
        fetched_if_held(cast("Any", _Frame(RuntimeError("cast"))))


class _Session:
    def __init__(self, conf: dict[str, str], query: str | None = None) -> None:
        self.conf = conf
        self.sparkContext = self
        self._query = query

    def getLocalProperty(self, key: str) -> str | None:  # noqa: N802
        return self._query if key == "sql.streaming.queryId" else None


def test_where_a_checkpoint_is() -> None:
    bare = cast("Any", _Session({}))
    default = cast("Any", _Session({"spark.sql.streaming.checkpointLocation": "/c"}))
    assert checkpoint_location(default, {"checkpointlocation": "/own"}, "q") == "/own"
    assert checkpoint_location(default, {}, "q") == "/c/q"
    one, two = (checkpoint_location(default, {}, None) for _ in range(2))
    assert one != two
    with pytest.raises(DeltaAnalysisError, match="checkpointLocation must be specified"):
        checkpoint_location(bare, {"checkpointlocation": ""}, "q")


def test_the_query_is_known_to_spark() -> None:
    assert query_id(cast("Any", _Session({}, "5")), "/nowhere") == "5"


def test_the_writer_refuses_other_formats_and_modes() -> None:
    writer = DeltaStreamWriter(cast("Any", None))
    with pytest.raises(DeltaAnalysisError, match="the format must be one of"):
        writer.format("kafka")
    with pytest.raises(DeltaAnalysisError, match="unknown output mode 'apend'"):
        writer.outputMode("apend")
    with pytest.raises(DeltaAnalysisError, match="DELTA_UNSUPPORTED_OUTPUT_MODE"):
        writer.outputMode("UPDATE")
    for trigger in ("continuous", "realTime"):
        with pytest.raises(DeltaAnalysisError, match=rf"trigger\({trigger}='1 minute'\)"):
            writer.trigger(**{trigger: "1 minute"})
