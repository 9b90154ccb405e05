"""The optimistic transaction: read, write data files, check, commit."""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

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
from lakelog.core.commit.draft import first_draft
from lakelog.core.commit.fence import gone_error
from lakelog.core.commit.lock import hold_lock
from lakelog.core.commit.loop import CommitLoop
from lakelog.core.commit.prepare import (
    CommitRequest,
    PreparedCommit,
    metadata_absent_error,
    prepare_commit,
)
from lakelog.core.commit.report import tell_other_table
from lakelog.core.commit.settings import CommitSettings
from lakelog.core.conflicts.checker import PendingCommit
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    DeltaAnalysisError,
    LogGapError,
    PostCommitError,
)
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
from lakelog.core.progress import told
from lakelog.core.schema.rules import partition_schema
from lakelog.core.transaction.changes import TransactionChanges
from lakelog.core.transaction.group import (
    Fate,
    Member,
    group_of,
    joint_actions,
    joint_operation,
    may_join,
)
from lakelog.core.transaction.open_transactions import remember
from lakelog.core.transaction.recording import current_batch, note_commit, recorded
from lakelog.logstores import keys as store_keys
from lakelog.logstores.limits import call_with, limited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.actions.operation import Operation
    from lakelog.core.conflicts.winner import WinningCommit
    from lakelog.core.hooks import AnyHook
    from lakelog.core.progress import GivenProgress, Tell
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.table_log import TableLog

_Version = TypeVar("_Version", int, int | None)


