from __future__ import annotations

import pyarrow as pa
import pytest

from lakelog.core.actions import Metadata
from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.errors import ConstraintViolationError, DeltaAnalysisError
from lakelog.core.expressions.context import EvalContext
from lakelog.core.rows.checks import ruled_rows
from lakelog.core.rows.constraints import table_constraints
from lakelog.core.schema import PrimitiveType, StructField, StructType

INNER = StructType((StructField("z", PrimitiveType("string")),))
SCHEMA = StructType(
    (
        StructField("a", PrimitiveType("integer")),
        StructField("ts", PrimitiveType("timestamp")),
        StructField("s", INNER),
    )
)


def check(sql: str, *rows: dict[str, object], zone: str = "UTC") -> None:
    metadata = Metadata(
        id="t",
        schema_string=SCHEMA.to_json(),
        partition_columns=[],
        configuration={"delta.constraints.rule": sql},
    )
    data = pa.Table.from_pylist(list(rows), schema=to_arrow_schema(SCHEMA))
    ruled_rows(data, table_constraints(metadata), SCHEMA, "/t", EvalContext(zone))


@pytest.mark.parametrize(
    "sql",
    [
        "a > 0",
        "a % 2 = 1",
        "length(s.z) < 3",
        "a > 0 AND upper(s.z) = 'AB'",
        "abs(a) BETWEEN 1 AND 5",
    ],
)
def test_a_rule_holds_for_every_row_or_stops_the_write(sql: str) -> None:
    good, bad = {"a": 1, "s": {"z": "ab"}}, {"a": -6, "s": {"z": "long"}}
    check(sql)
    check(sql, good, good)
    with pytest.raises(
        ConstraintViolationError, match=r"rule .*: 1 of 2, the first with"
    ) as caught:
        check(sql, good, bad)
    assert caught.value.rows == 1
    used = caught.value.first
    assert used
    assert all(bad[name] == value for name, value in used.items())


@pytest.mark.parametrize("sql", ["a > 0", "length(s.z) < 3"])
def test_null_is_as_bad_as_false(sql: str) -> None:
    with pytest.raises(ConstraintViolationError):
        check(sql, {"a": None, "s": None})


def test_a_rule_about_the_clock_asks_the_session_s_zone() -> None:
    noon = pa.scalar(1_715_000_400_000_000, pa.timestamp("us", "UTC")).as_py()
    check("hour(ts) = 13", {"ts": noon})
    check("hour(ts) = 22", {"ts": noon}, zone="Asia/Tokyo")
    with pytest.raises(ConstraintViolationError):
        check("hour(ts) = 13", {"ts": noon}, zone="Asia/Tokyo")


@pytest.mark.parametrize("sql", ["s.z RLIKE '(?i)a'", "a = 1 OR 10 / exp(a) > 1", "a"])
def test_a_rule_that_only_spark_can_check_is_refused_by_name(sql: str) -> None:
    with pytest.raises(DeltaAnalysisError, match=r"the rule rule .*lakelog.spark"):
        check(sql, {"a": 0, "s": {"z": "a"}})
