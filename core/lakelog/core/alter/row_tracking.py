"""Enabling row tracking in an existing table: every file gets its ids, then the property is set.

As delta-spark does it: the feature is added, so that from then on every commit assigns ids; the
files that were there before are added once more, with ids and without change of data, in batches;
then the property promises readers that all files have them. Each step is a commit of its own, and
may be repeated: an interrupted run is continued by the next one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.core.actions.file_table import to_add_files
from lakelog.core.actions.operation import Operation, json_text
from lakelog.core.compute import pc
from lakelog.core.conflicts.winner import ENABLEMENT_ONLY_TAG
from lakelog.core.delta_log import log_of, require_feature
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.numbered_rows import BACKFILL
from lakelog.core.features.protocol import supported_features
from lakelog.core.features.table_properties import TableProperties
from lakelog.core.metadata.row_tracking_rules import ENABLED, SUSPENDED
from lakelog.core.telemetry.switch import command

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from lakelog.core.delta_log import DeltaLog, TableOrLog
    from lakelog.core.transaction.optimistic import OptimisticTransaction


@command("enable row tracking")
def enable_row_tracking(uri: TableOrLog, *, conf: Mapping[str, str] | None = None) -> int:
    """Give every row of a table a stable id (`delta.enableRowTracking`).

    Others may write to the table meanwhile. Afterwards clients that do not support the table
    feature `rowTracking` can still read it but no longer write to it.

    Args:
        uri: where the table is, or its `DeltaLog`.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.
            `spark.databricks.delta.rowTracking.backfill.maxNumFiles` says how many files one
            commit may give ids to (22000).

    Returns:
        The version that holds the last change; the current version where there was nothing to do.

    Raises:
        TableNotFoundError: there is no table.
        DeltaAnalysisError: row tracking is suspended, or a file does not say how many rows it has.
        DeltaConcurrentModificationException: another writer changed the metadata or the protocol
            at the same moment; call it again.
    """
    log = log_of(uri, conf)
    snapshot = log.update()
    if snapshot.terms.is_row_tracking_enabled:
        return snapshot.version
    give_row_ids(log, {ENABLED: "true"})
    return _enable(log)


def give_row_ids(log: DeltaLog, properties: Mapping[str, str]) -> None:
    """Prepare a table for row tracking, if properties enable it and it is not enabled yet.

    With `spark.databricks.delta.rowTracking.backfill.enabled=false` nothing is prepared.

    Args:
        log: the table, which exists.
        properties: what will be set, checked.

    Raises:
        DeltaError: as `enable_row_tracking`.
    """
    snapshot = log.update()
    wanted = TableProperties({**snapshot.metadata.configuration, **properties})
    if snapshot.terms.is_row_tracking_enabled or not wanted.get(ENABLED):
        return
    if wanted.get(SUSPENDED):
        raise DeltaAnalysisError(
            f"[DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION] {log.table}: row tracking can't be "
            f"enabled while {SUSPENDED} is true. Set it to false first.",
            table=log.table,
            properties=[ENABLED, SUSPENDED],
        )
    if not log.conf.read(keys.BACKFILL):
        return
    size = log.conf.read(keys.BACKFILL_FILES)
    if "rowTracking" not in supported_features(snapshot.protocol):
        require_feature(log, "rowTracking")
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
    txn.reads.track_files_read(files)
    operation = Operation(BACKFILL, {"batchId": str(batch)})
    txn.commit(to_add_files(files), operation)


def _enable(log: DeltaLog) -> int:
    txn = log.start_transaction()
    given = {ENABLED: "true"}
    wanted = {**txn.metadata.configuration, **given}
    txn.update_metadata(replace(txn.metadata, configuration=wanted))
    parameters = {"properties": json_text(given)}
    return txn.commit([], Operation("SET TBLPROPERTIES", parameters, tags=enablement_tags(given)))
