"""Getting one commit into the log, exactly once or not at all.

Notation: v is the version being tried. One commit goes through these steps.

1. Try to create v. The create decides: whoever makes the file has made the version.
2. Refused because v exists: read v, v+1, … until none is left. If one of them carries our own
   txnId, an earlier try had landed and its reply was lost: done. Else check each for conflicts,
   once, and go to 1 with the version after the last.
3. The storage did not say (a time-out, a lost reply): read v. Ours: done. Another's: step 2.
   Missing: the write may still be on its way, and it can only ever land at v. So v is tried again
   with the same bytes; a second version is never opened while the first is in doubt.
4. Refused for another reason: v is read all the same, for a storage that fails after it wrote;
   if v is not ours the error passes through.

What a caller may rely on: a returned version is in the log; any exception other than
`CommitOutcomeUnknownError` means that nothing is, and never will be.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from lakelog.core.backoff import Backoff, RetryLimits
from lakelog.core.commit_attempt import Attempt, CommitLines, explain
from lakelog.core.conflicts import check_conflicts
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    ConcurrentWriteException,
    CorruptCommitError,
    DeltaConcurrentModificationException,
    MaxCommitAttemptsExceededError,
    UnsupportedFeatureError,
)
from lakelog.core.events import CommitOutcome, CommitStats, Writer, emit
from lakelog.core.log_identity import has_lost_its_start, still_there
from lakelog.core.paths import commit_path, log_path
from lakelog.core.winners import read_winner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.actions import Action, CommitInfo
    from lakelog.core.clock import Clock
    from lakelog.core.commit_lock import LockChoice
    from lakelog.core.conf import DeltaConf
    from lakelog.core.conflicts import PendingCommit
    from lakelog.core.winners import WinningCommit
    from lakelog.logstores import LogStore

__all__ = ["CommitLoop"]

FENCE_AGE_MS = 60_000
"""A snapshot older than this may be of a log that is gone: cleaned up, or the table made anew.

