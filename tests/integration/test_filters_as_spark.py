"""Filters of columns, values, arithmetic, casts and functions mean what they mean in Spark."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal

import pyarrow as pa
import pytest

from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.expressions.arrow.masks import evaluate_mask
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.expressions.tree import is_computed, is_opaque
from lakelog.core.schema import DecimalType, PrimitiveType, StructField, StructType

SCHEMA = StructType(
    (
        StructField("i", PrimitiveType("integer")),
        StructField("l", PrimitiveType("long")),
        StructField("x", PrimitiveType("double")),
        StructField("f", PrimitiveType("float")),
        StructField("c", DecimalType(10, 2)),
        StructField("p", PrimitiveType("string")),
        StructField("s", PrimitiveType("string")),
        StructField("d", PrimitiveType("date")),
        StructField("t", PrimitiveType("timestamp")),
        StructField("u", PrimitiveType("timestamp_ntz")),
        StructField("b", PrimitiveType("boolean")),
    )
)
NOON = dt.datetime.fromisoformat("2024-02-29T12:00:00")


def table():
    nan, inf = float("nan"), float("inf")
    rows = [
        {
            "i": number,
            "l": number * (1 << 33),
            "x": double,
            "f": double,
            "c": Decimal(number) / 4,
            "p": text,
            "s": word,
            "d": NOON.date() + dt.timedelta(days=number),
            "t": (NOON + dt.timedelta(hours=number)).replace(tzinfo=dt.UTC),
            "u": NOON + dt.timedelta(hours=number),
            "b": number % 2 == 0,
        }
        for number, double, text, word in zip(
            (0, 1, 2, 3, -4, 12),
            (0.0, -0.0, 1.5, nan, inf, -inf),
            ("0", "1", "02", " 3 ", "-4", "+12"),
            ("", "a%b", "x\ny", "é_x", "ab", "12"),
            strict=True,
        )
    ]
    return pa.Table.from_pylist([*rows, {}], schema=to_arrow_schema(SCHEMA))


NUMBERS = ["0", "1", "3", "-4", "1.5", "12L", "2e0", "0.25BD", "1 + 1", "NULL"]
KINDS = {
    "number": (
        ["i", "l", "x", "f", "c", "p", "i + 1", "i * i", "l % 5", "x * 2", "-i", "i / 4",
         "length(s)", "day(d)", "cast(p AS int)", "abs(i)", "coalesce(i, 7)", "year(t)"],
        NUMBERS,
    ),
    "text": (
        ["s", "upper(s)", "concat(s, 'x')", "substr(s, 1, 2)", "trim(p)", "cast(i AS string)"],
        ["'a%b'", "'12'", "''", "'X'", "'a' || 'b'", "NULL", "s", "p"],
    ),
    "time": (
        ["d", "t", "u", "date_add(d, 1)", "cast(t AS date)", "to_date('2024-03-01')", "d - 1"],
        ["DATE '2024-03-01'", "TIMESTAMP '2024-02-29 13:00:00'", "d", "t", "u", "NULL",
         "TIMESTAMP_NTZ '2024-02-29 12:00:00'", "date_sub(DATE '2024-03-10', 10)"],
    ),
}  # fmt: skip
PATTERNS = ["'%a%'", "'a_b'", "'%_%'", "'%'", "''", "'x%y'", "'_%x'"]


def leaf(rng: random.Random) -> str:
    if rng.random() < 0.15:
        return f"s {rng.choice(['', 'NOT '])}LIKE {rng.choice(PATTERNS)}"
    if rng.random() < 0.1:
        return rng.choice(["b", "b IS TRUE", "b <=> NULL", "if(b, i > 1, NULL)", "NOT b"])
    terms, values = KINDS[rng.choice(list(KINDS))]
    term = rng.choice(terms)
    if rng.random() < 0.2:
        some = ", ".join(rng.choice(values) for _ in range(rng.randint(1, 3)))
        return f"{term} {rng.choice(['', 'NOT '])}IN ({some})"
    if rng.random() < 0.2:
        return f"{term} BETWEEN {rng.choice(values)} AND {rng.choice(values)}"
    if rng.random() < 0.1:
        return f"({term}) IS NULL"
    other = rng.choice([*values, *terms])
    return f"{term} {rng.choice(['=', '!=', '<', '<=', '>', '>=', '<=>'])} {other}"


def condition(rng: random.Random, depth: int = 2) -> str:
    if not depth or rng.random() < 0.5:
        return leaf(rng)
    parts = [condition(rng, depth - 1) for _ in range(2)]
    return rng.choice(["({} AND {})", "({} OR {})", "NOT ({} AND {})"]).format(*parts)


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_random_filters_mean_what_they_mean_in_spark(spark, zone):
    spark.conf.set("spark.sql.session.timeZone", zone)
    rng = random.Random(zone)
    conditions = list(dict.fromkeys(condition(rng) for _ in range(70)))
    rows = table()
    numbered = rows.append_column("row", pa.array(range(len(rows)), pa.int32()))
    frame = spark.createDataFrame(numbered).orderBy("row")
    named = [f"({sql}) AS c{i}" for i, sql in enumerate(conditions)]
    theirs = frame.selectExpr("row", *named).toArrow().sort_by("row")
    different, known, computed = [], 0, 0
    for index, sql in enumerate(conditions):
        expr = normalize_filter(sql, SCHEMA, EvalContext(zone))
        assert expr is not None
        if is_opaque(expr):
            continue
        known += 1
        computed += is_computed(expr)
        mine = evaluate_mask(expr, rows, SCHEMA).to_pylist()
        if mine != theirs[f"c{index}"].to_pylist():
            different.append((sql, mine, theirs[f"c{index}"].to_pylist()))
    assert not different, "\n".join(map(str, different))
    assert known > 0.7 * len(conditions)
    assert computed > 0.4 * len(conditions)
