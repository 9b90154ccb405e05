"""Casts Arrow data to exactly the Arrow types of a Delta schema.

Columns are matched by name, ignoring case, at every depth; what the data lacks becomes null. Only
casts that lose nothing are made (`lakelog.core.schema.upcasts`), and NOT NULL is checked on the
way, so that what comes out can be written as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.arrow.arrow_types import (
    from_arrow_type,
    is_list,
    is_list_view,
    to_arrow_schema,
    to_arrow_type,
)
from lakelog.core.arrow.encodings import bounded, decoded, is_encoded, without_views
from lakelog.core.arrow.variant_values import has_variants, variant_array
from lakelog.core.errors import ConstraintViolationError, DeltaAnalysisError, SchemaMismatchError
from lakelog.core.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from lakelog.core.schema.column_mapping import by_name
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.types import DAY_TIME, VARIANT
from lakelog.core.schema.upcasts import is_plain_text, is_upcast, is_widening

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.schema.column_mapping import Match

_LONG = PrimitiveType("long")
"""How files hold microseconds."""

Purpose: TypeAlias = Literal["write", "read", "tell"]
"""Rows to be written are checked; rows read from the table are returned as they are; rows that were
removed from it are reported, as text where necessary."""


def cast_table(
    table: pa.Table,
    schema: StructType,
    *,
    timestamps: str = "UTC",
    purpose: Purpose = "write",
    match: Match = by_name,
) -> pa.Table:
    """The same rows, with exactly `to_arrow_schema(schema)`.

    Args:
        table: columns in any order; names are matched ignoring case.
        schema: the table's schema; its order and its spelling win.
        timestamps: time zone in the Arrow type of `timestamp`; the instants stay the same.
        purpose: `read` drops what the schema does not have, lets nulls be where they are, and
            makes of a file's types what the table's may have been widened to since; `tell` makes
            text of them too (`is_plain_text`).
        match: which of the data's columns and fields are which of the schema's.

    Raises:
        SchemaMismatchError: a column that the schema does not have, or one of a type that does
            not become the schema's type without loss.
        DeltaAnalysisError: a value that does not fit, as a timestamp with nanoseconds.
        ConstraintViolationError: nulls, or no values at all, in a column that is NOT NULL.
    """
    target = to_arrow_schema(schema, timestamps=timestamps)
    unchecked = purpose != "write" or not (
        any(map(_may_hide_nulls, schema)) or has_variants(target)
    )
    # With another match, equal names may belong to different columns.
    if unchecked and match is by_name and table.schema.equals(target):
        return table.replace_schema_metadata(None)
    cast = _Cast(timestamps, purpose, match)
    sources, columns = cast.sources(table.schema, schema, ()), []
    for field, arrow_field in zip(schema, target, strict=True):
        index = sources.get(field.name)
        if index is None:
            cast.check_absent(field, (), table.num_rows > 0)
            columns.append(pa.nulls(table.num_rows, arrow_field.type))
        else:
            path = (field.name,)
            chunks = []
            cast.first_row = 0
            pieces = (each for chunk in table.column(index).chunks for each in bounded(chunk))
            for piece in pieces:
                found = cast.array(piece, field.data_type, path)
                chunks.append(cast.required(found, field.nullable, path))
                cast.first_row += len(piece)
            columns.append(pa.chunked_array(chunks, type=arrow_field.type))
    return pa.Table.from_arrays(columns, schema=target)


def cast_batch(batch: pa.RecordBatch, schema: StructType) -> list[pa.RecordBatch]:
    """`cast_table` for one batch; several where its columns would be too large as one."""
    batches: list[pa.RecordBatch] = cast_table(pa.Table.from_batches([batch]), schema).to_batches()
    return batches


class _Cast:
    """The cast of one column; holds what is the same at every depth."""

    def __init__(self, timestamps: str, purpose: Purpose, match: Match) -> None:
        self._timestamps = timestamps
        self._match = match
        self._writes = purpose == "write"
        self._tells = purpose == "tell"
        self.first_row = 0
        """Of the chunk at hand, for messages."""

    def array(self, array: Any, target: DataType, path: tuple[str, ...]) -> Any:
        """The array as the Arrow type of `target`, children included."""
        source = array.type
        if is_encoded(source):
            return decoded(array, lambda values: self.array(values, target, path))
        if pa.types.is_null(source):
            return pa.nulls(len(array), self._arrow(target, path))
        if target == VARIANT:
            return self._variant(array, path)
        match target:
            case StructType() if pa.types.is_struct(source):
                return self._struct(array, target, path)
            case ArrayType() if is_list(source):
                return self._list(array, target, path)
            case MapType() if pa.types.is_map(source):
                return self._map(array, target, path)
            case _:
                return self._leaf(without_views(array), target, path)

    def required(
        self, array: Any, nullable: bool, path: tuple[str, ...], parents: Any = None
    ) -> Any:
        """Check NOT NULL; `parents` says in which rows the parent exists, `None` for in all.

        Below a parent that is null the child's slots are not nulls but nothing at all; Arrow still
        counts them, and its Parquet writer refuses them, so their marks are taken away.
        """
        if nullable or not self._writes or not array.null_count:
            return array
        missing = array.is_null()
        if parents is not None:
            missing = _compute().and_(missing, parents)
        if _compute().any(missing).as_py():
            raise _not_null(dotted(path))
        return _without_nulls(array)

    def sources(
        self, data: Iterable[pa.Field[Any]], target: StructType, path: tuple[str, ...]
    ) -> dict[str, int]:
        """The target's names -> positions in the data.

        Raises:
            SchemaMismatchError: a name of the data that the target does not have.
        """
        found: dict[str, int] = {}
        data = list(data)
        for index, (each, field) in enumerate(zip(data, self._match(data, target), strict=True)):
            if field is None and not self._writes:
                continue
            if field is None:
                column = dotted((*path, each.name))
                raise SchemaMismatchError(f"Column {column} is not in the table.", column=column)
            if field.name in found:
                column = dotted((*path, each.name))
                raise SchemaMismatchError(f"The data has column {column} twice.", column=column)
            found[field.name] = index
        return found

    def check_absent(self, field: StructField, path: tuple[str, ...], some_rows: bool) -> None:
        """A required column that the data lacks matters where there are rows."""
        if self._writes and not field.nullable and some_rows:
            raise _not_null(dotted((*path, field.name)))

    def _struct(self, array: Any, target: StructType, path: tuple[str, ...]) -> Any:
        sources = self.sources(array.type, target, path)
        parents = array.is_valid() if array.null_count else None
        some = array.null_count < len(array)
        children, fields = [], []
        for field in target:
            inner = (*path, field.name)
            index = sources.get(field.name)
            arrow = self._arrow(field.data_type, inner)
            if index is None:
                self.check_absent(field, path, some)
                child = pa.nulls(len(array), arrow)
            else:
                child = self.array(array.field(index), field.data_type, inner)
            children.append(self.required(child, field.nullable, inner, parents))
            fields.append(pa.field(field.name, arrow, nullable=field.nullable))
        if not fields:
            return array.cast(pa.struct([]))
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)

    def _variant(self, array: Any, path: tuple[str, ...]) -> Any:
        try:
            found = variant_array(array)
        except (ValueError, IndexError, LookupError, pa.ArrowException) as exc:
            verb = "is not a" if self._writes else "can't be read as a"
            raise DeltaAnalysisError(
                f"Column {dotted(path)}: what the data has there {verb} variant: {exc}. A variant "
                "is a struct of the binaries metadata and value, in Parquet's variant encoding.",
                column=dotted(path),
                type=str(array.type),
            ) from exc
        if self._writes:
            self._check_variants(found, path)
        return found

    def _check_variants(self, array: Any, path: tuple[str, ...]) -> None:
        from lakelog.core.arrow.variant_checks import check_variants

        try:
            check_variants(array)
        except ValueError as exc:
            why, at = exc.args
            row = self.first_row + at
            raise DeltaAnalysisError(
                f"Column {dotted(path)}: value {row} of the data, counted from 0, is not a "
                f"variant: {why}. No reader could decode it; see Parquet's variant encoding.",
                column=dotted(path),
                row=row,
            ) from exc

    def _list(self, array: Any, target: ArrayType, path: tuple[str, ...]) -> Any:
        inner = (*path, "element")
        array = _compact(_as_plain_list(array))
        values = self.array(array.values, target.element_type, inner)
        if self._writes and not target.contains_null and values.null_count:
            # Slots outside all lists must not count, so look at the lists' own elements.
            if array.flatten().null_count:
                raise _not_null(dotted(inner))
            values = _without_nulls(values)
        return _rebuilt(array, self._arrow(target, path), values)

    def _map(self, array: Any, target: MapType, path: tuple[str, ...]) -> Any:
        array = _compact(array)
        keys = self.array(array.keys, target.key_type, (*path, "key"))
        inner = (*path, "value")
        items = self.array(array.items, target.value_type, inner)
        arrow = self._arrow(target, path)
        if self._writes and not target.value_contains_null and items.null_count:
            raise _not_null(dotted(inner))
        entries = pa.StructArray.from_arrays(
            [keys, items], fields=[arrow.key_field, arrow.item_field]
        )
        return _rebuilt(array, arrow, entries)

    def _leaf(self, array: Any, target: DataType, path: tuple[str, ...]) -> Any:
        arrow = self._arrow(target, path)
        if array.type.equals(arrow):
            return array
        found = from_arrow_type(array.type, path)
        widened = not self._writes and (
            is_widening(found, target) or (found, target) == (_LONG, DAY_TIME)
        )
        as_text = self._tells and target == PrimitiveType("string") and is_plain_text(found)
        if found != target and not (widened or as_text or is_upcast(found, target)):
            _mismatch(path, found, target)
        try:
            if pa.types.is_date64(array.type):
                # Many writers of date64 put a time of day into it.
                return array.cast(arrow, safe=False)
            if isinstance(target, DecimalType) and pa.types.is_integer(array.type):
                # Arrow requires 19 digits for any int64; the values may have fewer.
                return array.cast(pa.decimal128(38, target.scale)).cast(arrow)
            return array.cast(arrow)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as exc:
            column = dotted(path)
            raise DeltaAnalysisError(
                f"Column {column}: values of type {array.type} can't become {target} without "
                f"loss ({exc}); cast or round the column first.",
                column=column,
                type=str(array.type),
            ) from exc

    def _arrow(self, target: DataType, path: Sequence[str]) -> Any:
        return to_arrow_type(target, timestamps=self._timestamps, path=path)


def _compute() -> Any:
    """`pyarrow.compute`, loaded when the first value needs it: a fifth of the core's import."""
    import pyarrow.compute

    return pyarrow.compute


