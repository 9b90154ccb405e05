"""Texts of Spark SQL for the expressions' tests: conditions and values over one table."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Final

import pyarrow as pa

from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.schema import DecimalType, PrimitiveType, StructField, StructType

SCHEMA: Final = StructType(
    (
        *(
            StructField(name, PrimitiveType(kind))
            for name, kind in (
                *(("k", "byte"), ("h", "short"), ("i", "integer"), ("l", "long")),
                *(("x", "double"), ("f", "float"), ("b", "boolean"), ("y", "binary")),
                *(("p", "string"), ("s", "string")),
                *(("d", "date"), ("t", "timestamp"), ("u", "timestamp_ntz")),
            )
        ),
        StructField("c", DecimalType(10, 2)),
        StructField("w", DecimalType(38, 10)),
        StructField(
            "e", PrimitiveType("string"), metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}
        ),
        StructField("st", StructType((StructField("n", PrimitiveType("integer")),))),
    )
)
_NOON = dt.datetime.fromisoformat("2024-02-29T12:00:00")


def rows() -> pa.Table:
    """Seven rows of `SCHEMA` with values at its edges, and one of nulls."""
    nan, inf = float("nan"), float("inf")
    numbers = (0, 1, 2, 3, -4, 12, 100)
    doubles = (0.0, -0.0, 1.5, nan, inf, -inf, 2.5)
    texts = ("0", "1", "02", " 3 ", "-4", "+12", "100")
    words = ("", "a%b", "x\ny", "é_x", "ab", "12", "A-b-c")
    found = [
        {
            **dict.fromkeys(("k", "h", "i"), number),
            "l": number * (1 << 33),
            **dict.fromkeys(("x", "f"), double),
            "b": number % 2 == 0,
            "y": word.encode(),
            "p": text,
            "s": word,
            "d": _NOON.date() + dt.timedelta(days=number),
            "t": (_NOON + dt.timedelta(hours=number)).replace(tzinfo=dt.UTC),
            "u": _NOON + dt.timedelta(hours=number),
            "c": Decimal(number) / 4,
            "w": Decimal(number) / 8,
            "e": word[:2].ljust(3),
            "st": {"n": number},
        }
        for number, double, text, word in zip(numbers, doubles, texts, words, strict=True)
    ]
    return pa.Table.from_pylist([*found, {}], schema=to_arrow_schema(SCHEMA))


_LITERALS: Final = (
    *("0", "1", "3", "-4", "1.5", "12L", "2e0", "0.25BD", "1.5BD", "3S", "2Y", "1.5D", "NULL"),
    *("'3'", "' 1 '", "'1.5'", "'x'", "''", "'ab'", "'2024'"),
    *("'2024-03-01'", "'2024-02-29 13:00:00'"),
    *("TRUE", "X'1F'", "X'6162'", "DATE '2024-03-01'", "TIMESTAMP '2024-02-29 13:00:00'"),
    *("TIMESTAMP_NTZ '2024-02-29 12:00:00'", "99999999999", "0.1234567890123"),
)  # fmt: skip
_COLUMNS: Final = ("k", "h", "i", "l", "x", "f", "c", "w", "p", "s", "e", "d", "t", "u", "b", "y")
_TERMS: Final = (
    *("i + 1", "i * i", "l % 5", "x * 2", "-i", "i / 4", "length(s)", "day(d)", "cast(p AS int)"),
    *("abs(i)", "coalesce(i, 7)", "year(t)", "upper(s)", "concat(s, 'x')", "substr(s, 1, 2)"),
    *("cast(i AS string)", "date_add(d, 1)", "cast(t AS date)", "d - 1", "c * 2", "st.n"),
    *("CASE WHEN i > 2 THEN i ELSE 0 END", "if(b, i, l)", "nullif(i, 3)", "round(c, 1)"),
)
_OPERATORS: Final = ("=", "!=", "<", "<=", ">", ">=", "<=>")
_SPECIAL: Final = (
    *("isnull(d)", "isnotnull(s)", "b", "NOT b", "b IS TRUE", "b IS NOT FALSE", "s IS NULL"),
    *("s IS NOT NULL", "NOT (s IS NULL)", "startswith(s, 'a')", "s LIKE 'a%'", "s NOT LIKE 'a%'"),
    *("s LIKE '%b%'", "s LIKE 'ab'", "s ILIKE 'A%'", "s RLIKE '^a'", "s LIKE 'a\\\\%b'"),
    *("e LIKE 'ab'", "e = 'ab'", "e = 'ab  '", "e IN ('ab', 'x')", "e BETWEEN 'a' AND 'b'"),
    *("i IN (1, 2, 3)", "i NOT IN (1, NULL)", "i IN ('1', 2)", "c IN (0.25, 3)", "c IN (1, 0.125)"),
    *("s IN ('ab', 'x')", "d IN ('2024-03-01')", "d IN (DATE '2024-03-01', NULL)", "i IN (1L, 2)"),
    *("t IN ('2024-02-29 13:00:00')", "x IN (1.5, 2)", "x IN (double('NaN'))", "i IN (l, 3)"),
    *("i BETWEEN 1 AND 3", "i NOT BETWEEN 1 AND 3", "d BETWEEN '2024-02-01' AND '2024-03-01'"),
    *("c BETWEEN 0.5 AND '3'", "t >= '2024-02-29'", "t > '2024-02-29 13:00:00.5'", "u < '2025'"),
    *("d > '2024'", "d > '2024-3'", "d > 'nonsense'", "i > 'nonsense'", "i = 1.0", "i > 0.5"),
    *("st.n = 3", "st.n IS NULL", "st IS NULL", "st = st", "nosuch = 1", "nosuch(i) = 1"),
    *("current_date > d", "t < current_timestamp()", "now() > t", "i = (SELECT 1)", "i ="),
    *("exists(array(i), v -> v = 1)", "TRUE", "FALSE", "NULL", "1 = 1", "1", "'a'", "i", "s"),
    *("trim(BOTH 'a' FROM s) = 'b'", "s = 'a' 'b'", "s = 'it''s'", 's = "ab"', "i & 1 = 1"),
    *("s RLIKE '(?i)A'", "i = 1 OR 10 / i > 2", "i != 0 AND 10 / i > 2", "10 / i > 2"),
    *("NOT (i > 1 AND NOT b)", "i <> 1", "i == 1", "!b", "b = 'true'", "b = 1", "y = 'ab'"),
    *("y IN (X'6162')", "i = CAST('3' AS INT)", "d = CAST('2024-03-01' AS DATE)", "d = 20240301"),
    *("t = DATE '2024-02-29'", "d = TIMESTAMP '2024-03-01 00:00:00'", "u = DATE '2024-02-29'"),
    *("l = 9223372036854775808", "c = 99999999999999", "w = 0.125", "f = 1.5", "f = 2.5D"),
    *("i > 1 AND (l < 3 OR s = 'ab') AND d IS NOT NULL", "d > DATE '2024-03-01' - INTERVAL 1 DAY"),
    *("t > TIMESTAMP '2024-02-29 13:00:00' - INTERVAL 2 HOURS", "e = s", "e <=> 'ab'", "e = 1"),
    *(
        "pmod(hash(s, i), 4) = 1",
        "xxhash64(l, x, d) > 0",
        "hash(e) = hash('ab ')",
        "hex(s) = '6162'",
    ),
    *("cbrt(i) > 1", "TRY_CAST(s AS INT) = 12", "TRY_CAST(p AS TINYINT) > 1", "hex(l) < 'A'"),
    *("d > to_date('29.02.2024', 'dd.MM.yyyy')", "element_at(array(i), 1) = 1"),
    *("t < to_timestamp('2024-02-29T13', \"yyyy-MM-dd'T'HH\")", "to_date(s, 'yyyy') < d"),
    *("to_date(s, 'EEE') < d", "TRY_CAST(s AS DATE) IS NULL", "TRY_CAST(c AS DECIMAL(2,1)) > 0"),
)
_ONLY_VALUES: Final = (
    *("i", "-i", "i + l", "c + i", "c * w", "c / 3", "i / 3"),
    *("i div 2", "i % 3", "l % -3", "x / 2"),
    *("c - 1.25", "k + k", "h * 2", "f + f", "x + c", "d + 1", "d - 1", "d + INTERVAL 1 MONTH"),
    *("t + INTERVAL 1 HOUR", "t - INTERVAL '2' DAYS"),
    *("CAST(c AS STRING)", "CAST(i AS DECIMAL(5,1))"),
    *("CAST(p AS INT)", "CAST(p AS DOUBLE)", "CAST(s AS INT)"),
    *("CAST(t AS DATE)", "CAST(d AS TIMESTAMP)"),
    *("CAST(x AS INT)", "CAST(b AS INT)", "CAST(i AS BOOLEAN)", "TRY_CAST(s AS INT)", "int(p)"),
    *("coalesce(c, 0)", "coalesce(i, 10 / 0)", "nvl(s, 'none')", "nvl2(i, 1, 2)", "ifnull(i, l)"),
    *("nullif(s, 'ab')", "CASE WHEN i > 0 THEN 10 / i ELSE -1 END", "CASE i WHEN 1 THEN 'a' END"),
    *("if(i = 0, NULL, c / i)", "greatest(i, l, 3)", "least(c, 1.5)"),
    *("round(x, 1)", "bround(c, 1)"),
    *("ceil(c)", "floor(x)", "abs(c)", "sign(x)", "sqrt(i)", "pmod(i, 3)", "mod(i, 3)"),
    *("s || p", "s || i", "i || 'a'", "upper(s)", "lower(s)"),
    *("trim(p)", "length(s)", "substring(s, 2, 2)"),
    *("left(s, 1)", "right(s, 1)", "lpad(s, 4, '0')"),
    *("replace(s, 'a', 'b')", "concat_ws('-', s, p)"),
    "regexp_extract(s, '([a-z])', 1)",
    *("regexp_replace(s, '[0-9]', '#')", "split_part(s, '-', 2)"),
    *("instr(s, 'b')", "locate('b', s)", "reverse(s)", "initcap(p)", "repeat(s, 2)", "md5(s)"),
    *("sha2(s, 256)", "translate(s, 'a', 'b')", "year(d)", "EXTRACT(month FROM d)", "hour(t)"),
    *("date_trunc('month', t)", "trunc(d, 'MM')"),
    *("date_format(t, 'yyyy-MM-dd')", "datediff(d, '2024-01-01')"),
    *("date_add(d, i)", "add_months(d, 1)", "last_day(d)", "months_between(t, d)", "unix_date(d)"),
    *("1.5", "1.50BD", "1e3", "12L", "'text'", "X'1F'"),
    *("DATE '2024-01-01'", "NULL", "TRUE", "2147483648"),
    *("current_date()", "current_timestamp()", "current_timestamp", "hash(i)", "size(array(i))"),
    *("st.n * 2", "st", "isnan(x)", "i > 1", "s LIKE 'a%'"),
    *("i IN (1, 2)", "e", "e || 'x'", "concat(e, 'x')"),
    *("hash(s, i, NULL)", "xxhash64(st, c, w)", "hash(x, f)", "cbrt(x)", "hex(y)", "hex(i)"),
    *("TRY_CAST(s AS DATE)", "TRY_CAST(x AS INT)", "TRY_CAST(w AS DECIMAL(3,1))"),
    *("to_timestamp(date_format(t, 'd/M/yyyy H:m'), 'd/M/yyyy H:m')", "to_date(s, 'yyyyMMd')"),
    *("upper(e)", "rand()", "uuid()", "count(i)", "(SELECT 1)", "nosuch", "i AS j", "map(1, 2)"),
)  # fmt: skip


def _comparison(rng: random.Random) -> str:
    left = rng.choice(_COLUMNS) if rng.random() < 0.7 else rng.choice(_TERMS)
    right = rng.choice(_LITERALS) if rng.random() < 0.8 else rng.choice((*_COLUMNS, *_TERMS))
    if rng.random() < 0.2:
        left, right = right, left
    if rng.random() < 0.15:
        others = ", ".join(rng.choice(_LITERALS) for _ in range(2))
        return f"{left} IN ({right}, {others})"
    return f"{left} {rng.choice(_OPERATORS)} {right}"


def _condition(rng: random.Random) -> str:
    if rng.random() < 0.7:
        return _comparison(rng)
    parts = [_comparison(rng) for _ in range(2)]
    return rng.choice(["({}) AND {}", "{} OR {}", "NOT ({} AND {})"]).format(*parts)


def _generated(count: int) -> list[str]:
    rng = random.Random("expressions")  # the same texts in every run
    # Each column with each literal, and then anything.
    pairs = [f"{column} > {literal}" for column in _COLUMNS for literal in _LITERALS]
    return [*pairs, *(_condition(rng) for _ in range(count))]


CONDITIONS: Final = tuple(dict.fromkeys((*_SPECIAL, *_generated(300))))
VALUES: Final = tuple(dict.fromkeys((*_ONLY_VALUES, *_TERMS, *_LITERALS)))
