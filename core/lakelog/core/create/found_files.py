"""Finding the Parquet files of a directory that becomes a table, their partitions and schema.

Partition values are read from Hive folders (`day=2024-01-01/…`) and from nowhere else. The schema
is the union of what the files say: Spark's own note in the footer where Spark wrote the file, else
the Parquet schema itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.arrow.partition_casts import cast_text
from lakelog.core.arrow.partitions import parse_value, serialize_value
from lakelog.core.arrow.time_zones import UndecidedTimeError
from lakelog.core.errors import DeltaAnalysisError, SchemaMismatchError
from lakelog.core.portable.made_files import refuse_link
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.schema.parts import paired_parts
from lakelog.core.schema.rules import as_nullable
from lakelog.core.schema.schema_evolution import merge_schemas
from lakelog.core.schema.upcasts import shares_int32
from lakelog.logstores.threads import REQUESTS, in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyarrow.fs import FileSystem

    from lakelog.core.schema import DataType

_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_STEP = 1000


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """A file that becomes part of the table."""

    path: str
    """Relative to the table's folder, not percent-encoded."""
    partition_values: dict[str, str | None]


def find_files(
    filesystem: FileSystem, root: str, partition_schema: StructType, *, session_tz: str = "UTC"
) -> list[ParquetFile]:
    """All files below a folder, hidden ones left out.

    Hidden are files and folders whose name begins with `_` or `.`, except folders of a partition
    column with such a name.

    Args:
        filesystem: where the files are.
        root: the folder, as the file system spells it.
        partition_schema: the columns that the folders must have, in this order.
        session_tz: the zone of timestamps in the names of folders.

    Raises:
        DeltaAnalysisError: no file, other folders, or a value that does not fit its column; names
            the file.
    """
    from pyarrow.fs import FileSelector

    selector = FileSelector(root, recursive=True, allow_not_found=True)
    columns = {name.lower() for name in partition_schema.names}
    paths = sorted(
        info.path[len(root) :].lstrip("/")
        for info in filesystem.get_file_info(selector)
        if info.is_file
    )
    found = [
        ParquetFile(path, _partition_values(path, partition_schema, session_tz))
        for path in paths
        if not _is_hidden(path, columns)
    ]
    if filesystem.type_name == "local":
        _refuse_links(root, found)
    if not found:
        raise DeltaAnalysisError(
            f"[DELTA_EMPTY_DIRECTORY] No file found in the directory: {root}.", path=root
        )
    return found


def _refuse_links(root: str, files: Iterable[ParquetFile]) -> None:
    """Readers of a table refuse files of its own that are elsewhere, so it must not begin so."""
    for folder in {file.path.rpartition("/")[0] for file in files}:
        refuse_link(root, folder)
    for file in files:
        place = f"{root}/{file.path}"
        if os.path.islink(place):  # noqa: PTH114  # of each file of a table
            raise DeltaAnalysisError(
                f"{place} is a link, and readers of a Delta table refuse files that are not in its "
                "folder. Put the file itself there, or move the link away, and convert again.",
                path=place,
            )


def _is_hidden(path: str, columns: set[str]) -> bool:
    *folders, name = path.split("/")
    if name.startswith(("_", ".")):
        return True
    return any(
        folder.startswith(("_", ".")) and _unescape(folder.partition("=")[0]).lower() not in columns
        for folder in folders
    )


def _partition_values(path: str, schema: StructType, session_tz: str) -> dict[str, str | None]:
    pairs = [folder.partition("=") for folder in path.split("/")[:-1] if "=" in folder]
    found = [(_unescape(name), _unescape(text)) for name, _, text in pairs]
    names = [name for name, _ in found]
    if len(found) != len(schema):
        raise DeltaAnalysisError(
            f"[DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME] Expecting {len(schema)} "
            f"partition column(s): {schema.names}, but found {len(found)} partition column(s): "
            f"{names} from parsing the file name: {path}. Pass a partition_schema that matches the "
            "folders.",
            path=path,
        )
    values: dict[str, str | None] = {}
    for field, (name, text) in zip(schema, found, strict=True):
        if name.lower() != field.name.lower():
            raise DeltaAnalysisError(
                f"[DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME] Expecting partition column "
                f"{field.name}, but found partition column {name} from parsing the file name: "
                f"{path}. Pass partition_schema in the order of the folders.",
                path=path,
            )
        values[field.name] = _value(text, field, path, session_tz)
    return values


def _value(text: str, field: StructField, path: str, session_tz: str) -> str | None:
    """The text as the log has it: `01` of an integer is `1`."""
    if text in ("", _NULL_FOLDER):
        return None
    try:
        try:
            value = parse_value(text, field.data_type, session_tz)
        except UndecidedTimeError:  # which the engine is asked for
            micros = cast_text(text, field.data_type, session_tz)
            value = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
        return serialize_value(value, field.data_type)
    except (ValueError, ArithmeticError, TypeError) as exc:
        raise DeltaAnalysisError(
            f"[DELTA_FAILED_CAST_PARTITION_VALUE] Failed to cast partition value {text!r} of the "
            f"column {field.name} to {field.data_type} in the file {path}: {exc}",
            path=path,
        ) from exc


def _unescape(text: str) -> str:
    """Undo Hive's escaping, which knows ASCII only: `%C3%BC` is two characters there, not `ü`."""
    return unquote(text, encoding="latin-1") if "%" in text else text


