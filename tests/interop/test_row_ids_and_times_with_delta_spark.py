"""Row tracking, in-commit timestamps and domains, with delta-spark on the same table."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import lakelog.spark as delta
from lakelog.core import DeltaLog, Operation, delete_rows, lit, optimize, update_rows, write_arrow
from lakelog.core.actions import DomainMetadata
from lakelog.core.alter import enable_row_tracking
from lakelog.core.features.numbered_rows import high_water_mark
from lakelog.core.log.file_names import commit_name
from support.samples import ids, numbers

TRACKED = {"delta.enableRowTracking": "true"}
TIMED = {"delta.enableInCommitTimestamps": "true"}


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def lines(path, version):
    text = (Path(path) / "_delta_log" / commit_name(version)).read_text()
    return [json.loads(line) for line in text.splitlines()]


def marks(path):
    """The high-water mark that each version sets."""
    found = {}
    for version in range(DeltaLog.for_table(path).snapshot.version + 1):
        for line in lines(path, version):
            if line.get("domainMetadata", {}).get("domain") == "delta.rowTracking":
                said = json.loads(line["domainMetadata"]["configuration"])
                found[version] = said["rowIdHighWaterMark"]
    return found


def check_ids(path):
    """No two files that ever were share an id, and the mark is above them all."""
    spans: dict[str, tuple[int, int]] = {}
    versions: dict[str, int] = {}
    for version in range(DeltaLog.for_table(path).snapshot.version + 1):
        for line in lines(path, version):
            if "add" in line:
                add = line["add"]
                first, count = add["baseRowId"], json.loads(add["stats"])["numRecords"]
                assert spans.setdefault(add["path"], (first, first + count)) == (
                    first,
                    first + count,
                )
                said = add["defaultRowCommitVersion"]
                assert versions.setdefault(add["path"], said) == said <= version
    ordered = sorted(span for span in spans.values() if span[0] < span[1])
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(ordered))
    snapshot = DeltaLog.for_table(path).snapshot
    mark = high_water_mark(snapshot.domain_metadata, path)
    assert mark == max(end for _, end in ordered) - 1 == max(marks(path).values())


def row_ids(delta_spark, path):
    rows = delta_spark.sql(f"SELECT id, _metadata.row_id AS r FROM delta.`{path}`")
    return {row["id"]: row["r"] for row in rows}


def times(path):
    newest = DeltaLog.for_table(path).snapshot.version
    return [lines(path, v)[0]["commitInfo"].get("inCommitTimestamp") for v in range(newest + 1)]


def history(delta_spark, path):
    """Version -> epoch milliseconds, as delta-spark tells it."""
    found = {row["version"]: row["timestamp"] for row in delta_spark.history(path)}
    return {version: millis(found[version]) for version in sorted(found)}


def millis(text):
    """Of a time that the driver shows in its own zone."""
    moment = datetime.fromisoformat(text).astimezone(UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def insert(delta_spark, path, *numbers):
    values = ", ".join(f"({n}, 'row {n}', {n % 2})" for n in numbers)
    delta_spark.sql(f"INSERT INTO delta.`{path}` VALUES {values}")


@pytest.mark.one_day_in(2)
def test_both_commit_to_our_table_and_no_id_is_given_twice(delta_spark, path):
    write_arrow(
        path, numbers(0, 4), properties={**TRACKED, **TIMED}, partition_by=["p"], mode="append"
    )
    insert(delta_spark, path, 10, 11)
    write_arrow(path, numbers(20, 3), mode="append")
    insert(delta_spark, path, 30)
    check_ids(path)
    found = row_ids(delta_spark, path)
    assert sorted(found.values()) == list(range(10))
    said = times(path)
    assert said == sorted(set(said))
    assert list(history(delta_spark, path).values()) == said
    ours = DeltaLog.for_table(path).history()
    assert [entry.timestamp for entry in ours][::-1] == said


@pytest.mark.one_day_in(2, 1)
def test_both_commit_to_their_table_and_no_id_is_given_twice(delta_spark, path):
    listed = ", ".join(f"'{k}' = '{v}'" for k, v in {**TRACKED, **TIMED}.items())
    delta_spark.sql(
        f"CREATE TABLE delta.`{path}` (id LONG, name STRING, p INT) USING delta "
        f"TBLPROPERTIES ({listed})"
    )
    write_arrow(path, numbers(0, 4), mode="append")
    insert(delta_spark, path, 10, 11)
    write_arrow(path, numbers(20, 3), mode="overwrite")
    insert(delta_spark, path, 30)
    check_ids(path)
    assert row_ids(delta_spark, path) == {20: 6, 21: 7, 22: 8, 30: 9}
    said = times(path)
    assert said == sorted(set(said))
    assert list(history(delta_spark, path).values()) == said


def test_a_checkpoint_of_ours_is_enough_for_them_to_go_on(delta_spark, path):
    write_arrow(path, numbers(0, 4), properties={**TRACKED, **TIMED}, mode="append")
    write_arrow(path, numbers(4, 2), mode="append")
    DeltaLog.for_table(path).checkpoint()
    (Path(path) / "_delta_log" / commit_name(0)).unlink()
    insert(delta_spark, path, 10)
    assert row_ids(delta_spark, path) == {n: n for n in range(6)} | {10: 6}
    assert marks_of(path) == 6
    assert times_of(path, 2) > times_of(path, 1)
    version = delta_spark.checkpoint(path)
    (Path(path) / "_delta_log" / commit_name(1)).unlink()
    assert version == 2
    write_arrow(path, numbers(20, 1), mode="append")
    assert row_ids(delta_spark, path)[20] == 7
    assert times_of(path, 3) > times_of(path, 2)


def marks_of(path):
    return high_water_mark(DeltaLog.for_table(path).snapshot.domain_metadata, path)


def times_of(path, version):
    return lines(path, version)[0]["commitInfo"]["inCommitTimestamp"]


def test_rows_that_they_moved_keep_their_ids_and_their_columns_are_hidden(delta_spark, path):
    write_arrow(path, numbers(0, 4), properties=TRACKED, mode="append")
    delta_spark.sql(f"UPDATE delta.`{path}` SET name = 'new' WHERE id = 1")
    assert row_ids(delta_spark, path) == {n: n for n in range(4)}
    table = DeltaLog.for_table(path).snapshot.to_arrow()
    assert table.column_names == ["id", "name", "p"]
    assert sorted(table["name"].to_pylist()) == ["new", "row 0", "row 2", "row 3"]
    write_arrow(path, numbers(9, 1), mode="append")
    assert row_ids(delta_spark, path)[9] == marks_of(path)


def test_rows_that_we_masked_leave_the_others_their_ids(delta_spark, path):
    vectors = {"delta.enableDeletionVectors": "true"}
    write_arrow(path, numbers(0, 4), properties={**TRACKED, **vectors}, mode="append")
    delete_rows(path, "id = 1")
    assert row_ids(delta_spark, path) == {0: 0, 2: 2, 3: 3}


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_rows_that_we_moved_keep_their_ids(delta_spark, path, mapping):
    mapped = {} if mapping == "none" else {"delta.columnMapping.mode": mapping}
    write_arrow(path, numbers(0, 4), properties={**TRACKED, **mapped}, mode="append")
    update_rows(path, {"name": lit("new")}, "id = 2")
    delete_rows(path, "id = 1")
    assert row_ids(delta_spark, path) == {0: 0, 2: 2, 3: 3}
    versions = delta_spark.sql(f"SELECT id, _metadata.row_commit_version AS v FROM delta.`{path}`")
    assert {row["id"]: row["v"] for row in versions} == {0: 0, 2: 1, 3: 0}
    delta_spark.sql(f"UPDATE delta.`{path}` SET name = 'newer' WHERE id = 3")
    update_rows(path, {"name": lit("newest")}, "id >= 2")
    assert row_ids(delta_spark, path) == {0: 0, 2: 2, 3: 3}
    check_ids(path)


def test_spark_writes_rows_with_ids_and_shows_none_of_the_columns_that_carry_them(
    spark, delta_spark, path
):
    write_arrow(path, numbers(0, 4), properties={**TRACKED, **TIMED}, mode="append")
    delta_spark.sql(f"UPDATE delta.`{path}` SET name = 'new' WHERE id = 1")
    delta.write(spark.createDataFrame(numbers(10, 2))).mode("append").save(path)
    assert row_ids(delta_spark, path)[1] == 1
    assert delta.read(spark).load(path).columns == ["id", "name", "p"]
    assert ids(delta.read(spark).load(path).toArrow()) == [0, 1, 2, 3, 10, 11]
    replacement = spark.createDataFrame(numbers(11, 1))
    delta.write(replacement).mode("overwrite").replaceWhere("id = 11").save(path)
    info = lines(path, DeltaLog.for_table(path).snapshot.version)[0]["commitInfo"]
    assert info["tags"] == {"delta.rowTracking.preserved": "false"}
    check_ids(path)
    said = times(path)
    assert said == sorted(set(said))


def test_a_table_of_ours_is_enabled_later_and_they_agree(delta_spark, path):
    write_arrow(path, numbers(0, 3), mode="append")
    insert(delta_spark, path, 10)
    enable_row_tracking(DeltaLog.for_table(path))
    found = row_ids(delta_spark, path)
    assert sorted(found) == [0, 1, 2, 10]
    assert sorted(found.values()) == [0, 1, 2, 3]
    insert(delta_spark, path, 20)
    assert row_ids(delta_spark, path)[20] == 4
    said = delta_spark.sql(f"SHOW TBLPROPERTIES delta.`{path}`")
    properties = {row["key"]: row["value"] for row in said}
    assert properties["delta.enableRowTracking"] == "true"


def test_a_table_that_they_enable_is_written_by_us(delta_spark, path):
    write_arrow(path, numbers(0, 3), mode="append")
    delta_spark.sql(
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    )
    write_arrow(path, numbers(3, 2), mode="append")
    assert row_ids(delta_spark, path) == {n: n for n in range(5)}


@pytest.mark.one_day_in(4)
@pytest.mark.parametrize("by_us", [True, False])
def test_times_that_are_switched_on_later_count_from_there_for_both(delta_spark, path, by_us):
    write_arrow(path, numbers(0, 1), mode="append")
    insert(delta_spark, path, 1)
    if by_us:
        switch_on(path)
    else:
        delta_spark.sql(
            f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES "
            "('delta.enableInCommitTimestamps' = 'true')"
        )
    write_arrow(path, numbers(2, 1), mode="append")
    insert(delta_spark, path, 3)
    said = times(path)
    assert said[:2] == [None, None]
    assert said[2:] == sorted(set(said[2:]))
    ours = {entry.version: entry.timestamp for entry in DeltaLog.for_table(path).history()}
    assert history(delta_spark, path) == ours
    for version, time in ours.items():
        moment = datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="milliseconds")
        rows = delta_spark.sql(f"SELECT id FROM delta.`{path}` TIMESTAMP AS OF '{moment}'")
        snapshot = DeltaLog.for_table(path).snapshot_at(timestamp=time)
        assert snapshot.version == version
        assert sorted(row["id"] for row in rows) == ids(snapshot.to_arrow())


def switch_on(path):
    txn = DeltaLog.for_table(path).start_transaction()
    txn.update_metadata(replace(txn.metadata, configuration=TIMED))
    txn.commit([], Operation("SET TBLPROPERTIES"))


def test_a_domain_of_ours_outlives_their_commits_and_checkpoints(delta_spark, path):
    write_arrow(
        path, numbers(0, 1), properties={"delta.feature.domainMetadata": "supported"}, mode="append"
    )
    for domain, removed in (("mine", False), ("gone", False), ("gone", True)):
        action = DomainMetadata(domain=domain, configuration='{"a":1}', removed=removed)
        DeltaLog.for_table(path).start_transaction().commit([action], Operation.manual())
    insert(delta_spark, path, 1)
    version = delta_spark.checkpoint(path)
    for old in range(version):
        (Path(path) / "_delta_log" / commit_name(old)).unlink()
    found = DeltaLog.for_table(path).snapshot.domain_metadata
    assert {name: each.configuration for name, each in found.items()} == {"mine": '{"a":1}'}


def test_a_table_of_which_they_dropped_a_feature_is_written_and_its_history_kept(delta_spark, path):
    write_arrow(
        path, numbers(0, 1), properties={"delta.feature.v2Checkpoint": "supported"}, mode="append"
    )
    write_arrow(path, numbers(1, 1), mode="append")
    delta_spark.sql(f"ALTER TABLE delta.`{path}` DROP FEATURE v2Checkpoint")
    write_arrow(path, numbers(2, 1), mode="append")
    log = DeltaLog.for_table(path)
    assert "checkpointProtection" in (log.snapshot.protocol.writer_features or ())
    protected = log.snapshot.properties.get("delta.requireCheckpointProtectionBeforeVersion")
    assert 0 < protected <= log.snapshot.version
    log.checkpoint()
    assert log.snapshot_at(0).num_files == 1
    insert(delta_spark, path, 3)
    assert ids(delta_spark.read(path)) == [0, 1, 2, 3]


def test_ids_stay_where_columns_are_mapped_by_id(delta_spark, path):
    properties = {**TRACKED, "delta.columnMapping.mode": "id"}
    write_arrow(path, numbers(0, 4), properties=properties, mode="append")
    write_arrow(path, numbers(4, 2), mode="append")
    before = row_ids(delta_spark, path)
    update_rows(path, {"name": lit("x")}, "id = 1")
    optimize(path)
    assert row_ids(delta_spark, path) == before
    delta_spark.sql(f"UPDATE delta.`{path}` SET name = 'new' WHERE id = 2")
    delete_rows(path, "id = 3")
    optimize(path)
    assert row_ids(delta_spark, path) == {key: n for key, n in before.items() if key != 3}
