"""Arrow arrays of a few of Python's objects, made without pandas.

At the first array or scalar that pyarrow makes of Python's objects it imports pandas where that is
installed, so as to know pandas's own when it sees them: a third of a second, which is more than
most commands on a small table take. Arrays that are put together from buffers don't ask for it.
"""

from __future__ import annotations

import sys
from array import array
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_FEW = 100
"""Objects that Python looks at about as fast as pyarrow does."""
_MANY = 50_000
"""Objects for which an import of pandas is less than what Python takes to look at each of them."""
_CODES = {
    pa.int8(): "b",
    pa.int16(): "h",
    pa.int32(): "i",
    pa.int64(): "q",
    pa.uint32(): "I",
    pa.uint64(): "Q",
    pa.float64(): "d",
}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # of timestamps without a zone
_MICROSECOND = timedelta(microseconds=1)


class _NotPlain(Exception):  # noqa: N818  # never leaves this module
    """What pyarrow is asked about: it converts the values, or says what is wrong with them."""


def array_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
    """`pyarrow.array(values, kind)`.

    Raises:
        pyarrow.ArrowException: a value does not fit the type.
    """
    if len(values) > (_FEW if "pandas" in sys.modules else _MANY):
        return pa.array(values, kind)
    try:
        return _built(values, kind)
    except (_NotPlain, OverflowError, UnicodeEncodeError):
        return pa.array(values, kind)


def scalar_of(value: Any, kind: pa.DataType) -> Any:
    """`pyarrow.scalar(value, kind)`.

    Raises:
        pyarrow.ArrowException: the value does not fit the type.
    """
    try:
        return _built([value], kind)[0]
    except (_NotPlain, OverflowError, UnicodeEncodeError):
        return pa.scalar(value, kind)


def integers(values: Iterable[int], kind: pa.DataType | None = None) -> pa.Array[Any]:
    """Integers, none of them null, of any number and as they come.

    Args:
        values: the integers.
        kind: their type; 32 bits by default.

    Raises:
        OverflowError: one does not fit the type.
    """
    kind = kind or pa.int32()
    data = array(_CODES[kind], values)
    return pa.Array.from_buffers(kind, len(data), [None, pa.py_buffer(data)], 0)


def batch_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """`pyarrow.RecordBatch.from_pylist(rows, schema=schema)`.

    Raises:
        pyarrow.ArrowException: a value does not fit its type.
    """
    columns = [[row.get(each.name) for row in rows] for each in schema]
    return batch_of_columns(columns, schema)


def batch_of_columns(columns: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """A batch of the values of each column.

    Raises:
        pyarrow.ArrowException: a value does not fit its type.
    """
    arrays = [array_of(values, each.type) for values, each in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def one_array(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """`column.combine_chunks()`, which of no chunk makes an array of objects."""
    return column.combine_chunks() if column.num_chunks else pa.nulls(0, column.type)


def empty_table(schema: pa.Schema) -> pa.Table:
    """A table of no rows; `pyarrow.Schema.empty_table` would make arrays of objects."""
    columns = [pa.nulls(0, each.type) for each in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _built(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
    """The array, of its buffers.

    Raises:
        _NotPlain: a value is not of the one Python type that stands for `kind`, or there is none.
        OverflowError: a number is too large.
        UnicodeEncodeError: a text can't be UTF-8.
    """
    nulls = sum(value is None for value in values)
    if nulls and _has_required(kind):
        raise _NotPlain
    if nulls == len(values):
        return pa.nulls(len(values), kind)
    valid = _bits([value is not None for value in values]) if nulls else None
    buffers, children = _parts(values, kind)
    return pa.Array.from_buffers(
        kind, len(values), [valid, *buffers], nulls, children=children or None
    )


def _parts(values: Sequence[Any], kind: pa.DataType) -> tuple[list[Any], list[pa.Array[Any]]]:
    """The buffers behind the one of nulls, and the children."""
    types = pa.types
    if types.is_boolean(kind):
        return [_bits([bool(v) for v in _each(values, bool)])], []
    if types.is_integer(kind) and kind in _CODES:
        return [_numbers(_CODES[kind], _each(values, int))], []
    if types.is_floating(kind) and kind in _CODES:
        return [_numbers(_CODES[kind], _each(values, float))], []
    if types.is_string(kind):
        texts = (text and text.encode() for text in _each(values, str))
        return _joined([text or b"" for text in texts]), []
    if types.is_binary(kind):
        return _joined([data or b"" for data in _each(values, bytes)]), []
    if types.is_date32(kind):
        days = (v and (v - _EPOCH.date()).days for v in _each(values, date))
        return [_numbers("i", days)], []
    if types.is_timestamp(kind) and kind.unit == "us":
        return [_numbers("q", _micros(values, zoned=kind.tz is not None))], []
    return _nested(values, kind)


def _has_required(kind: pa.DataType) -> bool:
    """Whether a null would have a null in a field that has none: Parquet's writer refuses that."""
    if not pa.types.is_struct(kind):
        return False
    fields = [kind.field(i) for i in range(kind.num_fields)]
    return any(not each.nullable or _has_required(each.type) for each in fields)


def _nested(values: Sequence[Any], kind: pa.DataType) -> tuple[list[Any], list[pa.Array[Any]]]:
    types = pa.types
    if types.is_struct(kind):
        rows = [row or {} for row in _each(values, dict)]
        if not all(type(name) is str for row in rows for name in row):
            raise _NotPlain
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return [], [_built([row.get(each.name) for row in rows], each.type) for each in fields]
    if not types.is_list(kind) and not types.is_map(kind):
        raise _NotPlain
    lists = [each or [] for each in _each(values, list)]
    items = [item for each in lists for item in each]
    offsets = _offsets(map(len, lists))
    if types.is_list(kind):
        return [offsets], [_built(items, kind.value_type)]
    if any(type(item) is not tuple or len(item) != 2 or item[0] is None for item in items):
        raise _NotPlain
    entries = pa.StructArray.from_arrays(
        [
            _built([key for key, _ in items], kind.key_type),
            _built([value for _, value in items], kind.item_type),
        ],
        fields=[kind.key_field, kind.item_field],
    )
    return [offsets], [entries]


def _each(values: Sequence[Any], of: type) -> Sequence[Any]:
    """The values, if all are of exactly this type or null: a bool is no number here."""
    if any(value is not None and type(value) is not of for value in values):
        raise _NotPlain
    return values


def _micros(values: Sequence[Any], *, zoned: bool) -> Iterable[int]:
    epoch = _EPOCH.replace(tzinfo=UTC) if zoned else _EPOCH
    moments = [value for value in _each(values, datetime) if value is not None]
    if any((each.utcoffset() is None) if zoned else each.tzinfo for each in moments):
        raise _NotPlain
    return (0 if value is None else (value - epoch) // _MICROSECOND for value in values)


def _numbers(code: str, values: Iterable[Any]) -> pa.Buffer:
    return pa.py_buffer(array(code, [0 if value is None else value for value in values]))


def _joined(texts: Sequence[bytes]) -> list[Any]:
    return [_offsets(map(len, texts)), pa.py_buffer(b"".join(texts))]


def _offsets(lengths: Iterable[int]) -> pa.Buffer:
    return pa.py_buffer(array("i", accumulate(lengths, initial=0)))


def _bits(flags: Sequence[bool]) -> pa.Buffer:
    """One bit each, the lowest first, as Arrow has them."""
    digits = "".join("1" if flag else "0" for flag in reversed(flags))
    return pa.py_buffer(int(digits, 2).to_bytes((len(flags) + 7) // 8, "little"))
