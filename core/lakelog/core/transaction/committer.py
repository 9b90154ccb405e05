"""From what a transaction read and changes to a version of the table.

1. What it commits is prepared: checked against the snapshot that was read, and brought into its
   form (`commit.prepare`). Whatever is wrong with it is found before a byte is sent.
2. It is committed by itself, with others that wait (`group`), or as a stream of actions
   (`large_commit`).
3. The table's log gets to know it, and the hooks run.
"""

from __future__ import annotations

import contextlib
import uuid
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lakelog.core import keys
from lakelog.core.actions import (
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from lakelog.core.commit.attempt import Landing
from lakelog.core.commit.commit_settings import CommitSettings
from lakelog.core.commit.draft import first_draft
from lakelog.core.commit.fence import gone_error
from lakelog.core.commit.lock import LockKind, hold_lock, lock_for
from lakelog.core.commit.loop import CommitLoop
from lakelog.core.commit.prepare import (
    ActionChecks,
    CommitRequest,
    PreparedCommit,
    metadata_absent_error,
    prepare_commit,
)
from lakelog.core.commit.report import tell_other_table
from lakelog.core.conf import DeltaConf
from lakelog.core.conflicts.checker import PendingCommit
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    DeltaAnalysisError,
    DeltaConcurrentModificationException,
    LogGapError,
    MaxCommitAttemptsExceededError,
    PostCommitError,
)
from lakelog.core.events import CommitOutcome
from lakelog.core.features.identity_columns import IDENTITY_TAG
from lakelog.core.features.isolation import IsolationLevel
from lakelog.core.hooks.checksum import checksum_hook
from lakelog.core.hooks.manifest_hook import SymlinkManifestHook
from lakelog.core.hooks.post_commit import (
    CommittedTransaction,
    checkpoint_hook,
    commit_interrupted,
    post_commit,
)
from lakelog.core.hooks.publishing import publish_hook
from lakelog.core.progress import progress_callback
from lakelog.core.schema.rules import partition_schema
from lakelog.core.telemetry.catalogue import COMMIT
from lakelog.core.telemetry.switch import observed_wait, observing
from lakelog.core.transaction.group import (
    Fate,
    Joined,
    Member,
    Watch,
    group_of,
    joint_actions,
    joint_operation,
    may_join,
)
from lakelog.core.transaction.open_transactions import remember
from lakelog.core.transaction.recorded_reads import Reads
from lakelog.core.transaction.recording import current_batch, note_commit, recorded
from lakelog.core.transaction.transaction_changes import Changes
from lakelog.logstores import Scope
from lakelog.logstores.limits import call_with, limited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.actions.operation import Operation
    from lakelog.core.commit.lock import LockChoice
    from lakelog.core.conflicts.winner import WinningCommit
    from lakelog.core.events import CommitStats
    from lakelog.core.hooks import AnyHook
    from lakelog.core.progress import GivenProgress, ProgressCallback
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.table_log import TableLog
    from lakelog.core.telemetry.switch import Seen

_Version = TypeVar("_Version", int, int | None)
_USUAL_HOOKS: Final = (checkpoint_hook, checksum_hook)
_HOOKS_BY_NAME: Final = (*_USUAL_HOOKS, publish_hook)
"""Where a catalog governs the table."""


active_transaction: ContextVar[Any] = ContextVar("lakelog_active", default=None)
"""The `OptimisticTransaction` that `DeltaLog.with_new_transaction` runs in this thread, if any."""


