"""Functions that take a lambda give what Spark gives, for elements of many types."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.values.evaluate import evaluate_value, value_type
from lakelog.core.schema import (
    ArrayType,
    DataType,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
)

ZONE = "America/Los_Angeles"
_NAN, _INFINITE = float("nan"), float("inf")
_WHEN = dt.datetime(2024, 3, 10, 9, 59, tzinfo=dt.UTC)
_PAIR = StructType(
    (StructField("a", PrimitiveType("integer")), StructField("b", PrimitiveType("string")))
)
ELEMENTS: dict[str, tuple[DataType, list[Any]]] = {
    "i": (PrimitiveType("integer"), [0, 1, -7, 2147483, -(1 << 31), (1 << 31) - 1]),
    "l": (PrimitiveType("long"), [0, 3, -3, 1 << 40, -(1 << 63), (1 << 63) - 1]),
    "x": (PrimitiveType("double"), [0.0, -0.0, 1.5, _NAN, _INFINITE, -1e300]),
    "m": (DecimalType(10, 3), [Decimal("1.500"), Decimal("-9999999.999"), Decimal("0.001")]),
    "s": (PrimitiveType("string"), ["", "a", "héllo", "İ", "zz top", "12"]),
    "t": (PrimitiveType("boolean"), [True, False]),
    "d": (PrimitiveType("date"), [dt.date(2024, 2, 29), dt.date(1582, 10, 10), dt.date(1, 1, 1)]),
    "ts": (PrimitiveType("timestamp"), [_WHEN, _WHEN.replace(year=1900), _WHEN.replace(month=11)]),
    "st": (_PAIR, [{"a": 1, "b": "one"}, {"a": None, "b": "none"}, {"a": -5, "b": None}]),
    "ll": (ArrayType(PrimitiveType("integer"), True), [[], [1, None], [3, 4, 5], [None]]),
}
SCHEMA = StructType(
    (
        StructField("n", PrimitiveType("integer")),
        StructField("p", DecimalType(5, 2)),
        StructField("w", PrimitiveType("string")),
        *(StructField(name, ArrayType(kind, True)) for name, (kind, _) in ELEMENTS.items()),
    )
)
_I = StructField("i", ArrayType(PrimitiveType("integer"), True))
SAME = {
    "i": "e % 3 = n",
    "l": "e > n",
    "x": "e >= 1.5D",
    "m": "e < p",
    "s": "length(e) > n",
    "t": "e",
    "d": "e > DATE'2000-01-01'",
    "ts": "hour(e) < 12",
    "st": "e.a > 0",
    "ll": "size(e) > 1",
}
CHANGED = {
    "i": "e / 2",
    "l": "e DIV 3",
    "x": "e * 2 + n",
    "m": "e * p",
    "s": "upper(concat(e, w))",
    "t": "NOT e",
    "d": "year(e)",
    "ts": "CAST(e AS DATE)",
    "st": "e.b",
    "ll": "transform(e, f -> f + n)",
}
TEXTS = [
    *(
        f"{function}({c}, e -> {body})"
        for c, body in SAME.items()
        for function in ("filter", "exists", "forall")
    ),
    *(f"filter({c}, (e, at) -> at >= n AND {body})" for c, body in SAME.items()),
    *(f"transform({c}, e -> {body})" for c, body in CHANGED.items()),
    *(f"transform({c}, (e, at) -> at + n)" for c in CHANGED),
    *(f"transform({c}, e -> e IS NULL)" for c in CHANGED),
    *(f"exists({c}, e -> e IS NULL)" for c in CHANGED),
    *(f"forall({c}, e -> NULL OR {body})" for c, body in SAME.items()),
    *(f"transform({c}, e -> 1)" for c in CHANGED),
    *(f"size(filter({c}, e -> true))" for c in CHANGED),
    "aggregate(x, 0D, (sum, e) -> sum + e)",
    "aggregate(i, 0L, (sum, e) -> sum + e, sum -> sum DIV 2)",
    "aggregate(s, w, (sum, e) -> concat(sum, '/', e))",
    "aggregate(s, 0, (longest, e) -> greatest(longest, length(e)))",
    "aggregate(t, false, (hit, e) -> hit OR e)",
    "reduce(d, DATE'1970-01-01', (last, e) -> greatest(last, e), last -> year(last))",
    "aggregate(m, CAST(0 AS DECIMAL(10,3)), (sum, e) -> CAST(sum + e / 10 AS DECIMAL(10,3)))",
    "aggregate(st, n, (sum, e) -> coalesce(sum + e.a, sum))",
    "transform(ll, e -> aggregate(e, 0, (sum, f) -> sum + coalesce(f, n)))",
    "transform(ll, (e, at) -> filter(e, (e, at) -> at < e))",
    "filter(ll, e -> exists(e, f -> exists(i, g -> g = f + n)))",
    "transform(s, w -> length(w))",
    "filter(transform(i, e -> e % 5), e -> e > 0)",
    "transform(filter(st, e -> e.a > 0), e -> concat(e.b, n))",
    "CASE WHEN exists(l, e -> e < 0) THEN size(l) ELSE n END",
    "n > 1 AND forall(s, e -> e != w)",
]


def table() -> pa.Table:
    chance = random.Random(11)
    rows = []
    for number in range(40):
        row: dict[str, Any] = {
            "n": None if number == 9 else number % 4,
            "p": Decimal(number) / 4,
            "w": ["", "a", None, "héllo"][number % 4],
        }
        for name, (_, values) in ELEMENTS.items():
            size = chance.choice([None, 0, 1, 2, 5])
            some = None if size is None else [chance.choice([*values, None]) for _ in range(size)]
            row[name] = some
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=to_arrow_schema(SCHEMA))


def test_lambdas_give_what_spark_gives(spark):
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    rows, context = table(), EvalContext(ZONE)
    numbered = rows.append_column("row", pa.array(range(len(rows)), pa.int32()))
    frame = spark.createDataFrame(numbered).orderBy("row")
    found = frame.selectExpr(*(f"{sql} AS c{at}" for at, sql in enumerate(TEXTS)))
    theirs = found.toArrow()
    different = []
    for at, sql in enumerate(TEXTS):
        kind = value_type(sql, SCHEMA, context)
        named = found.schema[at].dataType
        if kind is None or str(kind) != named.simpleString():
            different.append(f"{sql}: {kind} for {named.simpleString()}")
            continue
        if isinstance(kind, ArrayType) and kind.contains_null != named.containsNull:
            different.append(f"{sql}: elements may be null: {kind.contains_null}")
        mine = evaluate_value(sql, rows, SCHEMA, kind, context).to_pylist()
        wanted = theirs.column(at).cast(mine_type(kind)).to_pylist()
        if repr(mine) != repr(wanted):  # NaN equals itself
            pairs = zip(mine, wanted, strict=True)
            different.append(f"{sql}: {[pair for pair in pairs if repr(pair[0]) != repr(pair[1])]}")
    assert different == []


def mine_type(kind: DataType) -> pa.DataType:
    return to_arrow_schema(StructType((StructField("c", kind),))).field(0).type


@pytest.mark.parametrize(
    "sql",
    [
        "aggregate(i, 0, (sum, e) -> sum + l[0])",
        "aggregate(i, 0, (sum, e) -> sum + 1L)",
        "aggregate(i, 0, sum -> sum)",
        "transform(i, (e, at, more) -> e)",
        "filter(i, e -> e)",
        "forall(i, (e, at) -> true)",
        "transform(i, (e, E) -> e)",
        "transform(n, e -> e)",
        "filter(st, e -> e.nope = 1)",
    ],
)
def test_what_spark_may_refuse_is_left_to_it(sql):
    assert value_type(sql, SCHEMA) is None


def test_a_condition_may_have_no_result_for_an_element_that_spark_does_not_ask_for(spark):
    rows = pa.Table.from_pylist(
        [{"i": [1, 0]}, {"i": [2]}], schema=to_arrow_schema(StructType((_I,)))
    )
    schema = StructType((_I,))
    assert spark.createDataFrame(rows).selectExpr("exists(i, e -> 1 / e > 0)").count() == 2
    with pytest.raises(InvalidPredicateError, match="only Spark"):
        evaluate_value("exists(i, e -> 1 / e > 0)", rows, schema, PrimitiveType("boolean"))
    with pytest.raises(DeltaAnalysisError, match="no result"):
        evaluate_value("filter(i, e -> 1 / e > 0)", rows, schema, _I.data_type)
