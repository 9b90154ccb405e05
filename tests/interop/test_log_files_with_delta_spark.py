"""V2 checkpoints and the other files beside the commits: delta-spark's read by us, ours by it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from lakelog.core import DeltaLog
from lakelog.core.paths import commit_name
from support.samples import ids, numbers, rows_of

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
    assert ids(snapshot.to_arrow(filter="id = 22")) == [22]
