"""Finding the files that may hold a row that matches a filter.

A file is dropped only if that is certain. The filter is first brought to a form without NOT above
AND and OR; then every leaf answers for every file "may it be true for some row?", and AND and OR
join the answers. Partition values answer exactly, statistics with care:

- no statistics, a malformed or missing bound, an opaque condition: the answer is yes;
- all rows null: no comparison is true;
- an upper bound of floating point says nothing of NaN, which is greater than it;
- equal bounds exclude `!=` only where bounds are exact: integers, dates, short strings;
- with deletion vectors bounds are still bounds, and a null count of none or of all still is.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.arrow.partitions import partition_schema_of, typed_partition_columns
from lakelog.core.compute import pc
from lakelog.core.errors import DeltaError
from lakelog.core.expressions.arrow.masks import evaluate_mask
from lakelog.core.expressions.binding import bind
from lakelog.core.expressions.tree import (
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Opaque,
    Or,
    StartsWith,
    columns,
    join_and,
    join_or,
)
from lakelog.core.schema import ArrayType, MapType, PrimitiveType, StructType
from lakelog.core.schema.char_varchar import limit_of
from lakelog.core.schema.column_mapping import physical_path
from lakelog.core.schema.type_widening import was_float
from lakelog.core.stats.bounds import Bounds, FileStats, read_stats

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.actions import AddFile
    from lakelog.core.schema import DataType

_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))
_EXACT = tuple(PrimitiveType(n) for n in ("byte", "short", "integer", "long", "date"))
_BOOLEAN = PrimitiveType("boolean")
_SURELY_WHOLE = 16
"""No writer's statistics cut strings of this many characters."""
_MOST_FAILURES = 500
"""After this many failures the remaining files are kept without a check."""
_FILES_AT_ONCE = 1 << 17
"""Parsed statistics of a million files would take 130 MB at once."""
_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF


def keep_files(
    file_table: pa.Table,
    expr: Expression | None,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    session_tz: str = "UTC",
) -> Any:
    """One boolean per file: false where certainly none of its rows makes the filter true.

    Args:
        file_table: rows of `FILE_SCHEMA`; the columns `partition_values` and `stats` are used.
        expr: the filter; `None` keeps every file.
        schema: the table's schema, as `Snapshot.read_schema` has it.
        partition_columns: as the table's metadata has them.
        session_tz: the zone of timestamp partition values without a zone.

    Returns:
        A `pyarrow.BooleanArray` without nulls.

    Raises:
        InvalidPredicateError: the filter names an unknown column.
    """
    count = file_table.num_rows
    if expr is None or not count:
        return pa.repeat(scalar_of(True, pa.bool_()), count)
    plain = _without_not(bind(expr, schema), negated=False)
    partitions = partition_schema_of(schema, partition_columns)
    asker = _Asker(file_table, partitions, session_tz)
    kept = asker.ask(plain)
    wanted = asker.data_columns(plain)
    if not wanted or not pc.any(kept).as_py():
        return kept
    # Statistics are read only for the files that partition values leave.
    if not pc.all(kept).as_py():
        file_table = file_table.filter(kept)
    answers: list[pa.Array[Any]] = []
    for start in range(0, file_table.num_rows, _FILES_AT_ONCE):
        some = file_table.slice(start, _FILES_AT_ONCE)
        asker = _Asker(some, partitions, session_tz)
        asker.stats = _stats_of(some.column("stats"), wanted, schema)
        found = asker.ask(plain)
        answers += found.chunks if isinstance(found, pa.ChunkedArray) else [found]
        if some.num_rows == _FILES_AT_ONCE:
            pa.default_memory_pool().release_unused()
    return pc.replace_with_mask(kept, kept, pa.concat_arrays(answers))


def _stats_of(
    texts: pa.ChunkedArray[Any], wanted: Mapping[tuple[str, ...], DataType], schema: StructType
) -> FileStats:
    """The statistics of columns, by the names of the schema."""
    inner = {path: physical_path(schema, path) for path in wanted}
    found = read_stats(texts, {inner[path]: kind for path, kind in wanted.items()})
    columns = {path: found.columns[inner[path]] for path in wanted}
    for path in wanted:
        if was_float(schema, path):
            columns[path] = columns[path].widened_for_float_text()
        limit = limit_of(schema.get(path[0])) if len(path) == 1 else None
        if limit is not None and limit.pads:
            columns[path] = columns[path].widened_for_padding(limit.length)
    return FileStats(found.num_records, columns)


def matches_partitions(
    add_files: Sequence[AddFile],
    expr: Expression | None,
    partition_schema: StructType,
    *,
    session_tz: str = "UTC",
) -> list[bool]:
    """Which files may match by their partition values alone; all else in the filter is true.

    Args:
        add_files: the files.
        expr: a bound filter; `None` matches every file.
        partition_schema: the partition columns, in the types that they had when the filter was
            bound.
        session_tz: the zone of timestamp partition values without a zone.
    """
    if expr is None or not add_files:
        return [True] * len(add_files)
    maps = [list(each.partition_values.items()) for each in add_files]
    values = array_of(maps, pa.map_(pa.string(), pa.string()))
    asker = _Asker(pa.table({"partition_values": values}), partition_schema, session_tz)
    return list(asker.ask(_without_not(expr, negated=False)).to_pylist())


