"""Rows that stay are copied from files whose other rows go: tasks for threads, or for executors.

A task is picklable and knows no store, so an engine can run it wherever the files are read. It is
not part of the table's state: what it writes belongs to the table when a commit says so. A task
that runs twice leaves files that are never reported.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow.fs import LocalFileSystem

from lakelog.core.arrays import scalar_of
from lakelog.core.compute import pc
from lakelog.core.data.change_files import CHANGE_TYPE
from lakelog.core.errors import RESTORE_EITHER, listed_file
from lakelog.core.portable.hive_writer import PartitionedWriter
from lakelog.core.portable.made_files import delete_made
from lakelog.logstores.threads import DECODERS, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyarrow.fs import FileSystem

    from lakelog.core.actions import AddFile
    from lakelog.core.data.row_reader import RowReader
    from lakelog.core.portable.hive_writer import WritePlan
    from lakelog.core.rows.moved_row_ids import MovedRowIds

_TASK_BYTES = 128 << 20
"""Files are copied together up to this size, so that few new files come of many small ones."""


@dataclass(frozen=True, slots=True)
class FileCopy:
    """A file of which some rows stay, or whose other rows go to the change data feed."""

    add: AddFile
    path: str
    """Where the storage has it, for messages."""
    filesystem: FileSystem
    place: str
    """The path as the file system spells it."""
    partition: Mapping[str, Any]
    """Partition column -> scalar."""
    partition_values: Mapping[str, str | None]
    masked: pa.BooleanArray
    """The rows that are gone."""
    hit: pa.BooleanArray
    """Those that go now."""


@dataclass(frozen=True, slots=True)
class CopyWay:
    """What all tasks of a command have in common."""

    table: str
    version: int
    reader: RowReader
    """Reads the table's columns, and those of `ids`."""
    ids: MovedRowIds | None
    data: WritePlan
    changes: WritePlan | None
    """How deleted rows are written for the change data feed; `None` where they are not."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What a task wrote: tuples in the order of `RESULT_SCHEMA`."""

    data: list[tuple[Any, ...]] = field(default_factory=list)
    changes: list[tuple[Any, ...]] = field(default_factory=list)
    rows: int = 0

    def delete(self, way: CopyWay) -> None:
        """Delete the files, as far as the storage lets us; no version may name them."""
        for plan, results in ((way.data, self.data), (way.changes, self.changes)):
            for path, *_ in results:
                assert plan is not None  # it wrote them
                delete_made(plan.filesystem or LocalFileSystem(), plan.root, [path])


@dataclass(frozen=True, slots=True)
class CopyTask:
    """Some files that are copied one after another."""

    way: CopyWay
    files: Sequence[FileCopy]
    number: int = 0

    def run(self) -> Copied:
        """Copy; memory is bounded by one piece of a file and the writers' buffers.

        Raises:
            DataFileMissingError: a file vanished.
            OSError: the storage refused.
        """
        data = PartitionedWriter(self.way.data, self.number)
        changes = (
            None if self.way.changes is None else PartitionedWriter(self.way.changes, self.number)
        )
        rows = 0
        try:
            for each in self.files:
                rows += self._copy(each, data, changes)
            return Copied(data.close(), [] if changes is None else changes.close(), rows)
        except BaseException:
            for writer in (data, changes):
                if writer is not None:
                    with suppress(Exception):
                        writer.abort()
            raise

    def _copy(
        self, file: FileCopy, data: PartitionedWriter, changes: PartitionedWriter | None
    ) -> int:
        way, start, copied = self.way, 0, 0
        pieces = way.reader.pieces(
            file.filesystem, file.place, file.partition, file.partition_values
        )
        with listed_file(file.path, way.table, way.version, RESTORE_EITHER):
            for piece in pieces:
                rows = piece.rows
                assert rows is not None  # nothing is pruned
                if way.ids is not None:
                    rows = way.ids.with_row_ids(rows, file.add, start)
                here = slice(start, start + piece.count)
                start += piece.count
                kept = rows.filter(pc.invert(file.masked[here]))
                copied += kept.num_rows
                _write(data, kept)
                if changes is not None:
                    hit = rows.filter(file.hit[here])
                    kinds = pa.repeat(scalar_of("delete", pa.string()), hit.num_rows)
                    _write(changes, hit.append_column(CHANGE_TYPE, kinds))
        return copied


def _write(writer: PartitionedWriter, rows: pa.Table) -> None:
    for batch in rows.to_batches():
        writer.write(batch)


def tasks_of(way: CopyWay, files: Sequence[FileCopy]) -> list[CopyTask]:
    """Deal files out, in their order."""
    dealt: list[list[FileCopy]] = []
    size = 0
    for each in files:
        if not dealt or size + each.add.size > _TASK_BYTES:
            dealt.append([])
            size = 0
        dealt[-1].append(each)
        size += each.add.size
    return [CopyTask(way, group, number) for number, group in enumerate(dealt)]


def run_in_threads(tasks: Sequence[CopyTask]) -> Iterator[Copied]:
    """Run tasks in this process. Where one fails, what the others wrote is deleted."""
    done: list[tuple[CopyTask, Copied]] = []

    def run(task: CopyTask) -> Copied:
        found = None
        try:
            found = task.run()
            done.append((task, found))
            return found
        except BaseException:
            if found is not None:
                found.delete(task.way)
            raise

    try:
        yield from in_order(run, tasks, min(os.cpu_count() or 1, DECODERS), "lakelog-copies")
    except BaseException:
        for task, found in done:
            found.delete(task.way)
        raise
