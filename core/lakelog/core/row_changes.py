"""The second half of DELETE and UPDATE: what becomes of the files whose rows are touched.

With `delta.enableDeletionVectors` a touched file stays, and gets a deletion vector; else the rows
that are left go to a new file. Updated rows go to a new file either way. With a change data feed
the changed rows are written once more (`change_files`), but where the removed files and the vectors
tell it all: where nothing is copied and nothing updated.

Files are gone through one by one, and a file by row groups: memory is bounded by the largest row
group, two bits for each row of a touched file, and the writers' buffers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lakelog.core.change_files import ChangeFileWriter
from lakelog.core.compute import pc
from lakelog.core.conf import DeltaConf
from lakelog.core.data_files import DataFileWriter
from lakelog.core.file_layout import FileLayout
from lakelog.core.moved_row_ids import MovedRowIds
from lakelog.core.protocol import supported_features
from lakelog.core.row_metrics import RowMetrics
from lakelog.core.table_files import TableFiles
from lakelog.core.vector_writer import VectorWriter
from lakelog.core.wide_bounds import with_wide_bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from lakelog.core.actions import Action, AddFile
    from lakelog.core.schema import StructType
    from lakelog.core.touched_files import TouchedFile
    from lakelog.core.transaction import OptimisticTransaction

__all__ = ["RowChanges", "RowsChanged"]


@dataclass(frozen=True, slots=True)
class RowsChanged:
    """What `delete_rows` or `update_rows` did."""

    version: int | None
    """The version that holds the change; `None` where no row was touched and nothing committed."""
    metrics: Mapping[str, int] = field(default_factory=dict)
    """The operation's metrics, as the history shows them."""


class RowChanges:
    """Makes the actions of one change of rows, and the files that they name.

    Call `take_whole` for files of which no row is read, `apply` for the others, then `actions`;
    `abort` where it fails before, or the commit is refused.
    """

    def __init__(
        self,
        txn: OptimisticTransaction,
        now_ms: int,
        update: Callable[[pa.Table], pa.Table] | None = None,
    ) -> None:
        """Open nothing yet.

        Args:
            txn: has a snapshot.
            now_ms: when the rows are deleted, epoch milliseconds.
            update: gives the new rows for some old ones; without it they are deleted.
        """
        snapshot, log = txn.snapshot, txn.delta_log
        assert snapshot is not None
        self._now_ms = now_ms
        self._update = update
        self._schema, table = snapshot.read_schema, log.table
        self._ids = MovedRowIds.of(snapshot)
        self._files = TableFiles(snapshot, self._with_ids(self._schema))
        properties = snapshot.properties
        layout = FileLayout.of_transaction(txn)
        self._has_feed = properties.change_data_feed
        command = "delete" if update is None else "update"
        conf = DeltaConf.of(log.conf)
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
        self._actions: list[Action] = []
        self.metrics = RowMetrics()
        self.keeps_row_ids = True
        """Whether every row that is left has the id that it had; known after `actions`."""

    def _with_ids(self, schema: StructType) -> StructType:
        return schema if self._ids is None else self._ids.beside(schema)

    def take_whole(self, files: Iterable[AddFile]) -> None:
        """Remove files of which every row is deleted."""
        for file in files:
            self._remove(file)
            self.metrics.count_whole(file)

    def apply(self, touched: Sequence[TouchedFile]) -> None:
        """Delete or update the rows that are hit.

        Raises:
            ConstraintViolationError: new rows break a rule of the table.
            DataFileMissingError: a file vanished.
            OSError: the storage refused.
        """
        copies = not self._by_vectors and not all(each.is_whole for each in touched)
        # Readers take change files alone: they hold all changes of the commit, or there are none.
        tells = self._has_feed and (copies or self._update is not None)
        for each in touched:
            self.metrics.count_touched(each.hit.true_count)
            if each.is_whole or not self._by_vectors:
                self._remove(each.add)
            else:
                self._mask(each)
            if tells or self._update is not None or (copies and not each.is_whole):
                self._go_through(each, tells=tells)

    def _remove(self, file: AddFile) -> None:
        self._actions.append(file.remove(self._now_ms))
        self.metrics.count_removed(file)

    def _mask(self, touched: TouchedFile) -> None:
        old = touched.add
        new = replace(
            old,
            data_change=True,
            stats=with_wide_bounds(old.stats, len(touched.masked)),
            deletion_vector=self._vectors.add(touched.masked),
        )
        self._actions += (old.remove(self._now_ms), new)
        self.metrics.count_masked(old)

    def _go_through(self, touched: TouchedFile, *, tells: bool) -> None:
        """Write what comes of the rows of a file."""
        start = 0
        for piece in self._files.pieces(touched.file):
            rows = piece.rows
            assert rows is not None  # nothing is pruned
            if self._ids is not None:
                rows = self._ids.numbered(rows, touched.add, start)
            here = slice(start, start + piece.count)
            start += piece.count
            if not self._by_vectors:
                kept = rows.filter(pc.invert(touched.masked[here]))
                self._data.write(kept)
                self.metrics.copied += kept.num_rows
            hit = rows.filter(touched.hit[here])
            if hit.num_rows:
                self._change(hit, tells=tells)

    def _change(self, hit: pa.Table, *, tells: bool) -> None:
        if self._update is None:
            if tells:
                self._changes.write(hit, "delete")
            return
        new = self._update(hit)
        self._data.write(new if self._ids is None else self._ids.renewed(new, hit))
        if tells:
            self._changes.write(hit, "update_preimage")
            self._changes.write(new, "update_postimage")

    def actions(self) -> list[Action]:
        """End the files; give all actions.

        Raises:
            OSError: the storage refused.
        """
        self._vectors.close()
        adds, changes = self._data.close(), self._changes.close()
        self.metrics.count_added(adds, changes)
        self.keeps_row_ids = self._ids is not None or not adds
        return [*self._actions, *adds, *changes]

    def abort(self) -> None:
        """Delete the files that were written. Never call it after a commit that may have landed."""
        for writer in (self._vectors, self._data, self._changes):
            writer.abort()
