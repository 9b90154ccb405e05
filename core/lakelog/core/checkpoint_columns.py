"""Columns of a checkpoint's Parquet files, by name and cast to ours.

A file by another writer may lack any of them, or hold more. Row groups are streamed, and those
without an action of the wanted kinds are passed over.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.checkpoint_batches import rows_at_once

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["COLUMNS_KEY", "cast", "columns_mark", "plain", "read_columns"]

# A field of each action that is never null.
_MARK = {
    "protocol": "minReaderVersion",
    "metaData": "id",
    "txn": "appId",
    "domainMetadata": "domain",
    "sidecar": "path",
    "checkpointMetadata": "version",
    "add": "path",
    "remove": "path",
}


COLUMNS_KEY = "lakelog.columns"
"""What a file of ours says in its footer of its columns: see `columns_mark`."""

_OF_FILES = frozenset({"add", "remove"})


def read_columns(
    file: Any,
    source: Any,
    columns: list[str],
    share: tuple[int, int] = (0, 1),
    *,
    room: int,
) -> Iterator[pa.RecordBatch]:
    """Stream these columns of a `ParquetFile`, as far as they are there.

    Args:
        file: open.
        source: the open file that it reads.
        columns: `kind` for a whole action, `kind.field` for one of its fields.
        share: which of how many equal shares of the row groups.
        room: bytes of memory for a batch, more or less.

    Raises:
        pyarrow.ArrowException: the file is damaged. Damage may also show as `OSError`, or as
            `UnicodeDecodeError`.
    """
    schema = file.schema_arrow
    notes = file.metadata.metadata or {}
    mark = notes.get(COLUMNS_KEY.encode())
    # Who writes a file's rows anew with pyarrow copies the note, and adds one that we never have.
    if mark is not None and b"ARROW:schema" not in notes and mark.decode() != columns_mark(schema):
        raise pa.ArrowInvalid("its columns are not those that it was written with")
    there = [path for path in columns if _has(schema, path)]
    # Statistics come as JSON, as a struct, or both: the struct only matters alone.
    if "add.stats" in there and "add.stats_parsed" in there:
        there.remove("add.stats_parsed")
    if not there:
        return
    number, shares = share
    count = file.metadata.num_row_groups
    groups = list(range(number * count // shares, (number + 1) * count // shares))
    at_once = rows_at_once(file, source, there, groups, room)
    groups = _holding(file, groups, {path.partition(".")[0] for path in there}, at_once)
    rows = 0
    for batch in file.iter_batches(batch_size=at_once, row_groups=groups, columns=there):
        rows += batch.num_rows
        yield batch
    expected = sum(file.metadata.row_group(index).num_rows for index in groups)
    if rows != expected:
        raise pa.ArrowInvalid(f"{rows} rows instead of {expected}")


def columns_mark(schema: pa.Schema) -> str:
    """A checksum of the names and types of all columns, fields of structs included.

    Parquet has checksums for pages and none for the footer. One wrong bit there, and a column goes
    by another name: to a reader that is a column which the writer left out, as many are.
    """
    return f"{zlib.crc32(' '.join(_names(schema, '')).encode()):08x}"


def _names(fields: Iterable[pa.Field], prefix: str) -> Iterator[str]:
    for each in fields:
        name = f"{prefix}{each.name}"
        # What is within maps and lists gets other names in Parquet.
        yield name if pa.types.is_nested(each.type) else f"{name} {each.type}"
        if pa.types.is_struct(each.type):
            yield from _names(each.type, f"{name}\0")


def _holding(file: Any, groups: list[int], kinds: set[str], at_once: int) -> list[int]:
    """The row groups that have actions of these kinds, by the first field of each.

    The field itself is read, and not its statistics in the footer: no checksum covers those, and
    asking pyarrow for damaged ones ends the process. Actions of files fill most groups, so for
    these it would be read twice.
    """
    marks = [f"{kind}.{_MARK[kind]}" for kind in kinds]
    # A kind whose first field the file lacks can't be judged.
    if kinds & _OF_FILES or not all(_has(file.schema_arrow, mark) for mark in marks):
        return groups
    found = []
    for group in groups:
        batches = file.iter_batches(batch_size=at_once, row_groups=[group], columns=marks)
        if any(map(_has_any, batches)):
            found.append(group)
    return found


def _has_any(batch: pa.RecordBatch) -> bool:
    return any(column.null_count < batch.num_rows for column in batch.columns)


def _has(schema: pa.Schema, path: str) -> bool:
    kind, _, name = path.partition(".")
    index = schema.get_field_index(kind)
    if index < 0:
        return False
    return not name or schema.field(index).type.get_field_index(name) >= 0


def cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast a column, structs and maps within it too; what a struct lacks is null.

    Raises:
        pyarrow.ArrowException: a value does not fit the type.
    """
    if array.type == target:
        return array
    if pa.types.is_struct(target):
        children = dict(zip((f.name for f in array.type), array.flatten(), strict=True))
        columns = [
            cast(children[f.name], f.type) if f.name in children else pa.nulls(len(array), f.type)
            for f in target
        ]
        return pa.StructArray.from_arrays(columns, fields=list(target), mask=array.is_null())
    if pa.types.is_map(target) and pa.types.is_map(array.type):
        try:
            return array.cast(target)
        except pa.ArrowException:
            # Arrow can't cast every map to every other; such files are rare enough for a loop.
            return pa.array(array.to_pylist(), target)
    return array.cast(target)


def plain(value: Any, of: pa.DataType) -> Any:
    """Arrow's Python value as that of JSON: maps as dicts, absent fields absent."""
    if value is None:
        return None
    if pa.types.is_map(of):
        return {key: plain(item, of.item_type) for key, item in value}
    if pa.types.is_struct(of):
        fields = ((each.name, each.type) for each in of)
        return {n: plain(value[n], kind) for n, kind in fields if value[n] is not None}
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return [plain(item, of.value_type) for item in value]
    return value
