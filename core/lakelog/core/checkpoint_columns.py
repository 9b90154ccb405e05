"""Columns of a checkpoint's Parquet files, by name and cast to ours.

A file by another writer may lack any of them, or hold more. Row groups are streamed, and those
without an action of the wanted kinds are passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["cast", "plain", "read_columns"]

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


def read_columns(
    file: Any, columns: list[str], share: tuple[int, int] = (0, 1)
) -> Iterator[pa.RecordBatch]:
    """Stream these columns of a `ParquetFile`, as far as they are there.

    Args:
        file: open.
        columns: `kind` for a whole action, `kind.field` for one of its fields.
        share: which of how many equal shares of the row groups.

    Raises:
        pyarrow.ArrowException: the file is damaged. Damage may also show as `OSError`, or as
            `UnicodeDecodeError`.
    """
    schema = file.schema_arrow
    there = [path for path in columns if _has(schema, path)]
    # Statistics come as JSON, as a struct, or both: the struct only matters alone.
    if "add.stats" in there and "add.stats_parsed" in there:
        there.remove("add.stats_parsed")
    if not there:
        return
    number, shares = share
    all_groups = file.metadata.num_row_groups
    groups = [
        index
        for index in range(number * all_groups // shares, (number + 1) * all_groups // shares)
        if _may_hold(file.metadata.row_group(index), {path.partition(".")[0] for path in there})
    ]
    rows = 0
    for batch in file.iter_batches(batch_size=1 << 17, row_groups=groups, columns=there):
        rows += batch.num_rows
        yield batch
    expected = sum(file.metadata.row_group(index).num_rows for index in groups)
    if rows != expected:
        raise pa.ArrowInvalid(f"{rows} rows instead of {expected}")


def _may_hold(group: Any, kinds: set[str]) -> bool:
    """Whether a row group has actions of these kinds, by the statistics of their first field."""
    marks = {f"{kind}.{_MARK[kind]}" for kind in kinds}
    for index in range(group.num_columns):
        column = group.column(index)
        if column.path_in_schema in marks:
            marks.remove(column.path_in_schema)
            found = column.statistics
            if found is None or not found.has_null_count or found.null_count < group.num_rows:
                return True
    # A kind whose first field the file lacks can't be judged.
    return bool(marks)


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
