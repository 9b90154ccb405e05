"""Getting one commit into the log, exactly once or not at all.

Notation: v is the version being tried. One commit goes through these steps.

1. Look whether the version that was read is still there (`fence`), and try to create v. The
   create decides: the writer that makes the file has made the version.
2. Refused because v exists: read v, v+1, … until none is left. If one of them carries our own
   txnId, an earlier try had landed and its reply was lost: done. If one names it among others that
   it holds, another process has committed it, which was asked to: done. If this is such a commit
   of several, and one of them is there already: it ends. So whoever tries to commit a transaction,
   and however often, one version holds it at most. Else check each for conflicts, once, and go to 1
   with the version after the last.
3. The storage did not say (a time-out, a lost reply): read v. Ours: done. Another's: step 2.
   Missing: the write may still be on its way, and it can only ever land at v. So v is tried again
   with the same bytes; a second version is never opened while the first is in doubt.
4. Refused for another reason: v is read anyway, for a storage that fails after it wrote;
   if v is not ours the error passes through. A time-out or a lost connection is not a refusal: 3.
5. Whatever else ends the commit, wherever it comes from (a store that raises what none may, a
   signal handler, a logging handler, no memory left): v is read, unless nothing was sent.
   Ours: done, and the exception is kept in `failure`. Another's: it passes through. Else the
   outcome is unknown.

What a caller may rely on: a returned version is in the log; any exception other than
`CommitOutcomeUnknownError` means that nothing is, and never will be. Ctrl-C and its like pass
through at once: then `Landing` alone says whether the commit may be there.
"""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

from lakelog.core.commit.attempt import Attempt, CommitLines, Landing, explain
from lakelog.core.commit.backoff import Backoff
from lakelog.core.commit.commit_settings import CommitSettings
from lakelog.core.commit.fence import check_fence
from lakelog.core.commit.lock import warn_if_not_durable
from lakelog.core.commit.look_ahead import LookAhead
from lakelog.core.commit.report import CommitMessages, CommitRecords
from lakelog.core.commit.version_writer import CommitWriter, Written
from lakelog.core.conflicts.checker import check_conflicts
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    DeltaConcurrentModificationException,
    DeltaError,
    TableNotFoundError,
    TornCommitError,
    UnsupportedFeatureError,
)
from lakelog.core.events import CommitOutcome
from lakelog.core.log.commit_identity import added_by, transactions_of
from lakelog.core.log.file_names import commit_path, log_path
from lakelog.core.log.segment import list_log
from lakelog.core.telemetry.switch import observed_wait
from lakelog.logstores.limits import limited
from lakelog.logstores.threads import beside

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.actions import CommitInfo
    from lakelog.core.clock import Clock
    from lakelog.core.commit.attempt import Lines
    from lakelog.core.commit.draft import Draft
    from lakelog.core.commit.lock import LockChoice
    from lakelog.core.conf import DeltaConf
    from lakelog.core.conflicts.checker import PendingCommit
    from lakelog.core.conflicts.winner import WinningCommit
    from lakelog.core.events import CommitStats
    from lakelog.logstores import LogStore

