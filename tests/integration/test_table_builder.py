"""`DeltaTable.create` and its like: delta-spark's builder."""

from __future__ import annotations

import json

import pytest
from pyspark.sql.types import (
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

import lakelog.spark
from lakelog.core.errors import DeltaAnalysisError, TableExistsError, TableNotFoundError
from lakelog.spark import DeltaTable, IdentityGenerator

pytestmark = pytest.mark.connect


def columns(table):
    return {f.name: (str(f.data_type), f.nullable, dict(f.metadata)) for f in schema(table)}


def schema(table):
    return table.log.update().schema


def test_every_kind_of_column(spark, tmp_path):
    path = str(tmp_path / "t")
    table = (
        DeltaTable.create(spark)
        .tableName(f"delta.`{path}`")
        .comment("what happened")
        .addColumn("id", "BIGINT", generatedAlwaysAs=IdentityGenerator(start=10, step=5))
        .addColumn("n", LongType(), generatedByDefaultAs=IdentityGenerator(), comment="counts")
        .addColumn("s", "STRING", nullable=False)
        .addColumn("h", "STRING", generatedAlwaysAs="sha2(s, 256)")
        .addColumn("short", "VARCHAR(3)")
        .addColumn("deep", "STRUCT<x: ARRAY<DECIMAL(5,2)>>")
        .addColumns([StructField("d", IntegerType(), metadata={"CURRENT_DEFAULT": "1 + 1"})])
        .addColumns(StructType([StructField("p", StringType())]))
        .partitionedBy("p")
        .property("delta.feature.allowColumnDefaults", "supported")
        .property("mine", "yes")
        .execute()
    )
    assert columns(table) == {
        "id": ("bigint", True, sequence(10, 5, explicit=False)),
        "n": ("bigint", True, {**sequence(1, 1, explicit=True), "comment": "counts"}),
        "s": ("string", False, {}),
        "h": ("string", True, {"delta.generationExpression": "sha2(s, 256)"}),
        "short": ("string", True, {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}),
        "deep": ("struct<x:array<decimal(5,2)>>", True, {}),
        "d": ("int", True, {"CURRENT_DEFAULT": "1 + 1"}),
        "p": ("string", True, {}),
    }
    (detail,) = table.detail().collect()
    assert detail.description == "what happened"
    assert detail.partitionColumns == ["p"]
    assert detail.properties == {"mine": "yes"}
    lakelog.spark.write(spark.sql("SELECT 'a' s")).mode("append").save(path)
    (row,) = table.toDF().collect()
    assert (row.id, row.n, row.d, row.h[:4]) == (10, 1, 2, "ca97")
    assert table.history().collect()[0].operation == "WRITE"


def sequence(start, step, *, explicit):
    return {
        "delta.identity.start": start,
        "delta.identity.step": step,
        "delta.identity.allowExplicitInsert": explicit,
    }


def test_what_is_done_about_a_table_that_exists(spark, tmp_path):
    path = str(tmp_path / "t")
    with pytest.raises(TableNotFoundError):
        DeltaTable.replace(spark).location(path).addColumn("a", "INT").execute()
    DeltaTable.createIfNotExists(spark).location(path).addColumn("a", "INT").execute()
    lakelog.spark.write(spark.sql("SELECT 1 a")).mode("append").save(path)
    with pytest.raises(TableExistsError):
        DeltaTable.create(spark).location(path).addColumn("b", "INT").execute()
    same = DeltaTable.createIfNotExists(spark).location(path).addColumn("b", "INT").execute()
    assert schema(same).names == ["a"]
    made = (
        DeltaTable.createOrReplace(spark)
        .location(path)
        .addColumn("b", "BIGINT", generatedByDefaultAs=IdentityGenerator())
        .addColumn("c", "INT")
        .partitionedBy(["c"])
        .execute()
    )
    assert schema(made).names == ["b", "c"]
    assert made.toDF().count() == 0
    (last,) = made.history(1).collect()
    assert last.operation == "CREATE OR REPLACE TABLE"
    assert json.loads(last.operationParameters["partitionBy"]) == ["c"]
    again = DeltaTable.replace(spark).location(path).addColumn("z", "DATE").execute()
    assert again.history(1).collect()[0].operation == "REPLACE TABLE"
    assert again.history().count() == 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dataType": "INT", "generatedAlwaysAs": "a + nope"}, "column g .a . nope. can't be"),
        ({"dataType": "INT", "generatedAlwaysAs": "a + 1L"}, "is BIGINT, but the column type"),
        ({"dataType": "STRING", "generatedAlwaysAs": "md5(a)"}, "can't be computed"),
        ({"dataType": "DOUBLE", "generatedAlwaysAs": "rand()"}, "NON_DETERMINISTIC"),
        ({"dataType": "INT", "generatedAlwaysAs": IdentityGenerator()}, "UNSUPPORTED_DATA_TYPE"),
        ({"dataType": "BIGINT", "generatedAlwaysAs": IdentityGenerator(1, 0)}, "ILLEGAL_STEP"),
        ({"dataType": "BIGINT", "generatedByDefaultAs": "a"}, "must be IdentityGenerator"),
        (
            {
                "dataType": "BIGINT",
                "generatedAlwaysAs": "a",
                "generatedByDefaultAs": IdentityGenerator(),
            },
            "not both",
        ),
        ({"dataType": "NONSENSE"}, "can't have the type NONSENSE"),
    ],
)
def test_a_column_that_no_table_can_have_is_refused(spark, tmp_path, given, message):
    path = str(tmp_path / "t")
    with pytest.raises(DeltaAnalysisError, match=message):
        (
            DeltaTable.create(spark)
            .location(path)
            .addColumn("a", IntegerType())
            .addColumn("g", **given)
            .execute()
        )
    assert not DeltaTable.isDeltaTable(spark, path)


def test_a_table_needs_a_place(spark):
    with pytest.raises(DeltaAnalysisError, match="not the name of a table"):
        DeltaTable.create(spark).tableName("a b")
    with pytest.raises(DeltaAnalysisError, match="location"):
        DeltaTable.create(spark).addColumn("a", "INT").execute()
