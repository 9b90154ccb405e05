"""Setting and removing properties of an existing table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.actions.operation import Operation, json_text
from lakelog.core.alter.row_tracking import enablement_tags, give_row_ids
from lakelog.core.arguments import read_arguments
from lakelog.core.delta_log import begin_change, log_of
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.property_table import FEATURE_STATES
from lakelog.core.features.table_properties import (
    CONSTRAINT_PREFIX,
    FEATURE_PREFIX,
    PSEUDO_PROPERTIES,
    validate_properties,
)
from lakelog.core.input.given_types import property_texts
from lakelog.core.metadata.row_tracking_rules import ENABLED
from lakelog.core.schema.rules import as_list
from lakelog.core.telemetry.switch import command

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lakelog.core.actions import Metadata, Protocol
    from lakelog.core.delta_log import DeltaLog, TableOrLog
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.transaction.optimistic import OptimisticTransaction

KEPT_BY_THE_TABLE = frozenset(
    {
        "delta.columnMapping.maxColumnId",
        "delta.inCommitTimestampEnablementTimestamp",
        "delta.inCommitTimestampEnablementVersion",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
        "delta.rowTracking.materializedRowIdColumnName",
    }
)
"""Properties that clients write and users do not."""

_COMMENT = "comment"  # Spark's name for what COMMENT ON TABLE sets


@command("set properties")
def set_properties(
    uri: TableOrLog,
    properties: Mapping[str, str | bool | int],
    *,
    conf: Mapping[str, str] | None = None,
) -> int:
    """Set table properties, and switch on the features that they need (`SET TBLPROPERTIES`).

        set_properties("/lake/flights", {"delta.appendOnly": "true"})
        set_properties("/lake/flights", {"delta.feature.domainMetadata": "supported"})

    `delta.feature.<name>`, `delta.minReaderVersion` and `delta.minWriterVersion` change the table's
    protocol and are not stored; these changes can't be undone. `comment` is what the table is
    described by, as in Delta's SQL.

    Where `delta.enableRowTracking` is switched on, every file gets its row ids first, as with
    `enable_row_tracking`.

    Args:
        uri: where the table is, or its `DeltaLog`.
        properties: names, in any case, and values. Names without `delta.` are the user's own.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.

    Returns:
        The version that holds the change; the current version where nothing changes.

    Raises:
        TableNotFoundError: there is no table.
        DeltaAnalysisError: an unknown property, a bad value, or one that does not fit the table.
        UnsupportedFeatureError: we could not write the table any more.
        DeltaConcurrentModificationException: another writer changed metadata or protocol.
    """
    log = log_of(uri, conf)
    txn = begin_change(log)
    texts = property_texts(properties)
    comments = {k: v for k, v in texts.items() if k.lower() == _COMMENT}
    given = _settable(txn, {k: v for k, v in texts.items() if k not in comments})
    if ENABLED in given:
        give_row_ids(log, given)
        txn = log.start_transaction()
    wanted = {**txn.metadata.configuration, **given}
    parameters = {"properties": json_text({**given, **comments})}
    operation = Operation("SET TBLPROPERTIES", parameters, tags=enablement_tags(given))
    return _commit(txn, wanted, operation, next(iter(comments.values()), None))


@read_arguments
@command("unset properties")
def unset_properties(
    uri: TableOrLog,
    names: str | Iterable[str],
    *,
    if_exists: bool = False,
    conf: Mapping[str, str] | None = None,
) -> int:
    """Remove table properties, so that their defaults hold (`UNSET TBLPROPERTIES`).

    Args:
        uri: where the table is, or its `DeltaLog`.
        names: of the properties, in any case.
        if_exists: whether to ignore properties that are not set.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.

    Returns:
        The version that holds the change; the current version where nothing changes.

    Raises:
        TableNotFoundError: there is no table.
        DeltaAnalysisError: a property that is not set, or one that changes the protocol.
        DeltaConcurrentModificationException: another writer changed metadata or protocol.
    """
    txn = begin_change(uri, conf)
    asked = as_list(names)
    wanted = _without(txn, asked, if_exists=if_exists)
    # Delta's SQL looks for the names itself before, and always records true.
    parameters = {"properties": json_text(asked), "ifExists": True}
    return _commit(txn, wanted, Operation("UNSET TBLPROPERTIES", parameters))


def _without(txn: OptimisticTransaction, asked: list[str], *, if_exists: bool) -> dict[str, str]:
    """The properties that are left."""
    by_lower = {key.lower(): key for key in txn.metadata.configuration}
    for name in asked:
        lowered = name.lower()
        if lowered.startswith(FEATURE_PREFIX) or lowered in map(str.lower, PSEUDO_PROPERTIES):
            raise DeltaAnalysisError(
                f"{txn.delta_log.table}: {name} sets the protocol version or a feature and is not "
                "stored as a property. To remove a feature use lakelog.core.alter.drop_feature.",
                property=name,
            )
        if lowered not in by_lower and not if_exists:
            known = ", ".join(sorted(txn.metadata.configuration)) or "none"
            raise DeltaAnalysisError(
                f"[DELTA_UNSET_NON_EXISTENT_PROPERTY] {txn.delta_log.table}: the property {name} "
                f"is not set; the properties that are set: {known}. To ignore names that are not "
                "set, pass if_exists=True.",
                property=name,
            )
    gone = {by_lower[name.lower()] for name in asked if name.lower() in by_lower}
    for name in gone:
        _check_settable(txn, name)
    return {key: value for key, value in txn.metadata.configuration.items() if key not in gone}


def _settable(
    txn: OptimisticTransaction, properties: Mapping[str, str | bool | int]
) -> dict[str, str]:
    """The properties as they are stored, checked against the table."""
    given = validate_properties(property_texts(properties), txn.delta_log.conf)
    checks = sorted(key for key in given if key.startswith(CONSTRAINT_PREFIX))
    if checks:
        raise DeltaAnalysisError(
            f"[DELTA_ADD_CONSTRAINTS] {txn.delta_log.table}: {checks[0]} can't be set as a "
            "property: the existing rows must be checked first. Use add_constraint; only new "
            "tables accept constraints as properties.",
            property=checks[0],
        )
    for name in given:
        _check_settable(txn, name)
    return given


def _check_settable(txn: OptimisticTransaction, name: str) -> None:
    table = txn.delta_log.table
    if name in KEPT_BY_THE_TABLE:
        raise DeltaAnalysisError(
            f"{table}: the property {name} is managed by the table itself; leave it out.",
            property=name,
        )
    if name == f"{FEATURE_PREFIX}clustering":
        raise DeltaAnalysisError(
            "[DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED] Cannot enable the table "
            f"feature clustering of {table} by a property: choose the columns with "
            "lakelog.core.alter.cluster_by.",
            property=name,
        )


def _commit(
    txn: OptimisticTransaction,
    wanted: Mapping[str, str],
    operation: Operation,
    description: str | None = None,
) -> int:
    before = txn.metadata
    described = before.description if description is None else description
    txn.update_metadata(replace(before, configuration=wanted, description=described))
    if txn.metadata == before and txn.changes.new_protocol is None:
        return txn.reads.version
    return txn.commit([], operation)


def planned_properties(
    log: DeltaLog,
    properties: Mapping[str, str | bool | int] | None = None,
    names: Iterable[str] = (),
) -> tuple[Snapshot, Metadata, Protocol]:
    """What the table would be after `set_properties` or `unset_properties`; commits nothing.

    Args:
        log: the table.
        properties: what would be set.
        names: or what would be removed.

    Returns:
        The version that was looked at; metadata and protocol after the change.

    Raises:
        DeltaError: what the command would refuse.
    """
    txn = begin_change(log)
    snapshot = txn.snapshot
    assert snapshot is not None
    later: dict[str, str] = {}
    if properties:
        wanted = {**txn.metadata.configuration, **_settable(txn, properties)}
        enabled = snapshot.terms.is_row_tracking_enabled
        if not enabled and wanted.get(ENABLED, "").lower() == "true":
            # Every file gets row ids first, by commits of their own, and they let this one pass.
            later = {ENABLED: wanted.pop(ENABLED)}
            wanted[f"{FEATURE_PREFIX}rowTracking"] = FEATURE_STATES[0]
    else:
        wanted = _without(txn, as_list(names), if_exists=False)
    txn.update_metadata(replace(txn.metadata, configuration=wanted))
    metadata = replace(txn.metadata, configuration={**txn.metadata.configuration, **later})
    return snapshot, metadata, txn.changes.protocol
