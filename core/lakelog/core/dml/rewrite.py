"""The second half of DELETE and UPDATE: what becomes of the files whose rows are touched.

Files that are only copied are dealt out to tasks (`file_copies`), which run in a few threads or
where an engine runs them. Where rows are updated here, files are gone through one by one, and read
a little ahead. Memory is bounded by the pieces in which a file is read (`RowReader.pieces`), one
for each thread and 64 MB where they are read ahead, by two bits for each row of a touched file, and
by the writers' buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from lakelog.core import keys
from lakelog.core.actions.row_metrics import RowMetrics
from lakelog.core.compute import pc
from lakelog.core.data.change_files import change_actions, change_layout
from lakelog.core.data.partition_errors import partition_errors
from lakelog.core.dml.file_copies import (
    Copied,
    CopyTask,
    CopyWay,
    FileCopy,
    run_in_threads,
    tasks_of,
)
from lakelog.core.dml.file_rewrite import FileRewrite
from lakelog.core.portable.made_files import delete_made
from lakelog.core.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.core.actions import AddCDCFile, AddFile
    from lakelog.core.data.row_reader import Piece
    from lakelog.core.dml.touched_files import TouchedFile
    from lakelog.core.progress import ProgressCallback
    from lakelog.core.rows.moved_row_ids import MovedRowIds
    from lakelog.core.schema import StructType
    from lakelog.core.transaction.optimistic import OptimisticTransaction
    from lakelog.logstores.keys import Key

Command: TypeAlias = Literal["delete", "update", "merge"]
_BY_VECTORS: Final[dict[Command, Key[bool]]] = {
    "delete": keys.DELETE_VECTORS,
    "update": keys.UPDATE_VECTORS,
    "merge": keys.MERGE_VECTORS,
}
RunCopies: TypeAlias = Callable[[Sequence[CopyTask]], Iterable[Copied]]
"""Runs tasks, and returns their results in any order."""


class RowRewrite(FileRewrite[RowMetrics]):
    """Writes the files and actions of one DELETE or UPDATE.

    Call `take_whole` for files of which no row is read, `apply` for the others, then `actions`;
    `abort` where it fails before, or the commit is refused.

    An engine that makes the new rows of an UPDATE itself says so (`is_given_rows`), and hands
    them over as rows (`write_new`, `write_changed`) or as files (`add_written`).
    """

    def __init__(
        self,
        txn: OptimisticTransaction,
        now_ms: int,
        update: Callable[[pa.Table], pa.Table] | None = None,
        *,
        is_given_rows: bool = False,
        command: Command | None = None,
        run_copies: RunCopies | None = None,
        schema: StructType | None = None,
    ) -> None:
        """Prepare the rewrite; no file is opened yet.

        Args:
            txn: has a snapshot.
            now_ms: when the rows are deleted, epoch milliseconds.
            update: gives the new rows for some old ones; without it they are deleted.
            is_given_rows: whether this is an UPDATE whose new rows, and change data, the caller
                has: `apply` then only takes the old rows out.
            command: whose conf says whether there are deletion vectors; `None` goes by what is
                done.
            run_copies: runs the tasks that copy rows; default: threads of this process.
            schema: of the table as it will be, as files are read; default: as it is.
        """
        self._is_given_rows = is_given_rows
        if command is None:
            command = "delete" if update is None and not is_given_rows else "update"
        super().__init__(txn, now_ms, RowMetrics(), _BY_VECTORS[command], schema)
        self._update = update
        self._run_copies = run_copies or run_in_threads
        self._made: list[str] = []
        self._written: tuple[list[AddFile], list[AddCDCFile]] = ([], [])
        self.keeps_row_ids: bool = True
        """Whether every row that is left has the id that it had; known after `actions`."""

    def take_whole(self, files: Iterable[AddFile]) -> None:
        """Remove files of which every row is deleted."""
        for file in files:
            self._remove(file)
            self.metrics.count_whole(file)

    def apply(self, touched: Sequence[TouchedFile], report: ProgressCallback | None = None) -> None:
        """Delete or update the rows that are hit.

        Args:
            touched: where they are.
            report: called after each file that is rewritten, or some of them.

        Raises:
            ConstraintViolationError: new rows break a rule of the table.
            DataFileMissingError: a file vanished.
            OSError: the storage refused.
        """
        copies = not self._by_vectors and not all(each.is_whole for each in touched)
        # Readers take change files alone: they hold all changes of the commit, or there are none.
        has_changes = self._has_feed and (copies or self._update is not None)
        self._has_changes = has_changes = has_changes and not self._is_given_rows
        copied = []
        for each in touched:
            self.metrics.count_touched(each.hit.true_count)
            self._take_out(each)
            if self._update is None and (has_changes or (copies and not each.is_whole)):
                copied.append(each)
        if self._update is not None:
            self._rewrite(touched, report)
        if copied:
            self._copy(copied, report)

    def _copy(self, touched: Sequence[TouchedFile], report: ProgressCallback | None) -> None:
        """Copy the rows that stay, and report the others to the change data feed."""
        layout, table = self._layout, self._snapshot.table
        way = CopyWay(
            table,
            self._snapshot.version,
            self._files.reader,
            self._ids,
            self._data.plan,
            change_layout(layout).plan(self._store, table) if self._has_changes else None,
        )
        copies = [
            FileCopy(
                each.add,
                each.file.path,
                store.filesystem,
                store.filesystem_path(each.file.path),
                each.file.partition,
                each.file.partition_values,
                each.masked,
                each.hit,
            )
            for each in touched
            for store in (self._files.store_of(each.file),)
        ]
        with partition_errors(table):
            for found in self._run_copies(tasks_of(way, copies)):
                self._made += (result[0] for result in (*found.data, *found.changes))
                self.add_written(layout.add_files(found.data), change_actions(found.changes))
                self.metrics.copied += found.rows
                if report is not None:
                    report(Progress(text="copying", done=self.metrics.copied, unit="rows"))

    def _rewrite(self, touched: Sequence[TouchedFile], report: ProgressCallback | None) -> None:
        """Write what becomes of the rows of files."""
        with closing(self._files.pieces_ahead(each.file for each in touched)) as pieces:
            for number, group in groupby(pieces, itemgetter(0)):
                mine = (piece for _, piece in group)
                self._rewrite_file(touched[number], mine)
                if report is not None:
                    done = number + 1
                    report(Progress(text="rewriting", done=done, total=len(touched), unit="files"))

    def _rewrite_file(self, touched: TouchedFile, pieces: Iterable[Piece]) -> None:
        """Write what becomes of the rows of a file."""
        assert self._update is not None
        start = 0
        for piece in pieces:
            rows = piece.rows
            assert rows is not None  # nothing is pruned: positions and row ids count all rows
            if self._ids is not None:
                rows = self._ids.with_row_ids(rows, touched.add, start)
            here = slice(start, start + piece.count)
            start += piece.count
            if not self._by_vectors:
                kept = rows.filter(pc.invert(touched.masked[here]))
                self._data.write(kept)
                self.metrics.copied += kept.num_rows
            hit = rows.filter(touched.hit[here])
            if hit.num_rows:
                self._write_updated(hit, self._update(hit))

    @property
    def row_ids(self) -> MovedRowIds | None:
        """How files carry the ids of rows; `None` where they don't."""
        return self._ids

    def write_new(self, rows: pa.Table) -> None:
        """Write new rows that the caller made.

        Args:
            rows: the table's columns, and those of `row_ids`.
        """
        self._data.write(rows)

    def write_changed(self, old: pa.Table, new: pa.Table) -> None:
        """Write what rows were and have become for the change data feed, if the table has one."""
        if self._has_feed:
            self._report_updated(old, new)

    def add_written(self, adds: Iterable[AddFile], changes: Iterable[AddCDCFile]) -> None:
        """Add files of new rows and of change data, which the caller wrote and owns."""
        self._written[0].extend(adds)
        self._written[1].extend(changes)

    def _closed(self) -> tuple[list[AddFile], list[AddCDCFile]]:
        adds, changes = super()._closed()
        adds, changes = [*adds, *self._written[0]], [*changes, *self._written[1]]
        self.keeps_row_ids = self._ids is not None or not adds
        return adds, changes

    def abort(self) -> None:
        """Delete the files that were written. Never call it after a commit that may have landed."""
        super().abort()
        root = self._store.filesystem_path(self._snapshot.table)
        delete_made(self._store.filesystem, root, self._made)
