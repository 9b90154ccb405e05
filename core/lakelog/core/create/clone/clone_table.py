"""`clone`: a new table with the schema, the properties and the rows of another."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pyarrow.fs import FileSelector

from lakelog.core.actions.file_table import to_add_files
from lakelog.core.actions.operation import Operation
from lakelog.core.arguments import check_text, read_arguments
from lakelog.core.catalogs.new_tables import with_required
from lakelog.core.catalogs.refusals import FEATURE, TABLE_ID, governed, is_governed
from lakelog.core.create.clone.cloned_files import (
    FileCopies,
    absolute_file,
    check_same_storage,
)
from lakelog.core.delta_log import DeltaLog, log_of, log_to_make
from lakelog.core.errors import DeltaAnalysisError, TableExistsError
from lakelog.core.features.clustering import CLUSTERING_DOMAIN
from lakelog.core.features.protocol import (
    check_writable,
    merged_protocol,
    protocol_without,
    strip_protocol_properties,
    upgraded_for,
)
from lakelog.core.features.table_properties import TableProperties, validate_properties
from lakelog.core.features.terms import TableTerms
from lakelog.core.input.given_types import property_texts
from lakelog.core.metadata.invariants import check_promises
from lakelog.core.metadata.row_tracking_rules import with_row_tracking_names
from lakelog.core.metadata.verify import verify_new_metadata
from lakelog.core.paths import is_local
from lakelog.core.progress import progress_callback
from lakelog.core.shown.notebook import ShownFields
from lakelog.core.table_at import usable_version
from lakelog.core.telemetry.switch import command
from lakelog.core.transaction.attempt_files import AttemptFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from lakelog.core.actions import Action, AddFile, Metadata, Protocol
    from lakelog.core.delta_log import TableOrLog
    from lakelog.core.progress import GivenProgress
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.transaction.optimistic import OptimisticTransaction

_STEP: Final = 1000
OF_ITS_LOG: Final = frozenset(
    {
        TABLE_ID,
        "delta.inCommitTimestampEnablementTimestamp",
        "delta.inCommitTimestampEnablementVersion",
        "delta.requireCheckpointProtectionBeforeVersion",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
        "delta.rowTracking.materializedRowIdColumnName",
    }
)
"""Properties that speak of the source's versions, of row ids that the clone does not have, or of
what a catalog calls the source."""


@dataclass(frozen=True, slots=True)
class TableCloned(ShownFields):
    """What `clone` did."""

    version: int
    """The version of the target that holds the commit."""
    source_version: int
    """The version of the source that was cloned."""
    metrics: Mapping[str, int] = field(default_factory=dict)
    """The operation's metrics, as the history shows them."""


@read_arguments
@command("clone", at=1)
def clone(
    source: TableOrLog,
    target: TableOrLog,
    version: int | None = None,
    timestamp: int | str | datetime | None = None,
    *,
    shallow: bool = True,
    replace_target: bool = False,
    properties: Mapping[str, str | bool | int] | None = None,
    conf: Mapping[str, str] | None = None,
    user_metadata: str | None = None,
    progress: GivenProgress = None,
) -> TableCloned:
    """Make a table with the schema, the properties and the rows of another (`CLONE`).

        clone("/lake/flights", "/lake/flights_test")
        clone("/lake/flights", "/backup/flights", version=41, shallow=False)

    A shallow clone copies no data: its log names the files of the source, which stay where they
    are. Both tables can be written, and neither sees the other's changes. `VACUUM` of the source
    deletes files that only the clone needs any more, so a shallow clone is for a short life.

    The rows get row ids of their own. The progress of applications comes along; the history does
    not.

    Args:
        source: the table, or its `DeltaLog`.
        target: where the clone will be, or its `DeltaLog`: an empty folder; for a shallow clone on
            the same storage. For a deep one it may be a name that its catalog does not have.
        version: which version of the source; the newest by default.
        timestamp: or the newest version that was committed at or before this time.
        shallow: name the files of the source; else copy them.
        replace_target: whether the target may be a table already, if it has no rows.
        properties: table properties, over those of the source.
        conf: the user's whole Spark conf, which chooses both stores; a `DeltaLog` has its own.
        user_metadata: a note for the target's history.
        progress: called now and then with how many files are copied, and then with how many
            actions are written; or `auto` for a bar.

    Returns:
        The version of the commit, the version of the source, and the metrics.

    Raises:
        TableNotFoundError: there is no table to clone.
        VersionNotFoundError: the source has no such version.
        TimestampOutOfRangeError: the time is before the first commit or after the last.
        TableExistsError: there is a table at the target, and it may not be replaced.
        DeltaAnalysisError: the target has rows or other files, lies on another storage, or would
            map columns in another way; a property that is not valid; or a version that is older
            than `delta.deletedFileRetentionDuration`.
        DataFileMissingError: a file to be copied is gone.
        ConcurrentWriteException: another writer was faster at the target; nothing was committed.
        CommitOutcomeUnknownError: the storage never confirmed the commit; copied files are kept.
        UnsupportedFeatureError: the source has a feature that this version can't write.
    """
    check_text(user_metadata, "user_metadata")
    theirs = log_of(source, conf if not isinstance(source, DeltaLog) else None)
    ours = target if isinstance(target, DeltaLog) else log_to_make(target, conf or theirs.conf)
    if shallow:
        if governed(ours.store) is not None:
            raise DeltaAnalysisError(
                "a table that a catalog governs holds its own files: make a deep clone "
                "(shallow=False).",
                table=ours.table,
            )
        check_same_storage(theirs, ours)
    then = _version(theirs, version, timestamp)
    check_writable(then.protocol, then.metadata, theirs.table)
    txn = ours.start_transaction()
    _check_target(txn, then, replace_target=replace_target)
    given = validate_properties(property_texts(properties), ours.conf)
    metadata, protocol = _terms(txn, then, given)
    txn.changes.update_metadata_for_restore(metadata, protocol)
    with progress_callback(progress) as report, AttemptFiles(txn) as owned:
        files: Iterable[AddFile] = _shallow(then)
        copied = 0
        if not shallow:
            copies = FileCopies(theirs, ours)
            files = copies.planned(to_add_files(then.file_table))
            # Owned before the first byte: what is copied when this fails is deleted.
            owned.at(copies.paths)
            copied = copies.run(report)
        metrics = {
            "sourceTableSize": then.size_in_bytes,
            "sourceNumOfFiles": then.num_files,
            "numRemovedFiles": 0,
            "numCopiedFiles": 0 if shallow else then.num_files,
            "removedFilesSize": 0,
            "copiedFilesSize": copied,
        }
        parameters = {
            "source": f"delta.`{_shown(theirs.table)}`",
            "sourceVersion": then.version,
        }
        committed = txn.commit_large(
            _actions(txn, then, files),
            Operation("CLONE", parameters, metrics, user_metadata),
            protocol=protocol,
            progress=report,
        )
    return TableCloned(committed, then.version, metrics)