def _as_plain_list(array: Any) -> Any:
    if pa.types.is_list(array.type):
        return array
    if not is_list_view(array.type):
        return array.cast(pa.list_(array.type.value_field))
    # Arrow's own cast of a slice of a view gives wrong offsets (seen in 17 and in 26).
    lengths = _compute().fill_null(
        _compute().list_value_length(array).cast(pa.int32()), scalar_of(0, pa.int32())
    )
    ends = _compute().cumulative_sum(lengths)
    offsets = pa.concat_arrays([array_of([0], pa.int32()), ends])
    if array.null_count:
        valid = pa.concat_arrays([array.is_valid(), array_of([True], pa.bool_())])
        offsets = _compute().if_else(valid, offsets, scalar_of(None, pa.int32()))
    return pa.ListArray.from_arrays(offsets, array.flatten(), type=pa.list_(array.type.value_field))


def _compact(array: Any) -> Any:
    """A list or a map without elements before its first one and behind its last one."""
    is_map = pa.types.is_map(array.type)
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    if array.offset == 0 and first == 0 and last == len(array.keys if is_map else array.values):
        return array
    valid = array.is_valid().buffers()[1] if array.null_count else None
    offsets = _compute().subtract(array.offsets, scalar_of(first, pa.int32())).buffers()[1]
    inside = slice(first, last)
    child = array.values[inside] if not is_map else _entries(array, inside)
    return pa.Array.from_buffers(
        array.type, len(array), [valid, offsets], array.null_count, 0, children=[child]
    )


