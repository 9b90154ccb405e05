"""What DELETE, UPDATE and MERGE read where Arrow reads, as on storage that Hadoop can't open."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf

from lakelog.core import convert_to_delta
from lakelog.spark import DeltaTable
from lakelog.spark.dml import without_spark as here
from lakelog.spark.reading import read_files as reading
from lakelog.spark.reading.arrow_scan import ArrowScan
from lakelog.spark.session.temporary_confs import temporary_confs

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
GROUP = 100
NAMES = ["id", "n", "long`text", "other"]


@pytest.fixture
def scans(spark, monkeypatch):
    """Of each scan of files the columns that are asked for, and the rows that come."""
    monkeypatch.setattr(here, "HERE_BYTES", -1)
    found = []

    def noted(snapshot, files, schema, *args, **kwargs):
        scan = ArrowScan(snapshot, files, schema, *args, **kwargs)
        if files.num_rows:
            found.append((schema.names, scan.to_arrow().num_rows))
        return scan

    monkeypatch.setattr(reading, "ArrowScan", noted)
    with temporary_confs(spark, {"spark.lakelog.read.path": "arrow"}):
        yield found


@pytest.fixture
def table(spark, tmp_path, scans):
    """Four row groups of a hundred rows in one file, which the log has no statistics of."""
    numbers = range(4 * GROUP)
    columns: dict[str, Any] = {"id": numbers, "n": [i % 10 for i in numbers], "other": numbers}
    columns["long`text"] = [str(i) * 50 for i in numbers]
    path = tmp_path / "t"
    path.mkdir()
    pq.write_table(pa.table(columns).select(NAMES), path / "a.parquet", row_group_size=GROUP)
    properties = {"delta.enableDeletionVectors": "true"}
    convert_to_delta(str(path), collect_stats=False, properties=properties)
    return DeltaTable.forPath(spark, str(path))


def ids(table):
    return sorted(row.id for row in table.toDF().select("id").collect())


@pytest.mark.parametrize(
    ("condition", "read", "gone"),
    [
        ("t.n + 1 = 4", ["n"], lambda i: i % 10 == 3),
        (lambda: sf.col("t.n") + 1 == 4, ["n"], lambda i: i % 10 == 3),
        (
            "substr(t.`long``text`, 1, 1) = '3' AND t.n = 3",
            ["n", "long`text"],
            lambda i: i % 10 == 3 and str(i)[0] == "3",
        ),
    ],
    ids=["text", "Column", "two"],
)
def test_a_delete_reads_the_columns_of_its_condition(table, scans, condition, read, gone):
    # Columns need a session.
    table.alias("t").delete(condition() if callable(condition) else condition)
    assert [names for names, _ in scans] == [read]
    scans.clear()
    assert ids(table) == [i for i in range(4 * GROUP) if not gone(i)]


def test_rows_are_looked_for_in_row_groups_that_may_have_them(table, scans):
    table.delete("id > 350 AND exp(id) IS NOT NULL")
    assert scans == [(["id"], GROUP)]
    scans.clear()
    table.update("id < 50 AND exp(id) IS NOT NULL", {"n": "-1L"})
    assert scans == [(["id"], GROUP), (NAMES, GROUP)]
    found = table.toDF().collect()
    assert sorted(row.id for row in found) == list(range(351))
    assert {row.id for row in found if row.n == -1} == set(range(50))


def test_a_merge_reads_the_columns_that_it_looks_at(spark, table, scans):
    source = spark.range(90, 120).select("id", (sf.col("id") % 2).alias("odd"))
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenNotMatchedInsert(values={"id": "s.id"}).execute()
    assert scans == [(["id"], 2 * GROUP)]
    scans.clear()
    merge.whenMatchedDelete("s.odd = 1 AND t.n < 9").execute()
    assert scans == [(["id", "n"], 2 * GROUP)]
    scans.clear()
    merge.whenMatchedUpdate(set={"n": "-1L"}).execute()
    assert [names for names, _ in scans] == [NAMES]
    scans.clear()
    merge.whenNotMatchedBySourceDelete(sf.col("t.other") > 200).execute()
    assert [names for names, _ in scans] == [["id", "other"]]
    gone = {i for i in range(90, 120) if i % 2 and i % 10 < 9}
    assert ids(table) == [i for i in range(201) if i not in gone]
