from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from lakelog.core import DeltaLog
from lakelog.core.log.file_names import checkpoint_name, commit_name

MOMENT = dt.datetime(2024, 2, 3, 4, 5, 6, 789_012, tzinfo=dt.UTC)


def rows(start, count=4):
    ids = list(range(start, start + count))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "small": pa.array([i % 100 for i in ids], pa.int8()),
            "name": pa.array([None if i % 3 == 0 else f"n {i}" for i in ids]),
            "price": pa.array([Decimal(i) / 4 for i in ids], pa.decimal128(12, 4)),
            "ratio": pa.array([i / 8 for i in ids], pa.float32()),
            "flag": pa.array([i % 2 == 0 for i in ids]),
            "day": pa.array([dt.date(2024, 1, 1 + i % 28) for i in ids]),
            "at": pa.array([MOMENT] * count, pa.timestamp("us", "UTC")),
            "raw": pa.array([b"\x00\xff"] * count),
            "nest": pa.array([{"x": i, "y": [i, None]} for i in ids]),
            "part": pa.array([["a b", "100%", "é/ü", None][i % 4] for i in ids]),
            "hour": pa.array([MOMENT.replace(hour=i % 24) for i in ids], pa.timestamp("us", "UTC")),
        }
    )


@pytest.fixture(
    params=[[], ["part"], ["part", "hour"]], ids=["flat", "by text", "by text and time"]
)
def table(request, tmp_path):
    """A table with a life: appends, an overwrite, deletes, updates and a merge."""
    path = str(tmp_path / "t")
    deltalake.write_deltalake(path, rows(0), partition_by=request.param or None)
    for index in range(1, 6):
        deltalake.write_deltalake(path, rows(index * 10), mode="append")
    found = deltalake.DeltaTable(path)
    found.delete("id = 11")
    found.update(predicate="id = 21", updates={"name": "'changed'"})
    found.merge(
        rows(30, 8), predicate="t.id = s.id", source_alias="s", target_alias="t"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    return path


def in_order(found):
    return sorted(found.to_pylist(), key=lambda row: row["id"])


def deltalake_files(path, version=None):
    adds = pa.table(deltalake.DeltaTable(path, version=version).get_add_actions())
    return sorted(zip(adds["path"].to_pylist(), adds["size_bytes"].to_pylist(), strict=True))


def our_files(snapshot):
    found = snapshot.file_table
    return sorted(zip(found["path"].to_pylist(), found["size"].to_pylist(), strict=True))


def assert_same(path, version=None):
    log = DeltaLog.for_table(path)
    snapshot = log.snapshot if version is None else log.snapshot_at(version)
    theirs = deltalake.DeltaTable(path, version=version)
    assert snapshot.version == theirs.version()
    assert len(our_files(snapshot)) == len(deltalake_files(path, version))
    assert in_order(snapshot.to_arrow()) == in_order(theirs.to_pyarrow_table())
    assert snapshot.metadata.id == str(theirs.metadata().id)
    assert snapshot.partition_columns == theirs.metadata().partition_columns


def test_every_version_reads_as_in_deltalake(table):
    latest = DeltaLog.for_table(table).snapshot.version
    for version in range(latest + 1):
        assert_same(table, version)


def test_its_checkpoints_are_read(table):
    before = DeltaLog.for_table(table).snapshot
    deltalake.DeltaTable(table).create_checkpoint()
    deltalake.write_deltalake(table, rows(100), mode="append")
    snapshot = DeltaLog.for_table(table).snapshot
    checkpoint = snapshot.state.segment.checkpoint
    assert checkpoint is not None
    assert checkpoint.version == before.version
    assert set(our_files(before)) < set(our_files(snapshot))
    assert before.metadata == snapshot.metadata
    assert before.protocol == snapshot.protocol
    assert_same(table)


def test_its_checkpoint_alone_gives_what_the_commits_give(table):
    before = DeltaLog.for_table(table).snapshot
    expected = [before.file_table.sort_by("path").to_pylist(), in_order(before.to_arrow())]
    deltalake.DeltaTable(table).create_checkpoint()
    remove_commits(table, before.version)
    after = DeltaLog.for_table(table).snapshot
    assert after.state.segment.checkpoint is not None
    assert [after.file_table.sort_by("path").to_pylist(), in_order(after.to_arrow())] == expected


def remove_commits(path, below):
    for version in range(below):
        (Path(path) / "_delta_log" / commit_name(version)).unlink()


def test_our_checkpoints_are_read_by_deltalake(table):
    expected = in_order(deltalake.DeltaTable(table).to_pyarrow_table())
    log = DeltaLog.for_table(table)
    log.checkpoint()
    remove_commits(table, log.snapshot.version)
    theirs = deltalake.DeltaTable(table)
    assert theirs.version() == log.snapshot.version
    assert in_order(theirs.to_pyarrow_table()) == expected
    deltalake.write_deltalake(table, rows(100), mode="append")
    theirs.update_incremental()
    theirs.delete("id = 100")
    assert_same(table)


def test_our_tombstones_are_known_to_its_vacuum(table):
    log = DeltaLog.for_table(table)
    log.checkpoint()
    expected = set(log.snapshot.tombstones["path"].to_pylist())
    remove_commits(table, log.snapshot.version)
    listed = deltalake.DeltaTable(table).vacuum(
        retention_hours=0, enforce_retention_duration=False, dry_run=True
    )
    assert len(listed) == len(expected) > 0


def test_a_table_that_grows_is_followed_step_by_step(tmp_path):
    path = str(tmp_path / "t")
    deltalake.write_deltalake(path, rows(0), partition_by=["part"])
    log = DeltaLog.for_table(path)
    _ = log.snapshot
    for index in range(1, 15):
        deltalake.write_deltalake(
            path, rows(index * 10), mode="overwrite" if index % 5 == 0 else "append"
        )
        if index == 7:
            deltalake.DeltaTable(path).create_checkpoint()
        assert our_files(log.update()) == our_files(DeltaLog.for_table(path).snapshot)
        assert log.snapshot.num_files == len(deltalake_files(path))


def test_history_agrees_on_versions_and_operations(table):
    ours = DeltaLog.for_table(table).history()
    theirs = deltalake.DeltaTable(table).history()
    assert [(e.version, e.operation) for e in ours] == [
        (e.get("version"), e["operation"]) for e in theirs
    ]


def test_a_checkpoint_of_its_is_no_obstacle_to_one_of_ours(table):
    deltalake.DeltaTable(table).create_checkpoint()
    log = DeltaLog.for_table(table)
    version = log.snapshot.version
    log.checkpoint()
    assert_same(table)
    assert (Path(table) / "_delta_log" / checkpoint_name(version)).exists()


def test_a_filter_gives_the_same_rows(table):
    theirs = deltalake.DeltaTable(table).to_pyarrow_table(
        filters=[("id", ">", 20), ("flag", "=", True)]
    )
    ours = DeltaLog.for_table(table).snapshot.to_arrow(where="id > 20 and flag")
    assert in_order(ours) == in_order(theirs)
