"""The Parquet files of a checkpoint: file actions out of one of them, as rows.

What reads them can travel: it holds a file system and no store, so that the parts of a large
checkpoint can be read by other processes (`replayer.py`).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.actions.file_table import JSON_NAMES
from lakelog.core.arrays import array_of
from lakelog.core.compute import without_nulls
from lakelog.core.errors import CorruptCheckpointError
from lakelog.core.log.budget import AS_OBJECTS, LogBudget
from lakelog.core.log.checkpoint_batches import rows_at_once
from lakelog.core.log.parsed_stats import stats_from_struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow.parquet as pq
    from pyarrow.fs import FileSystem

_TAIL = 8
"""Bytes at the end of a Parquet file: the length of its footer, and a magic number."""

_LEAST_ROW = 8
"""Bytes that a row of a checkpoint takes in memory, whatever it says."""

_RUN = 16 << 20
"""Bytes of row groups, before compression, that are read as one stream."""

# Of the limit, for one of the batches that several threads read at once.
_SHARE = 32


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a checkpoint."""

    path: str
    place: str
    """The same as its file system writes it."""
    size: int | None = None
    """The bytes that a sidecar must have; `None` where nothing promises any."""
    data: bytes | None = None
    """All of it, where it was fetched as a whole."""


@dataclass(frozen=True, slots=True)
class PartReader:
    """Reads the parts of one checkpoint."""

    filesystem: FileSystem | None
    """`None` where all parts were fetched as a whole."""
    table: str
    version: int
    top: str
    """The checkpoint's first file, which errors name."""
    limit: int
    """Bytes of memory that a checkpoint may take."""

    def rows(
        self, part: Part, kind: str, schema: pa.Schema, share: tuple[int, int] = (0, 1)
    ) -> Iterator[pa.RecordBatch]:
        """The file actions of a kind.

        Args:
            part: which file.
            kind: `add` or `remove`.
            schema: `FILE_SCHEMA` or `TOMBSTONE_SCHEMA`.
            share: which row groups, as `read_columns` has it.

        Raises:
            CorruptCheckpointError: the file can't be read, or an action has no path, or an added
                file no size.
        """
        wanted = [f"{kind}.{JSON_NAMES[name]}" for name in schema.names]
        if kind == "add":
            wanted.append("add.stats_parsed")
        for batch in self.columns(part, wanted, share):
            if kind not in batch.schema.names:
                continue
            column = batch.column(kind)
            rows = without_nulls(column)
            if len(rows):
                found = self._conform(rows, schema)
                for name in ("path", "size") if kind == "add" else ("path",):
                    if found.column(name).null_count:
                        raise self.corrupt(f"one of its {kind} actions has no {name}")
                yield found

    def columns(
        self, part: Part, columns: list[str], share: tuple[int, int] = (0, 1)
    ) -> Iterator[pa.RecordBatch]:
        """Stream these columns of one file, as far as they are there.

        Raises:
            CorruptCheckpointError: the file can't be read.
        """
        import pyarrow.parquet as pq

        path = part.path
        try:
            if part.data is not None:
                source = pa.BufferReader(part.data)
            else:
                assert self.filesystem is not None
                source = self.filesystem.open_input_file(part.place)
            self._check_footer(source, path)
            # Without checksums a flipped bit in a page can look like another path.
            with source, pq.ParquetFile(source, page_checksum_verification=True) as file:
                if part.size is not None and source.size() != part.size:
                    raise self.corrupt(
                        f"its sidecar {path} has {source.size()} bytes instead of {part.size}"
                    )
                self._check_groups(file, path)
                yield from read_columns(file, source, columns, share, room=self.limit // _SHARE)
        # A truncated page shows as ArrowInvalid, as OSError, or as text that is not UTF-8.
        except (pa.ArrowException, OSError, UnicodeDecodeError) as exc:
            raise self.corrupt(f"reading {path} failed ({exc})") from exc

    def _check_footer(self, source: Any, path: str) -> None:
        """Refuse a footer that would take more memory than there is, before it is parsed."""
        size = source.size()
        if size * AS_OBJECTS <= self.limit or size < _TAIL:
            return  # no footer is longer than its file
        length = int.from_bytes(source.read_at(_TAIL, size - _TAIL)[:4], "little")
        if length * AS_OBJECTS > self.limit:
            raise LogBudget(self.limit).refusal(path, length * AS_OBJECTS)

    def _check_groups(self, file: pq.ParquetFile, path: str) -> None:
        """Refuse a row group that can't be decoded: parts of it are, as a whole."""
        about = file.metadata
        # What a row says is counted when it is decoded; that it is there, is counted here.
        if about.num_rows * _LEAST_ROW > self.limit:
            raise LogBudget(self.limit).refusal(path, about.num_rows * _LEAST_ROW)
        for number in range(about.num_row_groups):
            size = about.row_group(number).total_byte_size
            if size > self.limit:
                raise LogBudget(self.limit).refusal(path, size)

    def corrupt(self, why: str) -> CorruptCheckpointError:
        """The error that says what is wrong with the checkpoint."""
        return corrupt_checkpoint(self.table, self.version, self.top, why)

    def _conform(self, rows: pa.StructArray, schema: pa.Schema) -> pa.RecordBatch:
        children = dict(zip((each.name for each in rows.type), rows.flatten(), strict=True))
        columns = []
        try:
            for each in schema:
                name = JSON_NAMES[each.name]
                found = children.get(name)
                if found is not None:
                    columns.append(cast(found, each.type))
                elif name == "stats" and "stats_parsed" in children:
                    columns.append(stats_from_struct(children["stats_parsed"]))
                else:
                    columns.append(pa.nulls(len(rows), each.type))
        except pa.ArrowException as exc:
            raise self.corrupt(f"a column has an unexpected type ({exc})") from exc
        return pa.record_batch(columns, schema=schema)


def corrupt_checkpoint(table: str, version: int, path: str, why: str) -> CorruptCheckpointError:
    """The error about a checkpoint, whose first file is `path`."""
    return CorruptCheckpointError(
        f"the checkpoint {path} (version {version}) can't be used: {why}. "
        "Move it away: an older checkpoint, or the commits alone, give the same table as "
        "long as they are there.",
        table=table,
        path=path,
        version=version,
    )


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
    # A tool that rewrites the file with pyarrow copies the note, and adds one that we never write.
    if mark is not None and b"ARROW:schema" not in notes:
        is_whole = mark.decode() == columns_mark(schema) and all(map(_is_written, schema))
        if not is_whole:
            raise pa.ArrowInvalid("its columns are not the ones it was written with")
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
    for run in _runs(file, groups):
        for batch in file.iter_batches(batch_size=at_once, row_groups=run, columns=there):
            rows += batch.num_rows
            yield batch
        if len(run) < len(groups):
            # After a checkpoint of a million files the pool would keep 30 MB of unused memory.
            pa.default_memory_pool().release_unused()
    expected = sum(file.metadata.row_group(index).num_rows for index in groups)
    if rows != expected:
        raise pa.ArrowInvalid(f"{rows} rows instead of {expected}")


def _runs(file: Any, groups: list[int]) -> Iterator[list[int]]:
    """Row groups that follow each other, as many as fit into `_RUN`; a larger one is alone.

    One stream over all of them holds 80 MB more for a million files, and saves no time.
    """
    run: list[int] = []
    size = 0
    for group in groups:
        length = file.metadata.row_group(group).total_byte_size
        if run and size + length > _RUN:
            yield run
            run, size = [], 0
        run.append(group)
        size += length
    if run:
        yield run


def columns_mark(schema: pa.Schema) -> str:
    """A checksum of the names and types of all columns, fields of structs included.

    Parquet has checksums for pages but none for the footer. One wrong bit there gives a column
    another name, and to a reader that looks like a column the writer left out, as many are.
    """
    return f"{zlib.crc32(' '.join(_names(schema, '')).encode()):08x}"


def _is_written(field: pa.Field[Any]) -> bool:
    """Whether we write such a field: it may be null, and so may what is in it but a map's keys.

    With a wrong bit there, pyarrow before 19 reads other values from the column.
    """
    of: Any = field.type
    if pa.types.is_map(of):
        inner = [of.item_field]
    elif pa.types.is_list(of):
        inner = [of.value_field]
    else:
        inner = list(of) if pa.types.is_struct(of) else []
    return field.nullable and all(map(_is_written, inner))


def _names(fields: Iterable[pa.Field[Any]], prefix: str) -> Iterator[str]:
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
    inside = schema.field(index).type
    return not name or bool(pa.types.is_struct(inside) and inside.get_field_index(name) >= 0)


def cast(array: pa.Array[Any], target: pa.DataType) -> pa.Array[Any]:
    """Cast a column, structs and maps within it too; what a struct lacks is null.

    Raises:
        pyarrow.ArrowException: a value does not fit the type.
    """
    if array.type == target:
        return array
    if pa.types.is_struct(target) and pa.types.is_struct(array.type):
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
            return array_of(array.to_pylist(), target)
    return array.cast(target)


def plain(value: Any, of: pa.DataType) -> Any:
    """Arrow's Python value as that of JSON: maps as dicts, absent fields absent.

    Raises:
        UnicodeDecodeError: bytes that are no text.
    """
    if value is None:
        return None
    if pa.types.is_map(of):
        return {plain(key, of.key_type): plain(item, of.item_type) for key, item in value}
    if pa.types.is_struct(of):
        fields = ((each.name, each.type) for each in of)
        return {n: plain(value[n], kind) for n, kind in fields if value[n] is not None}
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return [plain(item, of.value_type) for item in value]
    # Some writers don't note that their texts are text; nothing else of a small action is bytes.
    return value.decode() if isinstance(value, bytes) else value
