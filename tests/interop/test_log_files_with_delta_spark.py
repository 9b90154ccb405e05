"""V2 checkpoints and the other files beside the commits: delta-spark's read by us, ours by it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.actions.operation import Operation
from lakelog.core.log.file_names import commit_name
from lakelog.core.state.checksums import read_checksum
from support.samples import SAMPLES, ids, numbers, rows_of

DELTA = "spark.databricks.delta."


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


@contextlib.contextmanager
def session_conf(delta_spark, **confs):
    keys = {name.replace("__", "."): value for name, value in confs.items()}
    for key, value in keys.items():
        delta_spark.sql(f"SET {DELTA}{key}={value}")
    try:
        yield
    finally:
        for key in keys:
            delta_spark.sql(f"RESET {DELTA}{key}")


def log_files(path, pattern):
    return sorted((Path(path) / "_delta_log").glob(pattern))


def forget_commits(path, below):
    for version in range(below):
        (Path(path) / "_delta_log" / commit_name(version)).unlink()


def their_v2_table(delta_spark, path):
    delta_spark.sql(
        f"CREATE TABLE delta.`{path}` (id LONG, name STRING, p INT) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES (delta.checkpointPolicy = 'v2', delta.enableDeletionVectors = false)"
    )
    for start in (0, 10, 20):
        delta_spark.write(path, numbers(start))
    delta_spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 11")


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_their_v2_checkpoint_alone_gives_the_table(delta_spark, path, form):
    their_v2_table(delta_spark, path)
    expected = rows_of(delta_spark.read(path))
    with session_conf(delta_spark, checkpointV2__topLevelFileFormat=form, checkpoint__partSize="3"):
        version = delta_spark.checkpoint(path)
    assert len(log_files(path, f"{version:020d}.checkpoint.*-*.{form}")) == 1
    assert len(log_files(path, "_sidecars/*.parquet")) > 1
    forget_commits(path, version)
    snapshot = DeltaLog.for_table(path).snapshot
    checkpoint = snapshot.state.segment.checkpoint
    assert checkpoint is not None
    assert (checkpoint.version, checkpoint.is_v2) == (version, True)
    assert snapshot.state.segment.hint is not None
    assert rows_of(snapshot.to_arrow()) == expected
    assert ids(snapshot.to_arrow(where="id = 22")) == [22]


def test_our_checksums_are_what_they_count_and_they_go_on_from_them(delta_spark, path):
    """Told to verify, delta-spark fails where an incremental checksum is not what it counts."""
    write_arrow(path, numbers(0), partition_by=["p"], mode="append")
    write_arrow(path, numbers(10), mode="append")
    log = DeltaLog.for_table(path)
    txn = log.start_transaction()
    gone = txn.filter_files("p = 1")
    txn.commit([f.remove(log.clock.now_ms()) for f in gone], Operation(name="DELETE"))
    assert len(log_files(path, "0*.crc")) == 3
    with session_conf(
        delta_spark,
        incremental__commit__verify="true",
        incremental__commit__forceVerifyInTests="true",
        checksum__mismatch__fatal="true",
    ):
        delta_spark.write(path, numbers(20))
        delta_spark.checkpoint(path)
        expected = rows_of(delta_spark.read(path))
    write_arrow(path, numbers(30), mode="append")
    assert len(log_files(path, "0*.crc")) == 5
    strict = {f"{DELTA}checksum.mismatch.fatal": "true"}
    snapshot = DeltaLog.for_table(path, strict).snapshot_at(3)
    assert snapshot.state.segment.checksum is not None
    assert rows_of(snapshot.to_arrow()) == expected
    after = read_checksum(log.store, log.table, 4)
    assert after is not None
    newest = log.update()
    assert (after.num_files, after.table_size_bytes) == (newest.num_files, newest.size_in_bytes)


def test_a_checksum_of_ours_is_what_theirs_is_derived_from(delta_spark, path):
    """They do read it: the test above would mean nothing otherwise."""
    write_arrow(path, numbers(0), mode="append")
    (file,) = log_files(path, "0*.crc")
    file.write_text(file.read_text().replace('"numFiles":1', '"numFiles":70'))
    delta_spark.write(path, numbers(10, 1))
    log = DeltaLog.for_table(path)
    derived = read_checksum(log.store, log.table, 1)
    assert derived is not None
    assert derived.num_files - 70 == log.snapshot.num_files - 1


OURS = {
    "v2 below json": (
        {"delta.checkpointPolicy": "v2"},
        {"checkpointV2.topLevelFileFormat": "json"},
    ),
    "v2 below parquet": (
        {"delta.checkpointPolicy": "v2"},
        {"checkpointV2.topLevelFileFormat": "parquet"},
    ),
    "v2 with typed statistics": (
        {"delta.checkpointPolicy": "v2", "delta.checkpoint.writeStatsAsStruct": "true"},
        {},
    ),
    "parts": ({}, {}),
    "typed statistics": ({"delta.checkpoint.writeStatsAsStruct": "true"}, {}),
    "typed statistics only": (
        {
            "delta.checkpoint.writeStatsAsStruct": "true",
            "delta.checkpoint.writeStatsAsJson": "false",
        },
        {},
    ),
}


@pytest.mark.parametrize("form", OURS)
def test_our_checkpoint_alone_gives_them_the_table(delta_spark, path, form):
    properties, confs = OURS[form]
    sample = SAMPLES["by every type"]
    write_arrow(
        path, sample.data, partition_by=sample.partition_by, properties=properties, mode="append"
    )
    size = {} if form.startswith("typed") else {"checkpoint.partSize": "3"}
    log = DeltaLog.for_table(path, {f"{DELTA}{k}": v for k, v in {**confs, **size}.items()})
    txn = log.start_transaction()
    gone = txn.filter_files(f"id = {sample.data['id'][0].as_py()}")
    txn.commit([f.remove(log.clock.now_ms()) for f in gone], Operation(name="DELETE"))
    log.checkpoint()
    forget_commits(path, 1)
    for file in log_files(path, "0*.crc"):
        file.unlink()
    expected = rows_of(DeltaLog.for_table(path).snapshot.to_arrow())
    assert rows_of(delta_spark.read(path)) == expected
    some = expected[len(expected) // 2]["id"]
    assert [row["id"] for row in rows_of(delta_spark.read(path, where=f"id = {some}"))] == [some]
    delta_spark.sql(f"DELETE FROM delta.`{path}` WHERE id = {some}")
    delta_spark.checkpoint(path)
    assert ids(DeltaLog.for_table(path).snapshot.to_arrow()) == [
        row["id"] for row in expected if row["id"] != some
    ]


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_a_log_that_we_cleaned_up_is_theirs_to_go_on_with(delta_spark, path, policy):
    properties = {"delta.checkpointPolicy": policy, "delta.checkpointInterval": "3"}
    write_arrow(path, numbers(0), properties=properties, mode="append")
    for start in range(10, 70, 10):
        write_arrow(path, numbers(start), mode="append")
    log = DeltaLog.for_table(path)
    old = log.clock.now_ms() // 1000 - 40 * 86_400
    for number, file in enumerate(sorted([*log_files(path, "0*"), *log_files(path, "_sid*/*")])):
        os.utime(file, (old + number, old + number))
    expected = ids(log.snapshot.to_arrow())
    log.checkpoint()
    commits = log_files(path, "?" * 20 + ".json")
    assert [file.name for file in commits] == [commit_name(6)]
    assert ids(delta_spark.read(path)) == expected
    delta_spark.write(path, numbers(100, 1))
    assert ids(delta_spark.read(path)) == [*expected, 100]
    assert ids(log.update().to_arrow()) == [*expected, 100]