def _without_not(expr: Expression, *, negated: bool) -> Expression:
    """Push every NOT down to the leaves; the meaning stays, null included."""
    match expr:
        case And(parts) | Or(parts):
            inner = [_without_not(p, negated=negated) for p in parts]
            return join_and(inner) if isinstance(expr, And) is not negated else join_or(inner)
        case Not(part):
            return _without_not(part, negated=not negated)
        case Comparison(op, left, right) if negated and op in _OPPOSITE:
            return Comparison(_OPPOSITE[op], left, right)
        case Literal(value, _) if negated and value is not None:
            return Literal(not value, _BOOLEAN)
        case Literal(None, _):
            return expr
    return Not(expr) if negated else expr


class _Asker:
    """Answers for one table of files."""

    def __init__(self, files: pa.Table, partitions: StructType, session_tz: str) -> None:
        self._count = files.num_rows
        self._partitions = partitions
        self._values, self._unreadable = typed_partition_columns(
            files, partitions, session_tz=session_tz
        )
        self._names = {name.lower() for name in partitions.names}
        self.stats: FileStats | None = None
        self._failures = 0

    def data_columns(self, expr: Expression) -> dict[tuple[str, ...], DataType]:
        """The columns of the filter whose statistics may answer."""
        match expr:
            case And(parts) | Or(parts):
                return {p: k for part in parts for p, k in self.data_columns(part).items()}
            case Not(part):
                return self.data_columns(part)
            case Comparison(_, column, Literal()) | In(column, _) | IsNull(column):
                pass
            case StartsWith(column, _):
                pass
            case _:
                return {}
        if self._is_partition(column) or column.data_type is None:
            return {}
        nested = isinstance(column.data_type, StructType | ArrayType | MapType)
        return {} if nested else {column.path: column.data_type}

    def _is_partition(self, column: Column) -> bool:
        return len(column.path) == 1 and column.path[0].lower() in self._names

    def _all(self, answer: bool) -> Any:
        return pa.repeat(scalar_of(answer, pa.bool_()), self._count)

    def ask(self, expr: Expression) -> Any:
        """One boolean per file, never null: whether the expression may be true."""
        match expr:
            case And(parts):
                return functools.reduce(pc.and_, map(self.ask, parts), self._all(True))
            case Or(parts):
                return functools.reduce(pc.or_, map(self.ask, parts), self._all(False))
            case Literal(value, _):
                return self._all(value is True)
        leaf = expr.part if isinstance(expr, Not) else expr
        if isinstance(leaf, Opaque):
            return self._all(True)
        paths = columns(leaf)
        if all(len(p) == 1 and p[0].lower() in self._names for p in paths):
            return self._by_partition(expr, [p[0] for p in paths])
        return self._by_stats(expr)

    def _by_partition(self, expr: Expression, names: Sequence[str]) -> Any:
        answer = self._answers(expr, self._values)
        for name in names:
            answer = pc.or_(answer, self._unreadable.column(name).combine_chunks())
        return answer

    def _answers(self, expr: Expression, values: pa.Table) -> Any:
        """Whether each row of partition values may make it true; so may one without a result."""
        try:
            return pc.fill_null(evaluate_mask(expr, values, self._partitions), False)
        except DeltaError:
            self._failures += 1
            if values.num_rows < 2 or self._failures > _MOST_FAILURES:
                return pa.repeat(scalar_of(True, pa.bool_()), values.num_rows)
        half = values.num_rows // 2
        parts = [self._answers(expr, each) for each in (values.slice(0, half), values.slice(half))]
        return pa.concat_arrays(parts)

    def _by_stats(self, expr: Expression) -> Any:
        if self.stats is None:
            return self._all(True)
        leaf = expr.part if isinstance(expr, Not) else expr
        if not isinstance(leaf, Comparison | In | IsNull | StartsWith):
            return self._all(True)
        column = leaf.left if isinstance(leaf, Comparison) else leaf.column
        bounds = self.stats.columns.get(column.path)
        if bounds is None or (isinstance(leaf, Comparison) and isinstance(leaf.right, Column)):
            return self._all(True)
        only_null = pc.fill_null(pc.equal(bounds.nulls, self.stats.num_records), False)
        some_null = pc.fill_null(pc.not_equal(bounds.nulls, 0), True)
        some_value = pc.invert(only_null)
        match expr:
            case IsNull() | Comparison("<=>", _, Literal(None, _)):
                return some_null
            case Not(IsNull()) | Not(Comparison("<=>", _, Literal(None, _))):
                return some_value
            case Comparison("<=>", _, Literal() as right):
                return pc.and_(some_value, _may("=", column, right, bounds))
            case Comparison(op, _, Literal() as right):
                return pc.and_(some_value, _may(op, column, right, bounds))
            case In(_, values):
                return pc.and_(some_value, _may_be_one(values, bounds))
            case StartsWith(_, prefix):
                return pc.and_(some_value, _may_start(prefix, bounds))
            case Not(Comparison()):
                return self._all(True)
        return some_value


