"""Replay of a log by Spark: the same files as the core's own replay, whatever the log holds."""

from __future__ import annotations

import json
import logging
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakelog.spark as delta
from lakelog.core import DeltaLog, write_arrow
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import (
    CorruptCheckpointError,
    CorruptCommitError,
    DeltaAnalysisError,
    LogGapError,
)
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.spark.replay.logs import forget_logs
from lakelog.spark.replay.spark_replayer import SparkReplayer, replayer_for
from support.examples import examples
from support.raw_log import PROTOCOL, RawLog, add, metadata, remove
from support.samples import numbers
from support.v2_checkpoints import convert

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakelog.core.state.snapshot import Snapshot

MODE, LEAST = "spark.lakelog.replay", "spark.lakelog.replay.minBytes"
SCHEMA = StructType(
    tuple(StructField(n, PrimitiveType(k)) for n, k in (("id", "long"), ("p", "string")))
)
NOW = 1_700_000_000_000
FILTERS = ("p = 'x'", "p IS NULL", "id > 4", "p = 'y' AND id <= 4", "false")

vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 4, "cardinality": 1}
vectors = st.sampled_from([None, None, vector, {**vector, "offset": 1}])
names = st.sampled_from(["a", "b", "c%20d", "p=x/e", "p=x%2525/f", "/abs/g", "h"])
bounds = st.integers(0, 9).map(
    lambda i: json.dumps({"numRecords": 1, "minValues": {"id": i}, "maxValues": {"id": i}})
)
adds = st.builds(
    lambda path, p, dv, tags, stats, size: add(
        path, partitionValues={"p": p}, deletionVector=dv, tags=tags, stats=stats, size=size
    ),
    names,
    st.sampled_from([None, "x", "y", ""]),
    vectors,
    st.none() | st.just({"t": "1", "u": None}),
    st.none() | st.just("{") | bounds,
    st.integers(0, 1 << 40),
)
removes = st.builds(
    lambda path, dv: remove(path, NOW - 1, deletionVector=dv, extendedFileMetadata=True),
    names,
    vectors,
)
others = st.sampled_from([{"txn": {"appId": "x", "version": 1}}, {"commitInfo": {}}])
commits = st.lists(st.lists(adds | adds | removes | others, min_size=1, max_size=5), max_size=7)
FORMS = ("none", "classic", "multi-part", "v2 json", "v2 parquet", "v2 classic")


def new_log(path: Path) -> RawLog:
    log = RawLog(path)
    return log.commit(PROTOCOL, metadata(partition_columns=("p",), schema=SCHEMA))


def checkpoint(log: RawLog, at: int, form: str, sidecars: int | None) -> None:
    if form == "none":
        return
    conf = {"spark.databricks.delta.checkpoint.partSize": "3"} if form == "multi-part" else {}
    DeltaLog.for_table(log.table, conf).checkpoint(at)
    if form.startswith("v2"):
        convert(log, at, form.removeprefix("v2 "), sidecars=sidecars)  # type: ignore[arg-type]
    for version in range(at):
        log.path(version).unlink()


def opened(
    spark: SparkSession,
    table: str,
    conf: Mapping[str, str] | None = None,
    version: int | None = None,
) -> Snapshot:
    settings = DeltaConf.from_mapping({MODE: "spark", **(conf or {})})
    log = DeltaLog.for_table(table, settings, replayer=replayer_for(spark, settings))
    return log.update() if version is None else log.snapshot_at(version)


def rows(table: Any) -> list[Any]:
    return sorted(table.to_pylist(), key=str)


