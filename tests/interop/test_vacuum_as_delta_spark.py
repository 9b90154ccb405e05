"""VACUUM of the same table by delta-spark and by us: what would go, and what history tells."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import (
    convert_to_delta,
    delete_rows,
    purge,
    read_arrow,
    update_rows,
    vacuum,
    write_arrow,
)
from support.aged_tables import UNCHECKED, age_all, data_files, put


def _ours(done, path):
    found = (unquote(each) for each in done.files["path"].to_pylist())
    return {each.removeprefix(f"file:{path}/") for each in found}


@pytest.mark.one_day_in(6, 3)
def test_the_same_goes_in_either_mode_and_the_history_tells_it(delta_spark, tmp_path):
    path = str(tmp_path / "ours")
    # delta-spark's VACUUM takes live files for leftovers where their folder is not in ASCII.
    rows = {"id": list(range(20)), "p": ["é中/%", "x y"] * 10}
    write_arrow(path, rows, partition_by=["p"], mode="overwrite")
    write_arrow(path, rows, partition_by=["p"], mode="overwrite")
    for name in ("p=x y/left over", "metadata/v1", "_change_data/c", "_hidden/x"):
        put(path, name)
    (Path(path) / "empty/er").mkdir(parents=True)
    age_all(path, 1)
    delta_spark.sql("SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    # Its listing has ten thousand tasks by default, however small the table.
    delta_spark.sql("SET spark.sql.sources.parallelPartitionDiscovery.parallelism = 2")

    for mode in ("FULL", "LITE"):
        listed = delta_spark.sql(f"VACUUM delta.`{path}` {mode} RETAIN 0 HOURS DRY RUN")
        theirs = {row["path"].removeprefix(f"file:{path}/") for row in listed}
        assert _ours(vacuum(path, 0, mode=mode, dry_run=True, conf=UNCHECKED), path) == theirs
        assert theirs

    vacuum(path, 0, conf=UNCHECKED)

    assert len(data_files(path)) == 3
    end, start = delta_spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 2")
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    assert start["operationMetrics"]["numFilesToDelete"] == "7"
    assert end["operationMetrics"] == {"numDeletedFiles": "7", "numVacuumedDirectories": "7"}
    assert len(delta_spark.sql(f"SELECT * FROM delta.`{path}`")) == 20
    delta_spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
    assert len(delta_spark.sql(f"SELECT * FROM delta.`{path}`")) == 20
    assert read_arrow(path).num_rows == 20


@pytest.mark.one_day_in(3, 1)
def test_converted_files_beyond_ascii_outlive_delta_sparks_vacuum_where_bare(delta_spark, tmp_path):
    delta_spark.sql("SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    delta_spark.sql("SET spark.sql.sources.parallelPartitionDiscovery.parallelism = 2")
    leftovers = {}
    for choice in ("bare", "encoded"):
        path = tmp_path / choice
        for value in ("é\u00a0中 %41", "a"):
            (path / f"p={value}").mkdir(parents=True)
            pq.write_table(pa.table({"id": [1, 2]}), path / f"p={value}" / "ü\u3000😀.parquet")
        convert_to_delta(path, {"p": "string"}, non_ascii_paths=choice)
        age_all(str(path), 1)
        listed = delta_spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS DRY RUN")
        leftovers[choice] = [row["path"] for row in listed]
        assert vacuum(path, 0, dry_run=True, conf=UNCHECKED).num_files == 0
    assert not leftovers["bare"]
    # Why bare is what is advised: these are live files.
    assert len(leftovers["encoded"]) == 2
    delta_spark.sql(f"VACUUM delta.`{tmp_path / 'bare'}` RETAIN 0 HOURS")
    assert len(delta_spark.sql(f"SELECT * FROM delta.`{tmp_path / 'bare'}`")) == 4
    assert read_arrow(tmp_path / "bare").num_rows == 4


@pytest.mark.one_day_in(3, 2)
def test_vectors_and_change_files_go_and_stay_alike(delta_spark, tmp_path):
    path = str(tmp_path / "ours")
    on = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    write_arrow(path, {"id": list(range(20))}, properties=on, mode="append")
    write_arrow(path, {"id": list(range(20, 40))}, mode="append")
    for condition in ("id = 3", "id IN (4, 25)"):
        delete_rows(path, condition)
    update_rows(path, {"id": "id + 100"}, "id = 5")
    purge(path)
    delete_rows(path, "id = 26")
    delete_rows(path, "id = 27")
    age_all(path, 1)
    delta_spark.sql("SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    delta_spark.sql("SET spark.sql.sources.parallelPartitionDiscovery.parallelism = 2")
    for mode in ("FULL", "LITE"):
        listed = delta_spark.sql(f"VACUUM delta.`{path}` {mode} RETAIN 0 HOURS DRY RUN")
        theirs = {row["path"].removeprefix(f"file:{path}/") for row in listed}
        mine = _ours(vacuum(path, 0, mode=mode, dry_run=True, conf=UNCHECKED), path)
        assert mine == theirs
        assert any(name.endswith(".bin") for name in mine)
        assert any(name.startswith("_change_data/") for name in mine)
    vacuum(path, 0, mode="LITE", conf=UNCHECKED)
    rows = sorted(row["id"] for row in delta_spark.sql(f"SELECT id FROM delta.`{path}`"))
    assert rows == sorted(read_arrow(path)["id"].to_pylist())
    assert len(rows) == 35