def merged_schema(
    filesystem: FileSystem,
    root: str,
    files: Sequence[ParquetFile],
    progress: Callable[[int], None],
) -> tuple[StructType, list[ParquetFile]]:
    """What the rows of all files together look like; everything may be null.

    Args:
        filesystem: where the files are.
        root: their folder, as the file system spells it.
        files: relative to `root`.
        progress: called from time to time with the number of files read.

    Returns:
        The schema, and those of the files that have rows.

    Raises:
        DeltaAnalysisError: a file that is not Parquet, or has types that Delta does not have.
        SchemaMismatchError: files whose types have nothing in common; names one of them.
        OSError: the storage can't be read.
    """
    merged, known, filled = StructType(), set[str](), []
    for file, schema, rows in _footers(filesystem, root, files, progress):
        if rows:
            filled.append(file)
        text = schema.to_json()
        if text not in known:
            known.add(text)
            merged = _merge(merged, schema, file.path)
    return merged, filled


def _footers(
    filesystem: FileSystem,
    root: str,
    files: Sequence[ParquetFile],
    progress: Callable[[int], None],
) -> Iterator[tuple[ParquetFile, StructType, int]]:
    read = partial(_footer, filesystem, root)
    footers = in_order(read, files, REQUESTS, "lakelog-footers")
    for done, (file, footer) in enumerate(zip(files, footers, strict=True), 1):
        yield file, *footer
        if done % _STEP == 0 or done == len(files):
            progress(done)


def _footer(filesystem: FileSystem, root: str, given: ParquetFile) -> tuple[StructType, int]:
    import pyarrow.parquet as pq

    path = f"{root}/{given.path}"
    try:
        with filesystem.open_input_file(path) as source, pq.ParquetFile(source) as file:
            return _schema(file, path), file.metadata.num_rows
    except pa.ArrowInvalid as exc:
        raise DeltaAnalysisError(
            f"[FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER] {path} is not a Parquet file: {exc}. Only "
            "a folder that contains nothing but Parquet files can be converted; move this file "
            "elsewhere.",
            path=path,
        ) from exc


def _schema(file: Any, path: str) -> StructType:
    _refuse_unreadable(file.schema, path)
    text = (file.metadata.metadata or {}).get(_SPARK_SCHEMA)
    if text is not None:
        return as_nullable(StructType.from_json(text))
    columns = (file.schema.column(index) for index in range(len(file.schema)))
    ancient = {each.path.partition(".")[0] for each in columns if each.physical_type == "INT96"}
    fields = [
        field.with_type(_with_zone(field.type)) if field.name in ancient else field
        for field in file.schema_arrow
    ]
    try:
        return as_nullable(from_arrow_schema(pa.schema(fields)))
    except DeltaAnalysisError as exc:
        raise DeltaAnalysisError(f"{path}: {exc}", path=path) from exc


def _refuse_unreadable(schema: Any, path: str) -> None:
    """Refuse types that Parquet has and readers of Delta tables don't support.

    The columns themselves are checked: Spark's note in the footer may survive a rewrite by another
    program and no longer describe them.
    """
    for index in range(len(schema)):
        column = schema.column(index)
        for kind, marks, remedy in _UNREADABLE:
            if all(mark in str(column.logical_type) for mark in marks):
                raise DeltaAnalysisError(
                    f"{path}: the column {column.path} holds {kind}, which readers of Delta tables "
                    f"can't read. Rewrite the file {remedy}; nothing was converted.",
                    path=path,
                    column=column.path,
                )


_COERCED = 'pyarrow.parquet.write_table(…, coerce_timestamps="us"'
_UNREADABLE = (
    (
        "nanosecond timestamps",
        ("Timestamp(", "timeUnit=nanoseconds"),
        f"with {_COERCED}), or with allow_truncated_timestamps=True as well, which drops what is "
        "smaller than a microsecond",
    ),
    ("half floats", ("Float16",), "with the column as float32, which holds every half float"),
)
"""The name of the type, the words in the logical type that mark it, and how to rewrite the file."""


def _with_zone(kind: pa.DataType) -> pa.DataType:
    """INT96 has no zone; by convention it is UTC."""
    types = pa.types
    if types.is_timestamp(kind):
        return pa.timestamp("us", "UTC")
    if types.is_struct(kind):
        return pa.struct([each.with_type(_with_zone(each.type)) for each in kind])
    if types.is_map(kind):
        return pa.map_(_with_zone(kind.key_type), _with_zone(kind.item_type))
    if types.is_list(kind):
        return pa.list_(_with_zone(kind.value_type))
    return kind


def _merge(merged: StructType, schema: StructType, path: str) -> StructType:
    message = f"[DELTA_FAILED_MERGE_SCHEMA_FILE] Failed to merge schema of file {path}: {schema}"
    try:
        grown = merge_schemas(merged, schema)
    except SchemaMismatchError as exc:
        raise SchemaMismatchError(f"{message}. {exc}", path=path, **exc.fields) from exc
    if not _stored_alike(grown, schema):
        raise SchemaMismatchError(
            f"{message} into {merged}. All files of a table must store a column the same way: "
            "rewrite this file with the types of the others.",
            path=path,
        )
    return grown


def _stored_alike(table: DataType, file: DataType) -> bool:
    """Whether a reader of the table's type can read the file's: some integers are stored alike."""
    if isinstance(table, StructType) and isinstance(file, StructType):
        pairs = ((table.get(each.name), each) for each in file)
        return all(t is None or _stored_alike(t.data_type, f.data_type) for t, f in pairs)
    if parts := paired_parts(table, file):
        return all(_stored_alike(t, f) for _, t, f in parts)
    return table == file or file == PrimitiveType("void") or shares_int32(table, file)


def with_partition_columns(data: StructType, partitions: StructType) -> StructType:
    """The table's schema: partition columns go last, or replace the columns of their names."""
    replaced = [partitions.get(each.name) or each for each in data]
    added = [each for each in partitions if data.get(each.name) is None]
    return StructType((*replaced, *added))
