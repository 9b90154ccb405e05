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

from typing import TYPE_CHECKING

from lakelog.core.backoff import Backoff, RetryLimits
from lakelog.core.commit_attempt import Attempt, CommitLines, explain
from lakelog.core.commit_fence import FENCE_AGE_MS, check_fence
from lakelog.core.commit_messages import CommitMessages
from lakelog.core.commit_records import CommitRecords
from lakelog.core.commit_write import CommitWriter, Written
from lakelog.core.conflicts import check_conflicts
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    DeltaConcurrentModificationException,
    UnsupportedFeatureError,
)
from lakelog.core.events import CommitOutcome
from lakelog.core.log_segment import list_log
from lakelog.core.paths import log_path

if TYPE_CHECKING:
    from lakelog.core.actions import CommitInfo
    from lakelog.core.clock import Clock
    from lakelog.core.commit_lock import LockChoice
    from lakelog.core.conf import DeltaConf
    from lakelog.core.conflicts import PendingCommit
    from lakelog.core.draft import Draft
    from lakelog.core.events import CommitStats
    from lakelog.core.winners import WinningCommit
    from lakelog.logstores import LogStore

__all__ = ["CommitLoop"]

_KEPT_ACTIONS = 100_000
"""File actions of winners that are kept, so that nobody reads them again after the commit."""


