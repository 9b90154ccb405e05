"""NOT NULL and CHECK over fields of structs: we refuse what delta-spark refuses."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakelog.spark
from lakelog.core import DeltaLog, create_table, write_arrow
from lakelog.core.errors import ConstraintViolationError
from lakelog.core.schema import PrimitiveType, StructField, StructType
from support.delta_spark_peer import DeltaSparkError

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
INNER = pa.struct([("z", pa.string())])
NESTED = pa.struct([("x", pa.int64()), ("y", INNER)])

GOOD = [
    {"x": 1, "y": {"z": "a"}},
    {"x": 2, "y": {"z": "bc"}},
]
ABSENT = {"x": 3, "y": None}
BAD = {
    "a required field is null": {"x": None, "y": {"z": "a"}},
    "a required field of a field is null": {"x": 1, "y": {"z": None}},
    "the check is false": {"x": -1, "y": {"z": "a"}},
    "the check of a function is false": {"x": 1, "y": {"z": "too long"}},
}


@pytest.fixture(params=["ours", "theirs"])
def table(request, delta_spark, tmp_path):
    path = str(tmp_path / "t")
    checks = {"positive": "s.x > 0", "short": "s.y.z IS NULL OR length(s.y.z) < 5"}
    if request.param == "theirs":
        delta_spark.sql(
            f"CREATE TABLE delta.`{path}` (a BIGINT, s STRUCT<x: BIGINT NOT NULL, "
            "y: STRUCT<z: STRING NOT NULL>>) USING delta"
        )
        for name, sql in checks.items():
            delta_spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT {name} CHECK ({sql})")
        return path
    y = StructType((StructField("z", STRING, nullable=False),))
    s = StructType((StructField("x", LONG, nullable=False), StructField("y", y)))
    fields = StructType((StructField("a", LONG), StructField("s", s)))
    properties = {f"delta.constraints.{name}": sql for name, sql in checks.items()}
    create_table(path, fields, properties=properties)
    return path


def data(*values):
    return pa.table({"a": pa.array(range(len(values)), pa.int64()), "s": pa.array(values, NESTED)})


def by_spark(spark, path, rows):
    lakelog.spark.write(spark.createDataFrame(rows)).mode("append").save(path)


def test_good_rows_go_every_way(delta_spark, spark, table):
    write_arrow(table, data(*GOOD), mode="append")
    by_spark(spark, table, data(*GOOD))
    delta_spark.write(table, data(*GOOD))
    assert delta_spark.count(table) == 6
    assert DeltaLog.for_table(table).snapshot.to_arrow().num_rows == 6


def test_a_field_of_a_struct_that_is_null_may_be_absent_here(delta_spark, spark, table):
    """The one difference, told in the documentation: delta-spark wants every struct to be there."""
    with pytest.raises(DeltaSparkError, match=r"NOT NULL constraint violated for column: s\.y\.z"):
        delta_spark.write(table, data(ABSENT))
    write_arrow(table, data(ABSENT), mode="append")
    by_spark(spark, table, data(ABSENT))
    assert delta_spark.count(table, where="s.y IS NULL") == 2


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_row_goes_no_way(delta_spark, spark, table, kind):
    rows = data(GOOD[0], BAD[kind])
    with pytest.raises(DeltaSparkError):
        delta_spark.write(table, rows)
    with pytest.raises(ConstraintViolationError):
        write_arrow(table, rows, mode="append")
    with pytest.raises(ConstraintViolationError):
        by_spark(spark, table, rows)
    assert delta_spark.count(table) == 0
