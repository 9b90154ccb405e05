"""What gives up digits of a decimal that needs too many is said by the conf, at every entry."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import (
    DeltaLog,
    create_table,
    delete_rows,
    merge,
    read_arrow,
    update_rows,
    write_arrow,
)
from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.values.evaluate import value_type
from lakelog.core.schema import DecimalType, StructField

if TYPE_CHECKING:
    from pathlib import Path

KEY = "spark.sql.decimalOperations.allowPrecisionLoss"
WIDE = pa.decimal128(38, 18)
ROWS = pa.table({"a": pa.array([Decimal(1), Decimal(2)], WIDE), "b": pa.array([None] * 2, WIDE)})
THIRD = {"true": "0.333333000000000000", "false": "0.333333333333333333"}
"""1 / 3 of a DECIMAL(38, 18), in which the column b holds it."""


@pytest.mark.parametrize(
    ("sql", "losing", "keeping"),
    [
        ("a + a", (38, 17), (38, 18)),
        ("a * a", (38, 6), (38, 36)),
        ("a / 3", (38, 18), (38, 18)),
        ("a % 3", (19, 18), (19, 18)),
        ("a / a", (38, 6), (38, 18)),
    ],
)
def test_types_are_those_of_the_rule(
    sql: str, losing: tuple[int, int], keeping: tuple[int, int]
) -> None:
    schema = from_arrow_schema(ROWS.schema)
    for loses, wanted in ((True, losing), (False, keeping)):
        found = value_type(sql, schema, EvalContext(precision_loss=loses))
        assert found == DecimalType(*wanted)


@pytest.mark.parametrize("loses", ["true", "false"])
def test_values_are_those_of_the_conf(tmp_path: Path, loses: str) -> None:
    conf = {KEY: loses}
    write_arrow(tmp_path, ROWS, mode="append")
    update_rows(tmp_path, {"b": "a / a / 3"}, "a = 1", conf=conf)
    assert read_arrow(tmp_path, where="a = 1")["b"][0].as_py() == Decimal(THIRD[loses])
    source = pa.table({"a": pa.array([Decimal(2)], WIDE)})
    made = merge(tmp_path, source, "target.a = source.a", conf=conf)
    made.when_matched_update({"b": "target.a / source.a / 3"}).execute()
    assert read_arrow(tmp_path, where="a = 2")["b"][0].as_py() == Decimal(THIRD[loses])
    where = "CAST(a / a / 3 AS DECIMAL(38, 18)) = b"
    assert DeltaLog.for_table(tmp_path, conf).update().to_arrow(where=where).num_rows == 2
    other = {KEY: "false" if loses == "true" else "true"}
    assert delete_rows(tmp_path, where, conf=other).version is None


@pytest.mark.parametrize("loses", ["true", "false"])
def test_a_generated_column_has_the_type_of_the_conf(tmp_path: Path, loses: str) -> None:
    field = StructField(
        "made", DecimalType(38, 18), metadata={"delta.generationExpression": "a + 0.5"}
    )
    schema = (StructField("a", DecimalType(38, 18)), field)
    if loses == "true":
        with pytest.raises(DeltaAnalysisError, match=r"DECIMAL\(38,17\)"):
            create_table(tmp_path, schema, conf={KEY: loses})
        return
    create_table(tmp_path, schema, conf={KEY: loses})
    write_arrow(tmp_path, ROWS.select(["a"]), mode="append", conf={KEY: loses})
    assert read_arrow(tmp_path)["made"].to_pylist() == [Decimal("1.5"), Decimal("2.5")]


def test_a_conf_that_is_no_truth_value_is_refused(tmp_path: Path) -> None:
    write_arrow(tmp_path, ROWS, mode="append")
    with pytest.raises(DeltaAnalysisError, match="allowPrecisionLoss"):
        update_rows(tmp_path, {"b": "a / 3"}, conf={KEY: "perhaps"})
