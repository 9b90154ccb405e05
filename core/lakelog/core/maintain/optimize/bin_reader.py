"""The rows of the files of a bin, as they are to be written: live ones alone, with their ids."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelog.core.actions.file_table import from_add_files
from lakelog.core.compute import pc
from lakelog.core.data.ahead import made_ahead, read_ahead
from lakelog.core.data.file_reader import TableFileReader
from lakelog.core.maintain.optimize.rewrite_tasks import BinFile
from lakelog.core.schema import StructType

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Sequence

    from lakelog.core.actions import AddFile
    from lakelog.core.data.file_reader import DataFile
    from lakelog.core.data.row_reader import RowReader
    from lakelog.core.rows.moved_row_ids import MovedRowIds
    from lakelog.core.state.snapshot import Snapshot

_WHOLE_BYTES = 4 << 20
"""Files up to this size are read by several threads at once."""
_RUN_FILES, _RUN_BYTES = 16, 1 << 20
"""Small files that one task reads: with a task and a batch for each, threads would spend their
time waiting for each other's hold on the interpreter."""
_JOINED_BYTES = 32 << 20
"""Rows of a run up to this size become one batch; of texts, more might not fit into one."""
_AHEAD_BYTES = 64 << 20
"""Rows of large files that wait: some of what is decoded while a row group is encoded."""


class BinReader:
    """Reads files of one version, many small ones at once; memory does not grow with them.

    Safe for use by several threads.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        schema: StructType,
        ids: MovedRowIds | None,
        *,
        workers: int,
        bins: int = 1,
    ) -> None:
        """Take the version.

        Args:
            snapshot: the version.
            schema: the columns to read.
            ids: adds the columns of row ids, where rows must keep theirs.
            workers: threads that read small files for one bin.
            bins: how many are read at once; they share the room for rows that wait.
        """
        self._snapshot, self._schema = snapshot, schema
        self._ids = ids
        self._workers, self._bins = workers, bins
        read = schema if ids is None else ids.add_id_columns(schema)
        self._files = TableFileReader(snapshot, read)

    def only(self, names: Collection[str]) -> BinReader:
        """A reader of the same rows that reads some of the columns."""
        schema = StructType(tuple(field for field in self._schema if field.name in names))
        return BinReader(self._snapshot, schema, None, workers=self._workers, bins=self._bins)

    @property
    def reader(self) -> RowReader:
        """What reads a file's rows, deleted ones too."""
        return self._files.reader

    def portable(self, files: Sequence[AddFile]) -> list[BinFile]:
        """Files with all that it takes to read them elsewhere.

        Raises:
            CorruptLogError: a partition value that can't be read, or a vector without a place.
        """
        made = []
        places = self._files.find(from_add_files(files))
        for add, place in zip(files, places, strict=True):
            store = self._files.store_of(place)
            vectors = self._files.store_of_vector(place)
            made.append(
                BinFile(
                    add,
                    place.path,
                    store.filesystem,
                    store.filesystem_path(place.path),
                    place.partition,
                    place.partition_values,
                    place.vector,
                    vectors.filesystem,
                )
            )
        return made

    def tables(self, files: Sequence[AddFile]) -> Iterator[pa.Table]:
        """The live rows of some files, in the order of the files and of their rows.

        Raises:
            DataFileMissingError: the storage does not have a file.
            DataFileError: a damaged deletion vector, or columns that can't be identified.
            CorruptLogError: a partition value that can't be read.
        """
        places = self._files.find(from_add_files(files))
        pairs = zip(files, places, strict=True)
        for is_small, group in groupby(pairs, key=lambda pair: pair[0].size <= _WHOLE_BYTES):
            if is_small:
                streams = [partial(self._rows_of_run, run) for run in _runs(group)]
                workers = min(len(streams), self._workers)
                yield from read_ahead(streams, workers=workers, items=1)
            else:
                pieces = (piece for pair in group for piece in self._pieces(*pair))
                yield from made_ahead(pieces, _AHEAD_BYTES // self._bins, lambda rows: rows.nbytes)

    def _rows_of_run(self, run: Sequence[tuple[AddFile, DataFile]]) -> Generator[pa.Table]:
        """The rows of small files, each of which may hold gigabytes of the same text."""
        held: list[pa.Table] = []
        size = 0
        for rows in (rows for pair in run for rows in self._pieces(*pair)):
            if held and size + rows.nbytes > _JOINED_BYTES:
                yield pa.concat_tables(held).combine_chunks()
                held, size = [], 0
            held.append(rows)
            size += rows.nbytes
        if held:
            yield pa.concat_tables(held).combine_chunks()

    def _pieces(self, add: AddFile, place: DataFile) -> Iterator[pa.Table]:
        deleted, gone = self._files.deleted(place), None
        start = 0
        for piece in self._files.pieces(place):
            rows = piece.rows
            assert rows is not None  # nothing is pruned
            if self._ids is not None:
                rows = self._ids.with_row_ids(rows, add, start)
            if deleted is not None:
                gone = deleted(piece.total) if gone is None else gone
                rows = rows.filter(pc.invert(gone.slice(start, piece.count)))
            start += piece.count
            yield rows


def _runs(
    pairs: Iterable[tuple[AddFile, DataFile]],
) -> Iterator[list[tuple[AddFile, DataFile]]]:
    """The same files, so many together as one task reads."""
    run: list[tuple[AddFile, DataFile]] = []
    size = 0
    for each in pairs:
        run.append(each)
        size += each[0].size
        if len(run) >= _RUN_FILES or size >= _RUN_BYTES:
            yield run
            run, size = [], 0
    if run:
        yield run
