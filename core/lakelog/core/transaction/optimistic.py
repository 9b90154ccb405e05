"""The optimistic transaction: read, write data files, check, commit."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.transaction.committer import Committer, active_transaction
from lakelog.core.transaction.recorded_reads import Reads
from lakelog.core.transaction.transaction_changes import Changes
from lakelog.logstores.limits import call_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from lakelog.core.actions import Action, AddFile, DomainMetadata, Metadata, Protocol
    from lakelog.core.actions.operation import Operation
    from lakelog.core.events import CommitStats
    from lakelog.core.expressions.filter import Filter
    from lakelog.core.hooks import AnyHook
    from lakelog.core.progress import GivenProgress
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.table_log import TableLog


class OptimisticTransaction:
    """One attempt to change a table, made against the snapshot that it was started with.

    It records what is read through it; at `commit` every commit that other writers have made since
    is checked against that record, and only those that can't matter are ignored. It commits once.

        txn = DeltaLog.for_table("/lake/flights").start_transaction()
        doomed = txn.filter_files("date = '2024-01-01'")
        version = txn.commit([f.remove(now) for f in doomed], Operation(name="DELETE"))

    For jobs:

    - what it started from: `snapshot`, `metadata`;
    - reading, so that conflicts are noticed: `filter_files`, `txn_version`;
    - changing the table: `update_metadata`;
    - committing: `commit`, `commit_if_needed`, `commit_large`;
    - afterwards: `register_post_commit_hook`, `run_post_commit_hooks`, `may_be_committed`,
      `attempts`.

    Engines that read and write data files themselves, as `write_arrow` and `lakelog.spark` do, use
    its parts as well: `reads`, which records whatever is read, and `changes`, which says what the
    files that they write must be like.

    Not safe for use by several threads.
    """

    def __init__(
        self, delta_log: TableLog, snapshot: Snapshot | None, *, is_newest: bool = True
    ) -> None:
        """Start; call `DeltaLog.start_transaction` instead.

        Args:
            delta_log: the table.
            snapshot: its newest state; None where no table exists yet.
            is_newest: whether the storage was asked for it.
        """
        self.delta_log = delta_log
        """The table that it changes."""
        self.reads: Reads = Reads(snapshot)
        """What it reads."""
        self.changes: Changes = Changes(delta_log, snapshot)
        """What it changes of metadata and protocol."""
        self._committer = Committer(delta_log, self.reads, self.changes, is_newest=is_newest)

    @property
    def snapshot(self) -> Snapshot | None:
        """The state that it reads; None where the table does not exist yet."""
        return self.reads.snapshot

    @property
    def metadata(self) -> Metadata:
        """As it will be after the commit; empty for a new table without `update_metadata`."""
        return self.changes.metadata

    @property
    def attempts(self) -> list[CommitStats]:
        """One record for each attempt that `commit` made."""
        return self._committer.attempts

    @property
    def may_be_committed(self) -> bool:
        """Whether the commit is in the log, or may be, or may still land.

        False before the first byte is sent, and again once the storage or another writer's commit
        has proven that it is not there. Only then may the files that it names be deleted: go by
        this and not by the exception that `commit` raised.
        """
        return self._committer.may_be_committed

    def filter_files(self, where: Filter | None = None) -> list[AddFile]:
        """The live files that may hold rows for which a condition is true; recorded as read.

        Args:
            where: SQL text, an `Expression`, pyarrow-style tuples, or None for all files.

        Returns:
            With `data_change=False`: a caller that commits them again says what they are.
        """
        return self.reads.filter_files(where)

    def txn_version(self, app_id: str) -> int:
        """The version that an application recorded last, or -1; recorded as read.

        A concurrent commit of the same application then conflicts.
        """
        return self.reads.txn_version(app_id)

    def update_metadata(
        self, metadata: Metadata, *, domains: Mapping[str, DomainMetadata] | None = None
    ) -> None:
        """Set schema, partitioning and properties as of this commit.

        Args:
            metadata: as it will be.
            domains: those that the table will have, where the commit changes them.

        Raises:
            DeltaAnalysisError: a second change, a change after data files were written, or a bad
                schema, partitioning or property.
        """
        self.changes.update_metadata(metadata, domains=domains)

    def register_post_commit_hook(self, hook: AnyHook) -> None:
        """Add a hook that runs after the commit, in order of registration, each only once.

        Args:
            hook: a `PostCommitHook`, or a function of a `CommittedTransaction`. Its failure is
                logged, and then handed to it (`PostCommitHook.handle_error`).
        """
        self._committer.register_hook(hook)

    def run_post_commit_hooks(self) -> None:
        """Run the hooks. `commit` has done so; call this to repeat them after one has failed.

        Raises:
            DeltaAnalysisError: nothing has been committed yet.
            PostCommitError: a hook failed, and it or the conf makes that an error.
        """
        self._committer.run_hooks()

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
        return self._committer.commit(actions, operation)

    def commit_if_needed(self, actions: Sequence[Action], operation: Operation) -> int | None:
        """The same as `commit`, but an empty commit is skipped.

        Returns:
            The version of the commit; `None` where there was nothing to do and nothing was
            committed.
        """
        return self._committer.commit_if_needed(actions, operation)

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
        fails. The actions are checked as they pass; that a path comes twice is not noticed. A
        checkpoint follows, and symlink manifests where the table has them; other hooks do not run.

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
        return self._committer.commit_large(
            actions, operation, protocol=protocol, progress=progress
        )


@contextmanager
def undone_on_error(txn: OptimisticTransaction) -> Iterator[None]:
    """Forget what the block reads and changes if it raises: another way is tried then.

    No file of the block may be committed then, so nothing depends on what it read.

    Args:
        txn: reads and changes in the block.
    """
    with txn.reads.undone_on_error(), txn.changes.undone_on_error():
        yield


T = TypeVar("T")


def run_active(transaction: OptimisticTransaction, work: Callable[[OptimisticTransaction], T]) -> T:
    """Run something with a transaction that is the thread's active one while it runs.

    Raises:
        DeltaAnalysisError: there is one already.
    """
    before: OptimisticTransaction | None = active_transaction.get()
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
    return call_with(active_transaction, transaction, lambda: work(transaction))
