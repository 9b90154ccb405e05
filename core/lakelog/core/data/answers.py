"""What the log's statistics say about rows, without opening a data file; and what they leave open.

Statistics answer for a file only where they are certain: all its rows match, their number is
known, and for bounds no row is deleted and the type's bounds are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.compute import pc
from lakelog.core.data.readable_partitions import readable_partitions
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.expressions.prune import keep_files
from lakelog.core.expressions.tree import (
    And,
    Comparison,
    In,
    Literal,
    Not,
    Or,
    StartsWith,
    columns,
)
from lakelog.core.schema import DecimalType, PrimitiveType
from lakelog.core.schema.column_mapping import physical_name
from lakelog.core.schema.types import DAY_TIME, YEAR_MONTH
from lakelog.core.stats.bounds import read_stats

if TYPE_CHECKING:
    from lakelog.core.data.table_version import TableVersion
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.schema import StructField
    from lakelog.core.stats.bounds import Bounds

_EXACT = frozenset(PrimitiveType(n) for n in ("byte", "short", "integer", "long", "date"))
_WIDE = r'"tightBounds"\s*:\s*false'
_FALSE = scalar_of(False, pa.bool_())
_NO_ORDER = frozenset({"variant", "void", DAY_TIME.name, YEAR_MONTH.name})


class Counted(NamedTuple):
    """Rows of some files, as far as the log knows them."""

    sum: int
    unknown: Any
    """For each file, whether it is not in the sum."""


def counted(snapshot: TableVersion, files: pa.Table, where: Expression | None) -> Counted:
    """How many rows match in the files whose statistics say so.

    Args:
        snapshot: the version.
        files: rows of `FILE_SCHEMA`: all that may have a row that matches.
        where: bound to `read_schema`; `None` for all rows.
    """
    rows = _live_rows(files)
    if where is not None:
        rows = pc.if_else(_all_match(snapshot, files, where), rows, scalar_of(None, rows.type))
    return Counted(pc.sum(rows).as_py() or 0, rows.is_null())


def known_count(snapshot: TableVersion, files: pa.Table, where: Expression | None) -> int | None:
    """How many rows match; `None` where the log does not say it of every file.

    Args:
        snapshot: the version.
        files: as for `counted`.
        where: likewise.
    """
    known = counted(snapshot, files, where)
    return None if pc.any(known.unknown).as_py() else known.sum


def known_extreme(
    snapshot: TableVersion,
    files: pa.Table,
    where: Expression | None,
    field: StructField,
    which: str,
) -> pa.Scalar[Any] | None:
    """The least or the greatest value; `None` where a file would have to be read for it.

    Args:
        snapshot: the version.
        files: as for `counted`.
        where: likewise.
        field: as for `extreme_so_far`.
        which: `min` or `max`.

    Returns:
        A scalar; a null one where no row has a value.

    Raises:
        DeltaAnalysisError: the column's values have no order.
    """
    best, unread = extreme_so_far(snapshot, files, where, field, which)
    if pc.any(unread).as_py():
        return None
    return scalar_of(None, pa.null()) if best is None else best


def extreme_so_far(
    snapshot: TableVersion,
    files: pa.Table,
    where: Expression | None,
    field: StructField,
    which: str,
    *,
    exact: bool = True,
) -> tuple[pa.Scalar[Any] | None, pa.Array[Any]]:
    """The least or the greatest value that the log knows, and which files may have a better one.

    Args:
        snapshot: the version.
        files: as for `counted`.
        where: likewise.
        field: the column, of `read_schema`.
        which: `min` or `max`.
        exact: whether all rows that match count; if not, every file has to be read.

    Raises:
        DeltaAnalysisError: the column's values have no order.
    """
    is_simple = isinstance(field.data_type, PrimitiveType | DecimalType)
    if not is_simple or str(field.data_type) in _NO_ORDER:
        raise DeltaAnalysisError(
            f"{field.name} of {snapshot.table} is of type {field.data_type}, whose values have no "
            "least and no greatest",
            table=snapshot.table,
            column=field.name,
        )
    everything = pa.repeat(scalar_of(True, pa.bool_()), files.num_rows)
    if not exact or not files.num_rows:
        return None, everything
    if field.name in snapshot.partition_columns:
        values = readable_partitions(snapshot, files, {field.name})[field.name].combine_chunks()
        bounds, sure = values, pc.greater(pc.fill_null(_live_rows(files), 0), 0)
    elif field.data_type in _EXACT:
        found = _bounds(files, field)
        bounds = found.low if which == "min" else found.high
        vectors = files["deletion_vector"].combine_chunks()
        wide = pc.fill_null(pc.match_substring_regex(files["stats"], _WIDE), False)
        sure = pc.and_(vectors.is_null(), pc.invert(wide.combine_chunks()))
        # A file of nulls alone has no value, which is as good as a value.
        only_nulls = pc.fill_null(pc.equal(found.nulls, _records(files)), False)
        sure = pc.and_(sure, pc.or_(bounds.is_valid(), only_nulls))
    else:
        return None, everything
    if where is not None:
        sure = pc.and_(sure, _all_match(snapshot, files, where))
    best = _extreme(bounds.filter(sure), which)
    unread = pc.invert(sure)
    if best is not None:
        # The bound of a file that is not sure is still a bound.
        worse = pc.greater_equal if which == "min" else pc.less_equal
        if not pa.types.is_floating(bounds.type):
            unread = pc.and_(unread, pc.invert(pc.fill_null(worse(bounds, best), False)))
    return best, unread


def better_of(
    best: pa.Scalar[Any] | None, values: pa.ChunkedArray[Any], which: str
) -> pa.Scalar[Any] | None:
    """The better one of what was found before and of some values; null is worse than anything."""
    found = _extreme(values, which)
    if best is None or found is None:
        return best if found is None else found
    if best.type != found.type:
        best = best.cast(found.type)
    return _extreme(array_of([best, found], found.type), which)


def _extreme(values: Any, which: str) -> pa.Scalar[Any] | None:
    """As Spark orders values: NaN is greater than every number."""
    if pa.types.is_floating(values.type):
        nan = pc.fill_null(pc.is_nan(values), False)
        numbers = values.filter(pc.invert(nan))
        if pc.any(nan).as_py() and (which == "max" or len(numbers) == numbers.null_count):
            return scalar_of(float("nan"), values.type)
        values = numbers
    found = pc.min_max(values)[which]
    return found if found.is_valid else None


def _records(files: pa.Table) -> Any:
    return read_stats(files["stats"], {}).num_records


def _live_rows(files: pa.Table) -> Any:
    """The rows of each file without the deleted ones; null where the log does not say."""
    rows = _records(files)
    vectors = files["deletion_vector"].combine_chunks()
    deleted = pc.fill_null(pc.struct_field(vectors, "cardinality").cast(pa.int64()), 0)
    # A log that says what can't be says nothing; what is left can't grow too large.
    sound = pc.and_(pc.greater_equal(deleted, 0), pc.less_equal(deleted, rows))
    nothing = scalar_of(None, pa.int64())
    return pc.subtract_checked(
        pc.if_else(sound, rows, nothing), pc.if_else(sound, deleted, nothing)
    )


def _bounds(files: pa.Table, field: StructField) -> Bounds:
    path = (physical_name(field),)
    return read_stats(files["stats"], {path: field.data_type}).columns[path]


def _all_match(snapshot: TableVersion, files: pa.Table, where: Expression) -> Any:
    """For each file whether certainly all its rows match.

    No row makes the opposite true, and none makes it null: then the condition is true for all.
    """
    nothing = pa.repeat(_FALSE, files.num_rows)
    if not _is_plain(where):
        return nothing
    schema, zone = snapshot.read_schema, snapshot.conf.session_tz
    partitions = snapshot.partition_columns
    sure = pc.invert(keep_files(files, Not(where), schema, partitions, session_tz=zone))
    for path in columns(where):
        field = schema.get(path[0])
        if field is None or len(path) > 1:
            return nothing
        if field.name in partitions:
            values = readable_partitions(snapshot, files, {field.name})[field.name]
            sure = pc.and_(sure, values.is_valid().combine_chunks())
        else:
            nulls = _bounds(files, field).nulls
            sure = pc.and_(sure, pc.fill_null(pc.equal(nulls, 0), False))
    return sure


def _is_plain(where: Expression) -> bool:
    """Whether it is null for a row only where one of its columns is."""
    match where:
        case And(parts) | Or(parts):
            return all(_is_plain(each) for each in parts)
        case Not(part):
            return _is_plain(part)
        case Comparison(right=Literal() as right):
            return right.value is not None
        case In(values=values):
            return all(each.value is not None for each in values)
        case StartsWith():
            return True
        case Literal(value):
            return value is not None
    return False
