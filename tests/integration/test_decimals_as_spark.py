"""Arithmetic of decimals has Spark's types and digits, by both rules for too many digits."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelog.core.arrow.arrow_types import from_arrow_schema, to_arrow_type
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.values.evaluate import evaluate_value, value_type
from lakelog.core.schema import DecimalType

KINDS = [
    *((1, 0), (1, 1), (3, 2), (5, 2), (9, 0), (10, 10), (18, 6), (19, 19), (20, 0), (27, 13)),
    *((30, 3), (37, 0), (37, 37), (38, 0), (38, 6), (38, 18), (38, 30), (38, 37), (38, 38)),
]
NAMES = {kind: f"c{kind[0]}_{kind[1]}" for kind in KINDS}
ROWS = 24
OTHERS = ("b", "i", "3", "-7", "1.25", "0.000001", "CAST(NULL AS DECIMAL(7,3))")
MIXED = [
    *(f"{name} {op} {other}" for name in NAMES.values() for other in OTHERS for op in "+-*/%"),
    *(f"{other} / {name}" for name in NAMES.values() for other in OTHERS),
    *(f"{name} * {name} / 3 + {name} - 0.5" for name in NAMES.values()),
    # Of more digits the opposite is rounded to 34 of them by Spark alone.
    *(f"abs(-{NAMES[kind]}) * round({NAMES[kind]}, 2)" for kind in KINDS if kind[0] <= 34),
    *(f"CASE WHEN i > 0 THEN {name} / 7 END" for name in NAMES.values()),
]


def numbers(kind: tuple[int, int], chance: random.Random) -> list[Decimal | None]:
    """Values of a type: the ends, the smallest, nulls, and some of each size."""
    precision, scale = kind
    most = 10**precision - 1
    whole = [most, -most, 1, -1, 0, most // 2, 5 * 10 ** (precision - 1)]
    while len(whole) < ROWS - 2:
        whole.append(chance.randint(-1, 1) * chance.randrange(10 ** chance.randint(1, precision)))
    found: list[Decimal | None] = [Decimal(f"{each}E-{scale}") for each in whole]
    chance.shuffle(found)
    return [*found, None, Decimal(f"3E-{scale}")]


def table() -> pa.Table:
    chance = random.Random(38)
    columns = {
        NAMES[kind]: pa.array(numbers(kind, chance), to_arrow_type(DecimalType(*kind)))
        for kind in KINDS
    }
    longs = [(1 << 63) - 1, -(1 << 63), 0, 1, None, *range(2, ROWS - 3)]
    columns["b"] = pa.array(longs, pa.int64())
    columns["i"] = pa.array(range(ROWS), pa.int32())
    return pa.table(columns)


@pytest.fixture
def setting(spark, request):
    """Whether digits after the point are lost; a row without a result is null to Spark."""
    confs = {
        "spark.sql.decimalOperations.allowPrecisionLoss": request.param,
        "spark.sql.ansi.enabled": "false",
    }
    for key, value in confs.items():
        spark.conf.set(key, value)
    yield EvalContext(precision_loss=request.param == "true")
    for key in confs:
        spark.conf.unset(key)


def _pairs() -> list[str]:
    names = NAMES.values()
    return [f"{a} {op} {b}" for a in names for b in names for op in "+-*/%"]


def _may_be_impossible(sql: str) -> bool:
    """Whether Spark may fail, in any mode, since a divisor is in a number too often."""
    left, _, right = sql.partition(" % ")
    scales = {name: kind for kind, name in NAMES.items()}
    if left not in scales or not right:
        return bool(right)
    scale = scales[right][1] if right in scales else len(right.partition(".")[2])
    precision, own = scales[left]
    return precision - own + scale > 38


def _values(sql: str, rows: pa.Table, context: EvalContext) -> list[Any]:
    schema = from_arrow_schema(rows.schema)
    kind = value_type(sql, schema, context)
    assert kind is not None
    try:
        found: list[Any] = evaluate_value(sql, rows, schema, kind, context).to_pylist()
        return found
    except (DeltaAnalysisError, InvalidPredicateError):
        if rows.num_rows == 1:
            return [None]
        half = rows.num_rows // 2
        halves = (rows.slice(0, half), rows.slice(half))
        return [value for each in halves for value in _values(sql, each, context)]


@pytest.mark.one_day_in(3, 1)
@pytest.mark.parametrize("setting", ["true", "false"], indirect=True)
def test_the_types_and_digits_are_those_of_spark(spark, setting):
    rows = table()
    schema = from_arrow_schema(rows.schema)
    numbered = rows.append_column("row", pa.array(range(ROWS), pa.int32()))
    frame = spark.createDataFrame(numbered).orderBy("row")
    different = []
    texts = [*_pairs(), *MIXED]
    # Values of all of them would take minutes; the types decide which are alike.
    valued = set(random.Random(7).sample(texts, 500)) | set(MIXED[-3 * len(KINDS) :])
    valued = {sql for sql in valued if not _may_be_impossible(sql)}
    for start in range(0, len(texts), 400):
        some = texts[start : start + 400]
        named = [f"{sql} AS c{i}" for i, sql in enumerate(some)]
        found = frame.selectExpr(*named)
        for sql, field in zip(some, found.schema, strict=True):
            kind, wanted = value_type(sql, schema, setting), field.dataType.simpleString()
            if str(kind) != wanted:
                different.append(f"{sql}: {kind} for {wanted}")
        asked = [sql for sql in some if sql in valued]
        data = found.select(*(f"c{some.index(sql)}" for sql in asked)).toArrow()
        for sql, column in zip(asked, data.columns, strict=True):
            mine, theirs = _values(sql, rows, setting), column.to_pylist()
            if mine != theirs:
                shown = [pair for pair in zip(mine, theirs, strict=True) if pair[0] != pair[1]]
                different.append(f"{sql}: {shown[:3]}")
    assert different == []


@pytest.mark.one_day_in(3)
@pytest.mark.parametrize("sql", ["m % 0.3BD", "m % 0.1BD", "m % 0.03BD", "(m - m % 100) % 0.01BD"])
@pytest.mark.parametrize("most", ["9" * 38, "1" + "0" * 37, "5" * 37])
def test_a_remainder_that_spark_has_no_digits_for_has_no_value(spark, sql, most):
    rows = pa.table({"m": pa.array([Decimal(most)], pa.decimal128(38, 0))})
    found = spark.createDataFrame(rows).selectExpr(f"{sql} AS c")
    (mine,) = _values(sql, rows, EvalContext())
    if mine is None:
        with pytest.raises(Exception, match="Division impossible"):
            found.collect()
    else:
        assert found.collect()[0]["c"] == mine