_OTHERS_DEEDS = (
    DeltaConcurrentModificationException,
    UnsupportedFeatureError,
    TableNotFoundError,
)
_KEPT_ACTIONS = 100_000
"""File actions of winners that are kept, so that they need not be read again after the commit."""


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
        read_modified: int | None = None,
        backoff: Backoff | None = None,
        landing: Landing | None = None,
        watch: Callable[[int, Lines], None] | None = None,
        check: Callable[[], object] | None = None,
        was_just_seen: Callable[[], bool] | None = None,
    ) -> None:
        """Take everything that does not change between attempts.

        Args:
            store: of the table's log.
            clock: for waits and the time budget.
            conf: the user's.
            pending: what is committed, for the conflict checks.
            draft: its lines, the first with the txnId.
            lock: the lock that the caller holds, for the records.
            read_at_ms: when the transaction's snapshot was known to be current, epoch ms.
            attempts: gets one record an attempt.
            read_info: the `commitInfo` of the version that was read, if known.
            read_modified: when that version's file was written, if known.
            backoff: the waits; only tests give their own.
            landing: records what becomes of the commit, before and after each write.
            watch: called before each write, with the version and the lines; what it raises ends the
                commit, and that write is not sent.
            check: called once before the first write, beside the look at what was read where that
                is a journey; what it raises ends the commit.
            was_just_seen: asked before the first write whether what was read is known to be there,
                as freshly as a look would say; it needs none then.
        """
        self._store = store
        self._conf = conf
        self._clock = clock
        self._limits = conf.derived(CommitSettings).limits
        self._pending = pending
        self._draft = draft
        self._lines = CommitLines(draft.commit_info, draft.actions)
        self._read_at_ms = read_at_ms
        self._read_info = read_info
        self._read_modified = read_modified
        self._backoff = backoff or Backoff(clock, self._limits.max_wait)
        self._landing = landing or Landing()
        self._writer = CommitWriter(
            store,
            clock,
            pending.table,
            self._lines,
            self._limits,
            self._backoff,
            self._landing,
            watch=watch,
        )
        self._records = CommitRecords(clock, conf, lock, self._lines, attempts, read_at_ms)
        self._messages = CommitMessages(clock, pending, draft.commit_info.txn_id)
        self._read_version = pending.read_version
        self._looked: _Looked | None = None
        self._look_seconds = math.inf
        """What the last look took, with what was asked beside it."""
        self._check = check
        self._was_just_seen = was_just_seen
        self._last_winner: WinningCommit | None = None
        self._winners: list[WinningCommit] = []
        self._room = _KEPT_ACTIONS
        self._attempt: Attempt | None = None
        """The one under way, until it is recorded."""
        self.failure: Exception | None = None
        """What was raised after the commit had landed; the version was returned anyway."""
        self.found: WinningCommit | None = None
        """The commit of several that holds this one, where another process made it."""
        self.made: tuple[int, float] | None = None
        """The version that the create made, and how many seconds that took, where no other
        writer's commit was met before."""

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
        """What the commit says after those winners."""
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
            MaxCommitAttemptsExceededError: too many lost races, or the time budget ran out.
            CommitOutcomeUnknownError: the storage never said; the commit may be there.
            OSError: the storage refused. Nothing was committed.
        """
        warn_if_not_durable(self._store, self._conf)
        # The wait for the lock is a part of it.
        # One budget for the lock, the writes, the waits and the checks: a caller that has ten
        # minutes has them for the commit as a whole.
        deadline = self._clock.monotonic() + self._limits.seconds - self.lock_wait
        reserve = self._limits.reserve
        self._writer.deadline, self._writer.brief = deadline, self._limits.brief
        # Stores repeat requests by themselves. They have to stop a reserve early, so that there is
        # time to read back what they may have left.
        return limited(
            lambda: deadline - reserve - self._clock.monotonic(),
            lambda: self._commit_until(deadline, reserve),
        )

    def _commit_until(self, deadline: float, reserve: float) -> int:
        try:
            return self._iterate(deadline, reserve)
        except Exception as exc:
            return self._ended_by(exc)
        except BaseException as exc:
            # Ctrl-C within a write: the outcome is unknown, and there is no time to look.
            if self._landing.is_possible:
                tried = self._landing.tried or self._pending.read_version + 1
                exc.add_note(
                    f"The commit of version {tried} of {self._pending.table} was "
                    f"interrupted; it landed if that version's commitInfo.txnId is "
                    f"{self._draft.commit_info.txn_id}."
                )
            raise

    def _iterate(self, deadline: float, reserve: float) -> int:
        version = self._pending.read_version + 1
        attempt = Attempt(version)
        if version == 0:
            # For a new table alone: of one that was dropped meanwhile nothing must come back.
            self._store.create_folder(log_path(self._pending.table))
        while True:
            committed, version = self._do_commit(attempt, deadline)
            if committed is not None:
                self._messages.committed(committed, self._pending)
                return committed
            left = deadline - self._clock.monotonic()
            if self._writer.in_doubt is not None:  # the storage is silent, and may stay so
                left -= reserve
            if not self._writer.is_time_for(attempt.write_seconds):
                left = 0.0  # another one may take as long
            if left <= 0 or self._records.attempts > self._limits.attempts:
                raise self._give_up(version, out_of_time=left <= 0)
            if version == attempt.version:
                # A second write of the *same* name is what storages limit.
                pace = self._store.capabilities.min_commit_interval
                attempt.wait += self._wait(attempt, deadline, at_least=pace)
            attempt = Attempt(version, backoff=attempt.wait)

    def _ended_by(self, exc: Exception) -> int:
        """Step 5: settle what an exception left open, and record it.

        Returns:
            The version that holds the commit.

        Raises:
            CommitOutcomeUnknownError: the commit may be there.
            Exception: the given one; nothing was committed.
        """
        unknown = self._writer.settle(self._attempt, exc)
        landed = self._landing.version
        if landed is not None:
            # A write that failed but is there after all has stopped nothing.
            self.failure = None if exc is self._writer.unread else exc
            with contextlib.suppress(Exception):  # the record is not worth the commit
                self._record_end(CommitOutcome.COMMITTED, exc, landed)
            return landed
        if unknown is not None:
            self._record_end(CommitOutcome.UNKNOWN, unknown)
            if unknown is exc:
                raise exc
            raise unknown from exc
        if isinstance(exc, _OTHERS_DEEDS):
            if self._attempt is not None:
                self._attempt.conflict = exc
            self._record_end(CommitOutcome.CONFLICT, exc)
            raise exc
        if isinstance(exc, OSError):
            first = self._pending.read_version + 1
            explain(exc, self._pending.table, self._attempt.version if self._attempt else first)
        self._record_end(CommitOutcome.FAILED, exc)
        raise exc

    def _give_up(self, version: int, *, out_of_time: bool) -> Exception:
        if self._writer.in_doubt is not None:
            return self._writer.in_doubt
        return self._records.give_up(
            self._pending, self._limits, version, self._last_winner, out_of_time=out_of_time
        )

    def _wait(self, attempt: Attempt, deadline: float, *, at_least: float) -> float:
        left = deadline - self._clock.monotonic()
        waited = self._backoff.wait(attempt.write_seconds, at_least=at_least, at_most=left)
        observed_wait(self._conf, self._pending.table, "backoff", waited)
        return waited

    def _do_commit(self, attempt: Attempt, deadline: float) -> tuple[int | None, int]:
        """One attempt.

        Returns:
            The version that holds the commit, or None and the version to try next.
        """
        self._attempt = attempt
        began = self._clock.monotonic()
        try:
            has_looked = self._fence(attempt)
        except OSError as exc:
            if self._writer.in_doubt is None or isinstance(exc, DeltaError):
                raise
            # What is in doubt stays so, and is not sent again unseen.
            attempt.error = f"{type(exc).__name__}: {exc}"
            attempt.write_seconds = self._clock.monotonic() - began
            self._record(attempt, CommitOutcome.UNKNOWN)
            return None, attempt.version
        # Nothing between the fence and the write may take long: what the fence saw is as old as
        # that.
        lines = len(self._lines.actions) + 1
        self._messages.attempting(attempt.version, self._pending, lines)
        # There is no look whether the version is free: another writer could take it after the look.
        # The create is the look.
        written = self._writer.write(attempt)
        if written is Written.OURS:
            if self._last_winner is None:
                self.made = attempt.version, attempt.write_seconds
            self._record(attempt, CommitOutcome.COMMITTED, attempt.version)
            return attempt.version, attempt.version
        if written is Written.UNKNOWN:
            self._record(attempt, CommitOutcome.UNKNOWN)
            return None, attempt.version
        # Wait first, look then: what is seen just before the next write is seen fresh.
        left = deadline - self._clock.monotonic()
        pace = attempt.write_seconds
        if self._store.capabilities.decides_afar:
            # The first write of a process also imports and connects, and takes longest where many
            # begin at once: by it they would all wait while one writer has the table to itself.
            if has_looked:
                self._look_seconds = attempt.sent_at - began
            pace = min(pace, self._look_seconds)
        attempt.wait = self._backoff.wait_after_loss(pace, at_most=left)
        observed_wait(self._conf, self._pending.table, "backoff", attempt.wait)
        return self._get_next_attempt_version(attempt)

    def _get_next_attempt_version(self, attempt: Attempt) -> tuple[int | None, int]:
        """Step 2: go through the winners from the version that was lost.

        Returns:
            The version that holds the commit, where one of the winners turns out to be it; or
            None and the version after the last winner.
        """
        began = self._clock.monotonic()
        # From the version that was lost: those before it were checked in earlier attempts, each
        # once.
        version, number = attempt.version, self._records.attempts + 1
        self._messages.checking(number, version, self._pending, self._lines.actions)
        self._looked = looked = _Looked(self._check_fence)
        ahead = LookAhead(self._store, self._pending.table, attempt, looked)

        def read(wanted: int) -> WinningCommit | None:
            return self._writer.read(attempt, wanted)

        try:
            while (winner := ahead.read(version, read, self._writer.is_ours)) is not None:
                # Checked before conflicts: our own commit would conflict with itself, and the job
                # would write its rows twice.
                if self._writer.is_ours(winner) or self._is_held_by(winner):
                    self._landing.landed(version)
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

    def _is_held_by(self, winner: WinningCommit) -> bool:
        """Whether another process has committed this, together with others.

        Raises:
            DeltaConcurrentModificationException: this is a commit of several, and it has committed
                some of them.
        """
        own = self._draft.commit_info
        mine = transactions_of(own)
        if len(mine) > 1:
            mine -= {own.txn_id}  # of a commit of several, which is no transaction itself
        shared = mine & transactions_of(winner.commit_info)
        if shared and shared == mine:
            self._check_held(winner)
            self.found = winner
        elif shared:
            raise DeltaConcurrentModificationException(
                f"version {winner.version} of {self._pending.table} holds transactions of this "
                f"commit already: {', '.join(sorted(shared))}",
                table=self._pending.table,
                version=winner.version,
            )
        return self.found is not None

    def _check_held(self, winner: WinningCommit) -> None:
        # Its first line names this commit; where files show half written, the rest may be missing.
        lost = added_by(self._draft.actions) - added_by(winner.adds)
        if lost:
            raise TornCommitError(
                commit_path(self._pending.table, winner.version),
                f"version {winner.version} is torn: it says that it holds the transaction "
                f"{self._draft.commit_info.txn_id}, but not its file {min(lost)}",
            )

    def _check_for_conflicts(self, attempt: Attempt, winner: WinningCommit) -> None:
        # The version that was in doubt is another's: ours can't land there any more.
        # A version is written once. Whatever of ours is still on its way to that name meets this
        # file.
        self._landing.refused(winner.version)
        if not self._landing.is_possible:
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
        except _OTHERS_DEEDS as exc:
            attempt.first = winner
            self._messages.conflict(number, winner.version, exc)
            raise
        except Exception:
            attempt.first = winner
            raise
        self._messages.passed(number, winner.version)

    def _rebase(self, winner: WinningCommit) -> None:
        """Check a winner, and from now on say what is right after it."""
        # All that the commit says is changed after the check and together: an error in between
        # leaves the attempt as it was, for the record.
        after = check_conflicts(self._pending, winner)
        self._draft = self._draft.rebased(
            self._pending, after, winner, lambda: self._landed_at(winner.version)
        )
        self._lines.change(self._draft.commit_info, self._draft.actions)
        self._pending = after

    def _landed_at(self, version: int) -> int:
        """When the storage got a version; the present time if the version is gone again."""
        listing = list_log(self._store, self._pending.table, version, version)
        found = listing.commits.get(version)
        return self._clock.now_ms() if found is None else found.modification_time

    def _fence(self, attempt: Attempt) -> bool:
        """Look whether what was read is still in the log, unless that was done a moment ago.

        Returns:
            Whether it was done now.
        """
        looked, self._looked = self._looked, None
        if looked is not None and looked.says():
            return False
        just_seen, self._was_just_seen = self._was_just_seen, None
        if just_seen is not None and just_seen():
            return False
        attempt.requests += 1
        check, self._check = self._check, None
        if check is None:
            self._writer.repeat(self._check_fence)
        elif self._store.capabilities.decides_afar:
            self._check_both(check)
        else:
            self._writer.repeat(self._check_fence)
            check()
        return True

    def _check_both(self, check: Callable[[], object]) -> None:
        with beside(1, "lakelog-fence") as begun:
            begun.begin(self._writer.repeat, self._check_fence)
            try:
                check()
            finally:
                begun.take()  # it says more: the files of a table that was dropped are gone

    def _check_fence(self) -> None:
        def left() -> float:
            # What is on its way when a silent storage is given up may take as long again.
            rest = self._writer.deadline - self._limits.reserve - self._clock.monotonic()
            return rest / 2

        # By the version that was read, not by the last winner's: that it is there after a winner
        # was read says that the winner's commit is the same table's.
        table, read = self._pending.table, (self._read_info, self._read_modified)
        limited(left, lambda: check_fence(self._store, table, self._read_version + 1, *read))

    def _record(
        self, attempt: Attempt, outcome: CommitOutcome, committed: int | None = None
    ) -> None:
        self._attempt = None
        self._records.record(attempt, outcome, self._pending, committed)

    def _record_end(
        self, outcome: CommitOutcome, exc: Exception, committed: int | None = None
    ) -> None:
        """Record the attempt that an exception ended, if one was under way."""
        attempt = self._attempt
        if attempt is None:
            return
        explains_itself = isinstance(exc, DeltaError | CommitOutcomeUnknownError)
        attempt.error = str(exc) if explains_itself else f"{type(exc).__name__}: {exc}"
        self._record(attempt, outcome, committed)


class _Looked:
    """A look at the fence that travels beside other requests, and what it met."""

    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look
        self._met: Exception | None = None
        self._is_done = False

    def __call__(self) -> None:
        """Look; called in any thread, and each time that there is a newer reason."""
        self._is_done = False
        self._met = None
        try:
            self._look()
        except Exception as exc:
            self._met = exc
        self._is_done = True

    def says(self) -> bool:
        """Whether a look found all as it was.

        Raises:
            DeltaError: it was not. A look that met anything else counts for nothing.
        """
        if isinstance(self._met, DeltaError):
            raise self._met
        return self._is_done and self._met is None
