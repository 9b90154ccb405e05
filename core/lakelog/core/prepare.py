"""Checks on a commit before it is tried, and the form in which it goes to the log."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.core.actions import (
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from lakelog.core.cdc_checks import check_mapping_with_cdc
from lakelog.core.commit_provenance import commit_info
from lakelog.core.conf import full_key
from lakelog.core.errors import (
    AppendOnlyError,
    DeltaAnalysisError,
    UnsupportedFeatureError,
)
from lakelog.core.file_checks import check_files
from lakelog.core.isolation import (
    ROW_TRACKING_DOMAIN,
    IsolationLevel,
    adds_only,
    resolve_isolation,
)
from lakelog.core.log_values import check_actions, check_operation
from lakelog.core.properties import TableProperties
from lakelog.core.protocol import (
    check_covers,
    check_legal,
    check_transition,
    check_writable,
    may_drop_features,
    supported_features,
)
from lakelog.core.redirects import check_redirect

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.conf import DeltaConf
    from lakelog.core.operations import Operation

__all__ = [
    "CommitRequest",
    "PreparedCommit",
    "append_only_error",
    "metadata_absent_error",
    "prepare_commit",
]

logger = logging.getLogger("lakelog")
_PARTITION_CHECK = "partitionColumnChangeCheck"
"""Delta's own default is `log-only`: files of two partitionings in one table are safe nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """What a transaction hands over to be prepared."""

    table: str
    conf: DeltaConf
    txn_id: str
    read_version: int
    now_ms: int
    old_metadata: Metadata | None
    """That of the snapshot; None for a new table."""
    old_protocol: Protocol | None
    metadata: Metadata | None
    """What the transaction changes it to; None for no change."""
    protocol: Protocol | None
    actions: Sequence[Action]
    operation: Operation
    read_nothing: bool
    """Whether no predicate and no file was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCommit:
    """A commit that passed every check that needs no other commit."""

    commit_info: CommitInfo
    actions: tuple[Action, ...]
    """In the order of the log, without the commitInfo."""
    metadata: Metadata
    """Of the table after the commit."""
    protocol: Protocol
    isolation: IsolationLevel
    is_blind_append: bool


def prepare_commit(request: CommitRequest) -> PreparedCommit:
    """Check a commit and bring it into its final form, in the order of Delta's `prepareCommit`.

    That metadata and protocol change at most once, and what new metadata must be, was checked
    when they were set.

    Raises:
        DeltaAnalysisError: the actions contradict each other, the table, or its properties, or
            hold a value of another type than the log has.
        AppendOnlyError: it removes data from a table that only grows.
        UnsupportedFeatureError: the table needs what this client does not have.
    """
    check_operation(request.operation)
    check_actions((request.metadata, request.protocol, *request.actions))
    name = request.operation.name
    check_redirect(request.old_metadata, name, request.conf, request.table)
    metadata, protocol = _effective(request)
    others = _distinct_transactions(
        action
        for action in request.actions
        if not isinstance(action, Metadata | Protocol | CommitInfo)
    )
    if protocol is not request.old_protocol:
        check_legal(protocol, request.table)
    check_writable(protocol, metadata, request.table)
    _check_covers(request, metadata, protocol)
    check_mapping_with_cdc(request.old_metadata, metadata, others, name)
    _check_partitioning(request, metadata)
    if request.old_protocol is not None and not may_drop_features(name, request.conf):
        check_transition(request.old_protocol, protocol)
    properties = TableProperties(metadata.configuration)
    _check_append_only(request, others)
    check_files(
        others, metadata, protocol, request.conf, request.table, operation=request.operation
    )
    _check_domains(others, protocol, request.table)
    level = resolve_isolation(
        IsolationLevel.parse(properties.isolation_level),
        [*_heads(request), *others],
        operation_changes_data=request.operation.changes_data,
    )
    blind = request.read_nothing and adds_only(others)
    return PreparedCommit(
        commit_info=commit_info(
            request.operation,
            others,
            request.conf,
            txn_id=request.txn_id,
            now_ms=request.now_ms,
            read_version=request.read_version,
            isolation=level,
            is_blind_append=blind,
        ),
        actions=(*_heads(request), *others),
        metadata=metadata,
        protocol=protocol,
        isolation=level,
        is_blind_append=blind,
    )


def _effective(request: CommitRequest) -> tuple[Metadata, Protocol]:
    """Metadata and protocol of the table after the commit."""
    metadata = request.metadata or request.old_metadata
    if metadata is None:
        raise metadata_absent_error(request.table)
    protocol = request.protocol or request.old_protocol
    if protocol is None:
        raise DeltaAnalysisError(
            f"the first commit of {request.table} has no protocol: call update_metadata first",
            table=request.table,
        )
    return metadata, protocol


def _check_covers(request: CommitRequest, metadata: Metadata, protocol: Protocol) -> None:
    old_metadata, old_protocol = request.old_metadata, request.old_protocol
    if metadata is old_metadata and protocol is old_protocol:
        return
    before = None
    if old_metadata is not None and old_protocol is not None:
        before = old_protocol, old_metadata
    check_covers(protocol, metadata, request.table, before)


def metadata_absent_error(table: str) -> DeltaAnalysisError:
    """The refusal of a first commit that does not say what the table is."""
    return DeltaAnalysisError(
        f"[DELTA_METADATA_ABSENT] Couldn't find Metadata while committing the first version "
        f"of the Delta table {table}: call update_metadata first.",
        table=table,
    )


def _heads(request: CommitRequest) -> list[Action]:
    """Metadata and protocol, in the order of delta-spark: protocol first in a new table."""
    if request.old_metadata is None:
        return [each for each in (request.protocol, request.metadata) if each is not None]
    return [each for each in (request.metadata, request.protocol) if each is not None]


def _distinct_transactions(actions: Iterable[Action]) -> list[Action]:
    """Drop a `txn` that repeats an earlier one.

    Raises:
        DeltaAnalysisError: two versions for one application.
    """
    seen: dict[str, int] = {}
    out: list[Action] = []
    for action in actions:
        if isinstance(action, SetTransaction):
            before = seen.get(action.app_id)
            if before is not None and before != action.version:
                raise DeltaAnalysisError(
                    f"one commit can't set two versions of the application {action.app_id!r}: "
                    f"{before} and {action.version}",
                    app_id=action.app_id,
                )
            if before is not None:
                continue
            seen[action.app_id] = action.version
        out.append(action)
    return out


def _check_partitioning(request: CommitRequest, metadata: Metadata) -> None:
    old = request.old_metadata
    if old is None or list(old.partition_columns) == list(metadata.partition_columns):
        return
    if request.operation.may_change_partitioning:
        return
    mode = request.conf.get_str(_PARTITION_CHECK, "true").lower()
    if mode not in ("true", "log-only", "false"):
        raise DeltaAnalysisError(
            f"the conf {full_key(_PARTITION_CHECK)} must be true, log-only or false, but it is "
            f"{mode!r}",
            value=mode,
        )
    text = (
        f"[DELTA_UNSUPPORTED_PARTITION_COLUMN_CHANGE] {request.table}: the operation "
        f"{request.operation.name} can't change the partition columns from "
        f"{list(old.partition_columns)} to {list(metadata.partition_columns)}. Overwrite the "
        "table with overwriteSchema=true."
    )
    if mode == "true":
        raise DeltaAnalysisError(text, table=request.table)
    if mode == "log-only":
        logger.warning("%s", text)


def _check_append_only(request: CommitRequest, actions: Iterable[Action]) -> None:
    if request.old_metadata is None:
        return
    if not TableProperties(request.old_metadata.configuration).append_only:
        return
    for action in actions:
        if isinstance(action, RemoveFile) and action.data_change:
            raise append_only_error(request.table)


def append_only_error(table: str) -> AppendOnlyError:
    """The refusal to remove data from a table that only grows."""
    return AppendOnlyError(
        "[DELTA_CANNOT_MODIFY_APPEND_ONLY] This table is configured to only allow appends: "
        f"{table}. If you would like to permit updates or deletes, set its property "
        "delta.appendOnly to false.",
        table=table,
    )


def _check_domains(actions: Iterable[Action], protocol: Protocol, table: str) -> None:
    seen: set[str] = set()
    for action in actions:
        if not isinstance(action, DomainMetadata):
            continue
        if action.domain == ROW_TRACKING_DOMAIN:
            raise DeltaAnalysisError(
                f"{table}: manually setting the Row ID high water mark is not allowed. Leave the "
                f"domain {ROW_TRACKING_DOMAIN!r} out: the commit itself keeps it.",
                table=table,
                domain=action.domain,
            )
        if action.domain in seen:
            raise DeltaAnalysisError(
                f"[DELTA_DUPLICATE_DOMAIN_METADATA_INTERNAL_ERROR] two domain metadata actions "
                f"for the domain {action.domain!r} in one commit to {table}",
                table=table,
                domain=action.domain,
            )
        seen.add(action.domain)
        if "domainMetadata" not in supported_features(protocol):
            raise UnsupportedFeatureError(
                f"[DELTA_DOMAIN_METADATA_NOT_SUPPORTED] {table} can't hold metadata of the domain "
                f"{action.domain!r}: its protocol lacks the feature domainMetadata. Set the "
                "property delta.feature.domainMetadata=supported first.",
                table=table,
                features=["domainMetadata"],
                access="write",
            )
