"""The second half of DELETE and UPDATE: what becomes of the files whose rows are touched.

With `delta.enableDeletionVectors` a touched file stays, and gets a deletion vector; else the rows
that are left go to a new file. Updated rows go to a new file either way. With a change data feed
the changed rows are written once more (`change_files`), unless the removed files and the vectors
show everything: where nothing is copied and nothing updated.

Files that are only copied are dealt out to tasks (`file_copies`), which run in a few threads or
where an engine runs them. Where rows are updated here, files are gone through one by one, and read
a little ahead. Memory is bounded by the pieces in which a file is read (`RowReader.pieces`), one
for each thread and 64 MB where they are read ahead, by two bits for each row of a touched file, and
by the writers' buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from lakelog.core.actions.row_metrics import RowMetrics
from lakelog.core.compute import pc
from lakelog.core.conf import DeltaConf
from lakelog.core.data.change_files import ChangeFileWriter, change_actions, change_layout
from lakelog.core.data.file_reader import TableFileReader
from lakelog.core.data.file_writer import DataFileWriter
from lakelog.core.data.partition_errors import partition_errors
from lakelog.core.deletion_vectors.vector_writer import VectorWriter
from lakelog.core.dml.file_copies import (
    Copied,
    CopyTask,
    CopyWay,
    FileCopy,
    run_in_threads,
    tasks_of,
)
from lakelog.core.features.protocol import supported_features
from lakelog.core.portable.made_files import delete_made
from lakelog.core.progress import Progress
from lakelog.core.rows.moved_row_ids import MovedRowIds
from lakelog.core.stats.structs import with_wide_bounds

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.core.actions import Action, AddCDCFile, AddFile
    from lakelog.core.data.row_reader import Piece
    from lakelog.core.dml.touched_files import TouchedFile
    from lakelog.core.progress import ProgressCallback
    from lakelog.core.schema import StructType
    from lakelog.core.transaction.optimistic import OptimisticTransaction

RunCopies: TypeAlias = Callable[[Sequence[CopyTask]], Iterable[Copied]]
"""Runs tasks, and returns their results in any order."""


class RowRewrite:
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
        command: str | None = None,
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
            command: whose conf says whether there are deletion vectors; `delete` or `update`,
                by what is done, where it is `None`.
            run_copies: runs the tasks that copy rows; default: threads of this process.
            schema: of the table as it will be, as files are read; default: as it is.
        """
        snapshot, log = txn.snapshot, txn.delta_log
        assert snapshot is not None
        self._now_ms = now_ms
        self._update = update
        self._schema, table = schema or snapshot.read_schema, log.table
        self._ids = MovedRowIds.from_snapshot(snapshot)
        self._files = TableFileReader(snapshot, self._with_ids(self._schema))
        properties = snapshot.properties
        layout = txn.changes.file_layout
        self._is_given_rows = is_given_rows
        self._run_copies = run_copies or run_in_threads
        self._snapshot, self._store, self._layout = snapshot, log.store, layout
        self._made: list[str] = []
        self._has_feed = properties.change_data_feed
        self._has_changes = False
        """Whether the changes of the commit are in change files; known after `apply`."""
        deletes = update is None and not is_given_rows
        command = command or ("delete" if deletes else "update")
        conf = DeltaConf.from_mapping(log.conf)
        self._by_vectors = (
            properties.deletion_vectors
            and "deletionVectors" in supported_features(snapshot.protocol)
            and conf.get_bool(f"{command}.deletionVectors.persistent", True)
        )
        self._vectors = VectorWriter(log.store, table, properties, conf)
        self._data = DataFileWriter(
            replace(layout, schema=self._with_ids(layout.schema)).plan(log.store, table),
            layout.schema,
            stats=layout.stats,
        )
        self._changes = ChangeFileWriter(log.store, table, layout)
        self._written: tuple[list[AddFile], list[AddCDCFile]] = ([], [])
        self._actions: list[Action] = []
        self.metrics = RowMetrics()
        self.keeps_row_ids = True
        """Whether every row that is left has the id that it had; known after `actions`."""

    def _with_ids(self, schema: StructType) -> StructType:
        return schema if self._ids is None else self._ids.add_id_columns(schema)

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
        has_changes = has_changes and not self._is_given_rows
        self._has_changes = has_changes
        copied = []
        for each in touched:
            self.metrics.count_touched(each.hit.true_count)
            if each.is_whole or not self._by_vectors:
                self._remove(each.add)
            else:
                self._mask(each)
            if self._update is None and (has_changes or (copies and not each.is_whole)):
                copied.append(each)
        if self._update is not None:
            self._rewrite(touched, report, has_changes=has_changes)
        if copied:
            self._copy(copied, report, has_changes=has_changes)

    def _remove(self, file: AddFile) -> None:
        self._actions.append(file.remove(self._now_ms))
        self.metrics.count_removed(file)

    def _mask(self, touched: TouchedFile) -> None:
        # To the log, a file with another vector is another file: without the remove, readers would
        # have its rows twice. Two writers that mask one file remove the same entry, and conflict.
        old = touched.add
        new = replace(
            old,
            data_change=True,
            stats=with_wide_bounds(old.stats, len(touched.masked)),
            deletion_vector=self._vectors.add(touched.masked),
        )
        self._actions += (old.remove(self._now_ms), new)
        self.metrics.count_masked(old)

    def _copy(
        self, touched: Sequence[TouchedFile], report: ProgressCallback | None, *, has_changes: bool
    ) -> None:
        """Copy the rows that stay, and report the others to the change data feed."""
        layout, table = self._layout, self._snapshot.table
        way = CopyWay(
            table,
            self._snapshot.version,
            self._files.reader,
            self._ids,
            self._data.plan,
            change_layout(layout).plan(self._store, table) if has_changes else None,
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

    def _rewrite(
        self, touched: Sequence[TouchedFile], report: ProgressCallback | None, *, has_changes: bool
    ) -> None:
        """Write what becomes of the rows of files."""
        with closing(self._files.pieces_ahead(each.file for each in touched)) as pieces:
            for number, group in groupby(pieces, itemgetter(0)):
                mine = (piece for _, piece in group)
                self._rewrite_file(touched[number], mine, has_changes=has_changes)
                if report is not None:
                    done = number + 1
                    report(Progress(text="rewriting", done=done, total=len(touched), unit="files"))

    def _rewrite_file(
        self, touched: TouchedFile, pieces: Iterable[Piece], *, has_changes: bool
    ) -> None:
        """Write what becomes of the rows of a file."""
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
                self._change(hit, has_changes=has_changes)

    def _change(self, hit: pa.Table, *, has_changes: bool) -> None:
        assert self._update is not None
        new = self._update(hit)
        self._data.write(new if self._ids is None else self._ids.carry_over_ids(new, hit))
        if has_changes:
            self._changes.write(hit, "update_preimage")
            self._changes.write(new, "update_postimage")

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

    def write_inserted(self, rows: pa.Table) -> None:
        """Report rows that the same commit adds, where change files hold its other changes."""
        if self._has_changes:
            self._changes.write(rows, "insert")

    def write_changed(self, old: pa.Table, new: pa.Table) -> None:
        """Write what rows were and have become for the change data feed, if the table has one."""
        if self._has_feed:
            self._changes.write(old, "update_preimage")
            self._changes.write(new, "update_postimage")

    def add_written(self, adds: Iterable[AddFile], changes: Iterable[AddCDCFile]) -> None:
        """Add files of new rows and of change data, which the caller wrote and owns."""
        self._written[0].extend(adds)
        self._written[1].extend(changes)

    def actions(self) -> list[Action]:
        """Close the files and return all actions.

        Raises:
            OSError: the storage refused.
        """
        self._vectors.close()
        adds = [*self._data.close(), *self._written[0]]
        changes = [*self._changes.close(), *self._written[1]]
        self.metrics.count_added(adds, changes)
        self.keeps_row_ids = self._ids is not None or not adds
        return [*self._actions, *adds, *changes]

    def abort(self) -> None:
        """Delete the files that were written. Never call it after a commit that may have landed."""
        for writer in (self._vectors, self._data, self._changes):
            writer.abort()
        root = self._store.filesystem_path(self._snapshot.table)
        delete_made(self._store.filesystem, root, self._made)
