"""The ends of every type in every form of a condition: a right answer or an error in words."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, create_table, delete_rows, update_rows, write_arrow
from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.errors import ConstraintViolationError, DeltaAnalysisError, DeltaError
from lakelog.core.expressions.arrow.masks import evaluate_mask
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.expressions.values.evaluate import evaluate_value
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    from pathlib import Path

END = 2**63
MICROS = pa.array([-END, -END + 1, -(10**17), 0, 253_402_300_800_000_000, END - 1, None])
DAYS = pa.array([-(2**31), -(2**31) + 1, -800_000, 0, 2_932_897, 2**31 - 1, None], pa.int32())
NINES = Decimal("9" * 38)
ROWS = pa.table(
    {
        "t": MICROS.cast(pa.timestamp("us", "UTC")),
        "u": MICROS.cast(pa.timestamp("us")),
        "d": DAYS.cast(pa.date32()),
        "l": MICROS,
        "i": DAYS,
        "y": pa.array([-128, -1, 0, 1, 2, 127, None], pa.int8()),
        "f": pa.array([-math.inf, -3.4e38, 0.0, -0.0, math.nan, math.inf, None], pa.float32()),
        "g": pa.array([-math.inf, -1.7e308, 5e-324, -0.0, math.nan, math.inf, None]),
        "c": pa.array(
            [NINES.copy_negate(), NINES, *map(Decimal, (0, 1, -1, 7)), None], pa.decimal128(38, 0)
        ),
        "s": pa.array(["", "\0", "a", "é", "\U0010ffff", "z" * 40, None]),
        "b": pa.array([b"", b"\0", b"\xff", b"a", b"\xff" * 40, b"z", None]),
        "o": pa.array([True, False, None, True, False, None, None]),
    }
)
SCHEMA = from_arrow_schema(ROWS.schema)
VALUES = [
    "TIMESTAMP '2020-01-01 00:00:00'",
    "TIMESTAMP '9999-12-31 23:59:59.999999'",
    "DATE '0001-01-01'",
    "'2020-01-01'",
    "-9223372036854775808",
    "99999999999999999999",
    "1.5",
    "1e300",
    "double('NaN')",
    "NULL",
    "X'FF'",
    "current_timestamp()",
]
TYPES = ["tinyint", "bigint", "double", "decimal(38,0)", "decimal(5,2)", "string", "binary"]
TYPES += ["date", "timestamp", "timestamp_ntz", "boolean"]
ONE_COLUMN = [
    *(f"{{0}} {op} {value}" for op in ("=", "<=>", "<") for value in VALUES),
    *(f"{{0}} IN ({value}, NULL)" for value in VALUES[::2]),
    *(f"{{0}} BETWEEN {value} AND {value}" for value in VALUES[::3]),
    *(f"CAST({{0}} AS {kind}) IS NULL" for kind in TYPES),
    *(f"CAST({{0}} AS {kind}) = {{0}}" for kind in TYPES),
    *(f"TRY_CAST({{0}} AS {kind}) IS NULL" for kind in TYPES),
    *(f"{name}({{0}}) = 1" for name in ("year", "month", "hour", "weekofyear", "abs", "length")),
    *(f"{name}({{0}}) = 1" for name in ("hash", "xxhash64", "cbrt")),
    "hex({0}) = 'A'",
    "to_date({0}, 'yyyy') IS NULL",
    *(f"{{0}} {op} {{0}} > 0" for op in "+-*/%"),
    *(f"{{0}} {op} 1 > 0" for op in "+-*/%"),
    "{0} div -1 = 1",
    "-{0} < 0",
    "{0} LIKE '%a%'",
    "date_format({0}, 'yyyy') = '2020'",
    "date_trunc('hour', {0}) = {0}",
    "trunc({0}, 'week') = {0}",
    "date_add({0}, 2147483647) > {0}",
    "date_sub({0}, 2147483647) > {0}",
    "datediff({0}, DATE '2020-01-01') > 1",
    "CASE WHEN {0} IS NULL THEN 1 ELSE 2 END = 1",
    "concat({0}, 'x') = 'x'",
]
CONDITIONS = [
    *(form.format(name) for form in ONE_COLUMN for name in ROWS.column_names),
    *(f"{a} < {b}" for a, b in itertools.product(ROWS.column_names, repeat=2)),
]


@pytest.mark.parametrize("zone", ["UTC", "-11:00", "America/New_York"])
def test_no_condition_ends_in_an_error_that_is_not_ours(zone: str) -> None:
    answered = 0
    for sql in CONDITIONS:
        try:
            condition = normalize_filter(sql, SCHEMA, EvalContext(zone, 1_700_000_000_000))
        except DeltaAnalysisError:
            continue
        assert condition is not None
        for rows in (ROWS, ROWS.slice(0, 1), ROWS.slice(5, 1)):
            try:
                found = evaluate_mask(condition, rows, SCHEMA)
            except DeltaError:
                continue
            answered += 1
            assert len(found) == rows.num_rows
    assert answered > 900


PARTS = {
    "CAST(t AS date)": "date",
    "CAST(t AS bigint)": "long",
    "year(t)": "integer",
    "month(d)": "integer",
    "trunc(d, 'week')": "date",
    "date_trunc('hour', t)": "timestamp",
    "CAST(t AS timestamp_ntz)": "timestamp_ntz",
    "CAST(u AS timestamp)": "timestamp",
    "CAST(d AS timestamp)": "timestamp",
    "CAST(t AS string)": "string",
}


@pytest.mark.parametrize("sql", PARTS)
def test_a_time_too_far_for_arrows_calendar_has_no_value_rather_than_a_wrong_one(sql: str) -> None:
    kind = PrimitiveType(PARTS[sql])
    for at in (0, 1, 5):
        for zone in ("UTC", "+11:00", "-11:00"):
            with pytest.raises(DeltaAnalysisError):
                evaluate_value(sql, ROWS.slice(at, 1), SCHEMA, kind, EvalContext(zone))
    assert evaluate_value(sql, ROWS.slice(3, 1), SCHEMA, kind).null_count == 0


def test_a_row_that_breaks_a_rule_is_shown_whatever_is_in_it(tmp_path: Path) -> None:
    for name in ROWS.column_names:
        properties = {"delta.constraints.one": f"{name} IS NULL"}
        for at in range(6):
            rows = ROWS.select([name]).slice(at, 1)
            if rows[name].null_count:
                continue
            with pytest.raises(ConstraintViolationError, match=f"{name}="):
                write_arrow(tmp_path / name, rows, properties=properties, mode="append")


def test_rows_are_found_changed_and_removed_by_the_ends_of_a_type(tmp_path: Path) -> None:
    for at in range(6):
        write_arrow(tmp_path / "t", ROWS.slice(at, 1), mode="append")
    log = DeltaLog.for_table(tmp_path / "t")
    far = {"t": datetime(2020, 1, 1, tzinfo=UTC), "d": date(2020, 1, 1), "l": 0}
    for name, value in far.items():
        found = log.update().to_arrow(where=[(name, "<", value)])
        assert found.num_rows == (3 if name == "l" else 4)
    update_rows(tmp_path / "t", {"i": 7}, "t < TIMESTAMP '1970-01-01 00:00:00'")
    assert sorted(log.update().to_arrow()["i"].to_pylist())[:4] == [0, 7, 7, 7]
    with pytest.raises(DeltaAnalysisError):
        delete_rows(tmp_path / "t", "year(t) < 0")
    assert log.update().to_arrow().num_rows == 6


HUGE = "1" * 5000
"""More digits than Python converts."""


@pytest.mark.parametrize(
    "sql",
    [
        *(f"l = {HUGE}", f"l = -{HUGE}", f"l = {HUGE}L", f"l = {HUGE}BD", f"l > {HUGE}.5"),
        *(
            f"l IN ({HUGE})",
            f"l IN ({', '.join(map(str, range(300)))}, -{HUGE})",
            f"l % {HUGE} = 1",
        ),
        *(f"CAST(l AS DECIMAL({HUGE}, 2)) = 1", "CAST(l AS DECIMAL(a)) = 1", "l = 1e5000"),
        *("CAST(l AS DECIMAL(²)) = 1", f"d + INTERVAL {HUGE} DAY > d", f"l = '{HUGE}'"),
    ],
    ids=range(14),
)
def test_digits_that_python_does_not_convert_end_in_an_error_of_ours_or_in_none(sql: str) -> None:
    schema = from_arrow_schema(ROWS.schema)
    try:
        found = normalize_filter(sql, schema)
        assert found is not None
        evaluate_mask(found, ROWS, schema)
    except DeltaError:
        pass


@pytest.mark.parametrize("kind", [f"decimal({HUGE}, 2)", "decimal(x)", f"char({HUGE})"])
def test_a_size_that_is_none_is_refused_with_the_type(kind: str, tmp_path: Path) -> None:
    with pytest.raises(DeltaAnalysisError, match="which Delta does not have"):
        create_table(str(tmp_path / "t"), f"a {kind}")
