"""Checks on a commit before it is tried, and the form in which it goes to the log.

Its first line, the `commitInfo`, says who did what, on which version, how isolated.
"""

from __future__ import annotations

import functools
import importlib.metadata
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.core.actions import (
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from lakelog.core.actions.checked_values import check_actions, check_operation
from lakelog.core.catalogs.refusals import refuse_change_of_hands
from lakelog.core.commit.commit_settings import CommitSettings
from lakelog.core.commit.file_checks import check_data_change, check_files
from lakelog.core.conf import full_key
from lakelog.core.errors import (
    AppendOnlyError,
    DeltaAnalysisError,
    UnsupportedFeatureError,
)
from lakelog.core.features.isolation import IsolationLevel
from lakelog.core.features.numbered_rows import ROW_TRACKING_DOMAIN
from lakelog.core.features.protocol import (
    check_covers,
    check_legal,
    check_transition,
    may_drop_features,
)
from lakelog.core.features.redirects import check_redirect
from lakelog.core.features.terms import TableTerms
from lakelog.core.metadata.change_data_feed import (
    check_mapping_with_cdc,
    check_removed_rows_fit,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.actions.operation import Operation
    from lakelog.core.conf import DeltaConf


logger: logging.Logger = logging.getLogger("lakelog")
_PARTITION_CHECK = "partitionColumnChangeCheck"
"""Delta's own default is `log-only`, ours is `true`: no reader copes with files of two
partitionings in one table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """What a transaction hands over to be prepared."""

    table: str
    conf: DeltaConf
    txn_id: str
    read_version: int
    now_ms: int
    old: TableTerms | None
    """Those of the snapshot; None for a new table."""
    metadata: Metadata | None
    """What the transaction changes it to; None for no change."""
    protocol: Protocol | None
    actions: Sequence[Action]
    operation: Operation
    read_nothing: bool
    """Whether no predicate and no file was read."""
    by_name: bool = False
    """Whether a catalog governs the table."""
    is_large: bool = False
    """Whether the actions come one by one, once the commit is on its way: `actions` has none then,
    and `ActionChecks` meets them as they pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCommit:
    """A commit that passed every check that needs no other commit."""

    commit_info: CommitInfo
    actions: tuple[Action, ...]
    """In the order of the log, without the commitInfo."""
    terms: TableTerms
    """Of the table after the commit."""
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
    # Types first: the checks below compare values, and JSON would keep a wrong type for good.
    check_operation(request.operation)
    check_actions((request.metadata, request.protocol, *request.actions))
    name = request.operation.name
    old, settings = request.old, request.conf.derived(CommitSettings)
    # Judged by the metadata that was read: a commit can't lift the redirect that forbids it.
    if old is not None and old.is_redirected:
        check_redirect(old.metadata, name, request.conf, request.table)
    # From here on the table is judged as the commit leaves it; only what forbids the very change,
    # as a redirect and append-only do, is judged by what was read.
    terms = _effective(request)
    # Only a protocol that this commit sets is the caller's mistake. An invalid one that the table
    # already has is a corrupt log, and `check_writable` reports it as one.
    if old is None or terms.protocol is not old.protocol:
        check_legal(terms.protocol, request.table)
    # The table as it will be: a commit must not enable what its own writer can't write.
    if not terms.is_writable:
        terms.check_writable(request.table)
    # By identity: an ordinary append sets neither, and pays for none of these checks.
    if terms is not old:
        _check_changes(request, terms)
    # The transaction has already moved metadata and protocol from the actions into the request. A
    # caller's commitInfo is dropped: ours carries the txnId by which a commit is recognized after a
    # lost reply.
    given = (a for a in request.actions if not isinstance(a, Metadata | Protocol | CommitInfo))
    others = ActionChecks(request, terms)(given)
    actions = (*_metadata_and_protocol(request), *others)
    # What passes later is not known yet: the strictest level, and no claim that nothing was read.
    level, blind = IsolationLevel.SERIALIZABLE, False
    if not request.is_large:
        # As in Delta, the level comes from the metadata that the commit leaves behind, and a new
        # metadata or protocol rules out the downgrade to snapshot isolation.
        level = resolve_isolation(
            terms.isolation_level,
            actions,
            operation_changes_data=request.operation.changes_data,
        )
        # A predicate that matched no file is a read all the same: a concurrent append could match
        # it. Asking for an application's version does not count; the conflict checks treat it
        # separately.
        blind = request.read_nothing and adds_only(others)
    info = commit_info(
        request.operation,
        others,
        settings,
        txn_id=request.txn_id,
        now_ms=request.now_ms,
        read_version=request.read_version,
        isolation=level,
        is_blind_append=blind,
    )
    if request.is_large and settings.records_operation:
        # Delta's large commits always name the version they read, and never say dataChange.
        info = replace(info, read_version=request.read_version, data_change=None)
    return PreparedCommit(
        commit_info=info, actions=actions, terms=terms, isolation=level, is_blind_append=blind
    )


class ActionChecks:
    """What is checked of the actions of one commit, but for metadata and protocol.

    Called with all of them, or with batch after batch of those that do not fit in memory. Only
    what each batch holds is compared with each other, but for what costs no memory to remember.
    """

    def __init__(self, request: CommitRequest, terms: TableTerms) -> None:
        """Check nothing yet.

        Args:
            request: the commit; its actions are those of the calls.
            terms: of the table after it.
        """
        self._request = request
        self._terms = terms
        self._settings = request.conf.derived(CommitSettings)
        self._kinds: set[bool] = set()
        """The values of `dataChange` so far."""

    def __call__(self, given: Iterable[Action]) -> list[Action]:
        """Check some more actions.

        Returns:
            Those that the commit is to hold.

        Raises:
            DeltaAnalysisError: see `prepare_commit`, as for the other errors.
        """
        request, terms, table = self._request, self._terms, self._request.table
        actions, old = _distinct_transactions(given), self._request.old
        # Per call, though they look at metadata: what they refuse is the change beside these
        # actions.
        if old is not None and terms is not old:
            # RESTORE may go back over a change of names: its removed rows are shown in the columns
            # that their files have.
            if not request.is_large:
                check_mapping_with_cdc(old, terms, actions, request.operation.name)
            check_removed_rows_fit(old, terms, actions, request.operation.name)
        _check_append_only(request, actions)
        check_files(actions, terms, self._settings, table, operation=request.operation)
        kinds = {a.data_change for a in actions if isinstance(a, AddFile | RemoveFile)}
        if len(kinds) == 1 and self._kinds and not kinds <= self._kinds:
            # Each batch is of one kind, and together they are of both.
            check_data_change({*kinds, *self._kinds}, self._settings, table)
        self._kinds |= kinds
        # A large commit is not rebased, and takes its domains as they are: to drop row tracking
        # is to remove that of row ids, when the protocol has no domains any more.
        if not request.is_large:
            _check_domains(actions, terms, table)
        return actions


def _effective(request: CommitRequest) -> TableTerms:
    """The table's terms after the commit; the old ones where it changes neither part of them."""
    old = request.old
    metadata = request.metadata or (old.metadata if old else None)
    if metadata is None:
        raise metadata_absent_error(request.table)
    protocol = request.protocol or (old.protocol if old else None)
    if protocol is None:
        raise DeltaAnalysisError(
            f"the first commit of {request.table} has no protocol: call update_metadata first",
            table=request.table,
        )
    # The snapshot's own terms: what is parsed already is not parsed again.
    if old is not None and metadata is old.metadata and protocol is old.protocol:
        return old
    return TableTerms(metadata, protocol)


def _check_changes(request: CommitRequest, terms: TableTerms) -> None:
    """What a change of metadata or protocol must satisfy besides what the commit writes."""
    old, name, table = request.old, request.operation.name, request.table
    before = None if old is None else (old.protocol, old.metadata)
    refuse_change_of_hands(
        None if old is None else old.protocol, terms.protocol, table, by_name=request.by_name
    )
    check_covers(terms.protocol, terms.metadata, table, before)
    # A new table has no names, partitions or features that it could lose.
    if old is None:
        return
    _check_partitioning(request, old.metadata, terms.metadata)
    if not may_drop_features(name, request.conf):
        check_transition(old.protocol, terms.protocol)


def metadata_absent_error(table: str) -> DeltaAnalysisError:
    """The refusal of a first commit that does not say what the table is."""
    return DeltaAnalysisError(
        f"[DELTA_METADATA_ABSENT] Couldn't find Metadata while committing the first version "
        f"of the Delta table {table}: call update_metadata first.",
        table=table,
    )


def _metadata_and_protocol(request: CommitRequest) -> list[Action]:
    """Metadata and protocol, in the order of delta-spark: protocol first in a new table."""
    # To a reader the order means nothing. It is delta-spark's, so that the logs of both can be
    # compared line by line.
    if request.old is None:
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
            # Replay keeps one version per application, and the lines of a commit have no order in
            # the protocol: which of two counts would be up to the reader.
            if before is not None and before != action.version:
                raise DeltaAnalysisError(
                    f"one commit can't set two versions for the application {action.app_id!r}: "
                    f"{before} and {action.version}",
                    app_id=action.app_id,
                )
            if before is not None:
                continue
            seen[action.app_id] = action.version
        out.append(action)
    return out


def _check_partitioning(request: CommitRequest, old: Metadata, metadata: Metadata) -> None:
    if list(old.partition_columns) == list(metadata.partition_columns):
        return
    # Such an operation replaces every file, so none of the old partitioning is left. So does what
    # makes a table of existing files, as RESTORE and CLONE do, which are large commits.
    if request.operation.may_change_partitioning or request.is_large:
        return
    mode = request.conf.read(keys.PARTITIONING).lower()
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
        "table with schema_mode 'overwrite' (Spark's option overwriteSchema=true)."
    )
    if mode == "true":
        raise DeltaAnalysisError(text, table=request.table)
    if mode == "log-only":
        logger.warning("%s", text)


def _check_append_only(request: CommitRequest, actions: Iterable[Action]) -> None:
    # The snapshot's property counts, as in Delta: otherwise one commit could turn it off and delete
    # rows at the same time.
    if request.old is None or not request.old.is_append_only:
        return
    for action in actions:
        # Compaction removes files with dataChange=false: no row is lost.
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


def _check_domains(actions: Iterable[Action], terms: TableTerms, table: str) -> None:
    seen: set[str] = set()
    for action in actions:
        if not isinstance(action, DomainMetadata):
            continue
        # How far ids have been assigned depends on the winners; only `Draft`, which is rebased onto
        # them, knows.
        if action.domain == ROW_TRACKING_DOMAIN:
            raise DeltaAnalysisError(
                f"{table}: manually setting the Row ID high water mark is not allowed. Leave the "
                f"domain {ROW_TRACKING_DOMAIN!r} out: the commit maintains it itself.",
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
        if "domainMetadata" not in terms.features:
            raise UnsupportedFeatureError(
                f"[DELTA_DOMAIN_METADATA_NOT_SUPPORTED] {table} can't hold metadata of the domain "
                f"{action.domain!r}: its protocol lacks the feature domainMetadata. Set the "
                "property delta.feature.domainMetadata=supported first.",
                table=table,
                features=["domainMetadata"],
                access="write",
            )


def commit_info(
    operation: Operation,
    actions: Sequence[Action],
    settings: CommitSettings,
    *,
    txn_id: str,
    now_ms: int,
    read_version: int,
    isolation: IsolationLevel,
    is_blind_append: bool,
) -> CommitInfo:
    """The first line of a commit.

    With `commitInfo.enabled=false` it says nothing about the operation but its name. The line
    itself stays: its `txnId` identifies a commit whose reply was lost, and other writers rely on
    `isBlindAppend` and the tags.

    Args:
        operation: what was done.
        actions: of the commit.
        settings: whether it says more than the name, the note, and whether it has metrics.
        txn_id: of the transaction.
        now_ms: the time, epoch ms.
        read_version: of the transaction; -1 where the table is new.
        isolation: the level that the commit is checked at.
        is_blind_append: whether it only adds, and read nothing.
    """
    if not settings.records_operation:
        return CommitInfo(
            timestamp=now_ms,
            operation=operation.name,
            operation_parameters={},
            is_blind_append=is_blind_append,
            tags=dict(operation.tags) or None,
            txn_id=txn_id,
        )
    note = operation.user_metadata
    if note is None:
        note = settings.user_metadata
    return CommitInfo(
        timestamp=now_ms,
        operation=operation.name,
        operation_parameters=operation.json_parameters(),
        read_version=read_version if read_version >= 0 else None,
        isolation_level=isolation.value,
        is_blind_append=is_blind_append,
        data_change=changes_rows(actions),
        operation_metrics=operation.json_metrics() if settings.records_metrics else None,
        user_metadata=note,
        tags=dict(operation.tags) or None,
        engine_info=engine_info(),
        txn_id=txn_id,
    )


@functools.cache
def engine_info() -> str:
    """`lakelog/<version>`: what `commitInfo.engineInfo` says of us."""
    try:
        return f"lakelog/{importlib.metadata.version('lakelog')}"
    except importlib.metadata.PackageNotFoundError:  # shipped to a cluster as a bare zip
        return "lakelog/unknown"


def resolve_isolation(
    table_level: IsolationLevel, actions: Sequence[Action], *, operation_changes_data: bool
) -> IsolationLevel:
    """Choose the level that one commit is checked at.

    A commit that changes no row (`OPTIMIZE`, an empty commit) needs less than the table's level:
    nothing that others add can make it wrong, so that it runs at snapshot isolation.

    Args:
        table_level: `delta.isolationLevel` of the table as it will be after the commit.
        actions: the prepared actions.
        operation_changes_data: whether the operation's kind is one that changes rows.
    """
    for action in actions:
        if isinstance(action, AddFile | RemoveFile | AddCDCFile):
            if action.data_change:
                return table_level
        # A txn, metadata or a domain may be what another writer goes by, so there is no discount.
        # The mark of row ids is the one that a rebase moves by itself.
        elif not (isinstance(action, DomainMetadata) and action.domain == ROW_TRACKING_DOMAIN):
            return table_level
    if table_level is IsolationLevel.WRITE_SERIALIZABLE and operation_changes_data:
        return table_level
    return IsolationLevel.SNAPSHOT_ISOLATION


def adds_only(actions: Iterable[Action]) -> bool:
    """Whether every file action adds a file; true where there is none.

    With no read recorded this makes a commit a blind append.
    """
    # Other writers believe the flag, and let a blind append pass where they would conflict with any
    # other commit. So whatever may depend on a row counts against it.
    return not any(isinstance(action, RemoveFile | AddCDCFile) for action in actions)


def changes_rows(actions: Iterable[Action]) -> bool:
    """Whether some file action changes rows, as `commitInfo.dataChange` records it."""
    return any(
        action.data_change
        for action in actions
        if isinstance(action, AddFile | RemoveFile | AddCDCFile)
    )
