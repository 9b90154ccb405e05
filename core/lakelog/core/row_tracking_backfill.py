"""Enabling row tracking in a table that exists: first every file gets its ids, then it is said.

As delta-spark does it: the feature is added, so that from then on every commit assigns ids; the
files that were there before are added once more, with ids and without change of data, in batches;
then the property tells readers that all files have them. Each step is a commit of its own, and may
be repeated: a run that was interrupted is taken up by the next.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.compute import pc
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.file_table import to_add_files
from lakelog.core.operations import Operation, json_text
from lakelog.core.properties import TableProperties
from lakelog.core.protocol import supported_features
from lakelog.core.row_tracking import BACKFILL, is_row_tracking_enabled
from lakelog.core.row_tracking_names import ENABLED, SUSPENDED
from lakelog.core.winners import ENABLEMENT_ONLY_TAG

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.transaction import OptimisticTransaction

__all__ = ["enable_row_tracking", "enablement_tags", "give_row_ids"]

_BATCH_KEY = "rowTracking.backfill.maxNumFiles"
_BATCH = 22_000


def enable_row_tracking(log: DeltaLog) -> int:
    """Give every row of a table an id, and keep it so (`delta.enableRowTracking`).

    Others may write to the table meanwhile. Clients that do not know the table feature
    `rowTracking` can't write to it any more afterwards; they still read it.

    Args:
        log: the table. Its conf `spark.databricks.delta.rowTracking.backfill.maxNumFiles` says how
            many files one commit may give ids to (22000).

    Returns:
        The version that holds the last change; the table's present one where nothing was to do.

    Raises:
        TableNotFoundError: there is no table.
        DeltaAnalysisError: row tracking is suspended, or a file does not say how many rows it has.
        DeltaConcurrentModificationException: another writer changed the metadata or the protocol
            at the same moment; call it again.
    """
    snapshot = log.update()
    if is_row_tracking_enabled(snapshot.protocol, snapshot.metadata):
        return snapshot.version
    give_row_ids(log, {ENABLED: "true"})
    return _enable(log)


def give_row_ids(log: DeltaLog, properties: Mapping[str, str]) -> None:
    """Make a table ready for row tracking, if properties enable it and it is not enabled yet.

    With `spark.databricks.delta.rowTracking.backfill.enabled=false` nothing is made ready.

    Args:
        log: the table, which exists.
        properties: what will be set, checked.

    Raises:
        DeltaError: as `enable_row_tracking`.
    """
    snapshot = log.update()
    wanted = TableProperties({**snapshot.metadata.configuration, **properties})
    if is_row_tracking_enabled(snapshot.protocol, snapshot.metadata) or not wanted.get(ENABLED):
        return
    if wanted.get(SUSPENDED):
        raise DeltaAnalysisError(
            f"[DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION] {log.table}: row tracking can't be "
            f"enabled while {SUSPENDED} is true. Set it to false first.",
            table=log.table,
            properties=[ENABLED, SUSPENDED],
        )
    if not log.conf.get_bool("rowTracking.backfill.enabled", True):
        return
    size = log.conf.get_int(_BATCH_KEY, _BATCH)
    if "rowTracking" not in supported_features(snapshot.protocol):
        log.upgrade_protocol(features=["rowTracking"])
    _backfill(log, size)


def enablement_tags(properties: Mapping[str, str]) -> dict[str, str]:
    """The tags of a commit that sets these properties: whether it only enables row tracking."""
    only = properties.keys() == {ENABLED} and properties[ENABLED].lower() == "true"
    return {ENABLEMENT_ONLY_TAG: "true"} if only else {}


def _backfill(log: DeltaLog, size: int) -> None:
    batch = 0
    while True:
        txn = log.start_transaction()
        assert txn.snapshot is not None
        files = _without_ids(txn.snapshot.file_table)
        if not files.num_rows:
            return
        _commit_batch(txn, files.slice(0, max(size, 1)), batch)
        batch += 1


def _without_ids(files: pa.Table) -> pa.Table:
    lacking = pc.or_(
        pc.is_null(files["base_row_id"]), pc.is_null(files["default_row_commit_version"])
    )
    return files.filter(lacking)


def _commit_batch(txn: OptimisticTransaction, files: pa.Table, batch: int) -> None:
    txn.track_files_read(files)
    operation = Operation(BACKFILL, {"batchId": str(batch)})
    txn.commit(to_add_files(files), operation)


def _enable(log: DeltaLog) -> int:
    txn = log.start_transaction()
    given = {ENABLED: "true"}
    wanted = {**txn.metadata.configuration, **given}
    txn.update_metadata(replace(txn.metadata, configuration=wanted))
    said = {"properties": json_text(given)}
    return txn.commit([], Operation("SET TBLPROPERTIES", said, tags=enablement_tags(given)))
