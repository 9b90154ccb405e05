"""What becomes of a file whose rows DELETE, UPDATE or MERGE touch, and the commit's actions for it.

With `delta.enableDeletionVectors` a touched file stays, and gets a deletion vector; else the rows
that are left go to a new file. New rows go to a new file either way. With a change data feed the
changed rows are written once more (`change_files`), unless the removed files and the vectors show
everything: where nothing is copied and nothing updated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Generic, TypeVar

from lakelog.core.actions.row_metrics import FileMetrics
from lakelog.core.data.change_files import ChangeFileWriter
from lakelog.core.data.file_reader import TableFileReader
from lakelog.core.data.file_writer import DataFileWriter
from lakelog.core.deletion_vectors.vector_writer import VectorWriter
from lakelog.core.features.protocol import supported_features
from lakelog.core.rows.moved_row_ids import MovedRowIds
from lakelog.core.stats.structs import with_wide_bounds

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.core.actions import Action, AddCDCFile, AddFile
    from lakelog.core.dml.touched_files import TouchedFile
    from lakelog.core.schema import StructType
    from lakelog.core.transaction.optimistic import OptimisticTransaction
    from lakelog.logstores.keys import Key

M = TypeVar("M", bound=FileMetrics)


class FileRewrite(Generic[M]):
    """The files and actions of one command that changes rows."""

    def __init__(
        self,
        txn: OptimisticTransaction,
        now_ms: int,
        metrics: M,
        by_vectors: Key[bool],
        schema: StructType | None,
    ) -> None:
        """Prepare the rewrite; no file is opened yet.

        Args:
            txn: has a snapshot, and the metadata that the table will have.
            now_ms: when rows are deleted, epoch milliseconds.
            metrics: of the command.
            by_vectors: whether the command makes deletion vectors, where the table has them.
            schema: of the table as it will be, as files are read; default: as it is.
        """
        snapshot, log = txn.snapshot, txn.delta_log
        assert snapshot is not None
        self._snapshot, self._store, self._now_ms = snapshot, log.store, now_ms
        self.metrics = metrics
        self._ids = MovedRowIds.from_snapshot(snapshot)
        self._files = TableFileReader(snapshot, self._with_ids(schema or snapshot.read_schema))
        properties = snapshot.properties
        self._has_feed = properties.change_data_feed
        self._has_changes = False
        """Whether the changes of the commit are in change files; known after `apply`."""
        self._by_vectors = (
            properties.deletion_vectors
            and "deletionVectors" in supported_features(snapshot.protocol)
            and log.conf.read(by_vectors)
        )
        self._layout = layout = txn.changes.file_layout
        self._vectors = VectorWriter(log.store, log.table, properties, log.conf)
        self._data = DataFileWriter(
            replace(layout, schema=self._with_ids(layout.schema)).plan(log.store, log.table),
            layout.schema,
            stats=layout.stats,
        )
        self._changes = ChangeFileWriter(log.store, log.table, layout)
        self._actions: list[Action] = []

    def _with_ids(self, schema: StructType) -> StructType:
        return schema if self._ids is None else self._ids.add_id_columns(schema)

    def _remove(self, file: AddFile) -> None:
        self._actions.append(file.remove(self._now_ms))
        self.metrics.count_removed(file)

    def _take_out(self, touched: TouchedFile) -> None:
        """Take the rows of a file that are deleted or replaced out of the table."""
        old = touched.add
        if touched.is_whole or not self._by_vectors:
            self._remove(old)
            return
        # To the log, a file with another vector is another file: without the remove, readers would
        # have its rows twice. Two writers that mask one file remove the same entry, and conflict.
        new = replace(
            old,
            data_change=True,
            stats=with_wide_bounds(old.stats, len(touched.masked)),
            deletion_vector=self._vectors.add(touched.masked),
        )
        self._actions += (old.remove(self._now_ms), new)
        self.metrics.count_masked(old)

    def _write_updated(self, old: pa.Table, new: pa.Table) -> None:
        """Write what rows have become, and report it to the change data feed."""
        self._data.write(new if self._ids is None else self._ids.carry_over_ids(new, old))
        if self._has_changes:
            self._report_updated(old, new)

    def _report_updated(self, old: pa.Table, new: pa.Table) -> None:
        self._changes.write(old, "update_preimage")
        self._changes.write(new, "update_postimage")

    def write_inserted(self, rows: pa.Table) -> None:
        """Report rows that the same commit adds, where change files hold its other changes."""
        if self._has_changes:
            self._changes.write(rows, "insert")

    def _closed(self) -> tuple[list[AddFile], list[AddCDCFile]]:
        self._vectors.close()
        return self._data.close(), self._changes.close()

    def actions(self) -> list[Action]:
        """Close the files and return all actions.

        Raises:
            OSError: the storage refused.
        """
        adds, changes = self._closed()
        self.metrics.count_added(adds, changes)
        return [*self._actions, *adds, *changes]

    def abort(self) -> None:
        """Delete the files that were written. Never call it after a commit that may have landed."""
        for writer in (self._vectors, self._data, self._changes):
            writer.abort()
