"""MERGE of many rows: the driver gets bitmaps of the rows that change."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from lakelog.core import DeltaLog, create_table, delete_rows, write_arrow
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark import DeltaTable
from lakelog.spark.dml import without_spark as here
from lakelog.spark.dml.merge import changed_positions as places

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
ROWS = 40_000
"""Of a file: more than one bitmap holds."""


@pytest.fixture(autouse=True)
def by_jobs(monkeypatch):
    monkeypatch.setattr(here, "HERE_BYTES", -1)


@pytest.fixture
def large(monkeypatch):
    """Sets how many rows are few; some MERGE of the test must find that its are more."""
    real = places._aggregated
    used = []

    def noted(*args):
        used.append(True)
        return real(*args)

    monkeypatch.setattr(places, "_aggregated", noted)
    yield lambda few: monkeypatch.setattr(places, "FEW_PLACES", few)
    assert used, "no MERGE took the way of bitmaps"


def numbers(path, properties):
    """`id` and `n` in two files, of which every seventh row is gone."""
    create_table(path, "id BIGINT, n BIGINT", properties=properties)
    for first in (0, ROWS):
        ids = list(range(first, first + ROWS))
        write_arrow(path, pa.table({"id": ids, "n": [0] * ROWS}), mode="append")
    delete_rows(path, "id % 7 = 0")
    return path


def state(path):
    log = DeltaLog.for_table(path)
    found = log.snapshot.to_arrow()
    entry = next(iter(log.history(1)))
    metrics = {k: v for k, v in (entry.metrics or {}).items() if "Time" not in k}
    return entry.operation, metrics, found.sort_by("id").to_pydict()


@pytest.mark.one_day_in(4, 3)
@pytest.mark.parametrize(
    "properties",
    [{"delta.enableDeletionVectors": "true"}, {"delta.enableChangeDataFeed": "true"}],
    ids=["vectors", "copies, feed"],
)
def test_bitmaps_tell_the_driver_what_rows_tell_it(spark, tmp_path, large, properties):
    states = []
    for few in (places.FEW_PLACES, -1):
        large(few)
        path = numbers(str(tmp_path / str(few)), properties)
        source = spark.range(0, 3 * ROWS, 3).select("id", (sf.col("id") % 4).alias("op"))
        merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
        (
            merge.whenMatchedUpdate("s.op = 0", set={"n": "1L"})
            .whenMatchedDelete("s.op = 1")
            .whenMatchedUpdate("s.op = 2", set={"n": "2L"})  # no clause is for 3
            .whenNotMatchedInsert("s.op < 2", values={"id": "s.id", "n": "3L"})
            .whenNotMatchedBySourceDelete("t.id % 5 = 0")
            .whenNotMatchedBySourceUpdate("t.id % 5 = 1", set={"n": "4L"})
            .execute()
        )
        states.append(state(path))
    assert states[0] == states[1]
    values = dict(zip(states[1][2]["id"], states[1][2]["n"], strict=True))
    expected = {}
    for id_ in range(3 * ROWS):
        op, gone = id_ % 4, id_ % 7 == 0 or id_ >= 2 * ROWS
        if id_ % 3 == 0 and (op < 2 if gone else op != 1):
            expected[id_] = 3 if gone else {0: 1, 2: 2, 3: 0}[op]
        elif id_ % 3 and not gone and id_ % 5:
            expected[id_] = 4 if id_ % 5 == 1 else 0
    assert values == expected


def test_a_row_that_matches_twice_is_found_in_bitmaps(spark, tmp_path, large):
    large(-1)
    path = numbers(str(tmp_path / "t"), {"delta.enableDeletionVectors": "true"})
    before = DeltaLog.for_table(path).snapshot.version
    # Once a clause applies, once none: that counts as two.
    twice = spark.sql("SELECT * FROM VALUES (1L, 1), (36002L, 1), (36002L, 2) AS v(id, k)")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(twice.alias("s"), "t.id = s.id")
    with pytest.raises(DeltaAnalysisError, match=r"MULTIPLE_SOURCE_ROW.*id = 36002") as caught:
        merge.whenMatchedUpdate("s.k = 1", set={"n": "9L"}).whenNotMatchedInsert(
            values={"id": "s.id"}
        ).execute()
    assert caught.value.fields["rows"] == 1
    assert DeltaLog.for_table(path).update().version == before
    merge.whenMatchedDelete().execute()
    _, metrics, found = state(path)
    assert metrics["numTargetRowsDeleted"] == "2"
    assert not {1, 36002} & set(found["id"])


def test_a_few_rows_of_the_source_may_change_many(spark, tmp_path, large, monkeypatch):
    large(100)
    path = numbers(str(tmp_path / "t"), {"delta.enableDeletionVectors": "true"})
    sent = []
    real = places._fetched

    def noted(*args):
        sent.append(args[0])
        return real(*args)

    monkeypatch.setattr(places, "_fetched", noted)
    source = spark.range(3)
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id % 9 = s.id")
    merge.whenMatchedDelete().execute()
    assert not sent  # more than a hundred came back
    left = [i for i in range(2 * ROWS) if i % 7 and i % 9 > 2]
    assert state(path)[2]["id"] == left
