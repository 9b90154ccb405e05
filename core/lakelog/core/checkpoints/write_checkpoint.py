"""Writing checkpoints: the whole state of a version, in one file or in several.

1. Write all rows to drafts that no reader looks at (`LogStore.staged`), batch by batch.
2. Read the footers back: the files must be whole and have as many rows as the state.
3. Publish each draft under its name, all at once. A draft that an error closes half-way is a valid
   file that lacks rows, and never gets that name. What makes a checkpoint complete comes last: the
   last part, or the top level that names the sidecars. Where the store does not overwrite
   atomically, each is read once more under its name.
4. Point `_last_checkpoint` at it.

A crash after any step leaves a table that reads as before. Two writers of one classic checkpoint
write the same state; the later one wins. Parts of the two may mix, so the files are spread over
parts by their names: part 2 of one writer holds what part 2 of the other holds.

| form | when |
|---|---|
| V2 with sidecars | `delta.checkpointPolicy=v2`, and the protocol has `v2Checkpoint` |
| classic in parts | `spark.databricks.delta.checkpoint.partSize` is set, and exceeded |
| classic in one file | otherwise |
"""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from lakelog.core import keys
from lakelog.core.actions import CheckpointMetadata, SidecarFile
from lakelog.core.arrays import batch_of
from lakelog.core.checkpoints.checkpoint_files import (
    ROWS,
    Published,
    publish_lines,
    publish_parquet,
)
from lakelog.core.checkpoints.checkpoint_rows import (
    Layout,
    add_rows,
    as_row,
    layout_of,
    tombstone_rows,
)
from lakelog.core.compute import pc
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.log.file_names import SIDECAR_FOLDER, checkpoint_name, log_path, part_name
from lakelog.core.log.last_checkpoint import LastCheckpoint, write_last_checkpoint
from lakelog.core.log.own_files import OwnFiles
from lakelog.core.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lakelog.core.actions import DomainMetadata, Metadata, Protocol, SetTransaction
    from lakelog.core.clock import Clock
    from lakelog.core.log.checkpoint_reader import TopLevel
    from lakelog.core.progress import ProgressCallback
    from lakelog.core.state.snapshot import Snapshot

logger: logging.Logger = logging.getLogger("lakelog")
_SIDECAR_ACTIONS = 50_000


def write_checkpoint(
    snapshot: Snapshot, clock: Clock, report: ProgressCallback | None = None
) -> LastCheckpoint:
    """Write the checkpoint of a snapshot, and the hint that points at it.

    Args:
        snapshot: the state to write.
        clock: decides which tombstones and transactions have expired.
        report: called now and then with how many files, live and removed, are written.

    Returns:
        What the hint says.

    Raises:
        CorruptCheckpointError: a file reads back differently; the checkpoint was not published.
        DeltaAnalysisError: `checkpoint.partSize` or `checkpointV2.topLevelFileFormat` is wrong.
        OSError: the storage refused. The table is unchanged, perhaps with an extra file.
    """
    size = snapshot.conf.read(keys.PART_SIZE)
    if size is not None and size < 1:
        raise DeltaAnalysisError(
            f"the conf spark.databricks.delta.checkpoint.partSize must be at least 1, not {size}"
        )
    if _is_v2(snapshot):
        hint = _write_v2(snapshot, clock, size or _SIDECAR_ACTIONS, report)
    else:
        hint = _write_classic(snapshot, clock, size, report)
    # Last of all: a hint at a checkpoint that is not whole would send each reader there in vain.
    # Without it they list a little more.
    write_last_checkpoint(snapshot.store, snapshot.table, hint)
    logger.info(
        "Checkpoint of version %d written to %s: %d actions, %d files of the table, %d bytes",
        hint.version,
        log_path(snapshot.table),
        hint.size,
        hint.num_of_add_files or 0,
        hint.size_in_bytes or 0,
    )
    return hint


def _is_v2(snapshot: Snapshot) -> bool:
    wanted = snapshot.properties.get("delta.checkpointPolicy") == "v2"
    return wanted and "v2Checkpoint" in (snapshot.protocol.writer_features or ())


