"""Statistics as columns: from the JSON of many files to bounds that pruning may trust.

A bound that is missing, malformed, or of another type is null, which means unknown. What writers
are known to store inexactly is widened: timestamps are cut to milliseconds, float columns are
printed as doubles, and decimals of some writers have passed through a double.
"""

from __future__ import annotations

import decimal
import json
import math
import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from lakelog.core.arrays import array_of, integers, scalar_of
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.arrow.partitions import parse_value
from lakelog.core.compute import pc
from lakelog.core.schema import DecimalType, PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.schema import DataType

_Path = tuple[str, ...]
_MILLISECOND = timedelta(microseconds=999)
_INTEGERS = frozenset({"byte", "short", "integer", "long"})
_TIMES = frozenset({"timestamp", "timestamp_ntz"})
_ZONED = re.compile(r"(?:Z|[+-]\d{2}:?\d{2})$")
_FAST_ROWS = 2_000
"""From this many rows Arrow's JSON reader is faster than a loop, its import included."""
_BATCH_ROWS = 1 << 17
_RELATIVE = Decimal(2) ** -51
"""More than the rounding error of a double."""
_WIDE = decimal.Context(prec=80)


@dataclass(frozen=True, slots=True)
class Bounds:
    """One column, one entry per file; null means unknown."""

    low: Any
    """No value is less. For timestamps in their own type, for floats as doubles."""
    high: Any
    """No value is greater, but for NaN, which not every writer counts."""
    nulls: Any
    """Rows with null, deleted rows included."""

    @property
    def bounds(self) -> tuple[Any, Any]:
        """Low and high."""
        return self.low, self.high

    def widened_for_float_text(self) -> Bounds:
        """The bounds of a double column some of whose files were written as `float`.

        The text is that of a float, and the double nearest to the text may be on the other side of
        it.
        """
        if not pa.types.is_floating(self.low.type):
            return self
        low, high = (each.cast(pa.float32()).cast(pa.float64()) for each in self.bounds)
        return Bounds(
            pc.min_element_wise(self.low, low), pc.max_element_wise(self.high, high), self.nulls
        )

    def widened_for_padding(self, length: int) -> Bounds:
        """The bounds of strings that are filled up with spaces after they were written.

        A string is never greater than what it is filled up to, so the low bound holds. A value that
        is the start of the high bound may become greater than that only where the bound has a
        character before the space in the order; with spaces for such, the bound filled up holds.
        """
        if not pa.types.is_string(self.high.type):
            return self
        high = pc.replace_substring_regex(self.high, pattern=r"[\x00-\x1f]", replacement=" ")
        return Bounds(self.low, pc.utf8_rpad(high, length, padding=" "), self.nulls)


@dataclass(frozen=True, slots=True)
class FileStats:
    """The statistics of some files and columns."""

    num_records: Any
    """Rows, deleted ones included."""
    columns: Mapping[_Path, Bounds]


def read_stats(
    texts: pa.ChunkedArray[Any] | pa.Array[Any], wanted: Mapping[_Path, DataType]
) -> FileStats:
    """Read the statistics of some columns.

    Args:
        texts: the JSON of `add.stats`, null where a file has none.
        wanted: leaf columns and their types.
    """
    bounded = {p: k for p, k in wanted.items() if _has_bounds(k)}
    found = None
    exact = any(isinstance(k, DecimalType) for k in bounded.values())
    if len(texts) >= _FAST_ROWS and not exact:
        found = _read_fast(texts, wanted, bounded)
    return found or _read_slow(texts, wanted, bounded)


def _has_bounds(kind: DataType) -> bool:
    if isinstance(kind, PrimitiveType):
        return kind.name in _INTEGERS | _TIMES | {"float", "double", "string", "date"}
    return isinstance(kind, DecimalType)


def _stored_type(kind: DataType) -> pa.DataType:
    """The type that a bound is stored as."""
    if isinstance(kind, PrimitiveType):
        if kind.name in _INTEGERS:
            return pa.int64()
        if kind.name in ("float", "double"):
            return pa.float64()
    if isinstance(kind, DecimalType):
        # Widening may carry into one more digit.
        return pa.decimal128(min(kind.precision + 1, 38), kind.scale)
    return to_arrow_type(kind)


def _read_slow(
    texts: Any, wanted: Mapping[_Path, DataType], bounded: Mapping[_Path, DataType]
) -> FileStats:
    """One text at a time; tolerates anything."""
    exact = any(isinstance(k, DecimalType) for k in bounded.values())
    documents = [_document(text, exact=exact) for text in texts.to_pylist()]
    columns = {}
    for path, kind in wanted.items():
        nulls = [_count(_at(d.get("nullCount"), path)) for d in documents]
        low: list[Any] = [None] * len(documents)
        high = low
        if path in bounded:
            low = [_bound(_at(d.get("minValues"), path), kind, is_max=False) for d in documents]
            high = [_bound(_at(d.get("maxValues"), path), kind, is_max=True) for d in documents]
        stored = _stored_type(kind) if path in bounded else pa.null()
        columns[path] = Bounds(
            array_of(low, stored), array_of(high, stored), array_of(nulls, pa.int64())
        )
    counts = [_count(d.get("numRecords")) for d in documents]
    return FileStats(array_of(counts, pa.int64()), columns)


