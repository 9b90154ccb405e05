"""RESTORE: a table goes back to an older version, by a commit that undoes the newer ones."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from lakelog.core import keys
from lakelog.core.actions.file_keys import file_keys
from lakelog.core.actions.file_table import to_add_files
from lakelog.core.actions.operation import Operation
from lakelog.core.arguments import check_text, read_arguments
from lakelog.core.arrays import array_of
from lakelog.core.catalogs.refusals import refuse_maintenance
from lakelog.core.compute import pc
from lakelog.core.data.missing_files import rows_with_missing_files
from lakelog.core.delta_log import begin_change
from lakelog.core.errors import (
    DataFileMissingError,
    DeltaError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)
from lakelog.core.features.clustering import (
    CLUSTERING_DOMAIN,
    clustering_action,
    clustering_columns,
)
from lakelog.core.features.protocol import (
    check_writable,
    may_drop_features,
    merged_protocol,
)
from lakelog.core.metadata.restored import restored_metadata
from lakelog.core.progress import progress_callback
from lakelog.core.shown.notebook import ShownFields
from lakelog.core.table_at import time_in_zone, usable_version
from lakelog.core.telemetry.switch import command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from lakelog.core.actions import Action, AddFile, Metadata, Protocol
    from lakelog.core.delta_log import TableOrLog
    from lakelog.core.progress import GivenProgress, ProgressCallback
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.transaction.optimistic import OptimisticTransaction

_STEP: Final = 1000
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class TableRestored(ShownFields):
    """What `restore` did, or would do."""

    version: int | None
    """The version of the commit; `None` where nothing was committed: in a dry run, or because it
    is the newest version."""
    restored_version: int
    """The version whose rows, schema and properties the table has again."""
    metrics: Mapping[str, int] = field(default_factory=dict)
    """The operation's metrics, as the history shows them."""
    missing: tuple[str, ...] = ()
    """Files of the old version that the storage no longer has; sorted."""


@read_arguments
@command("restore")
def restore(
    uri: TableOrLog,
    version: int | None = None,
    timestamp: int | str | datetime | None = None,
    *,
    dry_run: bool = False,
    conf: Mapping[str, str] | None = None,
    user_metadata: str | None = None,
    progress: GivenProgress = None,
) -> TableRestored:
    """Give a table the rows, the schema and the properties of an older version (`RESTORE`).

        restore("/lake/flights", version=41)

    The versions in between stay in the history and can still be read and restored. No data file is
    written: files that were removed since are added again, and files that were added since are
    removed. It is one commit, in one attempt: if another writer is faster, nothing happens.

    What was handed out since stays taken: numbers of identity columns, row ids, and ids of columns.
    The protocol keeps all features that it has, unless
    `spark.databricks.delta.restore.protocolDowngradeAllowed` is set. The progress of applications
    (`app_id`, `app_version`) is not set back.

    A file that `VACUUM` has deleted can't come back: the call is refused, and lists such files.
    With `spark.sql.files.ignoreMissingFiles` it goes on without them, and returns their names.

    Args:
        uri: where the table is, or its `DeltaLog`.
        version: which version.
        timestamp: or the newest version that was committed at or before this time, as for
            `DeltaLog.snapshot_at`.
        dry_run: look what would be done, missing files included, and commit nothing.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.
        user_metadata: a note for the table's history.
        progress: called now and then with how many files are looked for, and then with how many
            actions are written; or `auto` for a bar.

    Returns:
        The version of the commit, the version that is restored, the metrics and the missing files.

    Raises:
        TableNotFoundError: there is no table.
        VersionNotFoundError: no such version, or it can't be rebuilt any more.
        TimestampOutOfRangeError: the time is before the first commit or after the last.
        DeltaAnalysisError: neither or both of version and timestamp, or a version that is older
            than `delta.deletedFileRetentionDuration`.
        AppendOnlyError: `delta.appendOnly` is set, and rows would go.
        DataFileMissingError: files of the version are gone; the field `paths` has all of them.
        ConcurrentWriteException: another writer was faster; nothing was committed.
        CommitOutcomeUnknownError: the storage never confirmed the commit.
        UnsupportedFeatureError: the table has, or had, a feature that this version can't write.
    """
    check_text(user_metadata, "user_metadata")
    txn = begin_change(uri, conf)
    with progress_callback(progress) as report:
        return _restored(txn, version, timestamp, user_metadata, report, dry_run=dry_run)


def _restored(
    txn: OptimisticTransaction,
    version: int | None,
    timestamp: int | str | datetime | None,
    user_metadata: str | None,
    report: ProgressCallback,
    *,
    dry_run: bool,
) -> TableRestored:
    log, now = txn.delta_log, txn.snapshot
    assert now is not None
    refuse_maintenance(log.store, log.table, "RESTORE")
    check_writable(now.protocol, now.metadata, log.table)
    then = _wanted(txn, version, timestamp)
    if then.version == now.version:
        return TableRestored(None, then.version)
    plan = _Plan.between(txn, now, then, report)
    if dry_run:
        return TableRestored(None, then.version, plan.metrics(), plan.missing)
    if plan.missing and not log.conf.read(keys.IGNORE_MISSING):
        raise _missing_error(then, plan.missing)
    if plan.removed.num_rows:
        txn.changes.assert_removable()
    txn.changes.update_metadata_for_restore(plan.metadata, plan.protocol)
    said = None if timestamp is None else time_in_zone(timestamp, log.conf.session_tz)
    operation = Operation(
        "RESTORE", {"version": version, "timestamp": said}, plan.metrics(), user_metadata
    )
    # Never rebased: which files come and go follows from the version that was read.
    committed = txn.commit_large(
        _actions(txn, plan), operation, protocol=plan.protocol, progress=report
    )
    return TableRestored(committed, then.version, plan.metrics(), plan.missing)