class CommitLoop:
    """One commit on its way into the log. Used once."""

    def __init__(
        self,
        store: LogStore,
        clock: Clock,
        conf: DeltaConf,
        *,
        pending: PendingCommit,
        draft: Draft,
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
            draft: its lines, the first with the txnId.
            lock: the lock that the caller holds, for the records.
            read_at_ms: when the transaction's snapshot was known to be current, epoch ms.
            attempts: gets one record an attempt.
            read_info: the `commitInfo` of the version that was read, if known.
            backoff: the waits; only tests give their own.
        """
        self._store = store
        self._clock = clock
        self._limits = RetryLimits.of(conf)
        self._pending = pending
        self._draft = draft
        self._lines = CommitLines(draft.commit_info, draft.actions)
        self._read_at_ms = read_at_ms
        self._read_info = read_info
        self._backoff = backoff or Backoff(clock, self._limits.max_wait)
        self._writer = CommitWriter(
            store, clock, pending.table, self._lines, self._limits, self._backoff
        )
        self._records = CommitRecords(clock, conf, lock, self._lines, attempts, read_at_ms)
        self._messages = CommitMessages(clock, pending, draft.commit_info.txn_id)
        self._last_winner: WinningCommit | None = None
        self._winners: list[WinningCommit] = []
        self._room = _KEPT_ACTIONS

    @property
    def winners(self) -> list[WinningCommit]:
        """All that were checked, in their order; none where they are too many to be kept."""
        return self._winners if self._room >= 0 else []

    @property
    def pending(self) -> PendingCommit:
        """The commit, rebased onto the winners that were checked."""
        return self._pending

    @property
    def draft(self) -> Draft:
        """What the commit says behind those winners."""
        return self._draft

    @property
    def lock_wait(self) -> float:
        """Seconds that the caller waited for the lock."""
        return self._records.lock_wait

    @lock_wait.setter
    def lock_wait(self, seconds: float) -> None:
        self._records.lock_wait = seconds

    def do_commit_retry_iteratively(self) -> int:
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
            committed, version = self._do_commit(attempt, deadline)
            if committed is not None:
                self._messages.committed(committed, self._pending)
                return committed
            left = deadline - self._clock.monotonic()
            if left <= 0 or self._records.attempts > self._limits.attempts:
                raise self._give_up(version, out_of_time=left <= 0)
            if version == attempt.version:
                # A second write of the *same* name is what storages limit.
                pace = self._store.capabilities.min_commit_interval
                attempt.wait += self._wait(attempt, deadline, at_least=pace)
            attempt = Attempt(version, backoff=attempt.wait)

    def _give_up(self, version: int, *, out_of_time: bool) -> Exception:
        if self._writer.in_doubt is not None:
            return self._writer.in_doubt
        return self._records.give_up(
            self._pending, self._limits, version, self._last_winner, out_of_time=out_of_time
        )

    def _wait(self, attempt: Attempt, deadline: float, *, at_least: float = 0.0) -> float:
        left = deadline - self._clock.monotonic()
        return self._backoff.wait(attempt.write_seconds, at_least=at_least, at_most=left)

    def _do_commit(self, attempt: Attempt, deadline: float) -> tuple[int | None, int]:
        """One attempt.

        Returns:
            The version that holds the commit, or None and the version to try next.
        """
        try:
            if not self._records.attempts:
                self._fence(attempt)
            lines = len(self._lines.actions) + 1
            self._messages.attempting(attempt.version, self._pending, lines)
            written = self._writer.write(attempt)
            if written is Written.OURS:
                self._record(attempt, CommitOutcome.COMMITTED, attempt.version)
                return attempt.version, attempt.version
            if written is Written.UNKNOWN:
                self._record(attempt, CommitOutcome.UNKNOWN)
                return None, attempt.version
            # Wait first, look then: what is seen just before the next write is seen fresh.
            attempt.wait = self._wait(attempt, deadline)
            return self._get_next_attempt_version(attempt)
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
            if self._writer.in_doubt is not None:
                raise self._writer.in_doubt from exc
            if isinstance(exc, OSError):
                explain(exc, self._pending.table, attempt.version)
            raise
        except BaseException as exc:
            # Ctrl-C within a write: nobody knows, and there is no time to look.
            exc.add_note(
                f"The commit of version {attempt.version} of {self._pending.table} was "
                f"interrupted; it landed if that version's commitInfo.txnId is "
                f"{self._draft.commit_info.txn_id}."
            )
            raise

    def _get_next_attempt_version(self, attempt: Attempt) -> tuple[int | None, int]:
        """Step 2: go through the winners from the version that was lost.

        Returns:
            The version that holds the commit, where one of the winners turns out to be it; or
            None and the version after the last winner.
        """
        began = self._clock.monotonic()
        version, number = attempt.version, self._records.attempts + 1
        self._messages.checking(number, version, self._pending, self._lines.actions)
        try:
            while (winner := self._writer.read(attempt, version)) is not None:
                if self._writer.is_ours(winner):
                    self._record(attempt, CommitOutcome.COMMITTED, version)
                    return version, version
                self._check_for_conflicts(attempt, winner)
                version += 1
        finally:
            attempt.check_seconds = self._clock.monotonic() - began
        lost = range(attempt.version, version)
        self._messages.passed_all(number, lost, self._pending, self._lines.actions)
        self._record(attempt, CommitOutcome.REBASED)
        return None, version

    def _check_for_conflicts(self, attempt: Attempt, winner: WinningCommit) -> None:
        # The version that was in doubt is another's: ours can't land there any more.
        self._writer.in_doubt = None
        attempt.winners += 1
        attempt.first = attempt.first or winner
        self._last_winner = winner
        self._room -= 1 + len(winner.commit.adds) + len(winner.commit.removes)
        if self._room >= 0:
            self._winners.append(winner)
        else:
            self._winners.clear()
        number = self._records.attempts + 1
        try:
            self._rebase(winner)
        except (DeltaConcurrentModificationException, UnsupportedFeatureError) as exc:
            attempt.first = winner
            self._messages.conflict(number, winner.version, exc)
            raise
        except Exception:
            attempt.first = winner
            raise
        self._messages.passed(number, winner.version)

    def _rebase(self, winner: WinningCommit) -> None:
        """Check a winner, and say from now on what is right behind it."""
        after = check_conflicts(self._pending, winner)
        self._draft = self._draft.rebased(
            self._pending, after, winner, lambda: self._landed_at(winner.version)
        )
        self._lines.change(self._draft.commit_info, self._draft.actions)
        self._pending = after

    def _landed_at(self, version: int) -> int:
        """When the storage got a version; now, where it is gone again."""
        listing = list_log(self._store, self._pending.table, version, version)
        found = listing.commits.get(version)
        return self._clock.now_ms() if found is None else found.modification_time

    def _fence(self, attempt: Attempt) -> None:
        if self._clock.now_ms() - self._read_at_ms < FENCE_AGE_MS:
            return
        attempt.requests += 1
        check_fence(self._store, self._pending.table, attempt.version, self._read_info)

    def _record(
        self, attempt: Attempt, outcome: CommitOutcome, committed: int | None = None
    ) -> None:
        self._records.record(attempt, outcome, self._pending, committed)