def _document(text: str | None, *, exact: bool) -> dict[str, Any]:
    if not text:
        return {}
    try:
        # Only the standard library reads decimals without a detour through doubles.
        found = json.loads(text, parse_float=Decimal) if exact else orjson.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _at(tree: Any, path: Sequence[str]) -> Any:
    for part in path:
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def _count(value: Any) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
    return value if fits else None


def _bound(value: Any, kind: DataType, *, is_max: bool) -> Any:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(kind, DecimalType):
        return _decimal_bound(value, kind, is_max=is_max)
    name = kind.name if isinstance(kind, PrimitiveType) else ""
    if name in _INTEGERS:
        return value if isinstance(value, int) and -(1 << 63) <= value < 1 << 63 else None
    if name in ("float", "double"):
        return _float_bound(value, narrow=name == "float")
    if not isinstance(value, str):
        return None
    if name == "string":
        return value
    if name == "timestamp" and not _ZONED.search(value):
        # An instant in an unknown zone.
        return None
    try:
        found = parse_value(value, kind)
        return found + _MILLISECOND if is_max and found and name in _TIMES else found
    except (ValueError, OverflowError):
        return None


def _float_bound(value: Any, *, narrow: bool) -> float | None:
    if not isinstance(value, int | float | Decimal):
        return None
    try:
        number = float(value)
        if narrow:
            # The text of a float32 means that float32, not the double nearest to the text.
            number = parse_value(repr(number), PrimitiveType("float"))
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _decimal_bound(value: Any, kind: DecimalType, *, is_max: bool) -> Decimal | None:
    if not isinstance(value, int | Decimal):
        return None
    number = Decimal(value)
    if not number.is_finite() or number.adjusted() > 40:
        return None
    if kind.precision > 15:
        margin = _WIDE.multiply(abs(number), _RELATIVE)
        number = _WIDE.add(number, margin if is_max else -margin)
    rounding = decimal.ROUND_CEILING if is_max else decimal.ROUND_FLOOR
    number = number.quantize(Decimal(1).scaleb(-kind.scale), rounding, _WIDE)
    limit = Decimal(10) ** (min(kind.precision + 1, 38) - kind.scale)
    return number if abs(number) < limit else None


def _read_fast(
    texts: Any, wanted: Mapping[_Path, DataType], bounded: Mapping[_Path, DataType]
) -> FileStats | None:
    """All texts at once; `None` where one of them is malformed."""
    values = _tree_type({p: _json_type(k) for p, k in bounded.items()})
    schema = pa.schema(
        [
            ("numRecords", pa.int64()),
            ("minValues", values),
            ("maxValues", values),
            ("nullCount", _tree_type(dict.fromkeys(wanted, pa.int64()))),
        ]
    )
    chunked = texts if isinstance(texts, pa.ChunkedArray) else pa.chunked_array([texts])
    try:
        parts = [
            _parse_lines(chunk.slice(start, _BATCH_ROWS), schema)
            for chunk in chunked.chunks
            for start in range(0, len(chunk), _BATCH_ROWS)
        ]
        table = pa.concat_tables(parts)
        if table.num_rows != len(texts):
            return None
        columns = {}
        for path, kind in wanted.items():
            low = high = pa.nulls(len(texts))
            if path in bounded:
                low = _typed(_leaf(table, "minValues", path), kind, is_max=False)
                high = _typed(_leaf(table, "maxValues", path), kind, is_max=True)
            columns[path] = Bounds(low, high, _not_negative(_leaf(table, "nullCount", path)))
        return FileStats(_not_negative(_leaf(table, "numRecords", ())), columns)
    except pa.ArrowException:
        return None


def _parse_lines(texts: Any, schema: pa.Schema) -> pa.Table:
    from pyarrow import json as arrow_json

    # A list of Python would import pandas, which takes longer than to parse a hundred thousand.
    lines = pa.ListArray.from_arrays(integers((0, len(texts))), pc.fill_null(texts, "{}"))
    blob = pc.binary_join(lines, "\n")
    return arrow_json.read_json(
        pa.BufferReader(blob[0].as_buffer()),
        read_options=arrow_json.ReadOptions(block_size=8 << 20),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="ignore"
        ),
    )


def _not_negative(counts: Any) -> Any:
    return pc.if_else(pc.greater_equal(counts, 0), counts, None)


def _json_type(kind: DataType) -> pa.DataType:
    stored = _stored_type(kind)
    # Arrow would read a date as a number, and would not require a zone.
    return pa.string() if pa.types.is_temporal(stored) else stored


def _tree_type(leaves: Mapping[_Path, pa.DataType]) -> pa.DataType:
    tree: dict[str, dict[_Path, pa.DataType]] = {}
    for path, kind in leaves.items():
        tree.setdefault(path[0], {})[path[1:]] = kind
    return pa.struct(
        [(name, inner[()] if () in inner else _tree_type(inner)) for name, inner in tree.items()]
    )


def _leaf(table: pa.Table, name: str, path: _Path) -> Any:
    column = table.column(name)
    column = pc.struct_field(column, list(path)) if path else column
    return column.combine_chunks()


def _typed(values: Any, kind: DataType, *, is_max: bool) -> Any:
    stored = _stored_type(kind)
    values = values.cast(stored)
    if pa.types.is_timestamp(stored):
        return pc.add(values, scalar_of(999, pa.duration("us"))) if is_max else values
    if kind == PrimitiveType("float"):
        values = values.cast(pa.float32()).cast(pa.float64())
    if pa.types.is_floating(stored):
        return pc.if_else(pc.is_finite(values), values, None)
    return values
