"""Statistics of a data file, from its Parquet footer (PROTOCOL.md, "Per-file Statistics").

The footer's bounds are used only where they are bounds in Spark's order too. Two writers make
footers, and they differ:

- pyarrow leaves NaN out of its bounds, parquet-mr (Spark) puts it in. Spark orders NaN above all
  numbers, so the bounds of a column with NaN are worthless, and those of another writer are used
  only if the caller has looked for NaN;
- INT96 timestamps (Spark's default) have no usable bounds, but for those that a caller has read;
- bounds of zero come with either sign: a minimum becomes -0.0, a maximum 0.0;
- a file that Spark wrote in its legacy calendar has other days before 1582: no bounds for them.

A column without bounds is compared with null by deltalake's pyarrow reader where another column of
the file has some, and none of its rows is found. So bounds are written for every column that can
have them, booleans included, or for none of the file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from lakelog.core import keys
from lakelog.core.conf import DeltaConf
from lakelog.core.portable.leaves import Leaf, leaves
from lakelog.core.schema import DecimalType, PrimitiveType, StructType
from lakelog.core.schema.column_mapping import physical_path
from lakelog.core.schema.types import is_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from lakelog.core.features.table_properties import TableProperties
    from lakelog.core.schema import DataType
    from lakelog.core.stats.footer_gaps import Times

_Path = tuple[str, ...]

_INTEGERS = frozenset({"byte", "short", "integer", "long"})

_BINARY, _BOOLEAN = PrimitiveType("binary"), PrimitiveType("boolean")

_FLOATS = frozenset({"float", "double"})

_TIMES = frozenset({"timestamp", "timestamp_ntz"})

_PER_MILLISECOND = {"ms": 1, "us": 1_000, "ns": 1_000_000}

_LEGACY = (b"org.apache.spark.legacyDateTime",)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsConfig:
    """Which columns get statistics."""

    num_indexed_cols: int = 32
    """Leaf columns from the front of the schema; -1 for all, 0 for none."""
    columns: Sequence[_Path] | None = None
    """Exactly these, where given; a struct means all its leaves."""
    string_prefix_length: int = 32
    """The length in UTF-16 units to which bounds of strings are cut."""
    always: Sequence[_Path] = ()
    """Columns that always have statistics, by the names that files have."""

    @classmethod
    def from_properties(
        cls, properties: TableProperties, conf: Mapping[str, str] | None = None
    ) -> StatsConfig | None:
        """Read the settings of table and session; `None` where the session wants no statistics."""
        settings = DeltaConf.from_mapping(conf)
        if not settings.read(keys.STATS):
            return None
        length = properties.string_prefix_length
        return cls(
            num_indexed_cols=properties.num_indexed_cols,
            columns=properties.stats_columns,
            string_prefix_length=(settings.read(keys.STRING_PREFIX) if length is None else length),
        )

    def for_files(self, schema: StructType) -> StatsConfig:
        """The same for a schema under the names that files have; see `physical_schema`."""
        if self.columns is None:
            return self
        return replace(self, columns=[physical_path(schema, path) for path in self.columns])


def indexed_leaves(
    schema: StructType, partition_columns: Collection[str], config: StatsConfig
) -> list[tuple[_Path, DataType]]:
    """The columns with statistics, in schema order. Arrays and maps count as leaves."""
    partitions = {name.lower() for name in partition_columns}
    data = StructType(tuple(f for f in schema if f.name.lower() not in partitions))
    found = list(_leaf_types(data))
    count, listed = config.num_indexed_cols, config.columns is not None
    wanted = {_lower(path) for path in (*(config.columns or ()), *config.always)}
    return [
        (path, kind)
        for index, (path, kind) in enumerate(found)
        if (not listed and (count < 0 or index < count))
        or any(_lower(path[: depth + 1]) in wanted for depth in range(len(path)))
    ]


def _leaf_types(struct: StructType, above: _Path = ()) -> Iterator[tuple[_Path, DataType]]:
    for each in struct:
        path = (*above, each.name)
        if isinstance(each.data_type, StructType):
            yield from _leaf_types(each.data_type, path)
        else:
            yield path, each.data_type


def stats_from_footer(
    metadata: Any,
    schema: StructType,
    *,
    partition_columns: Collection[str] = (),
    indexed: StatsConfig | None = None,
    nan_columns: Mapping[_Path, int | None] | None = None,
    times: Mapping[_Path, Times] | None = None,
) -> str:
    """The text of `add.stats`.

    Args:
        metadata: the file's `pyarrow.parquet.FileMetaData`.
        schema: the table's schema; a column that the file lacks is null in every row.
        partition_columns: columns that get no statistics.
        indexed: which columns get some; default: Delta's.
        nan_columns: columns that hold a NaN -> how many nulls they hold. `None` means that the
            columns were not read: then bounds of floating point are taken from parquet-mr alone,
            whose own bounds show a NaN.
        times: the bounds of INT96 columns, which footers don't have.
    """
    config = indexed or StatsConfig()
    file = _Footer(metadata, nan_columns, times or {})
    rows: int = metadata.num_rows
    nulls, low, high = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    bounded = True
    for path, kind in indexed_leaves(schema, partition_columns, config):
        if not isinstance(kind, PrimitiveType | DecimalType) or str(kind) in ("variant", "void"):
            continue
        column = file.find(path)
        if column is None:
            _put(nulls, path, rows)
            continue
        count, *raw = file.merged(*column)
        _put(nulls, path, count)
        if count == rows or kind == _BINARY or is_interval(kind):
            continue
        least, most = _bounds(raw, kind, column[1], config)
        _put(low, path, least)
        _put(high, path, most)
        bounded = bounded and least is not None and most is not None
    bounds = {"minValues": low, "maxValues": high} if bounded else {}
    return orjson.dumps({"numRecords": rows, **bounds, "nullCount": nulls}).decode()


def _put(tree: dict[str, Any], path: _Path, value: Any) -> None:
    if value is None:
        return
    for part in path[:-1]:
        tree = tree.setdefault(part, {})
    tree[path[-1]] = value


class _Footer:
    """A footer by column paths; by exact spelling first, else ignoring case."""

    def __init__(
        self,
        metadata: Any,
        nan_columns: Mapping[_Path, int | None] | None,
        times: Mapping[_Path, Times],
    ) -> None:
        self._groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        self._columns: dict[_Path, tuple[int, Leaf]] = {}
        for index, leaf in enumerate(leaves(metadata.schema.to_arrow_schema())):
            self._columns.setdefault(_lower(leaf.path), (index, leaf))
            self._columns[leaf.path] = (index, leaf)
        self._nans = nan_columns
        self._times = times
        self._shows_nan = (metadata.created_by or "").startswith("parquet-mr")
        self._legacy = any(key in (metadata.metadata or {}) for key in _LEGACY)

    def find(self, path: _Path) -> tuple[int, Leaf] | None:
        return self._columns.get(path) or self._columns.get(_lower(path))

    def merged(self, index: int, leaf: Leaf) -> tuple[int | None, Any, Any]:
        """Null count, minimum and maximum over all row groups, raw; `None` where unknown."""
        nulls: int | None = 0
        low = high = None
        usable = self._usable(leaf)
        read = self._times.get(leaf.path)
        for group in self._groups:
            column = group.column(index)
            count, bounds = _chunk_stats(column)
            bounds = bounds or (read.ends if read else None)
            nulls = None if nulls is None or count is None else nulls + count
            if count == group.num_rows:
                continue
            if bounds is None:
                usable = False
                continue
            low = bounds[0] if low is None else min(low, bounds[0], key=_order(leaf))
            high = bounds[1] if high is None else max(high, bounds[1], key=_order(leaf))
        if nulls is None and self._nans is not None:
            nulls = self._nans.get(leaf.path)
        if read is not None:
            nulls = read.nulls
        return nulls, low if usable else None, high if usable else None

    def _usable(self, leaf: Leaf) -> bool:
        kind = leaf.type
        if pa.types.is_floating(kind):
            return self._shows_nan if self._nans is None else leaf.path not in self._nans
        if pa.types.is_temporal(kind):
            return not self._legacy
        return not pa.types.is_unsigned_integer(kind)


def _lower(path: _Path) -> _Path:
    return tuple(part.lower() for part in path)


def _chunk_stats(column: Any) -> tuple[int | None, tuple[Any, Any] | None]:
    """Null count and raw bounds of one column in one row group."""
    stats = column.statistics
    if stats is None:
        return None, None
    count = stats.null_count if stats.has_null_count else None
    if not stats.has_min_max or column.physical_type == "INT96":
        return count, None
    low, high = stats.min_raw, stats.max_raw
    is_nan = low != low or high != high
    return count, None if is_nan else (low, high)


def _order(leaf: Leaf) -> Callable[[Any], Any]:
    """How raw values compare: strings as bytes, decimals as the number that the bytes encode."""
    if not pa.types.is_decimal(leaf.type):
        return lambda raw: raw
    return lambda raw: int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw


def _bounds(raw: Sequence[Any], kind: DataType, leaf: Leaf, config: StatsConfig) -> tuple[Any, Any]:
    """Both bounds as JSON values, from raw ones."""
    low, high = raw
    if kind == _BOOLEAN:
        # Even without bounds in the footer: there are no other values.
        found = isinstance(low, bool) and isinstance(high, bool)
        return (low, high) if found else (False, True)
    if low is None or high is None:
        return None, None
    return (
        _bound(low, kind, leaf, config, is_max=False),
        _bound(high, kind, leaf, config, is_max=True),
    )


def _bound(raw: Any, kind: DataType, leaf: Leaf, config: StatsConfig, *, is_max: bool) -> Any:
    """A raw bound as a JSON value; `None` where there is none that surely bounds the column."""
    raw = _order(leaf)(raw)
    if isinstance(kind, DecimalType):
        return _decimal(raw, leaf) if isinstance(raw, int) else None
    name = kind.name if isinstance(kind, PrimitiveType) else ""
    if name in _INTEGERS and isinstance(raw, int) and pa.types.is_integer(leaf.type):
        return raw
    if name in _FLOATS and isinstance(raw, float):
        if raw == 0:
            return 0.0 if is_max else -0.0
        return raw if math.isfinite(raw) else None
    if name == "string" and isinstance(raw, bytes):
        return _string(raw, config.string_prefix_length, is_max=is_max)
    if name == "date" and isinstance(raw, int) and pa.types.is_date32(leaf.type):
        return _date(raw)
    if name in _TIMES and isinstance(raw, int) and pa.types.is_timestamp(leaf.type):
        return _timestamp(raw, leaf.type.unit, zoned=name == "timestamp")
    return None


def _decimal(unscaled: int, leaf: Leaf) -> Any:
    scale = leaf.type.scale if pa.types.is_decimal(leaf.type) else 0
    digits = tuple(int(d) for d in str(abs(unscaled)))
    number = Decimal((int(unscaled < 0), digits, -scale))
    # As a float the bound would change.
    return orjson.Fragment(format(number, "f"))


def _string(raw: bytes, length: int, *, is_max: bool) -> str | None:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return truncate_max(text, length) if is_max else truncate_min(text, length)


def _date(days: int) -> str | None:
    try:
        return (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:
        return None


def _timestamp(value: int, unit: str, *, zoned: bool) -> str | None:
    """Cut down to milliseconds; readers of a maximum take that into account."""
    per = _PER_MILLISECOND.get(unit)
    if per is None:
        return None
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value // per)
    except OverflowError:
        return None
    text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return text + "Z" if zoned else text


_LAST = "\U0010ffff"

_ASCII_LAST = "\x7f"


def _units(text: str) -> int:
    return len(text) + sum(c > "\uffff" for c in text)


def _prefix(text: str, length: int) -> str:
    """The longest prefix of whole characters in `length` UTF-16 units."""
    units = 0
    for index, c in enumerate(text):
        units += 2 if c > "\uffff" else 1
        if units > length:
            return text[:index]
    return text


def truncate_min(text: str, length: int) -> str | None:
    """A string of at most `length` UTF-16 units that is no greater than `text`.

    Returns:
        The bound, or `None` where `length` leaves no room for one.
    """
    if _units(text) <= length:
        return text
    return _prefix(text, length) if length > 0 else None


def truncate_max(text: str, length: int) -> str | None:
    """A string of about `length` UTF-16 units that is no less than any string that begins so.

    The beginning, then a character above the first one that was dropped: U+007F if that is
    enough, else U+10FFFF. Dropped characters that are U+10FFFF themselves have none above, so
    they stay, up to twice the length.

    Returns:
        The bound; `text` itself where it ends before a bound is found; `None` where there is no
        short one.
    """
    if _units(text) <= length:
        return text
    if length <= 0:
        return None
    end = len(_prefix(text, length))
    while end < len(text) and text[end] == _LAST:
        end += 1
    if end == len(text):
        return text
    if _units(text[:end]) > 2 * length:
        return None
    return text[:end] + (_ASCII_LAST if text[end] < _ASCII_LAST else _LAST)
