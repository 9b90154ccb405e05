"""The optimistic transaction: read, write data files, check, commit."""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from lakelog.core import active_transaction
from lakelog.core.actions import AddFile, DomainMetadata, Metadata, Protocol, RemoveFile
from lakelog.core.backoff import RetryLimits
from lakelog.core.checksum_writer import checksum_hook
from lakelog.core.column_mapping import read_schema_of
from lakelog.core.commit_lock import LockChoice, held, lock_for
from lakelog.core.commit_loop import CommitLoop
from lakelog.core.commit_messages import tell_other_table
from lakelog.core.conf import DeltaConf
from lakelog.core.conflict_rules import ConflictRules
from lakelog.core.conflicts import PendingCommit
from lakelog.core.draft import first_draft
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.hooks import CommittedTransaction, checkpoint_hook
from lakelog.core.identity_columns import IDENTITY_TAG, with_marks
from lakelog.core.isolation import IsolationLevel
from lakelog.core.kept_promises import check_promises
from lakelog.core.metadata_updates import changed_metadata, new_table_metadata
from lakelog.core.post_commit import post_commit
from lakelog.core.prepare import (
    CommitRequest,
    PreparedCommit,
    append_only_error,
    metadata_absent_error,
    prepare_commit,
)
from lakelog.core.properties import TableProperties
from lakelog.core.protocol import supported_features
from lakelog.core.row_tracking_names import check_may_enable
from lakelog.core.schema import StructType
from lakelog.core.schema_rules import partition_schema
from lakelog.core.symlink_manifest import (
    SymlinkManifestHook,
    is_kept,
    refuse_deletion_vectors,
)
from lakelog.core.tracked_reads import TrackedReads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.events import CommitStats
    from lakelog.core.hooks import AnyHook
    from lakelog.core.operations import Operation
    from lakelog.core.snapshot import Snapshot
    from lakelog.core.winners import WinningCommit

__all__ = ["OptimisticTransaction"]


