"""Publishing one file of a checkpoint: written, read back, and only then given its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from lakelog.core.errors import CorruptCheckpointError
from lakelog.core.log.checkpoint_parts import COLUMNS_KEY, columns_mark
from lakelog.core.log.own_files import OwnFiles
from lakelog.core.portable.syncing import sync_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lakelog.core.state.snapshot import Snapshot

# Rows of a batch, and of a row group: 65 536 adds with statistics are some 20 MB.
ROWS = 1 << 16


class Published(NamedTuple):
    """A file that has its name."""

    path: str
    rows: int
    size: int
    """Bytes."""


def publish_parquet(
    snapshot: Snapshot,
    path: str,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    files: int,
) -> Published:
    """Write one Parquet file.

    Args:
        snapshot: the state that is written; has the store.
        path: the final one.
        schema: of the batches.
        batches: the rows.
        files: how many of them are live files.

    Raises:
        CorruptCheckpointError: the file reads back differently. Nothing was published, unless the
            store's overwrites are not atomic: then a torn file may have that name.
        OSError: the storage refused; nothing was published, with the same exception.
    """
    store = snapshot.store
    own = OwnFiles(store, snapshot.table)
    with own.staged(path) as (filesystem, draft):
        rows = _write(filesystem, draft, schema, batches)
        # Under the draft's name: the log may be cleaned by this checkpoint, so what is wrong with
        # it has to be seen while the commits are still there.
        size = _verify(snapshot, filesystem, draft, rows, files)
        _make_durable(filesystem, draft)
    place = store.filesystem_path(path)
    # Under the final name as well where the rename or the upload may have done something else.
    if not store.capabilities.atomic_overwrite or not _is_there(store.filesystem, place, size):
        # Two writers of one checkpoint may have torn each other's file, or replaced it; and a proxy
        # may have answered in the storage's place.
        _verify(snapshot, store.filesystem, place, rows, files, published=True)
    return Published(path, rows, size)


def publish_lines(snapshot: Snapshot, path: str, lines: list[str]) -> Published:
    """Write one file of JSON lines.

    Raises:
        CorruptCheckpointError: as `publish_parquet`.
        OSError: as `publish_parquet`.
    """
    data = "".join(f"{line}\n" for line in lines).encode()
    store = snapshot.store
    own = OwnFiles(store, snapshot.table)
    with own.staged(path) as (filesystem, draft):
        with filesystem.open_output_stream(draft) as sink:
            sink.write(data)
        with filesystem.open_input_file(draft) as source:
            if source.read() != data:
                raise _unlike(snapshot, draft, "it reads back differently")
        _make_durable(filesystem, draft)
    if store.read_bytes(path) != data:
        raise _unlike(snapshot, path, "it reads otherwise", published=True)
    return Published(path, len(lines), len(data))


def _is_there(filesystem: Any, place: str, size: int) -> bool:
    """Whether the storage says that it has the file; it may also have another writer's."""
    info = filesystem.get_file_info(place)
    return bool(info.is_file and info.size == size)


def _write(filesystem: Any, path: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write the batches, a row group each unless they are small; return the number of rows."""
    import pyarrow.parquet as pq

    total = 0
    with (
        filesystem.open_output_stream(path) as sink,
        pq.ParquetWriter(
            sink, schema, compression="snappy", store_schema=False, write_page_checksum=True
        ) as writer,
    ):
        writer.add_key_value_metadata({COLUMNS_KEY: columns_mark(schema)})
        for rows in _regrouped(batches, schema):
            writer.write_table(rows, row_group_size=2 * ROWS)
            total += rows.num_rows
    return total


def _regrouped(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Join small batches: a row group of one row costs a reader as much as a large one."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= ROWS:
            yield pa.Table.from_batches(held, schema=schema)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held, schema=schema)


def _verify(
    snapshot: Snapshot,
    filesystem: Any,
    path: str,
    rows: int,
    expected: int,
    *,
    published: bool = False,
) -> int:
    """Read back what was written; return its size in bytes."""
    import pyarrow.parquet as pq

    try:
        with filesystem.open_input_file(path) as source:
            size = int(source.size())
            metadata = pq.read_metadata(source)
            files = sum(
                metadata.row_group(i).num_rows - _nulls(metadata.row_group(i), "add.path")
                for i in range(metadata.num_row_groups)
            )
    except pa.ArrowInvalid as exc:
        raise _unlike(snapshot, path, f"it can't be read back ({exc})", published) from exc
    if metadata.num_rows != rows:
        why = f"it has {metadata.num_rows} rows instead of {rows}"
        raise _unlike(snapshot, path, why, published)
    if files != expected:
        raise _unlike(snapshot, path, f"it has {files} files instead of {expected}", published)
    return size


def _nulls(group: Any, name: str) -> int:
    for index in range(group.num_columns):
        column = group.column(index)
        if column.path_in_schema == name:
            return int(column.statistics.null_count)
    return int(group.num_rows)


def _unlike(
    snapshot: Snapshot, path: str, why: str, published: bool = False
) -> CorruptCheckpointError:
    where = (
        f"It is at {path}, where readers notice the damage and use the commits instead. Another "
        "writer may have written the file at the same time, if the store does not overwrite "
        "atomically, or a proxy has answered in the storage's place. Write the checkpoint again."
        if published
        else "It was not published; the table is as it was. Check the storage's disk and memory."
    )
    return CorruptCheckpointError(
        f"the checkpoint of version {snapshot.version} of {snapshot.table} was written, but {why}. "
        f"{where}",
        table=snapshot.table,
        path=path,
        version=snapshot.version,
    )


def _make_durable(filesystem: Any, path: str) -> None:
    """Flush the bytes to disk before the name: a crash must not leave a named hole."""
    if filesystem.type_name == "local":
        sync_file(path)
