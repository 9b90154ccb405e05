"""Cutting a table's history, and looking for what is left of a feature in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.alter.feature_removal.traces import is_used, uses
from lakelog.core.checkpoints.log_cleanup import clean_log
from lakelog.core.errors import DeltaError
from lakelog.core.log.commit_file import read_commit
from lakelog.core.log.segment import list_log

if TYPE_CHECKING:
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.log.commit_file import Commit

_MINUTE_MS = 60_000
_RETENTION = "delta.dropFeatureTruncateHistory.retentionDuration"


def cut_history(log: DeltaLog) -> None:
    """Delete versions older than `delta.dropFeatureTruncateHistory.retentionDuration`.

    Raises:
        OSError: the storage can't be listed.
    """
    snapshot = log.update()
    keep = snapshot.properties.get(_RETENTION)
    clean_log(snapshot, log.clock, keep_ms=keep, unit_ms=_MINUTE_MS)


def earliest_version(log: DeltaLog) -> int:
    """The oldest version whose commit or checkpoint is in the log."""
    listing = list_log(log.store, log.table)
    versions = [*listing.commits, *(each.version for each in listing.checkpoints)]
    return min(versions, default=0)


def oldest_with(log: DeltaLog, feature: str) -> int | None:
    """The oldest version in the log that needs a feature of its readers; `None` for none.

    Reads every commit that the log has, and the oldest checkpoint.
    """
    if feature == "vacuumProtocolCheck":
        return None  # it leaves no traces
    listing = list_log(log.store, log.table)
    for checkpoint in sorted(listing.checkpoints, key=lambda each: each.version):
        if feature == "v2Checkpoint" and checkpoint.is_v2:
            return checkpoint.version
    earliest = min((each.version for each in listing.checkpoints), default=None)
    if earliest is not None and _uses_at(log, earliest, feature):
        return earliest
    for version in sorted(listing.commits):
        if _in_commit(feature, read_commit(log.store, log.table, version)):
            return version
    return None


def _in_commit(feature: str, commit: Commit) -> bool:
    if commit.metadata is not None and uses(feature, commit.metadata):
        return True
    if feature != "deletionVectors":
        return False
    columns = (rows["deletion_vector"] for rows in (commit.added(), commit.removed()))
    return any(each.null_count < len(each) for each in columns)


def _uses_at(log: DeltaLog, version: int, feature: str) -> bool:
    try:
        return is_used(feature, log.snapshot_at(version))
    except DeltaError:
        return True  # what can't be read may use anything