def _may(op: str, column: Column, right: Literal, bounds: Bounds) -> Any:
    """Whether the comparison may be true for a value within the bounds."""
    if right.value is None:
        return pa.repeat(scalar_of(False, pa.bool_()), len(bounds.low))
    unknown = pa.repeat(scalar_of(True, pa.bool_()), len(bounds.low))
    if pa.types.is_null(bounds.low.type) or right.data_type is None:
        return unknown
    is_float = column.data_type in _FLOATS
    if isinstance(right.value, float) and math.isnan(right.value):
        # Every number is less than NaN, and no bound reveals a NaN.
        return unknown if is_float or op in ("!=", "<", "<=") else pc.invert(unknown)
    kind = _common(bounds.low.type, to_arrow_type(right.data_type))
    try:
        low, high = (b.cast(kind, safe=not pa.types.is_floating(kind)) for b in bounds.bounds)
        value = scalar_of(right.value, kind)
    except pa.ArrowException:
        return unknown
    match op:
        case "=":
            answer = pc.and_kleene(pc.less_equal(low, value), pc.greater_equal(high, value))
        case "<":
            answer = pc.less(low, value)
        case "<=":
            answer = pc.less_equal(low, value)
        case ">" | ">=" if is_float:
            return unknown
        case ">":
            answer = pc.greater(high, value)
        case ">=":
            answer = pc.greater_equal(high, value)
        case _:
            whole = isinstance(right.value, str) and len(right.value) < _SURELY_WHOLE
            if column.data_type not in _EXACT and not whole:
                return unknown
            only = pc.and_kleene(pc.equal(low, value), pc.equal(high, value))
            answer = pc.invert(only)
    return pc.fill_null(answer, True)


def _may_be_one(values: Sequence[Literal], bounds: Bounds) -> Any:
    """Whether any of the values is within the bounds: by sorting, since there may be many."""
    known = [v for v in values if v.value is not None]
    if not known:
        return pa.repeat(scalar_of(False, pa.bool_()), len(bounds.low))
    unknown = pa.repeat(scalar_of(True, pa.bool_()), len(bounds.low))
    if pa.types.is_null(bounds.low.type) or known[0].data_type is None:
        return unknown
    if any(isinstance(v.value, float) and math.isnan(v.value) for v in known):
        return unknown
    kind = _common(bounds.low.type, to_arrow_type(known[0].data_type))
    try:
        low, high = (b.cast(kind, safe=not pa.types.is_floating(kind)) for b in bounds.bounds)
        wanted = array_of([v.value for v in known], kind)
    except (pa.ArrowException, OverflowError):
        return unknown
    below = pc.fill_null(_count_before(wanted, low, equal=False), 0)
    up_to = pc.fill_null(_count_before(wanted, high, equal=True), len(known))
    return pc.greater(up_to, below)


def _count_before(values: Any, points: Any, *, equal: bool) -> Any:
    """How many of the values are less than each point, or equal; null for a null point."""
    points = points.combine_chunks() if isinstance(points, pa.ChunkedArray) else points
    # Sorting is stable: equal values keep their order.
    parts = [values, points] if equal else [points, values]
    start = len(values) if equal else 0
    order = pc.sort_indices(pa.concat_arrays(parts))
    is_point = pc.and_(pc.greater_equal(order, start), pc.less(order, start + len(points)))
    counts = pc.cumulative_sum(pc.cast(pc.invert(is_point), pa.int64()))
    places = pc.sort_indices(order.filter(is_point))
    found = counts.filter(is_point).take(places)
    return pc.if_else(pc.is_valid(points), found, scalar_of(None, pa.int64()))


def _common(bound: pa.DataType, literal: pa.DataType) -> pa.DataType:
    """A type that holds anything found in statistics, however malformed, and the literal."""
    if pa.types.is_integer(literal):
        return bound
    if pa.types.is_decimal(literal):
        return pa.decimal128(38, literal.scale)
    return literal


def _may_start(prefix: str, bounds: Bounds) -> Any:
    """Whether a string between the bounds may begin with the prefix."""
    answer = pc.greater_equal(bounds.high, prefix)
    after = _after(prefix)
    if after is not None:
        answer = pc.and_kleene(answer, pc.less(bounds.low, after))
    return pc.fill_null(answer, True)


def _after(prefix: str) -> str | None:
    """The first string, by code points, above all with this prefix; `None` if there is none."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    if _FIRST_SURROGATE <= following <= _LAST_SURROGATE:
        following = _LAST_SURROGATE + 1
    return stem[:-1] + chr(following)
