"""File actions from JSON lines straight to columns, by Arrow's JSON reader."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from lakelog.core.actions.file_table import (
    DELETION_VECTOR,
    FILE_SCHEMA,
    JSON_NAMES,
    STRING_MAP,
    TOMBSTONE_SCHEMA,
)
from lakelog.core.arrays import integers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# A line must fit into a block; one that does not is parsed by itself.
_BLOCK_BYTES = 4 << 20
_LARGE_BYTES = 32 << 20

_FIELDS: Mapping[str, dict[str, pa.DataType]] = {
    "add": {
        "path": pa.string(),
        "size": pa.int64(),
        "modificationTime": pa.int64(),
        "dataChange": pa.bool_(),
        "stats": pa.string(),
        "deletionVector": DELETION_VECTOR,
        "baseRowId": pa.int64(),
        "defaultRowCommitVersion": pa.int64(),
        "clusteringProvider": pa.string(),
    },
    "remove": {
        "path": pa.string(),
        "deletionTimestamp": pa.int64(),
        "dataChange": pa.bool_(),
        "extendedFileMetadata": pa.bool_(),
        "size": pa.int64(),
        "stats": pa.string(),
        "deletionVector": DELETION_VECTOR,
        "baseRowId": pa.int64(),
        "defaultRowCommitVersion": pa.int64(),
    },
}
_MAPS = ("partitionValues", "tags")


def read_file_actions(kind: str, data: bytes | memoryview, count: int) -> pa.Table | None:
    """Read lines that each hold one action of a kind.

    Args:
        kind: `add` or `remove`.
        data: JSON texts, UTF-8; every line starts with the action's key.
        count: how many lines.

    Returns:
        Rows of `FILE_SCHEMA` or `TOMBSTONE_SCHEMA`, in order; `None` if anything at all is
        unusual, so that the caller parses line by line.
    """
    narrow, wide = _schemas(kind, data)
    for schema in (narrow, wide):
        parsed = None if schema is None else _parsed(data, schema)
        if parsed is not None:
            return _checked(kind, parsed, count)
    return None


def _parsed(data: bytes | memoryview, schema: pa.Schema) -> pa.StructArray | None:
    """The one column; `None` where a value or a field does not fit."""
    import pyarrow.json as pj

    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    # Commits are read by threads of their own; only a large one is worth Arrow's too.
    block = pj.ReadOptions(block_size=_BLOCK_BYTES, use_threads=len(data) > _LARGE_BYTES)
    try:
        return pj.read_json(
            pa.BufferReader(pa.py_buffer(data)), read_options=block, parse_options=options
        ).column(0)
    except pa.ArrowException:
        return None


def _checked(kind: str, parsed: pa.ChunkedArray[Any], count: int) -> pa.Table | None:
    if any(map(_has_ragged_tags, parsed.chunks)):
        return None
    target = FILE_SCHEMA if kind == "add" else TOMBSTONE_SCHEMA
    batches = [_batch(chunk, target) for chunk in parsed.chunks]
    rows = pa.Table.from_batches(batches, schema=target)
    # Two actions on one line would parse without complaint.
    if rows.num_rows != count or rows["path"].null_count:
        return None
    needed = ("size", "partition_values") if kind == "add" else ()
    if any(rows[name].null_count for name in needed):
        return None
    return None if any(map(_lacks_part, rows["deletion_vector"].chunks)) else rows


def _lacks_part(vectors: pa.StructArray) -> bool:
    """Whether a vector is there and one of its fields, which it needs, is not."""
    if vectors.null_count == len(vectors):
        return False
    return any(vectors.field(name).null_count > vectors.null_count for name in _OF_VECTOR)


_OF_VECTOR = ("storageType", "pathOrInlineDv", "sizeInBytes", "cardinality")


def _schemas(kind: str, data: bytes | memoryview) -> tuple[pa.Schema | None, pa.Schema | None]:
    """The columns to expect, with the maps' keys as the first line has them.

    First those that the first line has: mostly the others have the same, and each column more
    costs time. Then all of the protocol's.
    """
    head = bytes(data[:_BLOCK_BYTES])
    try:
        first = orjson.loads(head.partition(b"\n")[0])[kind]
        maps = {
            name: pa.struct([(key, pa.string()) for key in first[name]])
            for name in _MAPS
            if first.get(name) is not None
        }
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None, None
    known = _FIELDS[kind]
    here = {name: known[name] for name in known if name in first}
    return _of(kind, {**here, **maps}), _of(kind, {**known, **maps})


def _of(kind: str, fields: Mapping[str, pa.DataType]) -> pa.Schema:
    return pa.schema([(kind, pa.struct(fields.items()))])


def _has_ragged_tags(actions: pa.StructArray) -> bool:
    """Whether a row lacks a tag that the first one has: a struct can't tell that from null."""
    index = actions.type.get_field_index("tags")
    if index < 0:
        return False
    tags = actions.field(index)
    return any(tag.null_count > tags.null_count for tag in tags.flatten())


def _batch(actions: pa.StructArray, schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field in schema:
        index = actions.type.get_field_index(JSON_NAMES[field.name])
        if index < 0:
            absent = pa.nulls(len(actions), field.type)
            # Absent means `true` (PROTOCOL.md, "Add File and Remove File").
            columns.append(absent.fill_null(True) if field.name == "data_change" else absent)
        elif field.type == STRING_MAP:
            columns.append(map_from_struct(actions.field(index)))
        elif field.name == "data_change":
            flags = actions.field(index)
            columns.append(flags.fill_null(True) if flags.null_count else flags)
        else:
            columns.append(actions.field(index))
    return pa.record_batch(columns, schema=schema)


def map_from_struct(rows: pa.StructArray) -> pa.MapArray[Any, Any]:
    """Turn `{a: x, b: y}` into `[(a, x), (b, y)]`, row by row; null rows stay null."""
    names = [each.name for each in rows.type]
    count, width = len(rows), len(names)
    # To cast a text to a text would be nothing, but for the import of Arrow's functions.
    texts = [c if c.type == pa.string() else c.cast(pa.string()) for c in rows.flatten()]
    values = pa.concat_arrays(texts or [_NO_TEXT])
    if width > 1:
        # The children lie one after the other; a map wants row after row.
        order = (c * count + r for r in range(count) for c in range(width))
        values = values.take(integers(order))
    offsets = integers(range(0, (count + 1) * width, width) if width else [0] * (count + 1))
    mask = rows.is_null() if rows.null_count else None
    return pa.MapArray.from_arrays(offsets, _repeated(names, count), values, STRING_MAP, mask=mask)


def _repeated(names: Sequence[str], times: int) -> pa.StringArray:
    """`names`, so many times over."""
    texts = [name.encode() for name in names]
    ends = accumulate(map(len, texts * times), initial=0)
    buffers = [None, integers(ends).buffers()[1], pa.py_buffer(b"".join(texts) * times)]
    return pa.Array.from_buffers(pa.string(), len(texts) * times, buffers)


_NO_TEXT = pa.nulls(0, pa.string())