def _entries(array: Any, inside: slice) -> Any:
    fields = [array.type.key_field, array.type.item_field]
    return pa.StructArray.from_arrays([array.keys[inside], array.items[inside]], fields=fields)


def _rebuilt(array: Any, target: Any, child: Any) -> Any:
    """A list or map with the same shape and another child, which covers the whole buffer."""
    shape = array.buffers()[:2]
    return pa.Array.from_buffers(
        target, len(array), shape, array.null_count, array.offset, children=[child]
    )


def _without_nulls(array: Any) -> Any:
    """The same values without a validity bitmap: nulls become arbitrary values."""
    arrow = array.type
    if pa.types.is_struct(arrow):
        children = [array.field(i) for i in range(arrow.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(arrow))
    children = []
    own = array.buffers()
    if pa.types.is_map(arrow):
        fields = [arrow.key_field, arrow.item_field]
        children = [pa.StructArray.from_arrays([array.keys, array.items], fields=fields)]
        own = own[:2]
    elif pa.types.is_list(arrow):
        children = [array.values]
        own = own[:2]
    return pa.Array.from_buffers(
        arrow, len(array), [None, *own[1:]], 0, array.offset, children=children
    )


def _may_hide_nulls(field: StructField) -> bool:
    """Whether the column contains NOT NULL, so that equal types are not enough."""
    match field.data_type:
        case StructType() as inner:
            return not field.nullable or any(map(_may_hide_nulls, inner))
        case ArrayType(element, contains_null):
            return not (field.nullable and contains_null) or _may_hide_nulls(
                StructField("element", element)
            )
        case MapType(_, value, value_contains_null):
            return not (field.nullable and value_contains_null) or _may_hide_nulls(
                StructField("value", value)
            )
        case _:
            return not field.nullable


def _not_null(column: str) -> ConstraintViolationError:
    return ConstraintViolationError(
        f"[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] NOT NULL constraint violated for column: {column}. "
        "The data has nulls there; fill them in, or leave those rows out.",
        column=column,
        constraint="NOT NULL",
    )


def _mismatch(path: tuple[str, ...], found: DataType, target: DataType) -> NoReturn:
    column = dotted(path)
    raise SchemaMismatchError(
        f"Column {column} has type {found} and the table has {target}; cast it to {target}.",
        column=column,
    )
