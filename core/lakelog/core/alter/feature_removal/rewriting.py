"""Files that need a feature are replaced by files that do not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.actions.file_table import to_add_files
from lakelog.core.actions.operation import Operation
from lakelog.core.data.file_writer import DataFileWriter
from lakelog.core.maintain.optimize.bin_reader import BinReader
from lakelog.core.maintain.optimize.run_metrics import operation_metrics
from lakelog.core.rows.moved_row_ids import MovedRowIds
from lakelog.core.transaction.attempt_files import AttemptFiles
from lakelog.core.transaction.command_commit import commit_command
from lakelog.logstores.threads import DECODERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from lakelog.core.actions import Action, AddFile
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.transaction.optimistic import OptimisticTransaction


def purge(log: DeltaLog, files: pa.Table) -> int | None:
    """Write the rows of some files to new ones, as `REORG TABLE … APPLY (PURGE)` does.

    Args:
        log: the table.
        files: rows of `FILE_SCHEMA`, of the newest version.

    Returns:
        The version of the commit; `None` where there is no file.

    Raises:
        DeltaConcurrentModificationException: another writer changed one of the files.
        DataFileMissingError: the storage does not have a file.
    """
    if not files.num_rows:
        return None
    txn = log.start_transaction()
    # These and no more: rows that only move don't depend on what is appended elsewhere.
    txn.reads.track_files_read(files)
    parameters = {"predicate": [], "applyPurge": True}
    with AttemptFiles(txn) as owned:
        return _commit(txn, to_add_files(files), owned, "REORG", parameters)


def rewrite_all(txn: OptimisticTransaction, operation: str, others: Sequence[Action] = ()) -> int:
    """Write all rows to new files, laid out as the transaction's new metadata says.

    Args:
        txn: has new metadata.
        operation: the name of what is done.
        others: actions of the same commit.

    Raises:
        DeltaConcurrentModificationException: another writer was faster.
        DataFileMissingError: the storage does not have a file.
    """
    snapshot = txn.snapshot
    assert snapshot is not None
    txn.reads.read_whole_table()
    with AttemptFiles(txn) as owned:
        return _commit(txn, to_add_files(snapshot.file_table), owned, operation, {}, others)


def _commit(
    txn: OptimisticTransaction,
    files: list[AddFile],
    owned: AttemptFiles,
    name: str,
    parameters: dict[str, object],
    others: Sequence[Action] = (),
) -> int:
    snapshot, log, layout = txn.snapshot, txn.delta_log, txn.changes.file_layout
    assert snapshot is not None
    ids = MovedRowIds.from_snapshot(snapshot)
    written = layout.schema if ids is None else ids.add_id_columns(layout.schema)
    writer = owned.own(
        DataFileWriter(
            replace(layout, schema=written).plan(log.store, log.table),
            layout.schema,
            stats=layout.stats,
            data_change=False,
        )
    )
    names = set(layout.schema.names)
    read = type(snapshot.read_schema)(tuple(f for f in snapshot.read_schema if f.name in names))
    for rows in BinReader(snapshot, read, ids, workers=DECODERS).tables(files):
        writer.write(rows)
    adds = writer.close()
    now = txn.delta_log.clock.now_ms()
    # The rows are the same ones: streams and the change feed pass over both lists.
    removes = [file.remove(now, data_change=False) for file in files]
    metrics: dict[str, int | str] = dict(operation_metrics(adds, files))
    if name != "REORG":
        metrics |= {
            "numRewrittenFiles": len(files),
            "numOutputBytes": sum(each.size for each in adds),
            "numCopiedRows": sum(each.num_records or 0 for each in adds),
        }
    done = commit_command(
        txn,
        [*adds, *removes, *others],
        Operation(name, parameters, metrics),
        keeps_row_ids=ids is not None,
        skips_empty=False,
    )
    assert done.version is not None
    return done.version