@settings(
    max_examples=examples(5),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(commits, st.sampled_from(FORMS), st.none() | st.integers(1, 3), st.data())
@pytest.mark.timeout(280)
def test_any_history_gives_the_files_that_the_core_gives(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    made: list[Any],
    form: str,
    sidecars: int | None,
    data: st.DataObject,
) -> None:
    log = new_log(tmp_path_factory.mktemp("t"))
    for actions in made:
        log.commit(*actions)
    checkpoint(log, data.draw(st.integers(0, len(made))), form, sidecars)
    ours, theirs = DeltaLog.for_table(log.table).snapshot, opened(spark, log.table)
    condition = data.draw(st.sampled_from(FILTERS))
    chosen = theirs.file_table_for(condition)
    # The filter came first: nothing else was read for it.
    assert not theirs.state.files.is_at_hand
    assert chosen.schema == ours.file_table.schema
    assert rows(chosen) == rows(ours.file_table_for(condition))
    assert theirs.file_table.schema == ours.file_table.schema
    assert rows(theirs.file_table) == rows(ours.file_table)
    assert theirs.tombstones.schema == ours.tombstones.schema
    assert rows(theirs.tombstones) == rows(ours.tombstones)
    assert (theirs.version, theirs.transactions) == (ours.version, ours.transactions)
    assert theirs.commit_info == ours.commit_info
    shutil.rmtree(log.table)


@pytest.mark.connect
def test_a_large_log_is_dealt_to_many_tasks(spark: SparkSession, tmp_path: Path) -> None:
    log = new_log(tmp_path / "t")
    for version in range(900):
        # Some paths come again and again, some go.
        actions = [add(f"f{version % 700}", partitionValues={"p": "xy"[version % 2]}, size=version)]
        actions += [remove(f"f{version - 5}")] if version % 3 == 0 else []
        log.commit(*actions)
    ours, theirs = DeltaLog.for_table(log.table).snapshot, opened(spark, log.table)
    assert rows(theirs.file_table_for("p = 'x'")) == rows(ours.file_table_for("p = 'x'"))
    assert rows(theirs.tombstones) == rows(ours.tombstones)


def test_commits_that_come_later_are_applied_to_what_spark_chose(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = new_log(tmp_path / "t").commit(
        *(add(f"f{i}", partitionValues={"p": "xy"[i % 2]}) for i in range(6))
    )
    settings = DeltaConf.from_mapping({MODE: "spark"})
    ours = DeltaLog.for_table(log.table)
    theirs = DeltaLog.for_table(log.table, settings, replayer=replayer_for(spark, settings))
    assert theirs.update().version == ours.update().version == 1
    log.commit(
        remove("f0"), add("g", partitionValues={"p": "x"}), add("f1", partitionValues={"p": "x"})
    )
    for condition in FILTERS:
        chosen = theirs.update().file_table_for(condition)
        assert rows(chosen) == rows(ours.update().file_table_for(condition))
    assert not theirs.update().state.files.is_at_hand
    assert rows(theirs.update().file_table) == rows(ours.update().file_table)


@pytest.mark.connect
def test_a_broken_checkpoint_is_survived_as_the_core_survives_it(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = new_log(tmp_path / "t")
    log.commit(*(add(f"f{i}", partitionValues={"p": "x"}) for i in range(9)))
    log.commit(remove("f0"), add("g", partitionValues={"p": "y"}))
    whole = rows(DeltaLog.for_table(log.table).snapshot.file_table)
    DeltaLog.for_table(log.table).checkpoint()
    convert(log, 2, "json", sidecars=2)
    sidecar = sorted((log.folder / "_sidecars").iterdir())[0]
    data = bytearray(sidecar.read_bytes())
    data[12] ^= 0xFF
    sidecar.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        assert rows(opened(spark, log.table).file_table) == whole
    assert "falling back to an older checkpoint" in caplog.text
    assert len(opened(spark, log.table).file_table_for("p = 'y'")) == 1
    log.path(0).unlink()
    with pytest.raises(CorruptCheckpointError, match=r"checkpoint.*can't be used"):
        _ = opened(spark, log.table).file_table


def test_a_checkpoint_with_fewer_files_than_promised_is_not_believed(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = new_log(tmp_path / "t").commit(add("a"), add("b"))
    DeltaLog.for_table(log.table).checkpoint()
    hint = log.folder / "_last_checkpoint"
    body = json.loads(hint.read_text()) | {"numOfAddFiles": 3}
    body.pop("checksum", None)
    hint.write_text(json.dumps(body))
    log.path(0).unlink()
    with pytest.raises(CorruptCheckpointError, match="promises 3"):
        _ = opened(spark, log.table).file_table_for("p = 'x'")


@pytest.mark.connect
def test_what_is_wrong_with_a_commit_is_said_as_the_core_says_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = new_log(tmp_path / "t").commit({"commitInfo": {}}, add("a"))
    # Nobody but the executors looks at a file action.
    log.write('{"commitInfo":{}}\n{"add":{"path":7}}\n')
    snapshot = opened(spark, log.table)
    assert snapshot.version == 2
    with pytest.raises(CorruptCommitError, match=r"line 2 has a malformed add") as caught:
        _ = snapshot.file_table
    assert caught.value.line == 2
    snapshot = opened(spark, log.table, version=1)
    log.path(0).unlink()
    with pytest.raises(LogGapError, match="was listed a moment ago and is gone"):
        _ = snapshot.file_table


@pytest.mark.connect
def test_the_reader_brings_only_the_files_that_may_match(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa

    path = str(tmp_path / "t")
    for i in range(4):
        write_arrow(path, pa.table({"id": [i], "p": [str(i)]}), partition_by=["p"], mode="append")
    seen: list[tuple[Any, int]] = []
    replay = SparkReplayer.replay

    def spy(self: Any, job: Any, kind: Any, selection: Any) -> Any:
        found = replay(self, job, kind, selection)
        seen.append((selection is not None, found.num_rows))
        return found

    monkeypatch.setattr(SparkReplayer, "replay", spy)
    spark.conf.set(MODE, "spark")
    try:
        df = delta.read(spark).where("p = '2'").load(path)
        assert [row.id for row in df.collect()] == [2]
        assert seen == [(True, 1)]
        assert delta.DeltaTable.forPath(spark, path).toDF().count() == 4
        forget_logs(spark)  # it has all files by now
        delta.write(spark.range(7, 8).selectExpr("id", "'3' AS p")).mode("overwrite").option(
            "replaceWhere", "p = '3'"
        ).save(path)
        assert seen[1:] == [(False, 4), (True, 1)]
    finally:
        spark.conf.unset(MODE)
    assert sorted(r.id for r in delta.read(spark).load(path).collect()) == [0, 1, 2, 7]
    assert len(seen) == 3


def test_the_size_of_the_log_decides(spark: SparkSession, tmp_path: Path) -> None:
    log = new_log(tmp_path / "t").commit(add("a"))
    size = sum(each.stat().st_size for each in log.folder.glob("*.json"))

    def by_spark(conf: Mapping[str, str]) -> bool:
        return not opened(spark, log.table, conf).state.files.is_at_hand

    assert not by_spark({MODE: "auto"})
    assert by_spark({MODE: "auto", LEAST: str(size)})
    assert not by_spark({MODE: "auto", LEAST: str(size + 1)})
    assert not by_spark({MODE: "driver", LEAST: "0"})
    DeltaLog.for_table(log.table).checkpoint()
    convert(log, 1, "json", sidecars=1)
    sidecar = next(iter((log.folder / "_sidecars").iterdir())).stat().st_size
    top = next(log.folder.glob("*.checkpoint.*.json")).stat().st_size
    assert by_spark({MODE: "auto", LEAST: str(top + sidecar)})
    with pytest.raises(DeltaAnalysisError, match="auto, driver, spark"):
        by_spark({MODE: "executor"})
    with pytest.raises(DeltaAnalysisError, match="a whole number"):
        by_spark({LEAST: "much"})


def test_a_log_in_this_process_stays_here(spark: SparkSession) -> None:
    path = "memory://replay/t"
    write_arrow(path, numbers(0), mode="append")
    assert opened(spark, path, {MODE: "auto", LEAST: "0"}).num_files == 1
    with pytest.raises(DeltaAnalysisError, match="in the memory of this process"):
        opened(spark, path)
