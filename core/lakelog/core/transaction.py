"""The optimistic transaction: read, write data files, check, commit."""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from lakelog.core import active_transaction
from lakelog.core.actions import AddFile, DomainMetadata, Metadata, Protocol, RemoveFile
from lakelog.core.backoff import RetryLimits
from lakelog.core.checksum_writer import checksum_hook
from lakelog.core.column_mapping import read_schema_of
from lakelog.core.commit_fence import gone_error
from lakelog.core.commit_lock import LockChoice, held, lock_for
from lakelog.core.commit_loop import CommitLoop
from lakelog.core.commit_messages import tell_other_table
from lakelog.core.conflict_rules import ConflictRules
from lakelog.core.conflicts import PendingCommit
from lakelog.core.draft import first_draft
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    DeltaAnalysisError,
    LogGapError,
    PostCommitError,
)
from lakelog.core.hooks import CommittedTransaction, checkpoint_hook
from lakelog.core.identity_columns import IDENTITY_TAG
from lakelog.core.isolation import IsolationLevel
from lakelog.core.landing import Landing
from lakelog.core.post_commit import commit_interrupted, post_commit
from lakelog.core.prepare import (
    CommitRequest,
    PreparedCommit,
    metadata_absent_error,
    prepare_commit,
)
from lakelog.core.properties import TableProperties
from lakelog.core.schema import StructType
from lakelog.core.schema_rules import partition_schema
from lakelog.core.symlink_manifest import (
    SymlinkManifestHook,
    is_kept,
)
from lakelog.core.tracked_changes import TrackedChanges
from lakelog.logstores._time_left import limited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.events import CommitStats
    from lakelog.core.hooks import AnyHook
    from lakelog.core.operations import Operation
    from lakelog.core.snapshot import Snapshot
    from lakelog.core.winners import WinningCommit

__all__ = ["OptimisticTransaction"]

_Version = TypeVar("_Version", int, int | None)


