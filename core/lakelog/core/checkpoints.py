"""Writing checkpoints: the whole state of a version in one Parquet file.

1. Write all rows to a draft that nobody reads (`LogStore.staged`), batch by batch.
2. Read the footer back: as many rows as the state has, and whole.
3. Publish the draft under its name, all at once. What an error closes half-way is a valid file
   that lacks rows, and never gets that name.
4. Point `_last_checkpoint` at it.

A crash after any step leaves a table that reads as before. Two writers of one checkpoint write
the same state; the later one wins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.checkpoint_schema import CHECKPOINT_SCHEMA, as_row, file_rows, tombstone_rows
from lakelog.core.compute import pc
from lakelog.core.errors import CorruptCheckpointError
from lakelog.core.last_checkpoint import LastCheckpoint, write_last_checkpoint
from lakelog.core.paths import checkpoint_name, log_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.core.clock import Clock
    from lakelog.core.snapshot import Snapshot

__all__ = ["write_checkpoint"]


# Rows of a batch, and of a row group: 65 536 adds with statistics are some 20 MB.
_ROWS = 1 << 16


def write_checkpoint(snapshot: Snapshot, clock: Clock) -> LastCheckpoint:
    """Write the classic checkpoint of a snapshot, and the hint that points at it.

    Args:
        snapshot: the state to write.
        clock: says which tombstones and transactions have expired.

    Returns:
        What the hint says.

    Raises:
        CorruptCheckpointError: what was written is not what was meant; nothing was published.
        OSError: the storage refused. The table is as it was, perhaps with a file more.
    """
    store, version = snapshot.store, snapshot.version
    final = log_path(snapshot.table, checkpoint_name(version))
    with store.staged(final) as (filesystem, draft):
        rows = _write(filesystem, draft, _batches(snapshot, clock))
        size = _verify(snapshot, filesystem, draft, rows)
        _make_durable(filesystem, draft)
    hint = LastCheckpoint(
        version=version, size=rows, size_in_bytes=size, num_of_add_files=snapshot.num_files
    )
    write_last_checkpoint(store, snapshot.table, hint)
    return hint


def _batches(snapshot: Snapshot, clock: Clock) -> Iterator[pa.RecordBatch]:
    now = clock.now_ms()
    yield _small_rows(snapshot)
    for batch in snapshot.file_table.to_batches(max_chunksize=_ROWS):
        yield file_rows(batch)
    oldest = now - snapshot.properties.deleted_file_retention_ms
    # A tombstone without a time counts as long expired.
    fresh = pc.greater(snapshot.tombstones["deletion_timestamp"].fill_null(0), oldest)
    for batch in snapshot.tombstones.filter(fresh).to_batches(max_chunksize=_ROWS):
        yield tombstone_rows(batch)


def _small_rows(snapshot: Snapshot) -> pa.RecordBatch:
    kept = snapshot.transactions
    rows = [
        as_row(snapshot.protocol),
        as_row(snapshot.metadata),
        *(as_row(txn) for app, txn in snapshot.state.transactions.items() if app in kept),
        *(as_row(domain) for domain in snapshot.domain_metadata.values()),
    ]
    return pa.RecordBatch.from_pylist(rows, schema=CHECKPOINT_SCHEMA)


def _write(filesystem: Any, path: str, batches: Iterator[pa.RecordBatch]) -> int:
    """Write the batches, a row group each unless they are small; give the number of rows."""
    import pyarrow.parquet as pq

    total = 0
    with (
        filesystem.open_output_stream(path) as sink,
        pq.ParquetWriter(
            sink,
            CHECKPOINT_SCHEMA,
            compression="snappy",
            store_schema=False,
            write_page_checksum=True,
        ) as writer,
    ):
        for rows in _regrouped(batches):
            writer.write_table(rows, row_group_size=2 * _ROWS)
            total += rows.num_rows
    return total


def _regrouped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join small batches: a row group of one row costs a reader as much as a large one."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _ROWS:
            yield pa.Table.from_batches(held, schema=CHECKPOINT_SCHEMA)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held, schema=CHECKPOINT_SCHEMA)


def _verify(snapshot: Snapshot, filesystem: Any, path: str, rows: int) -> int:
    """Read back what was written; give its size in bytes."""
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
        raise _unlike(snapshot, path, f"it can't be read back ({exc})") from exc
    if metadata.num_rows != rows:
        raise _unlike(snapshot, path, f"it has {metadata.num_rows} rows instead of {rows}")
    if files != snapshot.num_files:
        raise _unlike(snapshot, path, f"it has {files} files instead of {snapshot.num_files}")
    return size


def _nulls(group: Any, name: str) -> int:
    for index in range(group.num_columns):
        column = group.column(index)
        if column.path_in_schema == name:
            return int(column.statistics.null_count)
    return int(group.num_rows)


def _unlike(snapshot: Snapshot, path: str, why: str) -> CorruptCheckpointError:
    return CorruptCheckpointError(
        f"the checkpoint of version {snapshot.version} of {snapshot.table} was written, but {why}. "
        "It was not published; the table is as it was. Check the storage's disk and memory.",
        table=snapshot.table,
        path=path,
        version=snapshot.version,
    )


def _make_durable(filesystem: Any, path: str) -> None:
    """Bring the bytes to the disk before the name: a crash must not leave a named hole."""
    if filesystem.type_name != "local":
        return
    import os

    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
