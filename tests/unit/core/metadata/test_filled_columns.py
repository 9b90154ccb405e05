"""What may be declared of columns that writers fill."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakelog.core import create_table
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import CorruptLogError, DeltaAnalysisError
from lakelog.core.metadata.fill_declarations import check_filled_columns
from lakelog.core.schema import (
    ArrayType,
    PrimitiveType,
    StructField,
    StructType,
    column_with_default,
    generated_column,
    identity_column,
)

LONG, STRING, INT = PrimitiveType("long"), PrimitiveType("string"), PrimitiveType("integer")
DATE, TIMESTAMP = PrimitiveType("date"), PrimitiveType("timestamp")
A, B = StructField("a", INT), StructField("ts", TIMESTAMP)


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("a + 1", INT),
        ("CAST(ts AS DATE)", DATE),
        ("date_format(ts, 'yyyy-MM')", STRING),
        ("sha2(CAST(a AS STRING), 256)", STRING),
        ("transform(array(a), x -> x + a)", ArrayType(INT)),
        ("from_json('{}', 'x int').x", INT),
    ],
)
def test_an_expression_of_other_columns_is_taken(sql: str, kind: PrimitiveType) -> None:
    check_filled_columns(StructType((A, B, generated_column("g", kind, sql))), [])


@pytest.mark.parametrize(
    ("sql", "condition", "message"),
    [
        ("G + 1", "INVALID_GENERATED_COLUMN_REFERENCES", "uses itself"),
        ("other + 1", "INVALID_GENERATED_COLUMN_REFERENCES", "uses other"),
        ("rand()", "NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN", "Found rand"),
        ("uuid()", "NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN", "Found uuid"),
        ("current_date()", "NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN", "current_date"),
        ("max(a)", "AGGREGATE_IN_GENERATED_COLUMN", "Found max"),
        ("explode(array(a))", "AGGREGATE_IN_GENERATED_COLUMN", "Found explode"),
        ("my_udf(a)", "UDF_IN_GENERATED_COLUMN", "Found my_udf"),
        ("row_number() OVER (ORDER BY a)", "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN", "OVER"),
        ("(SELECT 1)", "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN", "SELECT"),
        ("a +", "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN", "can't parse"),
        ("a + 1L", "GENERATED_COLUMNS_EXPR_TYPE_MISMATCH", "is BIGINT, but the column type is INT"),
        ("upper('x')", "GENERATED_COLUMNS_EXPR_TYPE_MISMATCH", "is STRING"),
    ],
)
def test_an_expression_that_no_writer_can_keep_is_refused(
    sql: str, condition: str, message: str
) -> None:
    fields = (A, B, generated_column("other", INT, "a"), generated_column("g", INT, sql))
    with pytest.raises(DeltaAnalysisError) as caught:
        check_filled_columns(StructType(fields), [])
    assert str(caught.value).startswith(f"[DELTA_{condition}]")
    assert message in str(caught.value)
    assert sql in str(caught.value)


def test_what_a_table_has_already_is_not_judged_again() -> None:
    old = StructType((A, generated_column("g", INT, "hive_udf(a)")))
    check_filled_columns(StructType((*old, B)), [], old)
    with pytest.raises(DeltaAnalysisError, match="UDF_IN_GENERATED_COLUMN"):
        check_filled_columns(
            StructType((A, generated_column("g", INT, "hive_udf(a + 1)"))), [], old
        )


@pytest.mark.parametrize(
    ("field", "condition"),
    [
        (replace(identity_column("id"), data_type=INT), "IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE"),
        (
            replace(
                identity_column("id"),
                metadata={**identity_column("id").metadata, "delta.generationExpression": "a"},
            ),
            "IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION",
        ),
        (identity_column("p"), "IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED"),
    ],
)
def test_an_identity_that_no_writer_can_number_is_refused(
    field: StructField, condition: str
) -> None:
    with pytest.raises(DeltaAnalysisError, match=condition):
        check_filled_columns(StructType((A, field)), ["p"])


def test_a_step_of_nothing_and_a_part_of_an_identity_are_refused() -> None:
    with pytest.raises(DeltaAnalysisError, match="ILLEGAL_STEP"):
        identity_column("id", step=0)
    half = StructField("id", LONG, metadata={"delta.identity.start": 1})
    with pytest.raises(CorruptLogError, match="INCONSISTENT_METADATA"):
        check_filled_columns(StructType((half,)), [])


@pytest.mark.parametrize(
    ("sql", "condition"),
    [
        ("rand()", "NON_DETERMINISTIC_EXPRESSION_IN_DEFAULT"),
        ("a", "INVALID_DEFAULT_VALUE.NOT_CONSTANT"),
        ("(SELECT 1)", "INVALID_DEFAULT_VALUE"),
        ("max(1)", "AGGREGATE_IN_DEFAULT"),
        ("'x'", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        ("1000000000000", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        ("1 +", "INVALID_DEFAULT_VALUE"),
    ],
)
def test_a_default_that_is_no_value_of_its_column_is_refused(sql: str, condition: str) -> None:
    with pytest.raises(DeltaAnalysisError) as caught:
        check_filled_columns(StructType((A, column_with_default("d", INT, sql))), [])
    assert condition in str(caught.value)


@pytest.mark.parametrize("sql", ["5", "'12'", "NULL", "1 + 1", "length(md5('x'))", "-7"])
def test_a_default_that_is_a_value_of_its_column_is_taken(sql: str) -> None:
    check_filled_columns(StructType((A, column_with_default("d", INT, sql))), [])


def test_a_default_needs_its_feature(tmp_path) -> None:
    fields = StructType((A, column_with_default("d", INT, "5")))
    with pytest.raises(DeltaAnalysisError, match=r"create the table.*\(d\)"):
        create_table(tmp_path / "t", fields)
    session = {"spark.databricks.delta.properties.defaults.feature.allowColumnDefaults": "enabled"}
    create_table(tmp_path / "t", fields, conf=session)
    create_table(tmp_path / "u", StructType((A,)))
    txn = DeltaLog.for_table(tmp_path / "u").start_transaction()
    with pytest.raises(DeltaAnalysisError, match=r"FEATURE_NOT_ENABLED.*change the table"):
        txn.update_metadata(replace(txn.metadata, schema_string=fields.to_json()))
    asked = {"delta.feature.allowColumnDefaults": "supported"}
    txn.update_metadata(replace(txn.metadata, schema_string=fields.to_json(), configuration=asked))


def test_a_column_has_one_way_to_be_filled() -> None:
    both = replace(generated_column("g", INT, "a"), metadata={"CURRENT_DEFAULT": "1", "x": 1})
    both = replace(both, metadata={**both.metadata, "delta.generationExpression": "a"})
    with pytest.raises(DeltaAnalysisError, match="GENERATED_COLUMN_WITH_DEFAULT_VALUE"):
        check_filled_columns(StructType((A, both)), [])
