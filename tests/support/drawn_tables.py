"""Tables of any schema and any values, for Hypothesis; and values made exactly comparable."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES = st.sampled_from(
    ["a", "B", "two-words", "日本", "x%20y", "a.b", "ü", "_c", "0", "naïve", "q'uote", "🚀"]
) | st.text(st.characters(categories=["Lu", "Ll", "Lo", "Nd"]), min_size=1, max_size=6)
_MOMENTS = st.datetimes()
_PRECISE = Context(prec=76)
_ODD_TEXTS = ["", " ", "a/b", "a=b", "100%", "%41", "..", "é", "日本 🚀", "\n", "'\"\\", "null"]


class DrawnTable(NamedTuple):
    """Rows with a column `id` without duplicates, and how they are to be partitioned."""

    data: pa.Table
    partition_by: tuple[str, ...]

    def rows(self, found: Any = None) -> list[dict[str, Any]]:
        """The rows, or those that somebody found, exactly comparable and in order of `id`.

        Of partition values only that is compared which partitions tell apart.
        """
        rows = exact_rows(self.data if found is None else found)
        for name in self.partition_by:
            for row in rows:
                # An empty text and null are one partition, and it is null's; so are both zeros.
                row[name] = None if row[name] == "" else _unsigned_zero(row[name])
        return rows


class _Kind(NamedTuple):
    """A type, and the values that it can hold."""

    type: pa.DataType
    values: st.SearchStrategy[Any]
    by: bool = True
    """Whether a table can be partitioned by it."""


def _whole(bits: int) -> st.SearchStrategy[int]:
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return st.sampled_from([least, -1, 0, 1, most]) | st.integers(least, most)


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    return st.integers(-most, most).map(
        lambda unscaled: Decimal(unscaled).scaleb(-scale, context=_PRECISE)
    )


_TEXTS = st.sampled_from(_ODD_TEXTS) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12
)
_LEAVES = st.sampled_from(
    [
        _Kind(pa.int8(), _whole(8)),
        _Kind(pa.int16(), _whole(16)),
        _Kind(pa.int32(), _whole(32)),
        _Kind(pa.int64(), _whole(64)),
        _Kind(pa.float32(), st.sampled_from([-0.0, math.nan, math.inf]) | st.floats(width=32)),
        _Kind(pa.float64(), st.sampled_from([-0.0, math.nan, -math.inf]) | st.floats()),
        _Kind(pa.bool_(), st.booleans()),
        _Kind(pa.string(), _TEXTS),
        _Kind(pa.string(), st.integers(28, 40).map(lambda n: "x" * n + "\U0010ffff")),
        _Kind(pa.binary(), st.binary(max_size=40), by=False),
        _Kind(pa.date32(), st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))),
        _Kind(pa.timestamp("us", "UTC"), _MOMENTS.map(lambda each: each.replace(tzinfo=dt.UTC))),
        _Kind(pa.timestamp("us"), _MOMENTS),
        *(
            _Kind(pa.decimal128(precision, scale), _decimals(precision, scale))
            for precision, scale in ((1, 0), (9, 2), (18, 18), (20, 3), (38, 0), (38, 38))
        ),
    ]
)


def _nullable(kind: _Kind) -> st.SearchStrategy[Any]:
    return st.none() | kind.values


def _list(kind: _Kind) -> _Kind:
    return _Kind(pa.list_(kind.type), st.lists(_nullable(kind), max_size=3), by=False)


def _map(kind: _Kind) -> _Kind:
    keys, values = st.integers(-3, 3), _nullable(kind)
    pairs = st.dictionaries(keys, values, max_size=3).map(lambda each: list(each.items()))
    return _Kind(pa.map_(pa.int32(), kind.type), pairs, by=False)


def _distinct_names(count: int) -> st.SearchStrategy[list[str]]:
    return st.lists(
        _NAMES.filter(lambda name: name.lower() != "id"),
        min_size=count,
        max_size=count,
        # Delta takes names that differ in case only for one.
        unique_by=lambda name: name.upper().lower(),
    )


@st.composite
def _struct(draw: st.DrawFn, inner: st.SearchStrategy[_Kind]) -> _Kind:
    kinds = draw(st.lists(inner, min_size=1, max_size=3))
    names = draw(_distinct_names(len(kinds)))
    fields = list(zip(names, (kind.type for kind in kinds), strict=True))
    values = st.fixed_dictionaries(
        dict(zip(names, (_nullable(kind) for kind in kinds), strict=True))
    )
    return _Kind(pa.struct(fields), values, by=False)


_KINDS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(inner.map(_list), inner.map(_map), _struct(inner)),
    max_leaves=3,
)


@st.composite
def drawn_tables(draw: st.DrawFn) -> DrawnTable:
    """Tables of up to five columns beside `id`, and up to six rows."""
    kinds = draw(st.lists(_KINDS, min_size=1, max_size=5))
    names = draw(_distinct_names(len(kinds)))
    able = [name for name, kind in zip(names, kinds, strict=True) if kind.by]
    chosen = draw(st.lists(st.sampled_from(able), max_size=2, unique=True)) if able else []
    count = draw(st.integers(0, 6))
    columns = {"id": pa.array(range(count), pa.int64())}
    for name, kind in zip(names, kinds, strict=True):
        values = draw(st.lists(_nullable(kind), min_size=count, max_size=count))
        columns[name] = pa.array(values, kind.type)
    return DrawnTable(pa.table(columns), tuple(chosen))


def drawn(count: int, number: int) -> Sequence[DrawnTable]:
    """So many tables at once, the same ones each time: for peers that are slow to start."""
    found: list[DrawnTable] = []

    @seed(number)
    @settings(
        max_examples=count, database=None, phases=[Phase.generate], deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip
    @given(drawn_tables())
    def collect(table: DrawnTable) -> None:
        found.append(table)

    collect()
    return found


def exact_rows(data: Any) -> list[dict[str, Any]]:
    """The rows in order of `id`, in values that are equal exactly where the bits are.

    All NaN are one; a missing struct is not one of nulls; moments are compared in UTC.
    """
    table = pa.table(data)
    rows = [{name: _exact(row[name]) for name in sorted(row)} for row in table.to_pylist()]
    return sorted(rows, key=lambda row: row["id"])


def _exact(value: Any) -> Any:
    match value:
        case float():
            return ("float", "NaN" if math.isnan(value) else struct.pack("d", value).hex())
        case dict():
            return {key: _exact(value[key]) for key in sorted(value)}
        case list() | tuple():
            return [_exact(each) for each in value]
        case dt.datetime():
            return value.isoformat() if value.tzinfo is None else value.astimezone(dt.UTC)
    return value


def _unsigned_zero(value: Any) -> Any:
    return _exact(0.0) if value == _exact(-0.0) else value