class OptimisticTransaction(TransactionChanges):
    """One attempt to change a table, made against the snapshot that it was started with.

    It records what is read through it; at `commit` every commit that other writers have made since
    is checked against that record, and only those that can't matter are ignored. It commits once.

        txn = DeltaLog.for_table("/lake/flights").start_transaction()
        doomed = txn.filter_files("date = '2024-01-01'")
        version = txn.commit([f.remove(now) for f in doomed], Operation(name="DELETE"))

    For jobs:

    - what it started from: `snapshot`, `read_version`, `metadata`, `protocol`;
    - reading, so that conflicts are noticed: `filter_files`, `read_whole_table`, `txn_version`;
    - changing the table: `update_metadata`, `update_metadata_for_new_table`;
    - committing: `commit`, `commit_if_needed`, `commit_large`;
    - afterwards: `register_post_commit_hook`, `run_post_commit_hooks`, `may_be_committed`,
      `attempts`.

    For engines that read and write data files themselves, as `write_arrow` and `lakelog.spark` do:

    - reading: `filter_file_table`, `files_in_same_partitions`, `track_files_read`;
    - writing: `file_layout`, `assert_removable`, `advance_identity_columns`, `mark_written`,
      `check_before_commit`;
    - the rest: `new_metadata`, `new_protocol`, `delta_log`, `clock`, `lock_choice`, `txn_id`,
      `active`.

    Not safe for use by several threads.
    """

    def __init__(self, delta_log: TableLog, snapshot: Snapshot | None) -> None:
        """Start; call `DeltaLog.start_transaction` instead.

        Args:
            delta_log: the table.
            snapshot: its newest state; None where no table exists yet.
        """
        super().__init__(delta_log, snapshot)
        self._read_at_ms = delta_log.clock.now_ms()
        self._committed = False
        remember(self)
        self._landing = Landing()
        self._fate: Fate | None = None
        """Of the group that commits it, until that is over."""
        self._after: CommittedTransaction | None = None
        self._hooks: list[AnyHook] = [checkpoint_hook, checksum_hook]

    @property
    def may_be_committed(self) -> bool:
        """Whether the commit is in the log, or may be, or may still land.

        False before the first byte is sent, and again once the storage or another writer's commit
        has proven that it is not there. Only then may the files that it names be deleted: go by
        this and not by the exception that `commit` raised.
        """
        fate = self._fate
        return (fate is not None and not fate.is_over) or self._landing.is_possible

    @property
    def began_ms(self) -> int | None:
        """Internal, for VACUUM: when it began, by the clock; `None` once it is over."""
        return None if self._committed else self._read_at_ms

    def register_post_commit_hook(self, hook: AnyHook) -> None:
        """Add a hook that runs after the commit, in order of registration, each only once.

        Args:
            hook: a `PostCommitHook`, or a function of a `CommittedTransaction`. Its failure is
                logged, and then handed to it (`PostCommitHook.handle_error`).
        """
        if hook not in self._hooks:
            self._hooks.append(hook)

    def run_post_commit_hooks(self) -> None:
        """Run the hooks. `commit` has done so; call this to repeat them after one has failed.

        Raises:
            DeltaAnalysisError: nothing has been committed yet.
            PostCommitError: a hook failed, and it or the conf makes that an error.
        """
        if self._after is None:
            raise DeltaAnalysisError(
                "Can't call post commit hooks before committing", table=self._table
            )
        self._post_commit(self._after)

    def _post_commit(
        self, committed: CommittedTransaction, winners: Sequence[WinningCommit] = ()
    ) -> None:
        # Hooks may need transactions of their own, on this table or others.
        run_without(lambda: post_commit(committed, self._hooks, winners))

    @staticmethod
    def active() -> OptimisticTransaction | None:
        """The transaction of this thread that `DeltaLog.with_new_transaction` runs."""
        return active()

    def commit(self, actions: Sequence[Action], operation: Operation) -> int:
        """Commit, exactly once, or not at all.

        Args:
            actions: in any order; a `Metadata` among them is the same as `update_metadata`.
            operation: what history shows.

        Returns:
            The version that holds the commit. A failing hook does not make it fail, unless the
            hook or the conf asks for that.

        Raises:
            DeltaConcurrentModificationException: another writer committed something first that
                must not be ignored; read again, run again.
            MaxCommitAttemptsExceededError: no version was won within the limits.
            CommitOutcomeUnknownError: the storage never said. The commit may be there: do not
                delete its data files.
            DeltaAnalysisError: the actions are not a valid commit. Nothing was tried.
            UnsafeLogStoreError: the store can't exclude other writers. Nothing was tried.
            OSError: the storage refused. Nothing was committed.
            PostCommitError: the commit is in the table, but a hook failed and asked for an error,
                or the work after the commit was stopped. Once the commit is in the table, this is
                the only `Exception` raised.
        """
        return self._guarded(lambda: self._run_in_turn(actions, operation))

    def _run_in_turn(self, actions: Sequence[Action], operation: Operation) -> int:
        prepared, read = self._prepare(actions, operation), self._snapshot
        grouped = self._conf.read(store_keys.COMMIT_GROUP)
        usual = self._hooks == [checkpoint_hook, checksum_hook] and current_batch.get() is None
        if not (usual and read and grouped and may_join(prepared, read)):
            return self._run(prepared)
        self._check_now()  # what is wrong with one is its own failure
        sets = {each.app_id for each in prepared.actions if isinstance(each, SetTransaction)}
        member = Member(
            txn_id=self.txn_id,
            snapshot=read,
            read_at_ms=self._read_at_ms,
            prepared=prepared,
            operation=operation,
            apps=frozenset(sets | self._reads.app_ids),
            has_written=self._has_written,
            alone=lambda: self._run(prepared),
            together=self._run_together,
            share=self._share,
        )
        log = self._log
        return group_of(log).commit(member, lambda: log.known_snapshot)

    def _run_together(self, base: Snapshot, members: Sequence[Member]) -> Fate:
        """One commit of several transactions, this one among them; not made yet."""
        joint = OptimisticTransaction(self._log, base)
        joint._read_at_ms = min(each.read_at_ms for each in members)
        joint._has_written = all(each.has_written for each in members)
        for each in members:
            joint._reads.app_ids |= each.apps
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

    def _share(self, fate: Fate | None) -> None:
        """Make what becomes of a group that this is a member of its own; `None`: no more."""
        if fate is None:
            self._fate, self._landing, self.attempts = None, Landing(), list(self.attempts)
            return
        self._landing, self.attempts, self._after = fate.landing, fate.attempts, fate.after()
        self._committed = self._after is not None
        # Last, as it is what another thread's Ctrl-C looks at.
        self._fate = None if fate.is_over else fate

    def commit_large(
        self,
        actions: Iterable[Action],
        operation: Operation,
        *,
        protocol: Protocol | None = None,
        progress: GivenProgress = None,
    ) -> int:
        """Commit more actions than fit in memory, taken from an iterator as they are written.

        There is one attempt and no rebasing: if another writer commits this version first, it
        fails. The actions are checked one by one; duplicate paths are not detected. A checkpoint
        follows, and symlink manifests where the table has them; other hooks do not run.

        Args:
            actions: file actions, transactions and domain metadata; the metadata is that of
                `update_metadata`.
            operation: what history shows.
            protocol: of the table after the commit; `None` for the one that its metadata needs.
            progress: called now and then with how many actions are written; or `auto` for a bar.

        Returns:
            The version that holds the commit.

        Raises:
            ConcurrentWriteException: the version is taken. Nothing was committed.
            CommitOutcomeUnknownError: the storage never said. The commit may be there.
            DeltaAnalysisError: no metadata, or actions that do not fit it. Nothing was committed.
            OSError: the storage refused. Nothing was committed.
            InvalidCommittedVersionError: the storage accepted the commit but does not show it.
            PostCommitError: the commit is in the table; the work after it was stopped.
        """

        def run() -> int:
            with told(progress) as tell:
                return self._run_large(actions, operation, protocol, tell)

        return self._guarded(run)

    def _run_large(
        self,
        actions: Iterable[Action],
        operation: Operation,
        protocol: Protocol | None,
        tell: Tell,
    ) -> int:
        from lakelog.core.transaction.large_commit import after_large_commit, commit_large

        if self._snapshot is None and self._new_metadata is None:
            raise metadata_absent_error(self._table)
        self._check_now()
        try:
            version = commit_large(
                self,
                actions,
                operation,
                protocol=protocol,
                reads=self._reads,
                read_at_ms=self._read_at_ms,
                tell=tell,
                landing=self._landing,
            )
        except Exception:
            if self._landing.version is not None:
                # It was interrupted after it had landed, and still needs its checkpoint.
                with contextlib.suppress(Exception):
                    after_large_commit(self, self._landing.version)
            raise
        self._committed = True
        after_large_commit(self, version)
        return version

    def commit_if_needed(self, actions: Sequence[Action], operation: Operation) -> int | None:
        """The same as `commit`, but an empty commit is skipped.

        Returns:
            The version of the commit; `None` where there was nothing to do and nothing was
            committed.
        """
        return self._guarded(lambda: self._run_if_needed(actions, operation))

    def _run_if_needed(self, actions: Sequence[Action], operation: Operation) -> int | None:
        prepared = self._prepare(actions, operation)
        skips = prepared.isolation is not IsolationLevel.WRITE_SERIALIZABLE
        if not prepared.actions and skips and self._conf.read(keys.SKIP_EMPTY):
            self._committed = True
            return None
        return self._run(prepared)

    def _guarded(self, run: Callable[[], _Version]) -> _Version:
        """Run a commit; after it has landed, raise nothing that could mean it has not."""
        self._check_open()
        before = self._pending_changes()
        try:
            version = run()
            if current_batch.get() is not None:
                note_commit(self)
            return version
        except PostCommitError:
            note_commit(self)
            raise
        except CommitOutcomeUnknownError:
            raise
        except Exception as exc:
            if self._landing.version is None:
                self._restore(before)
                raise
            raise commit_interrupted(self._table, self._landing.version, exc) from exc

    def _check_open(self) -> None:
        if self._committed or self._landing.version is not None:
            raise DeltaAnalysisError(
                "Transaction already committed.", table=self._table, txn_id=self.txn_id
            )

    def _prepare(self, actions: Sequence[Action], operation: Operation) -> PreparedCommit:
        if current_batch.get() is not None:
            actions = recorded(self, self._table, actions, operation)
        protocol = self._take_metadata_and_protocol(actions)
        snapshot = self._snapshot
        if self._only_marks:
            operation = replace(operation, tags={**operation.tags, IDENTITY_TAG: "true"})
        return prepare_commit(
            CommitRequest(
                table=self._table,
                conf=self._conf,
                txn_id=self.txn_id,
                read_version=self.read_version,
                now_ms=self._clock.now_ms(),
                old=snapshot.terms if snapshot else None,
                metadata=self._new_metadata,
                protocol=protocol or self._new_protocol,
                actions=actions,
                operation=operation,
                read_nothing=self._reads.is_empty,
            )
        )

    def _pending(self, prepared: PreparedCommit) -> PendingCommit:
        settings = self._conf.derived(CommitSettings)
        return PendingCommit(
            table=self._table,
            read_version=self.read_version,
            partition_schema=(
                self._snapshot.partition_schema
                if self._snapshot
                else partition_schema(
                    prepared.terms.read_schema, prepared.terms.metadata.partition_columns
                )
            ),
            metadata=prepared.terms.metadata,
            protocol=prepared.terms.protocol,
            reads=self._reads,
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
            self.register_post_commit_hook(SymlinkManifestHook())
        try:
            draft = first_draft(prepared, self._snapshot, self._table)
        except LogGapError:
            # The time of the version that was read is in its commit, which log cleanup removed.
            raise gone_error(self._table, self.read_version + 1) from None
        loop = CommitLoop(
            self._store,
            self._clock,
            self._conf,
            pending=self._pending(prepared),
            draft=draft,
            lock=self.lock_choice,
            read_at_ms=self._read_at_ms,
            attempts=self.attempts,
            read_info=self._snapshot.commit_info if self._snapshot else None,
            read_modified=self._snapshot.state.timestamp if self._snapshot else None,
            landing=self._landing,
            check=self._check_now if self._checks else None,
        )
        began = self._clock.monotonic()
        budget = self._conf.derived(CommitSettings).limits.seconds
        deadline = began + budget
        with hold_lock(self.lock_choice, self._table, timeout=budget):
            loop.lock_wait = self._clock.monotonic() - began
            version = loop.do_commit_retry_iteratively()
        self._committed = True
        self._after = CommittedTransaction(
            delta_log=self._log,
            version=version,
            read_version=self.read_version,
            actions=loop.draft.actions,
            commit_info=loop.draft.commit_info,
            metadata=loop.draft.metadata or loop.pending.metadata,
            protocol=loop.pending.protocol,
            read_snapshot=self._snapshot,
            reads=self._reads,
            has_written=self._has_written,
            winners=loop.winners,
        )
        after, winners = self._after, loop.winners
        limited(
            lambda: deadline - self._clock.monotonic(), lambda: self._post_commit(after, winners)
        )
        if loop.failure is not None:
            raise loop.failure
        return version


def _is_file_action(action: Action) -> bool:
    return isinstance(action, AddFile | RemoveFile)


T = TypeVar("T")

_active: ContextVar[OptimisticTransaction | None] = ContextVar("lakelog_active", default=None)


def active() -> OptimisticTransaction | None:
    """The transaction that is active in this thread."""
    return _active.get()


def run_active(transaction: OptimisticTransaction, work: Callable[[OptimisticTransaction], T]) -> T:
    """Run something with a transaction that is the thread's active one while it runs.

    Raises:
        DeltaAnalysisError: there is one already.
    """
    before = _active.get()
    if before is not None:
        there = before.delta_log.table
        raise DeltaAnalysisError(
            "[DELTA_ACTIVE_TRANSACTION_ALREADY_SET] Cannot set a new txn as active when one is "
            f"already active: the transaction on {there} is still active, and one on "
            f"{transaction.delta_log.table} was about to start. End the first before starting the "
            "second, or use start_transaction.",
            table=transaction.delta_log.table,
            active_table=there,
        )
    return call_with(_active, transaction, lambda: work(transaction))


def run_without(work: Callable[[], T]) -> T:
    """Run something that may start its own transaction even though one is active."""
    return call_with(_active, None, work)
