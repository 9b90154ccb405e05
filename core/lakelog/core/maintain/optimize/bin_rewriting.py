"""Bins of files become new files, several at once."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from lakelog.core.data.file_writer import DataFileWriter
from lakelog.core.maintain.optimize.bin_reader import BinReader
from lakelog.core.maintain.optimize.ordering import ordered
from lakelog.core.maintain.optimize.rewrite_tasks import BinTask, BinWay
from lakelog.core.portable.made_files import delete_made
from lakelog.core.rows.moved_row_ids import MovedRowIds
from lakelog.logstores.threads import beside

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    import pyarrow as pa

    from lakelog.core.actions import AddFile
    from lakelog.core.maintain.optimize.plan import Bin, Strategy
    from lakelog.core.maintain.optimize.rewrite_tasks import RunBins
    from lakelog.core.transaction.optimistic import OptimisticTransaction

_NO_LIMIT = 1 << 62
_MOST_OUTPUTS = 256
_GROUP_BYTES = 128 << 20
_LEAST_GROUP_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A bin and the files that have its rows now."""

    bin: Bin
    adds: list[AddFile]


class _Stopped(Exception):  # noqa: N818  # never leaves this module
    """Another bin failed."""


class BinRewriter:
    """Writes the rows of bins to new files, for one transaction.

    Owns what it wrote: `abort` deletes all of it. Memory is bounded by the row group that
    is written and a few times 32 MB of decoded rows for each thread, and by 64 MB of rows that
    wait, whatever the size of the bins.
    """

    def __init__(
        self,
        txn: OptimisticTransaction,
        strategy: Strategy,
        *,
        threads: int,
        run_bins: RunBins | None = None,
        row_group_rows: int | None = None,
    ) -> None:
        """Prepare; nothing is read or written yet.

        Args:
            txn: has a snapshot.
            strategy: tags the new files.
            threads: bins that are rewritten at once.
            run_bins: an engine that may do it instead.
            row_group_rows: about so many rows make a row group; `None` for as many as large files
                have.
        """
        snapshot, log = txn.snapshot, txn.delta_log
        assert snapshot is not None
        self._strategy = strategy
        self._threads = threads
        self._layout = layout = txn.changes.file_layout
        self._ids = ids = MovedRowIds.from_snapshot(snapshot)
        # Of an object store they wait for answers; on a disk more of them than processors wait for
        # each other.
        waits = 1 if log.store.filesystem.type_name == "local" else 2
        workers = max(1, waits * (os.cpu_count() or 1) // threads)
        self._reader = BinReader(snapshot, layout.schema, ids, workers=workers, bins=threads)
        written = layout.schema if ids is None else ids.add_id_columns(layout.schema)
        # A bin is one file, however much larger its rows are when they are encoded again.
        self._plan = replace(layout, schema=written).plan(
            log.store,
            log.table,
            target_file_bytes=_NO_LIMIT,
            row_group_bytes=max(_LEAST_GROUP_BYTES, _GROUP_BYTES // threads),
            **({} if row_group_rows is None else {"row_group_rows": row_group_rows}),
        )
        self._most_rows = row_group_rows
        self._run_bins = run_bins
        self._store, self._table, self._version = log.store, log.table, snapshot.version
        self._made: list[str] = []
        self._writers: list[DataFileWriter] = []
        self._stop = threading.Event()

    @property
    def keeps_row_ids(self) -> bool:
        """Whether rows have the ids that they had."""
        return self._ids is not None

    def rewrite(self, bins: Sequence[Bin]) -> Generator[Rewritten]:
        """Rewrite bins; each is given as soon as its files are complete.

        Raises:
            DataFileMissingError: the storage does not have a file.
            DataFileError: a damaged file or deletion vector.
            OSError: the storage refused.
        """
        size = sum(each.size for each in bins)
        run = self._run_bins
        by_tasks = None if run is None else run(size, partial(self._tasks, bins))
        if by_tasks is not None:
            for one, results in zip(bins, by_tasks, strict=True):
                self._made += [path for path, *_ in results]
                adds = self._layout.add_files(results, data_change=False)
                yield Rewritten(one, self._strategy.tagged(adds))
            return
        if self._threads == 1 or len(bins) == 1:
            yield from map(self._one, bins)
            return
        with beside(self._threads, "lakelog-optimize") as begun:
            try:
                for each in bins:
                    begun.begin(self._one, each)
                while begun:
                    yield from begun.take_done()
            finally:
                self._stop.set()

    def _tasks(self, bins: Sequence[Bin]) -> list[BinTask]:
        order = self._strategy.order
        names = {path[0] for path in order.columns} if order is not None else set()
        way = BinWay(
            self._table,
            self._version,
            self._reader.reader,
            self._ids,
            self._plan,
            order,
            self._reader.only(names).reader,
        )
        return [
            BinTask(
                way,
                self._reader.portable(sorted(each.files, key=_age)),
                self._outputs(each),
                number,
            )
            for number, each in enumerate(bins)
        ]

    def _outputs(self, each: Bin) -> int:
        return min(self._strategy.outputs(each.size), _MOST_OUTPUTS)

    def _one(self, each: Bin) -> Rewritten:
        # Rows that came together stay together: the order of sizes means nothing.
        files = sorted(each.files, key=_age)
        adds: list[AddFile] = []
        number, writer = 0, self._writer()
        for output, rows in self._rows(each, files):
            if self._stop.is_set():
                raise _Stopped
            if output != number:
                adds += writer.close()
                number, writer = output, self._writer()
            step = self._most_rows or max(rows.num_rows, 1)
            for start in range(0, rows.num_rows, step):
                writer.write(rows.slice(start, step))
        return Rewritten(each, self._strategy.tagged([*adds, *writer.close()]))

    def _rows(self, each: Bin, files: Sequence[AddFile]) -> Iterator[tuple[int, pa.Table]]:
        order = self._strategy.order
        if order is None:
            return ((0, rows) for rows in self._reader.tables(files))
        names = {path[0] for path in order.columns}
        return ordered(
            lambda: self._reader.tables(files),
            lambda: self._reader.only(names).tables(files),
            order,
            size=each.size,
            outputs=self._outputs(each),
        )

    def _writer(self) -> DataFileWriter:
        writer = DataFileWriter(
            self._plan, self._layout.schema, stats=self._layout.stats, data_change=False
        )
        self._writers.append(writer)
        return writer

    def abort(self) -> None:
        """Delete the files that were written. Never call it after a commit that may have landed."""
        for each in self._writers:
            each.abort()
        root = self._store.filesystem_path(self._table)
        delete_made(self._store.filesystem, root, self._made)


def _age(file: AddFile) -> tuple[int, int, str]:
    return file.modification_time, file.base_row_id or 0, file.path
