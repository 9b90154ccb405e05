from __future__ import annotations

from pathlib import Path

import deltalake
import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.log.file_names import commit_name
from support.samples import SAMPLES, ids, numbers, rows_of

# deltalake turns -0.5 into "-0.-5" and fails on that, on tables of its own too.
NAMES = [name for name in SAMPLES if name != "by negative decimals"]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def theirs(path, **options):
    return rows_of(deltalake.DeltaTable(path, **options).to_pyarrow_table())


def ours(path, **travel):
    log = DeltaLog.for_table(path)
    return rows_of((log.snapshot_at(**travel) if travel else log.snapshot).to_arrow())


def doubled(sample):
    return sorted(rows_of(sample.data) * 2, key=lambda row: row["id"])


@pytest.mark.parametrize("name", NAMES)
def test_deltalake_reads_appends_and_overwrites_what_we_write(path, name):
    sample = SAMPLES[name]
    write_arrow(path, sample.data, partition_by=sample.partition_by or None, mode="append")
    assert theirs(path) == rows_of(sample.data)
    deltalake.write_deltalake(path, sample.data, mode="append")
    assert ours(path) == doubled(sample)
    deltalake.write_deltalake(path, sample.data, mode="overwrite")
    assert ours(path) == rows_of(sample.data)


@pytest.mark.parametrize("name", NAMES)
def test_we_read_append_and_overwrite_what_deltalake_writes(path, name):
    sample = SAMPLES[name]
    deltalake.write_deltalake(path, sample.data, partition_by=list(sample.partition_by) or None)
    assert ours(path) == rows_of(sample.data)
    write_arrow(path, sample.data, mode="append")
    assert theirs(path) == doubled(sample)
    write_arrow(path, sample.data, mode="overwrite")
    assert theirs(path) == rows_of(sample.data)


@pytest.mark.parametrize("name", NAMES)
def test_checkpoints_go_both_ways_without_the_commits(path, name):
    sample = SAMPLES[name]
    write_arrow(path, sample.data, partition_by=sample.partition_by or None, mode="append")
    write_arrow(path, sample.data, mode="append")
    DeltaLog.for_table(path).checkpoint()
    forget_commits(path, 0, 1)
    assert theirs(path) == doubled(sample)
    # By us: removing a file whose path has letters beyond ASCII, deltalake spells the path in
    # another way than the checkpoint does, and then still sees the file.
    write_arrow(path, sample.data, mode="overwrite")
    deltalake.DeltaTable(path).create_checkpoint()
    forget_commits(path, 1, 2)
    assert ours(path) == rows_of(sample.data)


def forget_commits(path, first, end):
    for version in range(first, end):
        (Path(path) / "_delta_log" / commit_name(version)).unlink()


def test_both_travel_to_the_same_versions(path):
    for start in range(4):
        write_arrow(path, numbers(start, 1), mode="append")
    for version in range(4):
        assert theirs(path, version=version) == ours(path, version=version)
        assert len(ours(path, version=version)) == version + 1
    history = deltalake.DeltaTable(path).history()
    assert [entry["operation"] for entry in history] == ["WRITE"] * 4


def test_deltalake_deletes_updates_and_optimizes_rows_of_ours(path):
    write_arrow(path, numbers(0, 10), partition_by=["p"], mode="append")
    write_arrow(path, numbers(10, 10), mode="append")
    table = deltalake.DeltaTable(path)
    table.delete("id >= 15")
    table.update(predicate="id = 3", updates={"name": "'three'"})
    table.optimize.compact()
    assert ours(path) == theirs(path)
    assert ids(DeltaLog.for_table(path).snapshot.to_arrow()) == list(range(15))
    write_arrow(path, numbers(30, 1), mode="overwrite", replace_where="p = 0")
    assert theirs(path) == ours(path)


def test_a_schema_that_grew_is_read(path):
    write_arrow(path, numbers(0, 2), mode="append")
    deltalake.write_deltalake(
        path,
        numbers(2, 1).append_column("more", [["x"]]),
        mode="append",
        schema_mode="merge",
    )
    write_arrow(
        path, numbers(3, 1).append_column("last", [[True]]), schema_mode="merge", mode="append"
    )
    assert theirs(path) == ours(path)
    assert [row["more"] for row in ours(path)] == [None, None, "x", None]
