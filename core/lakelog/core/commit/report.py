"""The records that a commit leaves: one for each attempt, and one where it gives up."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from lakelog.core.actions import AddFile, RemoveFile
from lakelog.core.errors import MaxCommitAttemptsExceededError
from lakelog.core.events import CommitOutcome, CommitStats, Writer, emit
from lakelog.core.log.file_names import log_path
from lakelog.core.telemetry.catalogue import ATTEMPT, ATTEMPTS, CONFLICTS, DATA_SIZE, FILES
from lakelog.core.telemetry.switch import UNSEEN, observed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.actions import Action
    from lakelog.core.clock import Clock
    from lakelog.core.commit.attempt import Attempt, Lines
    from lakelog.core.commit.commit_settings import RetryLimits
    from lakelog.core.commit.lock import LockChoice
    from lakelog.core.conf import DeltaConf
    from lakelog.core.conflicts.checker import PendingCommit
    from lakelog.core.conflicts.winner import WinningCommit
    from lakelog.core.errors import DeltaError
    from lakelog.core.telemetry.switch import Seen


class CommitRecords:
    """Makes the records of one commit and hands them to all listeners."""

    def __init__(
        self,
        clock: Clock,
        conf: DeltaConf,
        lock: LockChoice,
        lines: Lines,
        attempts: list[CommitStats],
        read_at_ms: int,
    ) -> None:
        """Take what all records of the commit have in common.

        Args:
            clock: when an attempt ended, and how long all of them took.
            conf: the user's; names the job and where records go.
            lock: the lock that the caller holds.
            lines: what is written.
            attempts: gets one record an attempt.
            read_at_ms: when the transaction began, epoch ms.
        """
        self._clock = clock
        self._conf = conf
        self._lock = lock
        self._lines = lines
        self._attempts = attempts
        self._read_at_ms = read_at_ms
        self._began = clock.monotonic()
        self.lock_wait: float = 0.0
        """Seconds that the caller waited for the lock."""

    @property
    def attempts(self) -> int:
        """How many have ended."""
        return len(self._attempts)

    def record(
        self,
        attempt: Attempt,
        outcome: CommitOutcome,
        pending: PendingCommit,
        committed: int | None = None,
    ) -> None:
        """Record how an attempt ended.

        Args:
            attempt: what it did.
            outcome: how it ended.
            pending: the commit.
            committed: the version that holds the commit.
        """
        wrote = outcome is CommitOutcome.COMMITTED and committed == attempt.version
        details = {} if committed is None else self._committed(pending)
        stats = CommitStats(
            **self._common(pending),
            **_winner(attempt.first),
            **details,
            version=attempt.version,
            attempt=self.attempts + 1,
            outcome=outcome,
            committed_version=committed,
            winners=attempt.winners,
            requests=attempt.requests,
            bytes_written=self._lines.bytes if wrote else 0,
            write_ms=attempt.write_seconds * 1000,
            check_ms=attempt.check_seconds * 1000,
            lock_wait_ms=0.0 if self._attempts else self.lock_wait * 1000,
            backoff_ms=attempt.backoff * 1000,
            error=attempt.error,
            conflict=attempt.condition,
            conflict_partition=attempt.conflict_partition,
        )
        self._attempts.append(stats)
        emit(stats, self._conf)
        seen = observed(self._conf, ATTEMPT, stats.table, began=attempt.began)
        if seen is not UNSEEN:
            _observe(seen, stats)

    def give_up(
        self,
        pending: PendingCommit,
        limits: RetryLimits,
        version: int,
        last: WinningCommit | None,
        *,
        out_of_time: bool,
    ) -> MaxCommitAttemptsExceededError:
        """Record that no further attempt will follow; give the error that says so.

        Args:
            pending: the commit.
            limits: what ran out.
            version: what the next attempt would have tried.
            last: the last winner.
            out_of_time: whether it was the time, and not the number of attempts.
        """
        error = _too_many(
            pending,
            limits,
            version,
            last,
            tries=self.attempts,
            actions=self._lines.num_actions + 1,
            milliseconds=self._milliseconds(),
            out_of_time=out_of_time,
        )
        closing = CommitStats(
            **self._common(pending),
            **_winner(last),
            version=version,
            attempt=self.attempts,
            outcome=CommitOutcome.GIVEN_UP,
            commit_duration_ms=self._milliseconds(),
            error=str(error),
        )
        emit(closing, self._conf)
        return error

    def _milliseconds(self) -> float:
        return (self._clock.monotonic() - self._began) * 1000

    def _common(self, pending: PendingCommit) -> dict[str, Any]:
        info, writer = self._lines.commit_info, self._conf.derived(Writer.from_conf)
        return {
            "table": pending.table,
            "operation": info.operation or "",
            "txn_id": info.txn_id or "",
            "read_version": pending.read_version,
            "lock": self._lock.kind,
            "lock_reason": self._lock.reason,
            "actions": self._lines.num_actions,
            "timestamp": self._clock.now_ms(),
            "job": writer.job,
            "app_id": writer.app_id,
            "host": writer.host,
            "pid": writer.pid,
            "isolation": pending.isolation.value,
            "partition_columns": tuple(pending.metadata.partition_columns),
            "reads_whole_table": pending.reads.is_unlimited,
        }

    def _committed(self, pending: PendingCommit) -> dict[str, Any]:
        return {
            **self._lines.sizes(),
            "new_metadata": pending.changes_metadata,
            "new_protocol": pending.changes_protocol,
            "num_partition_columns_in_table": len(pending.metadata.partition_columns),
            "txn_duration_ms": float(max(0, self._clock.now_ms() - self._read_at_ms)),
            "commit_duration_ms": self._milliseconds(),
        }


def _observe(seen: Seen, stats: CommitStats) -> None:
    seen.later(lambda: _count(seen, stats))
    if stats.attempt > 1 or stats.outcome is not CommitOutcome.COMMITTED:
        seen.note(
            version=stats.version,
            attempt=stats.attempt,
            outcome=stats.outcome,
            conflict=stats.conflict,
            winner_version=stats.winner_version,
            winner_operation=stats.winner_operation,
            requests=stats.requests,
        )
        seen.over()


def _count(seen: Seen, stats: CommitStats) -> None:
    seen.note(operation=stats.operation)
    seen.count(ATTEMPTS, 1, outcome=stats.outcome)
    if stats.conflict is not None:
        seen.count(CONFLICTS, 1, conflict=stats.conflict)
    if stats.num_add:
        seen.count(FILES, stats.num_add, change="added")
        seen.count(DATA_SIZE, stats.bytes_new)
    if stats.num_remove:
        seen.count(FILES, stats.num_remove, change="removed")
    if stats.num_cdc_files:
        seen.count(FILES, stats.num_cdc_files, change="cdc")


def _winner(winner: WinningCommit | None) -> dict[str, Any]:
    if winner is None:
        return {}
    info = winner.commit_info
    return {
        "winner_version": winner.version,
        "winner_operation": winner.operation,
        "winner_txn_id": winner.txn_id,
        "winner_timestamp": info.timestamp if info else None,
        "winner_engine": info.engine_info if info else None,
    }


def _too_many(
    pending: PendingCommit,
    limits: RetryLimits,
    version: int,
    last: WinningCommit | None,
    *,
    tries: int,
    actions: int,
    milliseconds: float,
    out_of_time: bool,
) -> MaxCommitAttemptsExceededError:
    first = pending.read_version + 1
    what = f"within {limits.seconds:g} s" if out_of_time else f"in {tries} attempts"
    by = f" The last winner is version {last.version} ({last.operation})." if last else ""
    return MaxCommitAttemptsExceededError(
        f"[DELTA_MAX_COMMIT_RETRIES_EXCEEDED] {pending.table}: the commit did not win a version "
        f"{what} ({tries} attempts, from version {first} to version {version}; {actions} actions; "
        f"{milliseconds:.0f} ms).{by} Nothing was committed. Let fewer writers commit at once, "
        "commit in larger batches, or raise spark.lakelog.commit.timeBudget or "
        "spark.databricks.delta.maxCommitAttempts.",
        table=pending.table,
        attempts=tries,
        version=last.version if last else None,
        start_version=first,
        fail_version=version,
        num_actions=actions,
        time_spent_ms=int(milliseconds),
    )


logger: logging.Logger = logging.getLogger("lakelog")

_SHOWN = 8


def tell_other_table(table: str, read_id: str, new_id: str, txn_id: str) -> None:
    """Log that a commit gives a table another id, which makes it another table to its readers."""
    if new_id != read_id:
        logger.warning(
            "%s Change in the table id detected in txn. Table id for txn on table at %s was %s "
            "when the txn was created and is now changed to %s.",
            log_prefix(read_id, txn_id),
            table,
            read_id,
            new_id,
        )


def log_prefix(table_id: str, txn_id: str | None) -> str:
    """`[tableId=41d94454,txnId=c941e4e9]`, as Delta shortens the two."""
    return f"[tableId={table_id[:_SHOWN]},txnId={(txn_id or '')[:_SHOWN]}]"


class CommitMessages:
    """The messages of one commit on its way."""

    def __init__(self, clock: Clock, pending: PendingCommit, txn_id: str | None) -> None:
        """Start to count the time.

        Args:
            clock: measures how long the commit has been at it.
            pending: what is committed.
            txn_id: of the transaction.
        """
        self._clock = clock
        self._began = clock.monotonic()
        self._prefix = log_prefix(pending.metadata.id, txn_id)

    @property
    def milliseconds(self) -> int:
        """Since the start of the commit."""
        return int((self._clock.monotonic() - self._began) * 1000)

    def attempting(self, version: int, pending: PendingCommit, actions: int) -> None:
        """A version is about to be written, with so many lines."""
        logger.info(
            "%s Attempting to commit version %d with %d actions with %s isolation level",
            self._prefix,
            version,
            actions,
            pending.isolation,
        )

    def committed(self, version: int, pending: PendingCommit) -> None:
        """The version is in the log."""
        logger.info("%s Committed delta #%d to %s", self._prefix, version, log_path(pending.table))

    def checking(
        self, attempt: int, version: int, pending: PendingCommit, actions: Sequence[Action]
    ) -> None:
        """The version was lost, and its winner and those after it will be checked."""
        if logger.isEnabledFor(logging.INFO):
            logger.info(
                "%s [attempt %d] Checking for conflicts with versions from %d on with current "
                "txn having %s",
                self._prefix,
                attempt,
                version,
                _details(pending, actions),
            )

    def passed(self, attempt: int, version: int) -> None:
        """One winner may be ignored."""
        logger.info(
            "%s [attempt %d] No conflicts in version %d, %d ms since start",
            self._prefix,
            attempt,
            version,
            self.milliseconds,
        )

    def conflict(self, attempt: int, version: int, conflict: DeltaError) -> None:
        """One winner must not be ignored."""
        logger.info(
            "%s [attempt %d] Conflict with version %d: %s, %d ms since start",
            self._prefix,
            attempt,
            version,
            getattr(conflict, "condition", None) or type(conflict).__name__,
            self.milliseconds,
        )

    def passed_all(
        self,
        attempt: int,
        versions: range,
        pending: PendingCommit,
        actions: Sequence[Action],
    ) -> None:
        """Every winner there was may be ignored."""
        if logger.isEnabledFor(logging.INFO):
            logger.info(
                "%s [attempt %d] No conflicts with versions [%d, %d) with current txn having %s, "
                "%d ms since start",
                self._prefix,
                attempt,
                versions.start,
                versions.stop,
                _details(pending, actions),
                self.milliseconds,
            )


def _details(pending: PendingCommit, actions: Sequence[Action]) -> str:
    adds = sum(isinstance(action, AddFile) for action in actions)
    removes = sum(isinstance(action, RemoveFile) for action in actions)
    return (
        f"{adds} adds, {removes} removes, {len(pending.reads.predicates)} read predicates, "
        f"{pending.reads.num_files} read files"
    )