class OptimisticTransaction(TrackedChanges):
    """One attempt to change a table, made against the snapshot that it was started with.

    It records what is read through it; at `commit` every commit that others made meanwhile is
    checked against that record, and only what can't matter is ignored. It commits once.

        txn = DeltaLog.for_table("/lake/flights").start_transaction()
        doomed = txn.filter_files("date = '2024-01-01'")
        version = txn.commit([f.remove(now) for f in doomed], Operation(name="DELETE"))

    Not safe for use by several threads.
    """

    def __init__(self, delta_log: DeltaLog, snapshot: Snapshot | None) -> None:
        """Start; `DeltaLog.start_transaction` is the way to call this.

        Args:
            delta_log: the table.
            snapshot: its newest state; None where no table exists yet.
        """
        super().__init__(delta_log, snapshot)
        self._read_at_ms = delta_log.clock.now_ms()
        self._committed = False
        self._landing = Landing()
        self._after: CommittedTransaction | None = None
        self._hooks: list[AnyHook] = [checkpoint_hook, checksum_hook]
        self.txn_id = str(uuid.uuid4())
        self.attempts: list[CommitStats] = []
        """One record for each attempt that `commit` made."""

    @cached_property
    def lock_choice(self) -> LockChoice:
        """The lock that `commit` takes, and why.

        Raises:
            UnsafeLogStoreError: the store excludes nobody.
        """
        return lock_for(self._log.store, self._log.table, self._conf)

    @property
    def may_be_committed(self) -> bool:
        """Whether the commit is in the log, or may be, or may land yet.

        False before the first byte is sent, and again once the storage or another's commit has
        proven that it is not there. Only then may files be deleted that it names; whatever
        exception left `commit`, and from wherever, this is the mark to go by.
        """
        return self._landing.is_possible

    def register_post_commit_hook(self, hook: AnyHook) -> None:
        """Add what runs after the commit, in order of registration; the same one only once.

        Args:
            hook: a `PostCommitHook`, or a function of a `CommittedTransaction`. Its failure is
                logged, and otherwise its own to handle (`PostCommitHook.handle_error`).
        """
        if hook not in self._hooks:
            self._hooks.append(hook)

    def run_post_commit_hooks(self) -> None:
        """Run the hooks. `commit` has done it; again, where one of them failed for a while.

        Raises:
            DeltaAnalysisError: there is no commit that they could follow.
            PostCommitError: a hook failed that wants to be heard.
        """
        if self._after is None:
            raise DeltaAnalysisError(
                "Can't call post commit hooks before committing", table=self._log.table
            )
        self._post_commit(self._after)

    def _post_commit(
        self, committed: CommittedTransaction, winners: Sequence[WinningCommit] = ()
    ) -> None:
        # Hooks may need transactions of their own, on this table or others.
        active_transaction.run_without(lambda: post_commit(committed, self._hooks, winners))

    @staticmethod
    def active() -> OptimisticTransaction | None:
        """The transaction of this thread that `DeltaLog.with_new_transaction` runs."""
        return active_transaction.active()

    def commit(self, actions: Sequence[Action], operation: Operation) -> int:
        """Commit, exactly once, or not at all.

        Args:
            actions: in any order; a `Metadata` among them is the same as `update_metadata`.
            operation: what history shows.

        Returns:
            The version that holds the commit. Hooks that fail do not make it fail, unless they
            or the conf ask for it.

        Raises:
            DeltaConcurrentModificationException: another writer was faster with something that
                must not be ignored; read again, run again.
            MaxCommitAttemptsExceededError: no version was won in the budget.
            CommitOutcomeUnknownError: the storage never said. The commit may be there: delete no
                data file.
            DeltaAnalysisError: the actions are not a valid commit. Nothing was tried.
            UnsafeLogStoreError: the store excludes nobody. Nothing was tried.
            OSError: the storage refused. Nothing was committed.
            PostCommitError: the commit is in the table; a hook that wants to be heard failed, or
                what follows a commit was stopped. No other `Exception` leaves from then on.
        """
        return self._guarded(lambda: self._run(self._prepare(actions, operation)))

    def commit_large(
        self,
        actions: Iterable[Action],
        operation: Operation,
        *,
        protocol: Protocol | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Commit more actions than fit in memory, taken from an iterator as they are written.

        There is one attempt, and nothing is rebased: another commit of this version ends it. The
        actions are checked one by one; nothing finds a path that comes twice. A checkpoint
        follows; hooks do not run.

        Args:
            actions: file actions, transactions and domain metadata; the metadata is that of
                `update_metadata`.
            operation: what history shows.
            protocol: of the table after the commit; `None` for the one that its metadata needs.
            progress: told now and then how many lines were written.

        Returns:
            The version that holds the commit.

        Raises:
            ConcurrentWriteException: the version is taken. Nothing was committed.
            CommitOutcomeUnknownError: the storage never said. The commit may be there.
            DeltaAnalysisError: no metadata, or actions that do not fit it. Nothing was committed.
            OSError: the storage refused. Nothing was committed.
            InvalidCommittedVersionError: the storage took the commit and does not show it.
            PostCommitError: the commit is in the table; what follows a commit was stopped.
        """
        return self._guarded(lambda: self._run_large(actions, operation, protocol, progress))

    def _run_large(
        self,
        actions: Iterable[Action],
        operation: Operation,
        protocol: Protocol | None,
        progress: Callable[[int], None] | None,
    ) -> int:
        from lakelog.core.commit_large import after_large_commit, commit_large

        if self._snapshot is None and self._new_metadata is None:
            raise metadata_absent_error(self._log.table)
        try:
            version = commit_large(
                self,
                actions,
                operation,
                protocol=protocol,
                reads=self._reads,
                read_at_ms=self._read_at_ms,
                progress=progress,
                landing=self._landing,
            )
        except Exception:
            if self._landing.version is not None:
                # What interrupted the commit behind its landing takes no checkpoint from it.
                with contextlib.suppress(Exception):
                    after_large_commit(self, self._landing.version)
            raise
        self._committed = True
        after_large_commit(self, version)
        return version

    def commit_if_needed(self, actions: Sequence[Action], operation: Operation) -> int | None:
        """The same as `commit`, but a commit that would say nothing is not made.

        Returns:
            The version, or None where there was nothing to commit.
        """
        return self._guarded(lambda: self._run_if_needed(actions, operation))

    def _run_if_needed(self, actions: Sequence[Action], operation: Operation) -> int | None:
        prepared = self._prepare(actions, operation)
        skips = prepared.isolation is not IsolationLevel.WRITE_SERIALIZABLE
        if (
            not prepared.actions
            and skips
            and self._conf.get_bool("skipRecordingEmptyCommits", True)
        ):
            self._committed = True
            return None
        return self._run(prepared)

    def _guarded(self, run: Callable[[], _Version]) -> _Version:
        """Run a commit; once it has landed, let no `Exception` out that could mean it has not."""
        self._check_open()
        before = self._pending_changes()
        try:
            return run()
        except (PostCommitError, CommitOutcomeUnknownError):
            raise
        except Exception as exc:
            if self._landing.version is None:
                self._restore(before)
                raise
            raise commit_interrupted(self._log.table, self._landing.version, exc) from exc

    def _check_open(self) -> None:
        if self._committed or self._landing.version is not None:
            raise DeltaAnalysisError(
                "Transaction already committed.", table=self._log.table, txn_id=self.txn_id
            )

    def _prepare(self, actions: Sequence[Action], operation: Operation) -> PreparedCommit:
        protocol = self._take_heads(actions)
        snapshot = self._snapshot
        if self._only_marks:
            operation = replace(operation, tags={**operation.tags, IDENTITY_TAG: "true"})
        return prepare_commit(
            CommitRequest(
                table=self._log.table,
                conf=self._conf,
                txn_id=self.txn_id,
                read_version=self.read_version,
                now_ms=self._log.clock.now_ms(),
                old_metadata=snapshot.metadata if snapshot else None,
                old_protocol=snapshot.protocol if snapshot else None,
                metadata=self._new_metadata,
                protocol=protocol or self._new_protocol,
                actions=actions,
                operation=operation,
                read_nothing=self._reads.is_empty,
            )
        )

    def _pending(self, prepared: PreparedCommit) -> PendingCommit:
        return PendingCommit(
            table=self._log.table,
            read_version=self.read_version,
            partition_schema=(
                self._snapshot.partition_schema
                if self._snapshot
                else _partition_schema(prepared.metadata)
            ),
            metadata=prepared.metadata,
            protocol=prepared.protocol,
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
            session_tz=self._conf.session_tz,
            rules=ConflictRules.of(self._conf),
        )

    def _run(self, prepared: PreparedCommit) -> int:
        log = self._log
        if self._snapshot is not None:
            read = self._snapshot.metadata.id
            tell_other_table(log.table, read, prepared.metadata.id, self.txn_id)
        if is_kept(prepared.metadata) and any(map(_is_of_a_file, prepared.actions)):
            self.register_post_commit_hook(SymlinkManifestHook())
        try:
            draft = first_draft(prepared, self._snapshot, log.table)
        except LogGapError:
            # The time of the version that was read is in its commit, which log cleanup removed.
            raise gone_error(log.table, self.read_version + 1) from None
        loop = CommitLoop(
            log.store,
            log.clock,
            self._conf,
            pending=self._pending(prepared),
            draft=draft,
            lock=self.lock_choice,
            read_at_ms=self._read_at_ms,
            attempts=self.attempts,
            read_info=self._snapshot.commit_info if self._snapshot else None,
            landing=self._landing,
        )
        began = log.clock.monotonic()
        budget = RetryLimits.of(self._conf).seconds
        deadline = began + budget
        with held(self.lock_choice, log.table, timeout=budget):
            loop.lock_wait = log.clock.monotonic() - began
            version = loop.do_commit_retry_iteratively()
        self._committed = True
        self._after = CommittedTransaction(
            delta_log=log,
            version=version,
            read_version=self.read_version,
            actions=loop.draft.actions,
            commit_info=loop.draft.commit_info,
            metadata=loop.draft.metadata or loop.pending.metadata,
            protocol=loop.pending.protocol,
            read_snapshot=self._snapshot,
        )
        after, winners = self._after, loop.winners
        limited(lambda: deadline - log.clock.monotonic(), lambda: self._post_commit(after, winners))
        if loop.failure is not None:
            raise loop.failure
        return version


def _is_of_a_file(action: Action) -> bool:
    return isinstance(action, AddFile | RemoveFile)


def _partition_schema(metadata: Metadata) -> StructType:
    mode = TableProperties(metadata.configuration).column_mapping_mode
    schema = read_schema_of(StructType.from_json(metadata.schema_string), mode)
    return partition_schema(schema, metadata.partition_columns)