A job of more than a minute does not feel the one request more."""

_HALF_VISIBLE_TRIES = 10
_READ_TRIES = 3


class _Written(enum.Enum):
    OURS = enum.auto()
    TAKEN = enum.auto()
    UNKNOWN = enum.auto()


class CommitLoop:
    """One commit on its way into the log. Used once."""

    def __init__(
        self,
        store: LogStore,
        clock: Clock,
        conf: DeltaConf,
        *,
        pending: PendingCommit,
        commit_info: CommitInfo,
        actions: Sequence[Action],
        lock: LockChoice,
        read_at_ms: int,
        attempts: list[CommitStats],
        read_info: CommitInfo | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        """Take everything that does not change between attempts.

        Args:
            store: of the table's log.
            clock: for waits, the time budget and the fence.
            conf: the user's.
            pending: what is committed, for the conflict checks.
            commit_info: the first line; carries the txnId.
            actions: the lines after it.
            lock: the lock that the caller holds, for the records.
            read_at_ms: when the transaction's snapshot was known to be current, epoch ms.
            attempts: gets one record an attempt.
            read_info: the `commitInfo` of the version that was read, if known.
            backoff: the waits; only tests give their own.
        """
        self._store = store
        self._clock = clock
        self._conf = conf
        self._limits = RetryLimits.of(conf)
        self._pending = pending
        self._info = commit_info
        self._lines = CommitLines(commit_info, actions)
        self._lock = lock
        self._read_at_ms = read_at_ms
        self._attempts = attempts
        self._read_info = read_info
        self._backoff = backoff or Backoff(clock, self._limits.max_wait)
        self.lock_wait = 0.0
        """Seconds that the caller waited for the lock."""
        self._in_doubt: CommitOutcomeUnknownError | None = None
        self._unknown = 0
        self._last_winner: WinningCommit | None = None

    @property
    def pending(self) -> PendingCommit:
        """The commit, rebased onto the winners that were checked."""
        return self._pending

    def run(self) -> int:
        """Commit.

        Returns:
            The version that holds the commit.

        Raises:
            DeltaConcurrentModificationException: another writer's commit must not be ignored.
            MaxCommitAttemptsExceededError: too many lost races, or too much time.
            CommitOutcomeUnknownError: the storage never said; the commit may be there.
            OSError: the storage refused. Nothing was committed.
        """
        version = self._pending.read_version + 1
        deadline = self._clock.monotonic() + self._limits.seconds
        attempt = Attempt(version)
        if version == 0:
            self._store.create_folder(log_path(self._pending.table))
        while True:
            committed, version = self._try(attempt, deadline)
            if committed is not None:
                return committed
            left = deadline - self._clock.monotonic()
            if left <= 0 or len(self._attempts) > self._limits.attempts:
                raise self._given_up(left <= 0)
            if version == attempt.version:
                # A second write of the *same* name is what storages limit.
                pace = self._store.capabilities.min_commit_interval
                attempt.wait += self._wait(attempt, deadline, at_least=pace)
            attempt = Attempt(version, backoff=attempt.wait)

    def _wait(self, attempt: Attempt, deadline: float, *, at_least: float = 0.0) -> float:
        left = deadline - self._clock.monotonic()
        return self._backoff.wait(attempt.write_seconds, at_least=at_least, at_most=left)

    def _try(self, attempt: Attempt, deadline: float) -> tuple[int | None, int]:
        """One attempt.

        Returns:
            The version that holds the commit, or None and the version to try next.
        """
        try:
            if not self._attempts:
                self._fence(attempt)
            written = self._write(attempt)
            if written is _Written.OURS:
                self._record(attempt, CommitOutcome.COMMITTED, attempt.version)
                return attempt.version, attempt.version
            if written is _Written.UNKNOWN:
                self._record(attempt, CommitOutcome.UNKNOWN)
                return None, attempt.version
            # Wait first, look then: what is seen just before the next write is seen fresh.
            attempt.wait = self._wait(attempt, deadline)
            return self._after_losing(attempt)
        except (DeltaConcurrentModificationException, UnsupportedFeatureError) as exc:
            attempt.error = str(exc)
            attempt.conflict = exc
            self._record(attempt, CommitOutcome.CONFLICT)
            raise
        except CommitOutcomeUnknownError as exc:
            attempt.error = str(exc)
            self._record(attempt, CommitOutcome.UNKNOWN)
            raise
        except Exception as exc:
            attempt.error = f"{type(exc).__name__}: {exc}"
            self._record(attempt, CommitOutcome.FAILED)
            if self._in_doubt is not None:
                raise self._in_doubt from exc
            if isinstance(exc, OSError):
                explain(exc, self._pending.table, attempt.version)
            raise
        except BaseException as exc:
            # Ctrl-C within a write: nobody knows, and there is no time to look.
            exc.add_note(
                f"The commit of version {attempt.version} of {self._pending.table} was "
                f"interrupted; it landed if that version's commitInfo.txnId is "
                f"{self._info.txn_id}."
            )
            raise

    def _write(self, attempt: Attempt) -> _Written:
        """Steps 1, 3 and 4: create the version, and settle what the storage left open."""
        path = commit_path(self._pending.table, attempt.version)
        began = self._clock.monotonic()
        attempt.requests += 1
        try:
            self._store.write(path, self._lines, overwrite=False)
        except FileExistsError:
            return _Written.TAKEN
        except CommitOutcomeUnknownError as exc:
            attempt.error = str(exc)
            return self._settle(attempt, exc)
        except OSError as exc:
            # By contract nothing was made. A store of the user's may be less exact than that.
            attempt.error = f"{type(exc).__name__}: {exc}"
            return self._settle_failure(attempt, path, exc)
        finally:
            attempt.write_seconds = self._clock.monotonic() - began
        return _Written.OURS

    def _settle_failure(self, attempt: Attempt, path: str, failure: OSError) -> _Written:
        attempt.requests += 1
        try:
            found = read_winner(self._store, self._pending.table, attempt.version)
        except (OSError, CorruptCommitError) as exc:
            # Neither written nor readable: nobody can say what is there.
            self._in_doubt = self._in_doubt or CommitOutcomeUnknownError(
                path, f"writing it failed ({failure}), and so did reading it back ({exc})"
            )
            raise failure from None
        if found is not None and self._is_ours(found):
            return _Written.OURS
        if self._in_doubt is None:
            raise failure
        return self._settle(attempt, self._in_doubt)

    def _settle(self, attempt: Attempt, unknown: CommitOutcomeUnknownError) -> _Written:
        owner = self._owner(attempt)
        if owner is _Written.UNKNOWN:
            self._in_doubt = unknown
            self._unknown += 1
            if self._unknown > self._limits.unknown:
                raise unknown
        return owner

    def _owner(self, attempt: Attempt) -> _Written:
        """Whose the version is, by reading it back."""
        attempt.requests += 1
        try:
            found = read_winner(self._store, self._pending.table, attempt.version)
        except (OSError, CorruptCommitError, CommitOutcomeUnknownError):
            return _Written.UNKNOWN
        if found is None:
            return _Written.UNKNOWN
        return _Written.OURS if self._is_ours(found) else _Written.TAKEN

    def _is_ours(self, commit: WinningCommit) -> bool:
        return commit.txn_id is not None and commit.txn_id == self._info.txn_id

    def _after_losing(self, attempt: Attempt) -> tuple[int | None, int]:
        """Step 2: go through the winners from the version that was lost."""
        began = self._clock.monotonic()
        version = attempt.version
        try:
            while (winner := self._read_winner(attempt, version)) is not None:
                if self._is_ours(winner):
                    self._record(attempt, CommitOutcome.COMMITTED, version)
                    return version, version
                # The version that was in doubt is another's: ours can't land there any more.
                self._in_doubt = None
                attempt.winners += 1
                attempt.first = attempt.first or winner
                self._last_winner = winner
                try:
                    self._pending = check_conflicts(self._pending, winner)
                except Exception:
                    attempt.first = winner
                    raise
                version += 1
        finally:
            attempt.check_seconds = self._clock.monotonic() - began
        self._record(attempt, CommitOutcome.REBASED)
        return None, version

    def _read_winner(self, attempt: Attempt, version: int) -> WinningCommit | None:
        """Read a commit; give a failing storage, or one that shows half a file, a little time."""
        path = commit_path(self._pending.table, version)
        tries = 0
        while True:
            attempt.requests += 1
            tries += 1
            try:
                return read_winner(self._store, self._pending.table, version)
            except CorruptCommitError:
                if tries > _HALF_VISIBLE_TRIES or not self._store.is_partial_write_visible(path):
                    raise
            except OSError as exc:
                if tries > _READ_TRIES:
                    if version == attempt.version:
                        # It exists, but whose is it? A store may have met its own file.
                        self._in_doubt = self._in_doubt or CommitOutcomeUnknownError(
                            path, f"it exists, and reading it failed ({exc})"
                        )
                    raise
            self._backoff.wait(0.005, at_most=self._limits.max_wait)

    def _fence(self, attempt: Attempt) -> None:
        """Refuse to go on behind a version that is no longer in the log.

        A writer that slept for days may find its version free because the table has long moved
        on and the old commits are gone; one that took minutes, because the table was dropped and
        made again. Its predecessor then is gone too, or is another commit: cleanup removes the
        oldest first and always leaves the newest. One that found no table may meet one by now.
        """
        version, table = attempt.version, self._pending.table
        if self._clock.now_ms() - self._read_at_ms < FENCE_AGE_MS:
            return
        attempt.requests += 1
        if version == 0:
            gone = has_lost_its_start(self._store, table)
        else:
            gone = not still_there(self._store, table, version - 1, self._read_info)
        if not gone:
            return
        raise ConcurrentWriteException(
            f"[{ConcurrentWriteException.condition}] {table}: {_gone(version)} Nothing was "
            "committed. Read the table again and run the job again.",
            table=table,
            version=None,
            read_version=version - 1,
            commit_info=None,
        )

    def _given_up(self, out_of_time: bool) -> Exception:
        if self._in_doubt is not None:
            return self._in_doubt
        tries = len(self._attempts)
        what = f"within {self._limits.seconds:g} s" if out_of_time else f"in {tries} attempts"
        last = self._last_winner
        by = f" The last winner is version {last.version} ({last.operation})." if last else ""
        return MaxCommitAttemptsExceededError(
            f"[DELTA_MAX_COMMIT_RETRIES_EXCEEDED] {self._pending.table}: the commit did not win "
            f"a version {what} ({tries} attempts, from version {self._pending.read_version + 1} "
            f"on).{by} Nothing was committed. Let fewer writers commit at once or in larger "
            "batches, or raise spark.lakelog.commit.timeBudget or "
            "spark.databricks.delta.maxCommitAttempts.",
            table=self._pending.table,
            attempts=tries,
            version=last.version if last else None,
        )

    def _record(
        self, attempt: Attempt, outcome: CommitOutcome, committed: int | None = None
    ) -> None:
        first, pending, writer = attempt.first, self._pending, Writer.of(self._conf)
        winner_info = first.commit_info if first else None
        wrote = outcome is CommitOutcome.COMMITTED and committed == attempt.version
        stats = CommitStats(
            table=self._pending.table,
            version=attempt.version,
            attempt=len(self._attempts) + 1,
            outcome=outcome,
            operation=self._info.operation or "",
            txn_id=self._info.txn_id or "",
            read_version=self._pending.read_version,
            committed_version=committed,
            winner_version=first.version if first else None,
            winner_operation=first.operation if first else None,
            winner_txn_id=first.txn_id if first else None,
            winners=attempt.winners,
            lock=self._lock.kind,
            lock_reason=self._lock.reason,
            requests=attempt.requests,
            bytes_written=self._lines.bytes if wrote else 0,
            actions=len(self._lines.actions),
            write_ms=attempt.write_seconds * 1000,
            check_ms=attempt.check_seconds * 1000,
            lock_wait_ms=0.0 if self._attempts else self.lock_wait * 1000,
            backoff_ms=attempt.backoff * 1000,
            error=attempt.error,
            timestamp=self._clock.now_ms(),
            job=writer.job,
            app_id=writer.app_id,
            host=writer.host,
            pid=writer.pid,
            isolation=pending.isolation.value,
            conflict=attempt.condition,
            conflict_partition=attempt.conflict_partition,
            partition_columns=tuple(pending.partition_schema.names),
            reads_whole_table=pending.reads.is_unlimited,
            winner_timestamp=winner_info.timestamp if winner_info else None,
            winner_engine=winner_info.engine_info if winner_info else None,
        )
        self._attempts.append(stats)
        emit(stats, self._conf)


def _gone(version: int) -> str:
    """What the fence found, in words, before a first try at `version`."""
    if version == 0:
        return (
            "this transaction found no table, and by now others have made it, and log cleanup has "
            "removed its first versions."
        )
    return (
        f"the version {version - 1} that this transaction read is no longer in the log: others "
        "have committed since and log cleanup removed it, or the table was dropped and made again."
    )