class Committer:
    """Commits what a transaction reads and changes: once, alone or with others of its process."""

    def __init__(
        self, delta_log: TableLog, reads: Reads, changes: Changes, *, is_newest: bool = True
    ) -> None:
        """Begin, at the moment that the table was read.

        Args:
            delta_log: the table.
            reads: what the transaction reads.
            changes: what it changes of metadata and protocol.
            is_newest: whether the storage was asked for what is read; where it was not, what this
                process has just committed need not be looked at either.
        """
        self.delta_log = delta_log
        self._reads, self._changes = reads, changes
        self._snapshot, self._read_version = reads.snapshot, reads.version
        self._table, self._clock = delta_log.table, delta_log.clock
        self._conf = DeltaConf.from_mapping(delta_log.conf)
        self._is_newest = is_newest
        self.txn_id: str = str(uuid.uuid4())
        self.attempts: list[CommitStats] = []
        """One record for each attempt."""
        self._read_at_ms = self._clock.now_ms()
        self._committed = False
        remember(self)
        self._is_anothers = False
        """Whether another process may commit it as well."""
        self._landing = Landing()
        self._fate: Fate | None = None
        """Of the group that commits it, until that is over."""
        self._watch: Watch | None = None
        self._after: CommittedTransaction | None = None
        self._usual = _HOOKS_BY_NAME if self.delta_log.is_governed else _USUAL_HOOKS
        self._hooks: list[AnyHook] = [*self._usual]

    @classmethod
    def of_others(cls, log: TableLog, base: Snapshot, members: Sequence[Joined]) -> Committer:
        """What commits transactions that read nothing, as if they had begun at a snapshot."""
        made = cls(log, Reads(base), Changes(log, base))
        made._changes.has_written = all(each.has_written for each in members)
        for each in members:
            made._reads.record.app_ids |= each.apps
        return made

    @classmethod
    def for_another(cls, log: TableLog, base: Snapshot, joined: Joined) -> Committer:
        """What commits a transaction of another process, in a version that names it."""
        made = cls.of_others(log, base, [joined])
        made.txn_id, made._is_anothers = joined.txn_id, True
        return made

    @property
    def committed(self) -> CommittedTransaction | None:
        """What the hooks got; None before the commit has landed."""
        return self._after

    @property
    def may_be_committed(self) -> bool:
        """See `OptimisticTransaction.may_be_committed`."""
        fate = self._fate
        return (fate is not None and not fate.is_over) or self._landing.is_possible

    @property
    def began_ms(self) -> int | None:
        """For VACUUM: when the transaction began, by the clock; `None` once it is over."""
        return None if self._committed else self._read_at_ms

    @cached_property
    def _lock(self) -> LockChoice:
        """The lock that a commit takes, and why.

        Raises:
            UnsafeLogStoreError: the store can't exclude other writers.
        """
        return lock_for(self.delta_log.store, self._table, self._conf)

    def register_hook(self, hook: AnyHook) -> None:
        """See `OptimisticTransaction.register_post_commit_hook`."""
        if hook not in self._hooks:
            self._hooks.append(hook)

    def run_hooks(self) -> None:
        """See `OptimisticTransaction.run_post_commit_hooks`."""
        if self._after is None:
            raise DeltaAnalysisError(
                "Can't call post commit hooks before committing", table=self._table
            )
        self._post_commit(self._after)

    def _post_commit(
        self, committed: CommittedTransaction, winners: Sequence[WinningCommit] = ()
    ) -> None:
        # Hooks may need transactions of their own, on this table or others.
        call_with(active_transaction, None, lambda: post_commit(committed, self._hooks, winners))

    def commit(self, actions: Sequence[Action], operation: Operation) -> int:
        """See `OptimisticTransaction.commit`."""
        return self._guarded(
            operation, lambda: self._run_in_turn(self._prepare(actions, operation), operation)
        )

    def commit_if_needed(self, actions: Sequence[Action], operation: Operation) -> int | None:
        """See `OptimisticTransaction.commit_if_needed`."""
        return self._guarded(operation, lambda: self._run_if_needed(actions, operation))

    def commit_large(
        self,
        actions: Iterable[Action],
        operation: Operation,
        *,
        protocol: Protocol | None,
        progress: GivenProgress,
    ) -> int:
        """See `OptimisticTransaction.commit_large`."""

        def run() -> int:
            with progress_callback(progress) as report:
                return self._run_large(actions, operation, protocol, report)

        return self._guarded(operation, run)

    def _run_in_turn(self, prepared: PreparedCommit, operation: Operation) -> int:
        read = self._snapshot
        log, together = self.delta_log, self._conf.derived(CommitSettings).together
        # What other processes don't see can't be committed by them.
        leaves = together.is_served or together.is_hosted
        seen = leaves and log.store.capabilities.exclusive_create >= Scope.HOST
        served = seen and together.is_served and not log.is_governed
        hosted = seen and together.is_hosted
        joins = served or hosted or together.is_grouped
        # A hook is handed the actions of one transaction, and a recorded batch is one commit: both
        # commit by themselves.
        usual = self._hooks == [*self._usual] and current_batch.get() is None
        # What an earlier commit of this transaction left open is for the loop to settle.
        joins = joins and not self._landing.is_possible
        if not (usual and read and joins and may_join(prepared, read)):
            if self._is_anothers:
                raise DeltaAnalysisError(
                    "Only an append that read nothing is committed for another process",
                    table=self._table,
                )
            return self._run(prepared)
        self._changes.check_now()  # what is wrong with one is its own failure
        sets = {each.app_id for each in prepared.actions if isinstance(each, SetTransaction)}
        member = Member(
            txn_id=self.txn_id,
            snapshot=read,
            read_at_ms=self._read_at_ms,
            actions=prepared.actions,
            operation=operation,
            apps=frozenset(sets | self._reads.record.app_ids),
            has_written=self._changes.has_written,
            alone=lambda: self._run_apart(member) if self._is_anothers else self._run(prepared),
            together=self._run_together,
            share=self._share,
            after=lambda: self._after,
            may_be_in=lambda base: log.may_hold(
                self.txn_id, range(read.version + 1, base.version + 1)
            ),
            waited=lambda seconds: observed_wait(self._conf, self._table, "turn", seconds),
        )

        def here() -> int:
            if hosted:
                from lakelog.core.transaction.host_commit import HostCommits

                return HostCommits(log).commit(member, lambda: log.known_snapshot)
            if together.is_grouped:
                return group_of(log).commit(member, lambda: log.known_snapshot)
            return member.alone()

        if served:
            from lakelog.core.transaction.service_commit import ServiceCommits

            return ServiceCommits(log).commit(member, here)
        return here()

    def _run_together(self, base: Snapshot, members: Sequence[Joined], watch: Watch | None) -> Fate:
        """One commit of several transactions, this one among them; not made yet."""
        joint = Committer.of_others(self.delta_log, base, members)
        if watch is not None:
            joint.txn_id, joint._watch = watch.txn_id, watch
        joint._read_at_ms = min(each.read_at_ms for each in members)
        return Fate(
            table=self._table,
            txn_id=joint.txn_id,
            landing=joint._landing,
            attempts=joint.attempts,
            run=lambda: joint._run(
                joint._prepare(joint_actions(members), joint_operation(members))
            ),
            after=lambda: joint._after,
        )

    def _run_apart(self, member: Member) -> int:
        """Commit a transaction of another process by itself.

        As a commit of several that holds this one: under the same id its process would take the
        version for a torn one of its own.
        """
        fate = self._run_together(member.snapshot, [member], None)
        self._share(fate)
        try:
            fate.run()
        finally:
            fate.is_over = True
            self._share(fate)
        assert fate.landing.version is not None
        return fate.landing.version

    def _share(self, fate: Fate | None) -> None:
        """Make what becomes of a group that this is a member of its own; `None`: no more."""
        if fate is None:
            self._fate, self._landing, self.attempts = None, Landing(), list(self.attempts)
            return
        self._landing, self.attempts, self._after = fate.landing, fate.attempts, fate.after()
        self._committed = self._after is not None
        # Last, as it is what another thread's Ctrl-C looks at.
        self._fate = None if fate.is_over else fate

    def _run_if_needed(self, actions: Sequence[Action], operation: Operation) -> int | None:
        prepared = self._prepare(actions, operation)
        skips = prepared.isolation is not IsolationLevel.WRITE_SERIALIZABLE
        if not prepared.actions and skips and self._conf.read(keys.SKIP_EMPTY):
            self._committed = True
            return None
        return self._run_in_turn(prepared, operation)

    def _run_large(
        self,
        actions: Iterable[Action],
        operation: Operation,
        protocol: Protocol | None,
        report: ProgressCallback,
    ) -> int:
        from lakelog.core.transaction.large_commit import LargeCommit, after_large_commit

        changes, read = self._changes, self._snapshot
        if read is None and changes.new_metadata is None:
            raise metadata_absent_error(self._table)
        changes.check_now()
        # The protocol is written where it changes, the metadata always.
        final = protocol or changes.protocol
        kept = read is not None and final == read.protocol
        request = replace(
            self._request((), operation),
            metadata=changes.metadata,
            protocol=None if kept else final,
            is_large=True,
        )
        prepared = prepare_commit(request)
        changed = read is None or changes.metadata != read.metadata
        large = LargeCommit(
            log=self.delta_log,
            snapshot=read,
            prepared=prepared,
            check=ActionChecks(request, prepared.terms),
            pending=replace(self._pending(prepared), changes_metadata=changed),
            lock=self._lock,
            read_at_ms=self._read_at_ms,
            attempts=self.attempts,
            landing=self._landing,
        )
        try:
            version = large.commit(actions, report)
        except Exception:
            if self._landing.version is not None:
                # It was interrupted after it had landed, and still needs its checkpoint.
                with contextlib.suppress(Exception):
                    after_large_commit(self.delta_log, self._landing.version)
            raise
        self._committed = True
        after_large_commit(self.delta_log, version)
        return version

    def _guarded(self, operation: Operation, run: Callable[[], _Version]) -> _Version:
        """Run a commit; after it has landed, raise nothing that could mean it has not."""
        self._check_open()
        before = self._changes.pending()
        try:
            version = observing(
                self._conf,
                COMMIT,
                self._table,
                lambda seen: self._observed(seen, run),
                operation=operation.name,
                txn_id=self.txn_id,
            )
            if current_batch.get() is not None:
                note_commit(self._reads)
            return version
        except PostCommitError:
            note_commit(self._reads)
            raise
        except CommitOutcomeUnknownError:
            raise
        except Exception as exc:
            if self._landing.version is None:
                self._changes.restore(before)
                raise
            raise commit_interrupted(self._table, self._landing.version, exc) from exc

    def _observed(self, seen: Seen, run: Callable[[], _Version]) -> _Version:
        try:
            version = run()
        except Exception as exc:
            landed = self._landing.version
            seen.note(version=landed, outcome=_outcome(exc, landed))
            raise
        seen.note(version=version, outcome=_outcome(None, version))
        return version

    def _check_open(self) -> None:
        if self._committed or self._landing.version is not None:
            raise DeltaAnalysisError(
                "Transaction already committed.", table=self._table, txn_id=self.txn_id
            )

    def _prepare(self, actions: Sequence[Action], operation: Operation) -> PreparedCommit:
        if current_batch.get() is not None:
            actions = recorded(self._reads, self.delta_log, actions, operation)
        protocol = self._changes.take(actions)
        if self._changes.only_marks:
            operation = replace(operation, tags={**operation.tags, IDENTITY_TAG: "true"})
        return prepare_commit(self._request(actions, operation, protocol))

    def _request(
        self, actions: Sequence[Action], operation: Operation, protocol: Protocol | None = None
    ) -> CommitRequest:
        return CommitRequest(
            table=self._table,
            conf=self._conf,
            txn_id=self.txn_id,
            read_version=self._read_version,
            now_ms=self._clock.now_ms(),
            old=self._snapshot.terms if self._snapshot else None,
            metadata=self._changes.new_metadata,
            protocol=protocol or self._changes.new_protocol,
            actions=actions,
            operation=operation,
            read_nothing=self._reads.record.is_empty,
            by_name=self.delta_log.is_governed,
        )

    def _pending(self, prepared: PreparedCommit) -> PendingCommit:
        settings = self._conf.derived(CommitSettings)
        return PendingCommit(
            table=self._table,
            read_version=self._read_version,
            partition_schema=(
                self._snapshot.partition_schema
                if self._snapshot
                else partition_schema(
                    prepared.terms.read_schema, prepared.terms.metadata.partition_columns
                )
            ),
            metadata=prepared.terms.metadata,
            protocol=prepared.terms.protocol,
            reads=self._reads.record,
            isolation=prepared.isolation,
            is_blind_append=prepared.is_blind_append,
            changes_metadata=any(isinstance(a, Metadata) for a in prepared.actions),
            changes_protocol=any(isinstance(a, Protocol) for a in prepared.actions),
            removed_paths={
                a.path: a.partition_values for a in prepared.actions if isinstance(a, RemoveFile)
            },
            domains=frozenset(a.domain for a in prepared.actions if isinstance(a, DomainMetadata)),
            operation=prepared.commit_info.operation or "",
            session_tz=settings.session_tz,
            rules=settings.rules,
        )

    def _run(self, prepared: PreparedCommit) -> int:
        if self._snapshot is not None:
            read = self._snapshot.metadata.id
            tell_other_table(self._table, read, prepared.terms.metadata.id, self.txn_id)
        if prepared.terms.keeps_symlink_manifest and any(map(_is_file_action, prepared.actions)):
            self.register_hook(SymlinkManifestHook())
        try:
            draft = first_draft(prepared, self._snapshot, self._table)
        except LogGapError:
            # The time of the version that was read is in its commit, which log cleanup removed.
            raise gone_error(self._table, self._read_version + 1) from None
        loop = CommitLoop(
            self.delta_log.store,
            self._clock,
            self._conf,
            pending=self._pending(prepared),
            draft=draft,
            lock=self._lock,
            read_at_ms=self._read_at_ms,
            attempts=self.attempts,
            read_info=self._snapshot.commit_info if self._snapshot else None,
            read_modified=self._snapshot.state.timestamp if self._snapshot else None,
            landing=self._landing,
            watch=self._watch,
            check=self._changes.check_now if self._changes.has_checks else None,
            was_just_seen=None if self._is_newest else self._was_just_seen(prepared),
        )
        began = self._clock.monotonic()
        budget = self._conf.derived(CommitSettings).limits.seconds
        deadline = began + budget
        with hold_lock(self._lock, self._table, timeout=budget):
            loop.lock_wait = self._clock.monotonic() - began
            if self._lock.kind is not LockKind.NONE:
                observed_wait(self._conf, self._table, "lock", loop.lock_wait)
            try:
                version = loop.do_commit_retry_iteratively()
            finally:
                if self.delta_log.decides_afar:
                    self.delta_log.note_commit(loop.made)
        self._committed = True
        found = loop.found
        self._after = CommittedTransaction(
            delta_log=self.delta_log,
            version=version,
            read_version=self._read_version,
            actions=loop.draft.actions if found is None else found.actions,
            commit_info=(found and found.commit_info) or loop.draft.commit_info,
            metadata=loop.draft.metadata or loop.pending.metadata,
            protocol=loop.pending.protocol,
            read_snapshot=self._snapshot,
            reads=self._reads.record,
            has_written=self._changes.has_written,
            winners=loop.winners,
        )
        after, winners = self._after, loop.winners
        if found is not None:
            # Whoever committed it with others runs those of the version.
            self._hooks = [each for each in self._hooks if each not in self._usual]
        limited(
            lambda: deadline - self._clock.monotonic(), lambda: self._post_commit(after, winners)
        )
        # Only now: the commit is in the table, so its hooks had to run first.
        if loop.failure is not None:
            raise loop.failure
        return version

    def _was_just_seen(self, prepared: PreparedCommit) -> Callable[[], bool] | None:
        """See `CommitLoop`."""
        # Beside a look at its data files, the one at the log costs no time.
        asks = self._changes.has_checks or self._landing.is_possible
        if asks or not prepared.is_blind_append:
            return None
        return lambda: self.delta_log.was_just_made(self._read_version)


def _outcome(error: Exception | None, version: int | None) -> str:
    """How a commit ended, for its span."""
    if version is not None:
        return CommitOutcome.COMMITTED
    match error:
        case None:
            return "nothing to do"
        case CommitOutcomeUnknownError():
            return CommitOutcome.UNKNOWN
        case MaxCommitAttemptsExceededError():
            return CommitOutcome.GIVEN_UP
        case DeltaConcurrentModificationException():
            return CommitOutcome.CONFLICT
        case _:
            return CommitOutcome.FAILED


def _is_file_action(action: Action) -> bool:
    return isinstance(action, AddFile | RemoveFile)