class OptimisticTransaction(TrackedReads):
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
        super().__init__(snapshot)
        self._log = delta_log
        self._conf = DeltaConf.of(delta_log.conf)
        self._read_at_ms = delta_log.clock.now_ms()
        self._new_metadata: Metadata | None = None
        self._new_protocol: Protocol | None = None
        self._has_written = False
        self._only_marks = False
        self._committed = False
        self._after: CommittedTransaction | None = None
        self._hooks: list[AnyHook] = [checkpoint_hook, checksum_hook]
        self.txn_id = str(uuid.uuid4())
        self.attempts: list[CommitStats] = []
        """One record for each attempt that `commit` made."""

    @property
    def delta_log(self) -> DeltaLog:
        """The table that it changes."""
        return self._log

    @cached_property
    def _blank(self) -> Metadata:
        """What stands in for the metadata of a table that does not exist."""
        return Metadata(id=str(uuid.uuid4()), schema_string=StructType().to_json())

    @property
    def metadata(self) -> Metadata:
        """As it will be after the commit; empty for a new table without `update_metadata`."""
        if self._new_metadata is not None:
            return self._new_metadata
        return self._blank if self._snapshot is None else self._snapshot.metadata

    @property
    def protocol(self) -> Protocol:
        """As it will be after the commit."""
        if self._new_protocol is not None:
            return self._new_protocol
        if self._snapshot is None:
            return Protocol(min_reader_version=1, min_writer_version=2)
        return self._snapshot.protocol

    @property
    def new_metadata(self) -> Metadata | None:
        """What the commit changes the metadata to; None where it does not."""
        return self._new_metadata

    @property
    def new_protocol(self) -> Protocol | None:
        """What the commit changes the protocol to; None where it does not.

        New metadata brings it: the features that it makes use of, and those that it asks for by
        `delta.feature.*`, `delta.minReaderVersion`, `delta.minWriterVersion`.
        """
        return self._new_protocol

    @cached_property
    def lock_choice(self) -> LockChoice:
        """The lock that `commit` takes, and why.

        Raises:
            UnsafeLogStoreError: the store excludes nobody.
        """
        return lock_for(self._log.store, self._log.table, self._conf)

    # Changing ------------------------------------------------------------------------------

    def update_metadata(self, metadata: Metadata) -> None:
        """Set schema, partitioning and properties as of this commit.

        Raises:
            DeltaAnalysisError: a second change, a change after `mark_written`, or a bad schema,
                partitioning or property.
        """
        if self._snapshot is None:
            self.update_metadata_for_new_table(metadata)
            return
        self._check_may_update()
        final, protocol = changed_metadata(
            self._snapshot.metadata, metadata, self._snapshot.protocol, self._conf
        )
        check_may_enable(self._snapshot, final, self._log.table)
        refuse_deletion_vectors(self._snapshot, final, self._log.table)
        check_promises(self._snapshot, final, protocol or self._snapshot.protocol)
        self._new_metadata = final
        self._new_protocol = protocol

    def update_metadata_for_new_table(self, metadata: Metadata) -> None:
        """Set the metadata as for a new table: defaults of the session, a protocol of its own.

        For an existing table this replaces schema and properties; its protocol only grows.

        Raises:
            DeltaAnalysisError: as `update_metadata`.
        """
        self._check_may_update()
        now = self._log.clock.now_ms()
        replaced = None if self._snapshot is None else self._snapshot.metadata
        final, protocol = new_table_metadata(metadata, self._conf, now, replaced)
        check_promises(self._snapshot, final, protocol, replaces=True)
        self._new_metadata = final
        if self._snapshot is None:
            self._new_protocol = protocol
            return
        final = replace(final, id=self._snapshot.metadata.id)
        check_may_enable(self._snapshot, final, self._log.table)
        self._new_metadata, self._new_protocol = changed_metadata(
            self._snapshot.metadata, final, self._snapshot.protocol, self._conf, replaces=True
        )

    def _check_may_update(self) -> None:
        if self._new_metadata is not None:
            raise DeltaAnalysisError(
                "Cannot change the metadata more than once in a transaction.",
                table=self._log.table,
            )
        if self._has_written:
            raise DeltaAnalysisError(
                "Cannot update the metadata in a transaction that has already written data.",
                table=self._log.table,
            )

    @property
    def has_written(self) -> bool:
        """Whether data files were written for this transaction; blocks metadata changes."""
        return self._has_written

    def mark_written(self) -> None:
        """Say that data files were written, for the metadata as it is now."""
        self._has_written = True

    def advance_identity_columns(self, marks: Mapping[str, int]) -> None:
        """Set the high-water marks of identity columns, once, after their rows were written.

        The commit then changes the metadata, so that two writers which give out numbers
        conflict; where that is its only change it is tagged as such, and conflicts with no other.

        Args:
            marks: column -> its last number.
        """
        if marks:
            self._only_marks = self._new_metadata is None
            self._new_metadata = with_marks(self.metadata, marks)

    def assert_removable(self) -> None:
        """Check that rows may be removed, before work is spent on it.

        Raises:
            AppendOnlyError: `delta.appendOnly` is set.
        """
        if self._snapshot is None:
            return
        if TableProperties(self._snapshot.metadata.configuration).append_only:
            raise append_only_error(self._log.table)

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
        with active_transaction.not_active():
            post_commit(committed, self._hooks, winners)

    @staticmethod
    def active() -> OptimisticTransaction | None:
        """The transaction of this thread that `DeltaLog.with_new_transaction` runs."""
        return active_transaction.active()

    # Committing ----------------------------------------------------------------------------

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
            PostCommitError: the commit is in the table; a hook that wants to be heard failed.
        """
        return self._run(self._prepare(actions, operation))

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
        """
        from lakelog.core.commit_large import after_large_commit, commit_large

        self._check_open()
        if self._snapshot is None and self._new_metadata is None:
            raise metadata_absent_error(self._log.table)
        version = commit_large(
            self,
            actions,
            operation,
            protocol=protocol,
            reads=self._reads,
            read_at_ms=self._read_at_ms,
            progress=progress,
        )
        self._committed = True
        after_large_commit(self, version)
        return version

    def commit_if_needed(self, actions: Sequence[Action], operation: Operation) -> int | None:
        """The same as `commit`, but a commit that would say nothing is not made.

        Returns:
            The version, or None where there was nothing to commit.
        """
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

    def _check_open(self) -> None:
        if self._committed:
            raise DeltaAnalysisError(
                "Transaction already committed.", table=self._log.table, txn_id=self.txn_id
            )

    def _prepare(self, actions: Sequence[Action], operation: Operation) -> PreparedCommit:
        self._check_open()
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

    def _take_heads(self, actions: Sequence[Action]) -> Protocol | None:
        """Apply a Metadata among the actions; give the Protocol among them."""
        metadata = [action for action in actions if isinstance(action, Metadata)]
        protocols = [action for action in actions if isinstance(action, Protocol)]
        for each in metadata:
            # Data that is in the same list was written for it.
            written, self._has_written = self._has_written, False
            self.update_metadata(each)
            self._has_written = written
        if self._snapshot is None and metadata and self._new_protocol and protocols:
            # The protocol of a new table comes with its metadata, unless one that has what the
            # metadata needs is given.
            needed = supported_features(self._new_protocol)
            if needed <= supported_features(protocols[0]):
                self._new_protocol = None
        if len(protocols) + (self._new_protocol is not None) > 1:
            raise DeltaAnalysisError(
                "Cannot change the protocol more than once in a transaction.",
                table=self._log.table,
            )
        return protocols[0] if protocols else None

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
            rules=ConflictRules.of(self._conf),
        )

    def _run(self, prepared: PreparedCommit) -> int:
        log = self._log
        if self._snapshot is not None:
            read = self._snapshot.metadata.id
            tell_other_table(log.table, read, prepared.metadata.id, self.txn_id)
        if is_kept(prepared.metadata) and any(map(_is_of_a_file, prepared.actions)):
            self.register_post_commit_hook(SymlinkManifestHook())
        loop = CommitLoop(
            log.store,
            log.clock,
            self._conf,
            pending=self._pending(prepared),
            draft=first_draft(prepared, self._snapshot, log.table),
            lock=self.lock_choice,
            read_at_ms=self._read_at_ms,
            attempts=self.attempts,
            read_info=self._snapshot.commit_info if self._snapshot else None,
        )
        began = log.clock.monotonic()
        with held(self.lock_choice, log.table, timeout=RetryLimits.of(self._conf).seconds):
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
        self._post_commit(self._after, loop.winners)
        return version


def _is_of_a_file(action: Action) -> bool:
    return isinstance(action, AddFile | RemoveFile)


def _partition_schema(metadata: Metadata) -> StructType:
    mode = TableProperties(metadata.configuration).column_mapping_mode
    schema = read_schema_of(StructType.from_json(metadata.schema_string), mode)
    return partition_schema(schema, metadata.partition_columns)
