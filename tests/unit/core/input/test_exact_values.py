"""Values of Python in a column of a given type: each is there as it was given, or refused.

What each type takes is said here again, by Python alone. `write_arrow(schema=)` and appenders must
agree with it.
"""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import appender, create_table, read_arrow
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.input.given_rows import arrow_table
from lakelog.core.input.given_types import schema_from
from support.examples import examples

if TYPE_CHECKING:
    from pathlib import Path

_REFUSED: Final = object()
_EAST: Final = timezone(timedelta(hours=2))
_WHOLE: Final = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
_NAIVE: Final = datetime(2026, 1, 31, 12, 30, 0, 5)  # noqa: DTZ001
_TEXTS: Final = {
    "2026-01-31": datetime(2026, 1, 31),  # noqa: DTZ001
    "2026-01-31T12:30:00.000005": _NAIVE,
    "2026-01-31T12:30:00.000005Z": _NAIVE.replace(tzinfo=UTC),
    "2026-01-31 12:30:00.000005000+02:00": _NAIVE.replace(tzinfo=_EAST),
}
"""Of ISO 8601."""

VALUES: Final = [
    *(0, 1, -1, 127, 128, -128, -129, 2**15, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**30),
    *(0.0, -0.0, 1.0, 1.5, 1e30, 3.4028234663852886e38, 1e39, -1e39, 1e308, 5e-324),
    *(math.inf, -math.inf, math.nan),
    *(True, False),
    *(Decimal("1"), Decimal("1.25"), Decimal("1.255"), Decimal("12345678.99"), Decimal("NaN")),
    *("", "a", "1", "\U0001f600", "\ud800"),
    *(*_TEXTS, "2026-01-31T12:30:00.0000051", "2026-02-30", "12:30"),
    *(b"", b"a\xff"),
    *(date(2026, 1, 31), date(1, 1, 1), _NAIVE, _NAIVE.replace(tzinfo=UTC)),
    *(_NAIVE.replace(tzinfo=_EAST), datetime(2026, 1, 31), datetime(9999, 12, 31, tzinfo=UTC)),  # noqa: DTZ001
    *(timedelta(1), timedelta(microseconds=-1)),
    *([], [1, None], [1.5], ["a"], (1, 2), {1}),
    *({}, {"x": 1}, {"x": None}, {"y": 1}, {"x": 1.5}, {"x": 1, "y": 2}),
    *(np.int64(5), np.float64(1.5), np.float64(2), np.bool_(True), np.float32(0.1)),
    *(pd.Timestamp(2026, 1, 31), pd.Timestamp(1), pd.Timestamp(2026, 1, 31, tz="UTC"), pd.NaT),
    *(pd.Timedelta(1, "ns"), pd.Timedelta(5, "us"), object()),
    *(np.uint64(5), np.uint64(2**64 - 1), np.datetime64(1, "ns"), np.timedelta64(5, "ns")),
    *(Fraction(1, 3), UUID(int=5)),
]
TYPES: Final = [
    *_WHOLE,
    *("float", "double", "decimal(10,2)", "string", "binary", "boolean"),
    *("date", "timestamp", "timestamp_ntz"),
    *("array<int>", "map<string, int>", "struct<x: int>", "array<struct<x: timestamp_ntz>>"),
]


def expected(value: Any, kind: str) -> Any:
    """What a column of that type has for a value, or `_REFUSED`."""
    if value is None:
        return None
    if kind in _WHOLE:
        return _whole(value, _WHOLE[kind])
    match kind:
        case "float" | "double":
            return _floating(value, kind)
        case "decimal(10,2)":
            return _decimal(value)
        case "string" | "binary" | "boolean":
            return _plain(value, kind)
        case "date" | "timestamp" | "timestamp_ntz":
            return _time(value, kind)
        case "array<int>" | "array<struct<x: timestamp_ntz>>":
            if not isinstance(value, list | tuple | set):
                return _REFUSED
            of = "int" if kind == "array<int>" else "struct<x: timestamp_ntz>"
            return _all([expected(each, of) for each in value])
        case "map<string, int>":
            if not isinstance(value, dict):
                return [] if isinstance(value, list | tuple) and not value else _REFUSED
            return _all(
                [_all((expected(k, "string"), expected(v, "int"))) for k, v in value.items()]
            )
        case _:
            of = "int" if kind == "struct<x: int>" else "timestamp_ntz"
            if not isinstance(value, dict) or set(value) - {"x"}:
                return _REFUSED
            found = expected(value.get("x"), of)
            return _REFUSED if found is _REFUSED else {"x": found}


def _all(found: Any) -> Any:
    return _REFUSED if any(each is _REFUSED for each in found) else found


def _is_number(value: Any) -> bool:
    is_other = isinstance(value, bool | np.bool_ | np.timedelta64)
    return isinstance(value, int | float | Decimal | np.number) and not is_other


def _whole(value: Any, bits: int) -> Any:
    if not _is_number(value) or not math.isfinite(value) or int(value) != value:
        return _REFUSED
    return int(value) if -(2**bits) <= value < 2**bits else _REFUSED