def _wanted(
    txn: OptimisticTransaction, version: int | None, timestamp: int | str | datetime | None
) -> Snapshot:
    # Older than what the transaction read: a commit since then makes this one fail.
    try:
        return usable_version(txn.delta_log, version, timestamp)
    except VersionNotFoundError as exc:
        raise _named(exc, "DELTA_CANNOT_RESTORE_TABLE_VERSION") from None
    except TimestampOutOfRangeError as exc:
        late = exc.fields["timestamp"] > exc.fields["last"]
        name = f"DELTA_CANNOT_RESTORE_TIMESTAMP_{'GREATER' if late else 'EARLIER'}"
        raise _named(exc, name) from None


def _named(error: DeltaError, condition: str) -> DeltaError:
    """The same error, with the name that it has when a table is to be restored."""
    said = re.sub(r"^\[[A-Z_.]+\] ", "", str(error))
    return type(error)(f"[{condition}] {said}", **error.fields)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a restore does."""

    now: Snapshot
    then: Snapshot
    added: pa.Table
    """The files that come back, rows of `FILE_SCHEMA`."""
    renumbered: pa.Table
    """The files that stay, but get the row ids that they had then."""
    removed: pa.Table
    metadata: Metadata
    protocol: Protocol
    missing: tuple[str, ...]

    @classmethod
    def between(
        cls, txn: OptimisticTransaction, now: Snapshot, then: Snapshot, report: ProgressCallback
    ) -> _Plan:
        log = txn.delta_log
        check_writable(then.protocol, then.metadata, log.table)
        # No feature goes: the versions between the two are readable only with those that they have.
        protocol = merged_protocol(now.protocol, then.protocol)
        if may_drop_features("RESTORE", log.conf):
            protocol = then.protocol
        metadata = restored_metadata(now.metadata, then.metadata, protocol)
        # By path and deletion vector: a file whose vector has changed since is another file to the
        # log, so that one entry goes and the other comes.
        old, new = file_keys(log.table, then.file_table), file_keys(log.table, now.file_table)
        stays = pc.is_in(old, value_set=new)
        added = then.file_table.filter(pc.invert(stays))
        removed = now.file_table.filter(pc.invert(pc.is_in(new, value_set=old)))
        known = now.num_files + now.tombstones.num_rows
        lacks, missing = rows_with_missing_files(log.store, log.table, added, known, report)
        if any(lacks):
            added = added.filter(array_of([not each for each in lacks], pa.bool_()))
        before = now.file_table.take(pc.index_in(old.filter(stays), value_set=new))
        return cls(
            now=now,
            then=then,
            added=added,
            renumbered=_renumbered(before, then.file_table.filter(stays)),
            removed=removed,
            metadata=metadata,
            protocol=protocol,
            missing=tuple(missing),
        )

    def metrics(self) -> dict[str, int]:
        """By Delta's names."""
        came, went = _size(self.added), _size(self.removed)
        files = self.now.num_files - self.removed.num_rows + self.added.num_rows
        return {
            "tableSizeAfterRestore": self.now.size_in_bytes - went + came,
            "numOfFilesAfterRestore": files,
            "numRemovedFiles": self.removed.num_rows,
            "numRestoredFiles": self.added.num_rows,
            "removedFilesSize": went,
            "restoredFilesSize": came,
        }


def _size(rows: pa.Table) -> int:
    return int(pc.sum(rows["size"]).as_py() or 0)


def _renumbered(now: pa.Table, then: pa.Table) -> pa.Table:
    """The rows of `then` with other row ids than the same files have now."""
    numbers = then["base_row_id"]
    same = pc.fill_null(pc.equal(numbers, now["base_row_id"]), False)
    return then.filter(pc.and_(numbers.is_valid(), pc.invert(same)))


def _actions(txn: OptimisticTransaction, plan: _Plan) -> Iterator[Action]:
    at = txn.delta_log.clock.now_ms()
    # Rows that come back are new ones to a stream from the table; those that only get their row ids
    # back are not.
    yield from _files(plan.added, data_change=True)
    yield from _files(plan.renumbered)
    for add in _files(plan.removed):
        yield add.remove(at)
    wanted = clustering_columns(plan.then.domain_metadata)
    if wanted or CLUSTERING_DOMAIN in plan.now.domain_metadata:
        yield clustering_action(wanted)


def _files(rows: pa.Table, *, data_change: bool = False) -> Iterator[AddFile]:
    for start in range(0, rows.num_rows, _STEP):
        yield from to_add_files(rows.slice(start, _STEP), data_change=data_change)


def _missing_error(then: Snapshot, missing: tuple[str, ...]) -> DataFileMissingError:
    shown = ", ".join(missing[:_SHOWN])
    more = f" and {len(missing) - _SHOWN:,} more" if len(missing) > _SHOWN else ""
    return DataFileMissingError(
        f"not all files of version {then.version} of {then.table} are still there: "
        f"{shown}{more}. VACUUM deletes files that newer versions do not need. Restore a newer "
        f"version; or set {keys.IGNORE_MISSING.name}=true to restore the version without the rows "
        "of these files. Nothing was committed.",
        table=then.table,
        version=then.version,
        path=missing[0],
        paths=list(missing),
    )
