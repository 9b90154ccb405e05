"""Symlink manifests: ours and delta-spark's, of the same tables, by a call and after commits."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.errors import DeltaAnalysisError
from support.delta_spark_peer import DeltaSparkError

KEPT = "'delta.compatibility.symlinkFormatManifest.enabled' = 'true'"
PLAIN = "'delta.enableDeletionVectors' = 'false'"
VALUES = "(1, 'a b%', 1), (2, 'x/y=z', 1), (3, NULL, 2), (4, 'é:#', 2), (5, '', 3), (6, 'p', 3)"


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "a table")


def manifests(path):
    """Folder -> the lines, in any order."""
    root = Path(path) / "_symlink_format_manifest"
    return {
        str(found.relative_to(root)): sorted(found.read_text().splitlines(keepends=True))
        for found in root.rglob("manifest")
    }


def partitioned(delta_spark, path, *properties):
    listed = ", ".join([PLAIN, *properties])
    delta_spark.sql(
        f"CREATE TABLE delta.`{path}` (id LONG, p STRING, n LONG) USING delta "
        f"PARTITIONED BY (p, n) TBLPROPERTIES ({listed})"
    )


def test_a_call_writes_what_theirs_writes(delta_spark, path):
    partitioned(delta_spark, path)
    log = DeltaLog.for_table(path)
    for statement in (
        f"INSERT INTO delta.`{path}` VALUES {VALUES}",
        f"INSERT INTO delta.`{path}` VALUES (7, 'p', 3), (8, NULL, 2)",
        f"DELETE FROM delta.`{path}` WHERE n = 1",
    ):
        delta_spark.sql(statement)
        delta_spark.sql(f"GENERATE symlink_format_manifest FOR TABLE delta.`{path}`")
        theirs = manifests(path)
        for found in (Path(path) / "_symlink_format_manifest").rglob("manifest"):
            found.write_text("not what it was")
        log.generate_symlink_manifest()
        assert manifests(path) == theirs
        assert theirs


def test_a_table_of_every_type_of_partition_column(delta_spark, path):
    delta_spark.sql(
        f"CREATE TABLE delta.`{path}` (id LONG, d DATE, ts TIMESTAMP, b BOOLEAN, x DOUBLE, "
        "y BINARY, z DECIMAL(5, 2)) USING delta PARTITIONED BY (d, ts, b, x, y, z) "
        f"TBLPROPERTIES ({PLAIN})"
    )
    delta_spark.sql(
        f"INSERT INTO delta.`{path}` VALUES (1, DATE'2024-01-02', "
        "TIMESTAMP'2024-01-02 03:04:05.5', true, 1.5, X'6162', 1.5)"
    )
    delta_spark.sql(f"GENERATE symlink_format_manifest FOR TABLE delta.`{path}`")
    theirs = manifests(path)
    DeltaLog.for_table(path).generate_symlink_manifest()
    assert manifests(path) == theirs
    assert len(theirs) == 1


@pytest.mark.parametrize("columns", ["", "PARTITIONED BY (n)"])
def test_our_commits_and_theirs_take_turns_on_one_set(delta_spark, path, columns):
    delta_spark.sql(
        f"CREATE TABLE delta.`{path}` (id LONG, n LONG) USING delta {columns} "
        f"TBLPROPERTIES ({PLAIN}, {KEPT})"
    )
    write_arrow(path, pa.table({"id": [1, 2], "n": [1, 2]}), mode="append")
    ours = manifests(path)
    delta_spark.sql(f"INSERT INTO delta.`{path}` VALUES (3, 3), (4, 1)")
    write_arrow(path, pa.table({"id": [5], "n": [3]}), mode="append")
    delta_spark.sql(f"DELETE FROM delta.`{path}` WHERE n = 2")
    by_commits = manifests(path)
    delta_spark.sql(f"GENERATE symlink_format_manifest FOR TABLE delta.`{path}`")
    assert by_commits == manifests(path)
    assert ours != by_commits
    log = DeltaLog.for_table(path)
    txn = log.start_transaction()
    gone = [each.remove(1) for each in txn.filter_files()]
    txn.commit(gone, Operation(name="DELETE"))
    emptied = manifests(path)
    delta_spark.sql(f"GENERATE symlink_format_manifest FOR TABLE delta.`{path}`")
    assert emptied == manifests(path) == ({} if columns else {"manifest": []})


def test_both_refuse_the_same_tables_in_the_same_words(delta_spark, path, tmp_path):
    mapped = str(tmp_path / "mapped")
    delta_spark.sql(
        f"CREATE TABLE delta.`{mapped}` (id LONG) USING delta "
        f"TBLPROPERTIES ({PLAIN}, 'delta.columnMapping.mode' = 'name')"
    )
    delta_spark.sql(
        f"CREATE TABLE delta.`{path}` (id LONG) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    delta_spark.sql(f"INSERT INTO delta.`{path}` SELECT id FROM range(10)")
    delta_spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")
    for table, condition in (
        (mapped, "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING"),
        (path, "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS"),
    ):
        with pytest.raises(DeltaSparkError, match=condition):
            delta_spark.sql(f"GENERATE symlink_format_manifest FOR TABLE delta.`{table}`")
        with pytest.raises(DeltaAnalysisError, match=condition):
            DeltaLog.for_table(table).generate_symlink_manifest()
