"""OPTIMIZE by us and by delta-spark on equal tables: the same files, metrics and history."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakelog.core import DeltaLog, delete_rows, optimize, purge, read_arrow, write_arrow
from lakelog.core.alter import enable_row_tracking

ONE = {"spark.databricks.delta.optimize.maxThreads": "1"}
TIMES = {"startTimeMs", "endTimeMs", "totalClusterParallelism", "totalScheduledTasks"}
SIZES = {"min", "max", "avg", "totalSize", "size"}


def rows(first, count=50):
    values = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(values, pa.int64()),
            "a": pa.array([(i * 37) % 101 for i in values], pa.int32()),
            "p": pa.array([None if i % 3 == 0 else f"p {i % 3}/ü" for i in values]),
            "s": [{"x": f"t{i % 7}"} for i in values],
        }
    )


def two(tmp_path, *, starts=(0, 100, 200), partition_by=None, **properties):
    """Two tables of the same bytes."""
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    for start in starts:
        options = {} if start else {"partition_by": partition_by, "properties": properties}
        write_arrow(ours, rows(start), mode="append", **options)
    return ours, theirs


def copied(ours, theirs):
    shutil.copytree(ours, theirs)


def numbers(metrics):
    """What is the same whoever encodes the rows: all but times, and sizes of new files."""
    found = json.loads(json.dumps(metrics))
    for name in TIMES:
        del found[name]
    for name in ("min", "max", "avg", "totalSize"):
        del found["filesAdded"][name]
    return found


def theirs_of(delta_spark, text):
    (row,) = delta_spark.sql(text)
    return row["metrics"]


def history_of(path):
    """The newest entry of the history, without what depends on who encodes the rows."""
    (entry,) = DeltaLog.for_table(path).history(1)
    metrics = {
        name: value
        for name, value in (entry.metrics or {}).items()
        if "FileSize" not in name and name != "numAddedBytes"
    }
    parameters = {k: v for k, v in (entry.parameters or {}).items() if k != "predicate"}
    return entry.operation, parameters, metrics, entry.isolation_level, entry.is_blind_append


def everything(path):
    return sorted(map(str, read_arrow(path).to_pylist()))


def check(delta_spark, path):
    """Peers read what we read, and find nothing to do."""
    assert sorted(map(str, delta_spark.read(path).to_pylist())) == everything(path)
    return numbers(theirs_of(delta_spark, f"OPTIMIZE delta.`{path}`"))


@pytest.mark.parametrize("partition_by", [None, ["p"]])
def test_compaction_has_delta_sparks_metrics_and_history(delta_spark, tmp_path, partition_by):
    ours, theirs = two(tmp_path, partition_by=partition_by)
    copied(ours, theirs)
    before = everything(ours)

    found = optimize(ours, conf=ONE)
    expected = theirs_of(delta_spark, f"OPTIMIZE delta.`{theirs}`")

    assert numbers(found.metrics.as_delta()) == numbers(expected)
    assert history_of(ours) == history_of(theirs)
    assert everything(ours) == before
    again = check(delta_spark, ours)
    assert (again["numFilesAdded"], again["numFilesRemoved"]) == (0, 0)
    table = DeltaTable(ours)
    assert table.to_pyarrow_table().num_rows == len(before)
    assert table.optimize.compact()["numFilesRemoved"] == 0


def test_a_condition_on_partitions(delta_spark, tmp_path):
    ours, theirs = two(tmp_path, partition_by=["p"])
    copied(ours, theirs)
    found = optimize(ours, "p = 'p 1/ü'", conf=ONE)
    expected = theirs_of(delta_spark, f"OPTIMIZE delta.`{theirs}` WHERE p = 'p 1/ü'")
    assert numbers(found.metrics.as_delta()) == numbers(expected)
    assert history_of(ours) == history_of(theirs)


def test_deletion_vectors(delta_spark, tmp_path):
    ours, theirs = two(tmp_path, **{"delta.enableDeletionVectors": "true"})
    delete_rows(ours, "id < 10 OR id = 120")
    copied(ours, theirs)
    found = optimize(ours, conf=ONE)
    expected = theirs_of(delta_spark, f"OPTIMIZE delta.`{theirs}`")
    assert numbers(found.metrics.as_delta()) == numbers(expected)
    assert history_of(ours) == history_of(theirs)
    assert check(delta_spark, ours)["numFilesRemoved"] == 0
    delete_rows(ours, "id = 20")
    shutil.rmtree(theirs)
    copied(ours, theirs)
    found = optimize(ours, conf=ONE)
    expected = theirs_of(delta_spark, f"OPTIMIZE delta.`{theirs}`")
    assert numbers(found.metrics.as_delta()) == numbers(expected)


def test_z_order(delta_spark, tmp_path):
    ours, theirs = two(tmp_path, partition_by=["p"])
    copied(ours, theirs)
    found = optimize(ours, z_order_by=["a", "s.x"], conf=ONE)
    expected = theirs_of(delta_spark, f"OPTIMIZE delta.`{theirs}` ZORDER BY (a, s.x)")
    assert numbers(found.metrics.as_delta()) == numbers(expected)
    assert history_of(ours) == history_of(theirs)
    check(delta_spark, ours)


def test_purge(delta_spark, tmp_path):
    ours, theirs = two(tmp_path, **{"delta.enableDeletionVectors": "true"})
    delete_rows(ours, "id = 20")
    copied(ours, theirs)
    found = purge(ours, conf=ONE)
    expected = theirs_of(delta_spark, f"REORG TABLE delta.`{theirs}` APPLY (PURGE)")
    assert numbers(found.metrics.as_delta()) == numbers(expected)
    assert history_of(ours) == history_of(theirs)


@pytest.mark.parametrize("columns", ["a, s.x", "a"])
def test_a_clustered_table_in_turns(delta_spark, tmp_path, columns):
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    delta_spark.sql(
        f"CREATE TABLE delta.`{ours}` (id LONG, a INT, p STRING, s STRUCT<x: STRING>) "
        f"USING delta CLUSTER BY ({columns})"
    )
    for start in (0, 100):
        write_arrow(ours, rows(start), mode="append")
    copied(ours, theirs)

    found = optimize(ours, conf=ONE)
    expected = theirs_of(delta_spark, f"OPTIMIZE delta.`{theirs}`")

    assert numbers(found.metrics.as_delta()) == numbers(expected)
    assert history_of(ours) == history_of(theirs)
    tags = [
        {name: (file.tags or {})[name] for name in ("ZCUBE_ZORDER_BY", "ZCUBE_ZORDER_CURVE")
         if name in (file.tags or {})} | {"provider": file.clustering_provider}
        for path in (ours, theirs)
        for file in DeltaLog.for_table(path).update().files()
    ]  # fmt: skip
    assert tags[0] == tags[1]
    assert check(delta_spark, ours)["numFilesRemoved"] == 0
    assert optimize(theirs, conf=ONE).versions == ()
    write_arrow(ours, rows(300), mode="append")
    shutil.rmtree(theirs)
    copied(ours, theirs)
    found = optimize(ours, conf=ONE)
    expected = theirs_of(delta_spark, f"OPTIMIZE delta.`{theirs}`")
    assert numbers(found.metrics.as_delta()) == numbers(expected)


def test_row_ids_are_those_that_delta_spark_reads(delta_spark, tmp_path):
    ours, _ = two(tmp_path)
    enable_row_tracking(ours)
    write_arrow(ours, rows(300), mode="append")
    text = (
        "SELECT id, _metadata.row_id AS i, _metadata.row_commit_version AS v "
        f"FROM delta.`{ours}` ORDER BY id"
    )
    before = delta_spark.sql(text)
    optimize(ours, conf=ONE)
    assert delta_spark.sql(text) == before


def test_deltalake_reads_and_writes_on(tmp_path):
    ours, _ = two(tmp_path, partition_by=["p"])
    optimize(ours, z_order_by="a", conf=ONE)
    write_deltalake(ours, rows(900), mode="append")
    optimize(ours, conf=ONE)
    assert len(everything(ours)) == 200
    assert DeltaTable(ours).to_pyarrow_table().num_rows == 200


def test_duckdb_reads(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    ours, _ = two(tmp_path)
    optimize(ours, conf=ONE)
    names = [f"{ours}/{file.path}" for file in DeltaLog.for_table(ours).update().files()]
    assert all(Path(name).exists() for name in names)
    found = duckdb.sql(f"SELECT count(*), sum(id) FROM read_parquet({names})").fetchall()
    assert found == [(150, sum(read_arrow(ours)["id"].to_pylist()))]
