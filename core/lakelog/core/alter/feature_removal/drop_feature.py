"""`drop_feature`: take a table feature out of the protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lakelog.core.actions.operation import Operation
from lakelog.core.alter.feature_removal.cut_history import (
    cut_history,
    earliest_version,
    oldest_with,
)
from lakelog.core.alter.feature_removal.removal import remove_traces
from lakelog.core.alter.feature_removal.traces import REMOVABLE, TRUNCATED, is_used
from lakelog.core.arguments import check_text, read_arguments
from lakelog.core.catalogs.refusals import refuse_maintenance
from lakelog.core.delta_log import log_of
from lakelog.core.errors import ConcurrentWriteException, DeltaAnalysisError
from lakelog.core.features.numbered_rows import ROW_TRACKING_DOMAIN
from lakelog.core.features.protocol import check_writable, protocol_without, supported_features
from lakelog.core.features.registry import FEATURES
from lakelog.core.telemetry.switch import command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.actions import DomainMetadata, Metadata
    from lakelog.core.delta_log import DeltaLog, TableOrLog
    from lakelog.core.state.snapshot import Snapshot

_PROTECTION: Final = "checkpointProtection"
_PROTECTED: Final = "delta.requireCheckpointProtectionBeforeVersion"
_BARRIERS: Final = 3
_ATTEMPTS: Final = 10
_ROW_TRACKING: Final = (
    "delta.enableRowTracking",
    "delta.rowTrackingSuspended",
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)


@read_arguments
@command("drop feature")
def drop_feature(
    uri: TableOrLog,
    feature: str,
    *,
    truncate_history: bool = False,
    conf: Mapping[str, str] | None = None,
) -> int:
    """Take a table feature out of the protocol: `ALTER TABLE … DROP FEATURE`.

    First the newest version is brought to where it does not use the feature: properties are unset,
    and files that need it are written again (deletion vectors, mapped columns, older types). Older
    versions may still need it. For `columnMapping`, `deletionVectors`, `typeWidening`,
    `v2Checkpoint` and `vacuumProtocolCheck` therefore, either

    - the feature goes at once, checkpoints are written so that clients without it never meet those
      versions, and the writers' feature `checkpointProtection` comes in its place; or,
    - with `truncate_history`, versions that are older than
      `delta.dropFeatureTruncateHistory.retentionDuration` (a day) are deleted. As long as a younger
      one needs the feature the call raises, and is to be repeated later.

    The others are `checkConstraints`, `domainMetadata`, `inCommitTimestamp`,
    `materializePartitionColumns`, `rowTracking`, and, with `truncate_history`,
    `checkpointProtection`.

    Args:
        uri: where the table is, or its `DeltaLog`.
        feature: its name, in any case.
        truncate_history: delete the versions that need the feature, instead of protecting them.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.

    Returns:
        The version whose protocol is without it.

    Raises:
        TableNotFoundError: there is no table.
        DeltaAnalysisError: the table does not have the feature; it can't be dropped; another
            feature needs it; CHECK constraints are left; or, with `truncate_history`, versions that
            need it are not old enough. What was done until then stays done and does no harm.
        DeltaConcurrentModificationException: another writer was faster; call it again.
    """
    check_text(feature, "feature", needed=True)
    log = log_of(uri, conf)
    snapshot = log.update()
    refuse_maintenance(log.store, log.table, "DROP FEATURE")
    check_writable(snapshot.protocol, snapshot.metadata, log.table)
    name = _checked(snapshot, feature, truncate_history)
    changed = remove_traces(log, name)
    if name == _PROTECTION:
        return _drop_protection(log)
    if name not in TRUNCATED:
        return _commit(log, name, truncate=False, protects=False)
    for _ in range(1 if truncate_history else _BARRIERS):
        _barrier(log)
    if truncate_history:
        # As Delta does: the first call removes the traces, and the history that still has them is
        # younger than the retention.
        if changed:
            raise _too_early(log, name, "WAIT_FOR_RETENTION_PERIOD")
        cut_history(log)
        if oldest_with(log, name) is not None:
            raise _too_early(log, name, "HISTORICAL_VERSIONS_EXIST")
    return _commit(log, name, truncate=truncate_history, protects=not truncate_history)


def _checked(snapshot: Snapshot, feature: str, truncate: bool) -> str:
    """The name of a feature that may be dropped from a table, as the protocol spells it."""
    table, has = snapshot.table, supported_features(snapshot.protocol)
    name = next((each for each in FEATURES if each.lower() == feature.lower()), None)
    if name is None:
        raise _refusal(
            table,
            "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
            f"Cannot drop {feature} because it is not supported by this version of lakelog. The "
            f"table has {', '.join(sorted(has)) or 'no feature'}",
        )
    if name not in REMOVABLE:
        raise _refusal(
            table,
            "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE",
            f"Cannot drop {name} because dropping this feature is not supported. What can be "
            f"dropped: {', '.join(sorted(REMOVABLE & has)) or 'nothing'}",
        )
    if name not in has:
        raise _refusal(
            table,
            "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT",
            f"Cannot drop {name} because it is not currently present in the table's protocol, "
            f"which has {', '.join(sorted(has)) or 'no feature'}",
        )
    if truncate and name not in TRUNCATED:
        raise _refusal(
            table,
            "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
            f"The feature {name} does not require history truncation: leave it out",
        )
    if name == _PROTECTION and not truncate:
        raise _refusal(
            table,
            "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
            f"{name} can only be dropped by truncating history: pass truncate_history=True",
        )
    needing = sorted(each for each in has & FEATURES.keys() if name in FEATURES[each].requires)
    if needing:
        raise _refusal(
            table,
            "DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
            f"Cannot drop {name} because {', '.join(needing)} in this table depends on it. Drop "
            "those first",
        )
    return name


def _refusal(table: str, condition: str, why: str) -> DeltaAnalysisError:
    return DeltaAnalysisError(f"[{condition}] {table}: {why}.", table=table)


def _too_early(log: DeltaLog, feature: str, condition: str) -> DeltaAnalysisError:
    return _refusal(
        log.table,
        f"DELTA_FEATURE_DROP_{condition}",
        f"{feature} is no longer used in the current version of the table, but older versions "
        "still need it, so it can't be dropped with truncate_history yet. Call drop_feature again "
        "once they are older than delta.dropFeatureTruncateHistory.retentionDuration (24 hours "
        "where it is not set), or call it without truncate_history",
    )


def _barrier(log: DeltaLog) -> None:
    """A version that changes nothing, with a checkpoint.

    A client that reads the table from such a checkpoint on finds no trace of the feature.
    """
    version = log.start_transaction().commit([], Operation("Empty Commit"))
    log.checkpoint(version)


def _commit(log: DeltaLog, feature: str, *, truncate: bool, protects: bool) -> int:
    """Change the protocol, in the version right after one that does not use the feature."""
    for _ in range(_ATTEMPTS):
        txn = log.start_transaction()
        snapshot = txn.snapshot
        assert snapshot is not None
        if is_used(feature, snapshot):
            break
        plus = [_PROTECTION] if protects else []
        protocol = protocol_without(snapshot.protocol, feature, plus=plus)
        metadata = _metadata(txn.metadata, feature)
        if protects:
            record = {_PROTECTED: str(txn.reads.version + 1)}
            metadata = replace(metadata, configuration={**metadata.configuration, **record})
        txn.changes.update_metadata_for_restore(metadata, protocol)
        operation = Operation("DROP FEATURE", {"featureName": feature, "truncateHistory": truncate})
        try:
            return txn.commit_large(_domains(snapshot, feature), operation, protocol=protocol)
        except ConcurrentWriteException:
            continue  # the version that won may have brought the feature back: look again
    raise _refusal(
        log.table,
        "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
        f"Cannot drop {feature} because a concurrent transaction modified the table. Stop writers "
        "that use it, and drop it again",
    )


def _metadata(metadata: Metadata, feature: str) -> Metadata:
    gone: tuple[str, ...] = {"rowTracking": _ROW_TRACKING, _PROTECTION: (_PROTECTED,)}.get(
        feature, ()
    )
    kept = {key: value for key, value in metadata.configuration.items() if key not in gone}
    return replace(metadata, configuration=kept)


def _domains(snapshot: Snapshot, feature: str) -> list[DomainMetadata]:
    mark = snapshot.domain_metadata.get(ROW_TRACKING_DOMAIN)
    return [replace(mark, removed=True)] if feature == "rowTracking" and mark else []


def _drop_protection(log: DeltaLog) -> int:
    """Drop the protection once everything that it protects has gone."""
    _barrier(log)
    cut_history(log)
    below = int(log.update().properties.get(_PROTECTED))
    if earliest_version(log) < below:
        raise _refusal(
            log.table,
            "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
            f"the versions before {below} may need features that were dropped, and are not older "
            "than delta.dropFeatureTruncateHistory.retentionDuration yet. Call it again later",
        )
    return _commit(log, _PROTECTION, truncate=True, protects=False)