def _floating(value: Any, kind: str) -> Any:
    if not _is_number(value) or isinstance(value, Decimal):
        return _REFUSED
    if isinstance(value, int | np.integer):  # whole numbers are exact
        most = 2**24 if kind == "float" else 2**53
        return float(value) if abs(int(value)) <= most else _REFUSED
    if kind == "double" or not math.isfinite(value):
        return float(value)
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return _REFUSED


def _decimal(value: Any) -> Any:
    if not isinstance(value, int | Decimal) or isinstance(value, bool):
        return _REFUSED
    exact = Decimal(value)
    if not exact.is_finite() or (Fraction(exact) * 100).denominator != 1 or abs(exact) >= 10**8:
        return _REFUSED
    return exact


def _plain(value: Any, kind: str) -> Any:
    if kind == "boolean":
        return bool(value) if isinstance(value, bool | np.bool_) else _REFUSED
    try:
        if kind == "string":
            text = value if isinstance(value, str) else bytes.decode(value)
            return text if text.encode() is not None else _REFUSED
        if not isinstance(value, bytes):
            return value.encode() if isinstance(value, str) else _REFUSED
        return value
    except (TypeError, ValueError, AttributeError):
        return _REFUSED


def _time(value: Any, kind: str) -> Any:
    if isinstance(value, str):
        return _time(_TEXTS[value], kind) if value in _TEXTS else _REFUSED
    is_smaller: Any = getattr(value, "nanosecond", False)
    if not isinstance(value, date) or repr(value) == "NaT" or is_smaller:
        return _REFUSED
    if kind == "date":
        if isinstance(value, datetime):
            is_midnight = value.replace(tzinfo=None) == datetime(*value.timetuple()[:3])  # noqa: DTZ001
            return value.date() if is_midnight else _REFUSED
        return value
    if not isinstance(value, datetime):
        return _REFUSED
    if kind == "timestamp_ntz":
        return _REFUSED if value.tzinfo else value
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def _same(one: Any, other: Any) -> bool:
    return one == other or repr(one) == repr(other)


def _stored(value: Any, kind: str) -> Any:
    try:
        table = arrow_table([{"n": 0, "v": value}], schema_from(f"n int, v {kind}"))
    except DeltaAnalysisError:
        return _REFUSED
    return table["v"].to_pylist()[0]


@pytest.mark.parametrize("kind", TYPES)
def test_a_value_is_there_as_it_was_given_or_refused(kind: str) -> None:
    wrong = [
        (value, found, right)
        for value in [None, *VALUES]
        for found, right in [(_stored(value, kind), expected(value, kind))]
        if not _same(found, right)
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("values", "kind", "stored"),
    [
        (np.array(["2026-01-31"], "datetime64[ns]"), "date", date(2026, 1, 31)),
        (np.array(["2026-01-31T01"], "datetime64[s]"), "date", _REFUSED),
        (pd.Series([pd.Timestamp(2026, 1, 31, tz="US/Eastern")]), "date", date(2026, 1, 31)),
        (pd.Series([pd.Timestamp(2026, 1, 31, 1, tz="US/Eastern")]), "date", _REFUSED),
        (pd.Series([pd.NaT]), "date", None),
        (np.array([1]), "boolean", True),
        (np.array([2]), "boolean", _REFUSED),
        (np.array([0.5]), "boolean", _REFUSED),
        (np.array([2**64 - 1], "uint64"), "double", _REFUSED),
    ],
)
def test_columns_of_one_type_lose_nothing_either(values: Any, kind: str, stored: Any) -> None:
    try:
        found = arrow_table({"v": values}, schema_from(f"v {kind}"))["v"].to_pylist()[0]
    except DeltaAnalysisError:
        found = _REFUSED
    assert _same(found, stored)


_LEAVES = st.sampled_from(VALUES)


@settings(max_examples=examples(80))
@given(st.lists(_LEAVES, max_size=3), st.sampled_from(TYPES))
def test_values_within_others_are_too(values: list[Any], kind: str) -> None:
    nested = f"array<struct<v: {kind}, m: map<string, {kind}>>>"
    given = [{"v": each, "m": {"k": each}} for each in values]
    rights = [expected(each, kind) for each in values]
    right = [{"v": each, "m": [("k", each)]} for each in rights]
    if any(each is _REFUSED for each in rights):
        assert _stored(given, nested) is _REFUSED
    else:
        assert _same(_stored(given, nested), right)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("saves", [False, True])
def test_an_appender_takes_the_same(tmp_path: Path, kind: str, saves: bool) -> None:
    table, dead = str(tmp_path / "t"), list[Any]()
    create_table(table, f"n int, v {kind}")
    rows = [{"n": at, "v": each} for at, each in enumerate([None, *VALUES])]
    save_every = 0 if saves else None
    with appender(table, app_id="a", save_every=save_every, dead_letter=dead.extend) as a:
        a.append(rows[:20])
        for each in rows[20:]:
            a.append([each])
    found = {each["n"]: each["v"] for each in read_arrow(table).to_pylist()}
    refused = {each.row["n"] for each in dead}
    assert not found.keys() & refused
    for each in rows:
        right = expected(each["v"], kind)
        if right is _REFUSED:
            assert each["n"] in refused, each
        else:
            assert _same(found[each["n"]], right), each
