"""The filters of a query leave out files, and row groups of those that are left."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import datasource

from lakelog.core import DeltaLog, delete_rows, write_arrow
from lakelog.spark.format.source_reader import FilteringReader
from lakelog.spark.types.spark_types import to_spark_schema

pytestmark = pytest.mark.skipif(
    not hasattr(datasource, "EqualTo"), reason="PySpark tells sources of filters since 4.1"
)
ROWS = 30_000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two files of numbers in order, each in three row groups, and one of text and nulls."""
    path = str(tmp_path_factory.mktemp("t"))
    vectors = {"delta.enableDeletionVectors": "true"}
    day = dt.date(2024, 1, 1)
    for first in (0, ROWS):
        ids = range(first, first + ROWS)
        data = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "name": [f"n{i:06}" for i in ids],
                "day": [day + dt.timedelta(i // 1000) for i in ids],
                "s": [{"in": i} for i in ids],
            }
        )
        write_arrow(
            path,
            data,
            mode="append",
            properties=vectors if not first else None,
        )
    for file in Path(path).glob("*.parquet"):
        pq.write_table(pq.read_table(file), file, row_group_size=10_000)
    nothing = pa.table({"id": pa.nulls(5, pa.int64()), "name": ["x"] * 5})
    write_arrow(path, nothing, mode="append")
    delete_rows(path, "id = 7")
    return path


def read(path: str, *filters: Any) -> tuple[int, int]:
    """How many files are read, and how many of their rows."""
    snapshot = DeltaLog.for_table(path).snapshot
    reader = FilteringReader(snapshot, to_spark_schema(snapshot.schema))
    assert list(reader.pushFilters(list(filters))) == list(filters)
    rows = [batch for part in reader.partitions() for batch in reader.read(part)]
    return reader._job.files.num_rows, sum(batch.num_rows for batch in rows)


def test_files_without_a_row_that_matches_are_not_read(path: str) -> None:
    from pyspark.sql.datasource import (
        EqualNullSafe,
        EqualTo,
        GreaterThan,
        In,
        IsNotNull,
        IsNull,
        LessThan,
        Not,
        StringContains,
        StringStartsWith,
    )

    assert read(path)[0] == 3
    assert read(path, GreaterThan(("id",), ROWS))[0] == 1
    assert read(path, In(("id",), (5, 6)))[0] == 1
    assert read(path, EqualNullSafe(("id",), 5))[0] == 1
    assert read(path, IsNull(("id",))) == (1, 5)
    assert read(path, IsNotNull(("id",)))[0] == 2
    assert read(path, Not(GreaterThan(("id",), 10)))[0] == 1
    assert read(path, StringStartsWith(("name",), "n00"))[0] == 1
    assert read(path, LessThan(("day",), dt.date(2024, 1, 5)))[0] == 1
    assert read(path, EqualTo(("s", "in"), 3))[0] == 1
    assert read(path, EqualTo(("id",), -1)) == (0, 0)
    assert read(path, GreaterThan(("id",), 5), LessThan(("id",), 9))[0] == 1
    # Row groups of 10,000 rows, of which the first has a deleted one.
    assert read(path, EqualTo(("id",), 5)) == (1, 9_999)
    assert read(path, GreaterThan(("id",), 45_000), LessThan(("id",), 46_000)) == (1, 10_000)
    # Of these statistics say nothing.
    assert read(path, StringContains(("name",), "n00"))[0] == 3
    assert read(path, Not(StringContains(("name",), "n00")))[0] == 3
    assert read(path, EqualTo(("id",), "text"))[0] == 3
    assert read(path, In(("id",), (5, None)))[0] == 3
