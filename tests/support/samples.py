"""Arrow tables that hold what Delta tables can hold, and rows made comparable.

Each has a column `id` without duplicates; the readers of a table promise no order of rows.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa


class Sample(NamedTuple):
    """Rows, and how they are to be partitioned."""

    data: pa.Table
    partition_by: tuple[str, ...] = ()


def _utc(*args: int) -> dt.datetime:
    return dt.datetime(*args, tzinfo=dt.UTC)  # type: ignore[misc, arg-type]


_MICROS = [
    _utc(2024, 2, 29, 23, 59, 59, 999_999),
    _utc(1969, 12, 31, 23, 59, 59, 999_999),
    _utc(1900, 1, 1, 0, 0, 0, 1),
    _utc(2038, 1, 19, 3, 14, 8, 123_456),
    None,
]
_NAIVE = [None if value is None else value.replace(tzinfo=None) for value in _MICROS]
_DATES = [dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31)]
_DAYS = [*_DATES, None]
_DECIMALS = [Decimal("0.01"), Decimal("-99999.99"), Decimal(0), Decimal("12345.67"), None]
_WIDE = [
    Decimal("12345678901234567890.123456789012345678"),
    Decimal("-0.000000000000000001"),
    Decimal(0),
    Decimal("99999999999999999999.999999999999999999"),
    None,
]
_DOUBLES = [math.nan, math.inf, -math.inf, 5e-324, None]
_FLOATS = [math.nan, -1.5, math.inf, 0.0, None]
_TEXTS = ["", "a' \"b\\c", "日本語 🚀", "x" * 40 + "é", None]

# Every character that Hive folders, URIs or Delta's paths treat in a way of their own.
PARTITIONS = [
    "a b",
    "100%",
    "a/b",
    "a=b",
    "50%25",
    "a+b&c#d?e",
    "é/ü 日本🚀",
    "..",
    "x:y;z",
    "{[^]}",
    "'\"\\*",
    "\ttab\nline",
    "~!@$(),",
    "__HIVE_DEFAULT_PARTITION__x",
    None,
]


def numbers(start: int, count: int = 5) -> pa.Table:
    """Rows of which only the number matters."""
    ids = list(range(start, start + count))
    names = [f"row {n}" for n in ids]
    parity = pa.array([n % 2 for n in ids], pa.int32())
    return pa.table({"id": pa.array(ids, pa.int64()), "name": names, "p": parity})


def _every_type() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(5), pa.int64()),
            "b": pa.array([-128, 127, 0, 1, None], pa.int8()),
            "s": pa.array([-32768, 32767, 0, 1, None], pa.int16()),
            "i": pa.array([-(2**31), 2**31 - 1, 0, 1, None], pa.int32()),
            "l": pa.array([-(2**63), 2**63 - 1, 0, 1, None], pa.int64()),
            "f": pa.array(_FLOATS, pa.float32()),
            "d": pa.array(_DOUBLES, pa.float64()),
            "flag": pa.array([True, False, True, False, None]),
            "text": pa.array(_TEXTS),
            "raw": pa.array([b"", b"\x00\xff", b"\x80", b"abc", None]),
            "small": pa.array(_DECIMALS, pa.decimal128(9, 2)),
            "wide": pa.array(_WIDE, pa.decimal128(38, 18)),
            "day": pa.array(_DAYS, pa.date32()),
            "at": pa.array(_MICROS, pa.timestamp("us", "UTC")),
            "two-words": pa.array(["a", "b", "c", "d", None]),
            "日本": pa.array([1, 2, 3, 4, None], pa.int32()),
        }
    )


def _nested() -> pa.Table:
    inner = pa.struct([("x", pa.int32()), ("when", pa.timestamp("us", "UTC"))])
    kinds = {
        "pair": pa.struct([("a", pa.int64()), ("deep", pa.struct([("b", pa.string())]))]),
        "list": pa.list_(pa.int32()),
        "lists": pa.list_(pa.list_(pa.string())),
        "structs": pa.list_(inner),
        "map": pa.map_(pa.string(), pa.decimal128(10, 2)),
        "maps": pa.map_(pa.int32(), inner),
    }
    moment = _utc(1969, 7, 20, 20, 17, 40, 1)
    rows: list[dict[str, Any]] = [
        {
            "pair": {"a": 1, "deep": {"b": "é"}},
            "list": [1, None, 3],
            "lists": [["a", None], [], None],
            "structs": [{"x": 1, "when": moment}, None, {"x": None, "when": None}],
            "map": [("k", Decimal("1.50")), ("n", None)],
            "maps": [(1, {"x": 2, "when": moment}), (2, None)],
        },
        {"pair": {"a": None, "deep": None}, "list": [], "lists": [], "structs": [], "map": []},
        {},
    ]
    columns = {name: pa.array([r.get(name) for r in rows], kind) for name, kind in kinds.items()}
    return pa.table({"id": pa.array(range(3), pa.int64()), **columns})


def _texts() -> pa.Table:
    ids = pa.array(range(len(PARTITIONS)), pa.int64())
    return pa.table({"id": ids, "p q": PARTITIONS}).rename_columns(["id", "p%q"])


def _typed_partitions() -> pa.Table:
    table = _every_type()
    return table.drop_columns(["f", "d", "raw", "text", "two-words", "small", "wide"])


def _decimals(values: list[Decimal | None]) -> pa.Table:
    ids = pa.array(range(len(values)), pa.int64())
    return pa.table({"id": ids, "wide": pa.array(values, pa.decimal128(38, 18))})


_PARTITION_COLUMNS = ("b", "s", "i", "l", "flag", "day", "at", "日本")

SAMPLES = {
    "every type": Sample(_every_type()),
    "timestamps without zone": Sample(
        pa.table({"id": pa.array(range(5), pa.int64()), "at": pa.array(_NAIVE)})
    ),
    "nested": Sample(_nested()),
    "empty": Sample(numbers(0).slice(0, 0)),
    "by text": Sample(_texts(), ("p%q",)),
    "by two columns": Sample(numbers(0, 6), ("p", "name")),
    "by every type": Sample(_typed_partitions(), _PARTITION_COLUMNS),
    "by decimals": Sample(_decimals(_WIDE[2:]), ("wide",)),
    "by negative decimals": Sample(_decimals(_WIDE), ("wide",)),
    "by numbers with a point": Sample(
        pa.table(
            {
                "id": pa.array(range(6), pa.int64()),
                "d": pa.array([1.5, 1e20, -0.1, 1e7, 123456789.0, None], pa.float64()),
                "f": pa.array([1.5, 1e30, -0.1, 1e7, 16777216.0, None], pa.float32()),
            }
        ),
        ("d", "f"),
    ),
    "by a time without zone": Sample(
        pa.table({"id": pa.array(range(5), pa.int64()), "at": pa.array(_NAIVE)}), ("at",)
    ),
}
"""What every client must be able to hand to every other one."""


def ids(data: Any) -> list[Any]:
    """The column `id`, in order, from anything that pyarrow takes for a table."""
    return sorted(pa.table(data)["id"].to_pylist())


def rows_of(data: Any) -> list[dict[str, Any]]:
    """The rows in order of `id`, in values that compare equal exactly where rows are equal."""
    table = pa.table(data)
    rows = [{name: _plain(row[name]) for name in sorted(row)} for row in table.to_pylist()]
    return sorted(rows, key=lambda row: row["id"])


def _plain(value: Any) -> Any:
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case dt.datetime():
            return value.isoformat() if value.tzinfo is None else value.astimezone(dt.UTC)
    return value
