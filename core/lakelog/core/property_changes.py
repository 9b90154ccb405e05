"""Properties of a table that exists: setting them, and taking them back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.given_types import property_texts
from lakelog.core.names import several
from lakelog.core.operations import Operation, json_text
from lakelog.core.properties import (
    CONSTRAINT_PREFIX,
    FEATURE_PREFIX,
    PSEUDO_PROPERTIES,
    validate_properties,
)
from lakelog.core.row_tracking_backfill import enablement_tags, give_row_ids
from lakelog.core.row_tracking_names import ENABLED

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from lakelog.core.transaction import OptimisticTransaction

__all__ = ["begin_change", "set_properties", "unset_properties"]

_KEPT_BY_THE_TABLE = frozenset(
    {
        "delta.columnMapping.maxColumnId",
        "delta.inCommitTimestampEnablementTimestamp",
        "delta.inCommitTimestampEnablementVersion",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
        "delta.rowTracking.materializedRowIdColumnName",
    }
)
"""Properties that clients write and users do not."""


def set_properties(
    uri: str | os.PathLike[str],
    properties: Mapping[str, str | bool | int],
    *,
    conf: Mapping[str, str] | None = None,
) -> int:
    """Set table properties, and switch on the features that they need (`SET TBLPROPERTIES`).

        set_properties("/lake/flights", {"delta.appendOnly": "true"})
        set_properties("/lake/flights", {"delta.feature.domainMetadata": "supported"})

    `delta.feature.<name>`, `delta.minReaderVersion` and `delta.minWriterVersion` speak to the
    table's protocol and are not stored; what they ask for can't be taken back.

    Where `delta.enableRowTracking` is switched on, every file gets its row ids first, as with
    `enable_row_tracking`.

    Args:
        uri: the table.
        properties: names, in any case, and values. Names without `delta.` are the user's own.
        conf: the user's whole Spark conf; it chooses the store.

    Returns:
        The version that holds the change; the table's present one where nothing changes.

    Raises:
        TableNotFoundError: there is no table.
        DeltaAnalysisError: an unknown property, a bad value, or one that does not fit the table.
        UnsupportedFeatureError: we could not write the table any more.
        DeltaConcurrentModificationException: another writer changed metadata or protocol.
    """
    txn = begin_change(uri, conf)
    given = validate_properties(property_texts(properties), txn.delta_log.conf)
    checks = sorted(key for key in given if key.startswith(CONSTRAINT_PREFIX))
    if checks:
        raise DeltaAnalysisError(
            f"[DELTA_ADD_CONSTRAINTS] {txn.delta_log.table}: {checks[0]} is no property to set: "
            "the rows that are there must be checked first. Use add_constraint; new tables take "
            "constraints as properties.",
            property=checks[0],
        )
    for name in given:
        _check_settable(txn, name)
    if ENABLED in given:
        give_row_ids(txn.delta_log, given)
        txn = txn.delta_log.start_transaction()
    wanted = {**txn.metadata.configuration, **given}
    parameters = {"properties": json_text(given)}
    operation = Operation("SET TBLPROPERTIES", parameters, tags=enablement_tags(given))
    return _commit(txn, wanted, operation)


def unset_properties(
    uri: str | os.PathLike[str],
    names: str | Iterable[str],
    *,
    if_exists: bool = False,
    conf: Mapping[str, str] | None = None,
) -> int:
    """Take table properties back, so that their defaults hold (`UNSET TBLPROPERTIES`).

    Args:
        uri: the table.
        names: of the properties, in any case.
        if_exists: whether a property that is not set is passed over.
        conf: the user's whole Spark conf; it chooses the store.

    Returns:
        The version that holds the change; the table's present one where nothing changes.

    Raises:
        TableNotFoundError: there is no table.
        DeltaAnalysisError: a property that is not set, or a word to the protocol.
        DeltaConcurrentModificationException: another writer changed metadata or protocol.
    """
    txn = begin_change(uri, conf)
    asked = several(names)
    by_lower = {key.lower(): key for key in txn.metadata.configuration}
    for name in asked:
        lowered = name.lower()
        if lowered.startswith(FEATURE_PREFIX) or lowered in map(str.lower, PSEUDO_PROPERTIES):
            raise DeltaAnalysisError(
                f"{txn.delta_log.table}: {name} is a word to the protocol, and no property that "
                "is stored. A client with ALTER TABLE … DROP FEATURE can take a feature back.",
                property=name,
            )
        if lowered not in by_lower and not if_exists:
            known = ", ".join(sorted(txn.metadata.configuration)) or "none"
            raise DeltaAnalysisError(
                f"[DELTA_UNSET_NON_EXISTENT_PROPERTY] {txn.delta_log.table}: the property {name} "
                f"is not set; set are {known}. To pass over such names, give if_exists=True.",
                property=name,
            )
    gone = {by_lower[name.lower()] for name in asked if name.lower() in by_lower}
    for name in gone:
        _check_settable(txn, name)
    wanted = {key: value for key, value in txn.metadata.configuration.items() if key not in gone}
    # Delta's SQL looks for the names itself before, and always records true.
    parameters = {"properties": json_text(asked), "ifExists": True}
    return _commit(txn, wanted, Operation("UNSET TBLPROPERTIES", parameters))


def _check_settable(txn: OptimisticTransaction, name: str) -> None:
    table = txn.delta_log.table
    if name in _KEPT_BY_THE_TABLE:
        raise DeltaAnalysisError(
            f"{table}: the property {name} is kept by the table itself; leave it out.",
            property=name,
        )
    if name == f"{FEATURE_PREFIX}clustering":
        raise DeltaAnalysisError(
            "[DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED] Cannot enable the table "
            f"feature clustering of {table} by a property: create the table with CLUSTER BY in a "
            "client that clusters.",
            property=name,
        )


def begin_change(
    uri: str | os.PathLike[str], conf: Mapping[str, str] | None
) -> OptimisticTransaction:
    """A transaction on a table that exists.

    Raises:
        TableNotFoundError: there is none.
    """
    log = DeltaLog.for_table(uri, conf)
    txn = log.start_transaction()
    if txn.snapshot is None:
        _ = log.snapshot  # raises, and says what is there instead
    return txn


def _commit(txn: OptimisticTransaction, wanted: Mapping[str, str], operation: Operation) -> int:
    before = txn.metadata
    txn.update_metadata(replace(before, configuration=wanted))
    if txn.metadata == before and txn.new_protocol is None:
        return txn.read_version
    return txn.commit([], operation)
