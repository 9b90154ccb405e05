"""The rewriting of a bin as a task, which an engine can run wherever the files are read.

A task is picklable and knows neither the log nor a store. What it writes belongs to the table when
a commit says so; a task that runs twice leaves unreported files, for VACUUM.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from lakelog.core.compute import pc
from lakelog.core.errors import RESTORE_EITHER, listed_file
from lakelog.core.maintain.optimize.ordering import ordered
from lakelog.core.portable.hive_writer import PartitionedWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyarrow.fs import FileSystem

    from lakelog.core.actions import AddFile
    from lakelog.core.data.row_reader import RowReader
    from lakelog.core.deletion_vectors.stored_vectors import DeletionVector
    from lakelog.core.maintain.optimize.ordering import RowOrder
    from lakelog.core.portable.hive_writer import WritePlan
    from lakelog.core.rows.moved_row_ids import MovedRowIds

Written: TypeAlias = "list[tuple[Any, ...]]"
"""What a task wrote: tuples in the order of `RESULT_SCHEMA`."""

RunBins: TypeAlias = "Callable[[int, Callable[[], Sequence[BinTask]]], Iterable[Written] | None]"
"""Takes the bytes of all files and what makes the tasks; runs these and gives what they wrote, in
their order, or `None` where threads of this process are to do the work."""


@dataclass(frozen=True, slots=True)
class BinFile:
    """A file whose live rows go to a new one."""

    add: AddFile
    path: str
    """Where the storage has it, for messages."""
    filesystem: FileSystem
    place: str
    """The path as the file system spells it."""
    partition: Mapping[str, Any]
    """Partition column -> scalar."""
    partition_values: Mapping[str, str | None]
    vector: DeletionVector | None
    vectors: FileSystem
    """Has the file of `vector`."""


@dataclass(frozen=True, slots=True)
class BinWay:
    """What all tasks of a run have in common."""

    table: str
    version: int
    reader: RowReader
    """Reads the table's columns, and those of `ids`."""
    ids: MovedRowIds | None
    plan: WritePlan
    order: RowOrder | None
    keys: RowReader
    """Reads the columns of `order`."""


@dataclass(frozen=True, slots=True)
class BinTask:
    """One bin."""

    way: BinWay
    files: Sequence[BinFile]
    outputs: int
    """How many files it becomes."""
    number: int

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(each.add.size for each in self.files)

    def run(self) -> Written:
        """Rewrite the bin; memory is bounded as that of `BinRewriter`.

        Raises:
            DataFileMissingError: a file vanished.
            DataFileError: a damaged deletion vector.
            OSError: the storage refused.
        """
        writers = [PartitionedWriter(self.way.plan, self.number)]
        done: Written = []
        at = 0
        try:
            for output, rows in self._rows():
                if output != at:
                    done += writers[-1].close()
                    writers.append(PartitionedWriter(self.way.plan, self.number))
                    at = output
                for batch in rows.to_batches():
                    writers[-1].write(batch)
            return [*done, *writers[-1].close()]
        except BaseException:
            for each in writers:
                with suppress(Exception):
                    each.abort()
            raise

    def _rows(self) -> Iterator[tuple[int, pa.Table]]:
        way, order = self.way, self.way.order
        if order is None:
            return ((0, rows) for rows in self._tables(way.reader, way.ids))
        return ordered(
            lambda: self._tables(way.reader, way.ids),
            lambda: self._tables(way.keys, None),
            order,
            size=self.size,
            outputs=self.outputs,
        )

    def _tables(self, reader: RowReader, ids: MovedRowIds | None) -> Iterator[pa.Table]:
        way = self.way
        for each in self.files:
            with listed_file(each.path, way.table, way.version, RESTORE_EITHER):
                yield from _live(each, reader, ids)


def _live(file: BinFile, reader: RowReader, ids: MovedRowIds | None) -> Iterator[pa.Table]:
    """The rows of a file that are not deleted, a few at a time."""
    start, gone = 0, None
    pieces = reader.pieces(file.filesystem, file.place, file.partition, file.partition_values)
    for piece in pieces:
        rows = piece.rows
        assert rows is not None  # nothing is pruned
        if ids is not None:
            rows = ids.with_row_ids(rows, file.add, start)
        if file.vector is not None:
            if gone is None:
                gone = file.vector.deleted(file.vectors, piece.total)
            rows = rows.filter(pc.invert(gone.slice(start, piece.count)))
        start += piece.count
        yield rows
