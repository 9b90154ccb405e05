from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.log.file_names import commit_name
from support.samples import SAMPLES, ids, numbers, rows_of

PART_SIZE = "spark.databricks.delta.checkpoint.partSize"


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def ours(path, **travel):
    log = DeltaLog.for_table(path)
    return rows_of((log.snapshot_at(**travel) if travel else log.snapshot).to_arrow())


def checkpoint_files(path):
    return sorted((Path(path) / "_delta_log").glob("*.checkpoint*.parquet"))


def forget_commits(path, below):
    for version in range(below):
        (Path(path) / "_delta_log" / commit_name(version)).unlink()


@pytest.mark.parametrize("name", SAMPLES)
def test_every_kind_of_table_is_read_and_written_to(delta_spark, path, name):
    sample = SAMPLES[name]
    delta_spark.write(path, sample.data, partition_by=sample.partition_by)
    assert ours(path) == rows_of(sample.data)
    write_arrow(path, sample.data, partition_by=sample.partition_by or None, mode="append")
    doubled = sorted(rows_of(sample.data) * 2, key=lambda row: row["id"])
    assert rows_of(delta_spark.read(path)) == doubled
    adds = DeltaLog.for_table(path).snapshot.files()
    if sample.partition_by:
        # One value is one partition, whoever wrote the row.
        texts = [tuple(sorted(add.partition_values.items())) for add in adds]
        assert len(texts) == 2 * len(set(texts))
    for row in sample.data.slice(0, 3).to_pylist():
        kept = DeltaLog.for_table(path).snapshot.to_arrow(where=f"id = {row['id']}")
        assert kept.num_rows == 2


@pytest.fixture
def lived(delta_spark, path):
    """A table with deletes, updates, a merge and a compaction."""
    delta_spark.sql(
        f"CREATE TABLE delta.`{path}` (id LONG, name STRING, p INT) USING delta "
        "PARTITIONED BY (p) TBLPROPERTIES (delta.enableDeletionVectors = false)"
    )
    for start in (0, 10, 20):
        delta_spark.write(path, numbers(start))
    delta_spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 11")
    delta_spark.sql(f"UPDATE delta.`{path}` SET name = 'changed' WHERE id = 21")
    delta_spark.sql(
        f"MERGE INTO delta.`{path}` t USING (SELECT explode(sequence(3, 6)) AS id) s "
        "ON t.id = s.id WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (s.id, 'new', 9)"
    )
    delta_spark.sql(f"OPTIMIZE delta.`{path}`")
    return path


@pytest.mark.one_day_in(6, 1)
def test_every_version_of_a_long_life_reads_the_same(delta_spark, lived):
    latest = delta_spark.version(lived)
    assert latest == 7
    for version in range(latest + 1):
        theirs = rows_of(delta_spark.read(lived, version=version))
        assert ours(lived, version=version) == theirs, version
    history = delta_spark.history(lived)
    mine = DeltaLog.for_table(lived).history()
    assert [e.operation for e in mine] == [e["operation"] for e in history]
    assert [e.is_blind_append for e in mine] == [e["isBlindAppend"] for e in history]


@pytest.mark.one_day_in(3, 1)
def test_the_time_of_a_commit_leads_both_to_the_same_version(delta_spark, path):
    for start in range(5):
        delta_spark.write(path, numbers(start, 1))
    # Times that go back and stand still, as after a copy of the table; recent ones, because
    # delta-spark does not travel further back than `delta.deletedFileRetentionDuration`.
    recent = DeltaLog.for_table(path).clock.now_ms() // 1000 - 3600
    for version, seconds in enumerate((100, 50, 200, 200, 150)):
        file = Path(path) / "_delta_log" / commit_name(version)
        os.utime(file, (recent + seconds, recent + seconds))
    mine = DeltaLog.for_table(path).history()
    theirs = delta_spark.history(path)
    assert [e.timestamp for e in mine] == [milliseconds(e["timestamp"]) for e in theirs]
    for entry in mine:
        text = dt.datetime.fromtimestamp(entry.timestamp / 1000, dt.UTC).strftime("%F %T.%f")
        assert ids(delta_spark.read(path, timestamp=text)) == list(range(entry.version + 1))
        assert len(ours(path, timestamp=text)) == entry.version + 1


def milliseconds(text):
    return round(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp() * 1000)