def _write_classic(
    snapshot: Snapshot, clock: Clock, size: int | None, report: ProgressCallback | None
) -> LastCheckpoint:
    layout = layout_of(snapshot)
    live, dead = snapshot.file_table, _fresh_tombstones(snapshot, clock)
    written = _Written(live.num_rows + dead.num_rows, report)
    parts = 1 if size is None else max(1, -(-(live.num_rows + dead.num_rows) // size))
    # Two writers of one version have their files in different orders, and their parts may mix:
    # sorted, the parts of both hold the same.
    if parts > 1:
        live, dead = _by_name(live), _by_name(dead)
    published = []
    for part in range(parts):
        some, gone = _share(live, part, parts), _share(dead, part, parts)
        name = checkpoint_name(snapshot.version)
        if parts > 1:
            name = part_name(snapshot.version, part + 1, parts)
        batches = written.watched(_batches(some, gone, layout))
        if part == 0:
            batches = _with_first(_small_batch(snapshot, layout), batches)
        path = log_path(snapshot.table, name)
        published.append(
            publish_parquet(snapshot, path, layout.schema, batches, files=some.num_rows)
        )
    return LastCheckpoint(
        version=snapshot.version,
        size=sum(each.rows for each in published),
        parts=parts if parts > 1 else None,
        size_in_bytes=sum(each.size for each in published),
        num_of_add_files=snapshot.num_files,
    )


def _write_v2(
    snapshot: Snapshot, clock: Clock, size: int, report: ProgressCallback | None
) -> LastCheckpoint:
    form = snapshot.conf.read(keys.TOP_FORMAT).lower()
    if form not in ("json", "parquet"):
        raise DeltaAnalysisError(
            "the conf spark.databricks.delta.checkpointV2.topLevelFileFormat must be json or "
            f"parquet, but it is {form!r}"
        )
    # Before the top level, which makes them a checkpoint: a crash in between leaves sidecars that
    # nothing names.
    sidecars = _write_sidecars(snapshot, clock, size, report)
    rows, bytes_ = sum(each.rows for each in sidecars), sum(each.size for each in sidecars)
    tags = {
        "sidecarNumActions": str(rows),
        "sidecarSizeInBytes": str(bytes_),
        "numOfAddFiles": str(snapshot.num_files),
    }
    actions = [
        CheckpointMetadata(version=snapshot.version, tags=tags),
        *(_sidecar_action(snapshot, each) for each in sidecars),
        *_small_actions(snapshot),
    ]
    # A name of its own: two writers of one V2 checkpoint never write to the same file, and each top
    # level names only its own sidecars.
    path = log_path(snapshot.table, f"{snapshot.version:020d}.checkpoint.{uuid.uuid4()}.{form}")
    if form == "json":
        lines = [orjson.dumps({each.kind: each.to_json_value()}).decode() for each in actions]
        top = publish_lines(snapshot, path, lines)
    else:
        schema = layout_of(snapshot).top_level()
        batch = batch_of([as_row(a, schema) for a in actions], schema)
        top = publish_parquet(snapshot, path, schema, [batch], files=0)
    return LastCheckpoint(
        version=snapshot.version,
        size=top.rows + rows,
        size_in_bytes=top.size + bytes_,
        num_of_add_files=snapshot.num_files,
        v2={
            "path": path.rpartition("/")[2],
            "sizeInBytes": top.size,
            "modificationTime": _modified(snapshot, top),
        },
    )


def write_under_classic_name(snapshot: Snapshot, top: TopLevel) -> None:
    """Write the top level of a V2 checkpoint once more, in Parquet and under a classic name.

    A client that is older than V2 checkpoints finds it, learns from its protocol why it can't
    read the table, and says that instead of complaining about missing commits.

    Args:
        snapshot: of the checkpoint's version.
        top: names the sidecars.

    Raises:
        CorruptCheckpointError: the file reads back differently; nothing was published.
        OSError: the storage refused; nothing was published.
    """
    assert top.metadata is not None  # the reader has checked
    schema = layout_of(snapshot).top_level()
    actions = [top.metadata, *top.sidecars, *_small_actions(snapshot)]
    batch = batch_of([as_row(a, schema) for a in actions], schema)
    path = log_path(snapshot.table, checkpoint_name(snapshot.version))
    publish_parquet(snapshot, path, schema, [batch], files=0)


def _write_sidecars(
    snapshot: Snapshot, clock: Clock, size: int, report: ProgressCallback | None
) -> list[Published]:
    layout = layout_of(snapshot).only_files()
    live, dead = snapshot.file_table, _fresh_tombstones(snapshot, clock)
    written = _Written(live.num_rows + dead.num_rows, report)
    # An empty table has one empty sidecar, as in Spark.
    parts = max(1, -(-(live.num_rows + dead.num_rows) // size))
    own = OwnFiles(snapshot.store, snapshot.table)
    own.create_folder(log_path(snapshot.table, SIDECAR_FOLDER))
    published = []
    for part in range(parts):
        some, gone = _share(live, part, parts), _share(dead, part, parts)
        stem = part_name(snapshot.version, part + 1, parts).removesuffix(".parquet")
        path = log_path(snapshot.table, f"{SIDECAR_FOLDER}/{stem}.{uuid.uuid4()}.parquet")
        batches = written.watched(_batches(some, gone, layout))
        published.append(
            publish_parquet(snapshot, path, layout.schema, batches, files=some.num_rows)
        )
    return published


def _sidecar_action(snapshot: Snapshot, file: Published) -> SidecarFile:
    return SidecarFile(
        path=file.path.rpartition("/")[2],
        size_in_bytes=file.size,
        modification_time=_modified(snapshot, file),
    )


def _modified(snapshot: Snapshot, file: Published) -> int:
    store = snapshot.store
    info = store.filesystem.get_file_info(store.filesystem_path(file.path))
    return (info.mtime_ns or 0) // 1_000_000


def _small_actions(
    snapshot: Snapshot,
) -> list[Protocol | Metadata | SetTransaction | DomainMetadata]:
    kept = snapshot.transactions
    return [
        snapshot.protocol,
        snapshot.metadata,
        *(txn for app, txn in snapshot.state.transactions.items() if app in kept),
        *snapshot.domain_metadata.values(),
    ]


def _small_batch(snapshot: Snapshot, layout: Layout) -> pa.RecordBatch:
    rows = [as_row(action) for action in _small_actions(snapshot)]
    return batch_of(rows, layout.schema)


def _fresh_tombstones(snapshot: Snapshot, clock: Clock) -> pa.Table:
    # An expired tombstone protects nothing any more: VACUUM may have deleted its file, and a reader
    # of that version can't expect it.
    oldest = clock.now_ms() - snapshot.properties.deleted_file_retention_ms
    tombstones = snapshot.tombstones
    # A tombstone without a time counts as long expired.
    return tombstones.filter(pc.greater(pc.fill_null(tombstones["deletion_timestamp"], 0), oldest))


def _by_name(files: pa.Table) -> pa.Table:
    """In an order that does not depend on how the state was built."""
    vectors = files["deletion_vector"].combine_chunks()
    keys = pa.table(
        {
            "path": files["path"],
            "id": pc.struct_field(vectors, "pathOrInlineDv"),
            "offset": pc.struct_field(vectors, "offset"),
        }
    )
    order = [(name, "ascending") for name in keys.column_names]
    return files.take(pc.sort_indices(keys, sort_keys=order))


def _share(files: pa.Table, part: int, parts: int) -> pa.Table:
    start, end = part * files.num_rows // parts, (part + 1) * files.num_rows // parts
    return files.slice(start, end - start)


class _Written:
    """How many files, live and removed, are in the checkpoint so far, over all of its parts."""

    def __init__(self, total: int, report: ProgressCallback | None) -> None:
        self._done, self._total, self._report = 0, total, report

    def watched(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            self._done += batch.num_rows
            if self._report is not None:
                self._report(
                    Progress(text="checkpoint", done=self._done, total=self._total, unit="actions")
                )


def _with_first(first: pa.RecordBatch, rest: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _batches(live: pa.Table, dead: pa.Table, layout: Layout) -> Iterator[pa.RecordBatch]:
    for batch in live.to_batches(max_chunksize=ROWS):
        yield add_rows(batch, layout)
    for batch in dead.to_batches(max_chunksize=ROWS):
        yield tombstone_rows(batch, layout)
