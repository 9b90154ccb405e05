"""Which files DELETE, UPDATE and MERGE look into, and whose appends they conflict with, by Columns.

As with delta-spark, an append to a partition that the condition leaves out never conflicts, however
the condition was given.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from lakelog.core import DeltaLog, create_table, write_arrow
from lakelog.core.errors import ConcurrentAppendException
from lakelog.spark import DeltaTable
from lakelog.spark.dml import delete_update
from lakelog.spark.dml import matching_positions as hits
from lakelog.spark.dml import without_spark as here
from lakelog.spark.dml.column_text import as_texts
from lakelog.spark.dml.merge import changed_positions as places
from lakelog.spark.dml.merge.placed_target import MergeTarget

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
PARTITIONS = ["it", "p 5", "p6"]
col = sf.col


@pytest.fixture
def path(tmp_path, monkeypatch):
    """`id` and `n` in partitions by `p`, two files in each."""
    monkeypatch.setattr(here, "HERE_BYTES", -1)
    path = str(tmp_path / "t")
    create_table(path, "id BIGINT, n BIGINT, p STRING", partition_by=["p"])
    for first in (0, 10):
        for at, name in enumerate(PARTITIONS):
            append(path, name, [first + at, first + at + 3])
    return path


def append(path, name, ids):
    data = pa.table({"id": ids, "n": ids, "p": [name] * len(ids)})
    write_arrow(path, data, mode="append")


def found(path):
    return sorted(DeltaLog.for_table(path).snapshot.to_arrow()["id"].to_pylist())


@pytest.mark.one_day_in(2)
@pytest.mark.parametrize(
    ("alias", "condition"),
    [
        ("t", lambda: "t.id = s.sid AND t.p = 'p 5'"),
        (None, lambda: "id = sid AND p = 'p 5'"),
        ("t", lambda: (col("t.id") == col("s.sid")) & (col("t.p") == "p 5")),
        (None, lambda: (col("id") == col("s.sid")) & col("p").isin("p 5", "p7")),
    ],
    ids=["text", "text without alias", "Column", "Column without alias"],
)
def test_a_merge_looks_into_the_files_that_can_match(spark, path, monkeypatch, alias, condition):
    read = []
    over, real = MergeTarget.over, places.places_of

    def noted(spark, snapshot, files, *args, **named):
        read.append(files.num_rows)
        return over(spark, snapshot, files, *args, **named)

    def meanwhile(*args, **named):
        append(path, partition, [1000])
        return real(*args, **named)

    monkeypatch.setattr(MergeTarget, "over", noted)
    monkeypatch.setattr("lakelog.spark.dml.merge.merge_command.places_of", meanwhile)
    table = DeltaTable.forPath(spark, path)
    source = spark.range(11, 13).withColumnRenamed("id", "sid").alias("s")
    merge = (table if alias is None else table.alias(alias)).merge(source, condition())
    partition = "p6"
    merge.whenMatchedDelete().execute()
    assert max(read) == 1  # of the two files of that partition the one with 11
    assert found(path) == [0, 1, 2, 3, 4, 5, 10, 12, 13, 14, 15, 1000]
    partition = "p 5"
    append(path, partition, [11])
    with pytest.raises(ConcurrentAppendException):
        merge.whenMatchedDelete().execute()


@pytest.mark.parametrize("change", ["delete", "update"])
def test_a_change_by_a_column_conflicts_in_its_partitions_alone(spark, path, monkeypatch, change):
    real = hits.hit_positions

    def meanwhile(rows, numbers):
        assert len(numbers) <= 2  # those of one partition
        append(path, partition, [1000])
        return real(rows, numbers)

    monkeypatch.setattr(delete_update, "hit_positions", meanwhile)
    table = DeltaTable.forPath(spark, path)
    condition = (col("p") == "p 5") & (col("n") + 0 < 50)

    def run():
        if change == "delete":
            table.delete(condition)
        else:
            table.update(condition, {"id": sf.lit(-1)})

    partition = "p6"
    run()
    assert {1, 11} & set(found(path)) == set()
    append(path, "p 5", [2])
    partition = "p 5"
    with pytest.raises(ConcurrentAppendException):
        run()


@pytest.mark.connect
def test_a_column_is_text_only_where_both_mean_the_same(spark):
    rows = spark.sql("SELECT 1 AS id, 'x' AS p, DATE'2024-01-01' AS d, struct(1 AS a) AS s").alias(
        "t"
    )
    same = [
        (col("t.p") == "a b") & (col("id") > 5),
        col("p").isin("x", "y") | col("p").isNull(),
        ~(col("id").between(1, 3)) & (col("s.a") <= 3),
        sf.expr("p = 'it''s' AND id + 1 = 2"),
        sf.upper("p").eqNullSafe("X"),
        col("id") * 1.5 > sf.lit(10_000_000_000),
        col("d") < sf.lit(datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
        sf.concat("p", sf.lit("!")),
    ]
    for each, text in zip(same, as_texts(same, rows), strict=True):
        assert isinstance(text, str), each
        assert rows.select(each).sameSemantics(rows.selectExpr(text))
        assert as_texts([each], rows) == [text]
    # A string that looks like a column, a quote within a string, and what has no text.
    like_a_column, quote = as_texts([col("p") == sf.lit("id"), col("p") == "it's"], rows)
    assert not isinstance(like_a_column, str) or like_a_column == "(p = 'id')"
    assert not isinstance(quote, str)
    double = sf.udf(lambda n: n == 1, "boolean")("id")
    known = col("id") + 1
    assert as_texts([double, "p = 'x'", known], rows) == [double, "p = 'x'", "(id + 1)"]
    # To SET, the word stands for the column's default.
    named = rows.select(sf.lit(1).alias("default"))
    assert not isinstance(as_texts([col("default")], named)[0], str)