def test_a_checkpoint_in_parts_alone_gives_the_table(delta_spark, lived):
    expected = ours(lived)
    delta_spark.sql(f"SET {PART_SIZE}=3")
    try:
        version = delta_spark.checkpoint(lived)
    finally:
        delta_spark.sql(f"RESET {PART_SIZE}")
    assert len(checkpoint_files(lived)) > 1
    forget_commits(lived, version)
    assert ours(lived) == expected
    write_arrow(lived, numbers(50, 1), mode="append")
    assert ids(delta_spark.read(lived)) == [*(row["id"] for row in expected), 50]


@pytest.mark.parametrize("as_json", ["true", "false"], ids=["and as json", "only"])
@pytest.mark.parametrize("name", ["every type", "by every type", "nested"])
def test_a_checkpoint_with_statistics_as_columns_alone_gives_the_table(
    delta_spark, path, name, as_json
):
    sample = SAMPLES[name]
    write_arrow(
        path,
        sample.data,
        partition_by=sample.partition_by or None,
        properties={
            "delta.checkpoint.writeStatsAsStruct": "true",
            "delta.checkpoint.writeStatsAsJson": as_json,
        },
        mode="append",
    )
    delta_spark.write(path, sample.data)
    before = [json.loads(add.stats or "{}") for add in DeltaLog.for_table(path).snapshot.files()]
    version = delta_spark.checkpoint(path)
    (file,) = checkpoint_files(path)
    add = pq.read_schema(file).field("add").type
    assert add.get_field_index("stats_parsed") >= 0
    assert (add.get_field_index("stats") >= 0) == (as_json == "true")
    forget_commits(path, version)
    snapshot = DeltaLog.for_table(path).snapshot
    assert rows_of(snapshot.to_arrow()) == sorted(rows_of(sample.data) * 2, key=lambda r: r["id"])
    after = [json.loads(add.stats or "{}") for add in snapshot.files()]
    assert sorted(s["numRecords"] for s in after) == sorted(s["numRecords"] for s in before)
    middle = sample.data["id"][1].as_py()
    assert ids(snapshot.to_arrow(where=f"id = {middle}")) == [middle, middle]


def create(delta_spark, path, columns="id LONG", **properties):
    listed = ", ".join(f"'delta.{k.replace('__', '.')}' = '{v}'" for k, v in properties.items())
    clause = f"TBLPROPERTIES ({listed})" if listed else ""
    delta_spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta {clause}")


WRITTEN_TOO: dict[str, Any] = {
    "clustering": "CLUSTER BY (id)",
    "typeWidening": {"enableTypeWidening": "true"},
    "icebergCompatV2": {"columnMapping__mode": "name", "enableIcebergCompatV2": "true"},
}


@pytest.mark.parametrize("feature", WRITTEN_TOO)
def test_a_table_with_a_feature_of_theirs_is_read_and_written(delta_spark, path, feature):
    how = WRITTEN_TOO[feature]
    if feature == "clustering":
        delta_spark.sql(f"CREATE TABLE delta.`{path}` (id LONG) USING delta {how}")
    else:
        create(delta_spark, path, **how)
    delta_spark.sql(f"INSERT INTO delta.`{path}` (id) VALUES (7)")
    assert ids(DeltaLog.for_table(path).snapshot.to_arrow()) == [7]
    write_arrow(path, DeltaLog.for_table(path).snapshot.to_arrow(), mode="append")
    assert delta_spark.version(path) == 2
    assert ids(delta_spark.read(path)) == [7, 7]


def test_a_feature_that_was_switched_off_again_is_no_hindrance(delta_spark, path):
    create(delta_spark, path, enableChangeDataFeed="true", columnMapping__mode="none")
    delta_spark.sql(
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableChangeDataFeed = false)"
    )
    write_arrow(path, numbers(0).select(["id"]), mode="append")
    assert ids(delta_spark.read(path)) == [0, 1, 2, 3, 4]


def test_rules_that_delta_spark_gave_a_table_bind_us(delta_spark, path):
    create(delta_spark, path, "id LONG NOT NULL, name STRING, p INT")
    delta_spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (p < 10)")
    write_arrow(path, numbers(0), mode="append")
    good = numbers(10)
    with pytest.raises(DeltaAnalysisError, match="small"):
        write_arrow(path, good.set_column(2, "p", pa.array([100] * 5, pa.int32())), mode="append")
    with pytest.raises(DeltaAnalysisError, match="id"):
        write_arrow(
            path, good.set_column(0, "id", pa.array([None, 1, 2, 3, 4], pa.int64())), mode="append"
        )
    assert ids(delta_spark.read(path)) == [0, 1, 2, 3, 4]
    delta_spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.appendOnly = true)")
    with pytest.raises(DeltaAnalysisError, match="append"):
        write_arrow(path, good, mode="overwrite")