def _shown(table: str) -> str:
    """A table as Delta's history names it: a URI that is not encoded."""
    return f"file:{table}" if is_local(table) else table


def _version(
    log: DeltaLog, version: int | None, timestamp: int | str | datetime | None
) -> Snapshot:
    if version is None and timestamp is None:
        return log.update()
    return usable_version(log, version, timestamp)


def _check_target(txn: OptimisticTransaction, then: Snapshot, *, replace_target: bool) -> None:
    log, there = txn.delta_log, txn.snapshot
    if there is None:
        if _has_files(txn):
            raise DeltaAnalysisError(
                "[DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION] Cannot create table "
                f"({log.table}). The associated location is not empty and also not a Delta "
                "table. Choose another folder.",
                table=log.table,
            )
        return
    if not replace_target:
        raise TableExistsError(
            "[DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION] there is already a Delta table at "
            f"{log.table} (version {there.version}); choose "
            "another path, or allow it to be replaced",
            table=log.table,
        )
    if there.num_files or there.table == then.table:
        raise DeltaAnalysisError(
            "[DELTA_UNSUPPORTED_NON_EMPTY_CLONE] The clone destination table is non-empty: "
            f"{log.table} has {there.num_files} files. Delete its rows before running CLONE.",
            table=log.table,
        )


def _has_files(txn: OptimisticTransaction) -> bool:
    """Whether the folder holds a file; an attempt that failed may have left empty folders."""
    store = txn.delta_log.store
    folders = [store.filesystem_path(txn.delta_log.table)]
    while folders:
        selector = FileSelector(folders.pop(), allow_not_found=True)
        found = store.filesystem.get_file_info(selector)
        if any(each.is_file for each in found):
            return True
        folders += [each.path for each in found if each.base_name != "_delta_log"]
    return False


def _terms(
    txn: OptimisticTransaction, then: Snapshot, given: Mapping[str, str]
) -> tuple[Metadata, Protocol]:
    """The metadata and the protocol of the clone."""
    there = txn.snapshot
    own = {k: v for k, v in then.metadata.configuration.items() if k not in OF_ITS_LOG}
    asked = replace(
        then.metadata,
        id=str(uuid.uuid4()) if there is None else there.metadata.id,
        name=None if there is None else there.metadata.name,
        description=None if there is None else there.metadata.description,
        configuration={**own, **given},
    )
    # Neither against the source, nor against the table that is replaced.
    mode = TableProperties(asked.configuration).column_mapping_mode
    for other in (then, there):
        if other is not None and other.properties.column_mapping_mode != mode:
            raise DeltaAnalysisError(
                "[DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE] Changing column mapping mode from "
                f"'{other.properties.column_mapping_mode}' to '{mode}' is not supported by CLONE. "
                "Clone first, and set delta.columnMapping.mode then.",
                table=txn.delta_log.table,
            )
    old = None if there is None else there.metadata
    asked = with_required(txn.delta_log.store, asked, old)
    protocol = upgraded_for(then.protocol, asked) or then.protocol
    if is_governed(protocol) and governed(txn.delta_log.store) is None:
        protocol = protocol_without(protocol, FEATURE)  # only a catalog creates such tables
    if there is not None:
        protocol = merged_protocol(there.protocol, protocol)
    stored = strip_protocol_properties(asked)
    verify_new_metadata(None, stored, txn.delta_log.conf)
    check_promises(None, TableTerms(stored, protocol))
    return with_row_tracking_names(old, stored, protocol), protocol


def _shallow(then: Snapshot) -> Iterator[AddFile]:
    rows = then.file_table
    for start in range(0, rows.num_rows, _STEP):
        for add in to_add_files(rows.slice(start, _STEP)):
            yield absolute_file(then.table, add)


def _actions(
    txn: OptimisticTransaction, then: Snapshot, files: Iterable[AddFile]
) -> Iterator[Action]:
    # The clone numbers rows itself: the source goes on to hand out its own numbers.
    fresh: dict[str, Any] = {"base_row_id": None, "default_row_commit_version": None}
    for add in files:
        yield replace(add, data_change=True, **fresh)
    # A job that goes on with the clone must not write again what came from the source.
    yield from then.state.transactions.values()
    theirs = then.domain_metadata.get(CLUSTERING_DOMAIN)
    there = None if txn.snapshot is None else txn.snapshot.domain_metadata.get(CLUSTERING_DOMAIN)
    if theirs is not None:
        yield theirs
    elif there is not None:
        yield replace(there, removed=True)
