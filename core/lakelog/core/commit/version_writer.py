"""Writing one version, and finding out whose it is where the storage did not say.

The steps of `commit_loop` that settle an outcome: 1 (create), 3 (the storage did not say) and
4 (refused for another reason).
"""

from __future__ import annotations

import enum
import hashlib
import math
import sys
from typing import TYPE_CHECKING

from lakelog.core.commit.attempt import Attempt
from lakelog.core.commit.unanswered import is_unanswered
from lakelog.core.conflicts.winner import read_winner
from lakelog.core.errors import (
    CatalogError,
    CommitOutcomeUnknownError,
    CorruptCommitError,
    DeltaError,
    TornCommitError,
)
from lakelog.core.log.budget import LogBudget, read_log_file
from lakelog.core.log.file_names import commit_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.core.clock import Clock
    from lakelog.core.commit.attempt import Landing, Lines
    from lakelog.core.commit.backoff import Backoff
    from lakelog.core.commit.commit_settings import RetryLimits
    from lakelog.core.conflicts.winner import WinningCommit
    from lakelog.logstores import LogStore

_HALF_VISIBLE_TRIES = 10

_READ_TRIES = 3


class Written(enum.Enum):
    """Whose the version is after a write."""

    OURS = enum.auto()
    TAKEN = enum.auto()
    UNKNOWN = enum.auto()


class _Lines:
    """Lines that a store may go through as often as it likes."""

    def __init__(self, lines: Callable[[], Iterator[str]]) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[str]:
        return self._lines()


class CommitWriter:
    """Writes the lines of one commit, and tracks whether they may be in the log."""

    def __init__(
        self,
        store: LogStore,
        clock: Clock,
        table: str,
        lines: Lines,
        limits: RetryLimits,
        backoff: Backoff,
        landing: Landing,
        *,
        watch: Callable[[int, Lines], None] | None = None,
    ) -> None:
        """Take what does not change between attempts.

        Args:
            store: of the table's log.
            clock: measures the writes.
            table: the table's URI.
            lines: of the commit; its commitInfo carries the txnId.
            limits: how many unknown outcomes are tolerated.
            backoff: the waits between reads.
            landing: records what becomes of each write.
            watch: called before each write, with the version and the lines; what it raises ends
                the commit, and that write is not sent.
        """
        self._store = store
        self._clock = clock
        self._table = table
        self._lines = lines
        self._limits = limits
        self._backoff = backoff
        self._landing = landing
        self._watch = watch
        self._unknown = 0
        # An earlier commit of the same transaction may have left a write on its way.
        self._sent = landing.is_possible
        """Whether a store got the last line; without it no version can be whole."""
        self._took_all = False
        """The same of the write under way, or of the last one."""
        self.in_doubt = _left_in_doubt(table, landing)
        """Set while a write of ours may still land."""
        self._elsewhere = self.in_doubt if landing.elsewhere is not None else None
        """What no version that is another's settles."""
        self.unread: OSError | None = None
        """How a write failed whose version could not be read back."""
        self.deadline: float = math.inf
        """When the commit's time is up, by the clock; nothing begins that may take longer."""
        self.brief: float = math.inf
        """Seconds: what takes no longer is done however little is left."""
        self.makes_lines_as_it_goes = False
        """Whether the time that it takes to make the lines is not part of the budget."""
        self._unmade: Exception | None = None
        """What was raised where the lines are made, by a caller's function perhaps."""
        self._given_at = 0.0
        """When a store took the last line of a write."""
        self._took = 0.0
        """Seconds that the last request, or the write, took."""

    def write(self, attempt: Attempt) -> Written:
        """Create the version, and settle what the storage left open.

        Raises:
            CommitOutcomeUnknownError: the storage did not say, time and again.
            OSError: the storage refused; nothing was made.
            Exception: what no store may raise; `settle` then finds out whether the commit landed.
        """
        if self._watch is not None:
            self._watch(attempt.version, self._lines)
        path = commit_path(self._table, attempt.version)
        outer = sys.exception()
        attempt.sent_at = began = self._clock.monotonic()
        attempt.requests += 1
        # A write in doubt is repeated as it was: its last line may have been sent before.
        self._sent = self._sent and self._landing.is_possible
        self._took_all = False
        # Before the call and not in it: a signal handler may raise before the first byte, and a
        # doubt too many costs a read, one too few costs files.
        self._landing.trying(attempt.version)
        try:
            # Never with overwrite, also where the last try was ours: the file may have become
            # another's since.
            self._store.write(path, _Lines(self._given), overwrite=False)
        except FileExistsError as exc:
            # Raised by who makes the lines, a caller's iterator perhaps, and no word of the store.
            if exc is self._unmade:
                raise
            # Perhaps by ourselves: the reader of the winners knows our txnId and finds out.
            return Written.TAKEN
        except CommitOutcomeUnknownError as exc:
            self._took = self._since_the_last_line(began)
            attempt.error = str(exc)
            return self._settle(attempt, exc)
        except OSError as exc:
            self._took = self._since_the_last_line(began)
            # By contract nothing was made. A store of the user's may be less exact than that.
            attempt.error = f"{type(exc).__name__}: {exc}"
            return self._settle_failure(attempt, path, exc, outer)
        finally:
            attempt.write_seconds = self._clock.monotonic() - began
        # A store that says yes before it had the last line can't have written it.
        if not self._took_all:
            reason = "the store reported success without reading all of the commit's lines"
            attempt.error = reason
            return self._settle(attempt, CommitOutcomeUnknownError(path, reason))
        self._landing.landed(attempt.version)
        return Written.OURS

    def _since_the_last_line(self, began: float) -> float:
        """Seconds that the storage took, without the time to make the lines of a large commit."""
        return self._clock.monotonic() - (self._given_at if self._took_all else began)

    def is_time_for(self, seconds: float) -> bool:
        """Whether something may begin that takes so long where the storage is silent."""
        return seconds <= self.brief or self.deadline - self._clock.monotonic() >= seconds

    def _settle_failure(
        self, attempt: Attempt, path: str, failure: OSError, outer: BaseException | None
    ) -> Written:
        owner, seen = self._owner(attempt)
        if owner is Written.OURS:
            return owner
        if isinstance(seen, TornCommitError):
            raise seen from failure
        # A catalog has an error of its own for what it leaves open, which is looked at before.
        is_certain = isinstance(failure, CatalogError) and self.in_doubt is None
        if seen is not None and not is_certain:
            # Neither written nor readable: there is no way to know what is there.
            self.in_doubt = self.in_doubt or CommitOutcomeUnknownError(
                path, f"writing it failed ({failure}), and so did reading it back ({seen})"
            )
            self.unread = failure
            raise failure from None
        is_open = owner is Written.UNKNOWN and self._sent and not is_certain
        if is_open and is_unanswered(failure, outer):
            # Not a refusal, though a store may take it for one: the request may be on its way.
            unknown = CommitOutcomeUnknownError(
                path,
                f"writing it failed ({type(failure).__name__}: {failure}), and the file does "
                "not exist",
            )
            unknown.__cause__ = failure
            return self._in_doubt(self.in_doubt or unknown)
        if self.in_doubt is None:
            self._landing.refused(attempt.version)
            raise failure
        return owner if owner is Written.TAKEN else self._in_doubt(self.in_doubt)

    def _settle(self, attempt: Attempt, unknown: CommitOutcomeUnknownError) -> Written:
        owner, seen = self._owner(attempt)
        if isinstance(seen, TornCommitError):
            raise seen from unknown
        return self._in_doubt(unknown) if owner is Written.UNKNOWN else owner

    def _in_doubt(self, unknown: CommitOutcomeUnknownError) -> Written:
        self.in_doubt = unknown
        # Only what the storage leaves open counts here, and not lost races: of these there may be
        # many.
        self._unknown += 1
        if self._unknown > self._limits.unknown:
            raise unknown
        return Written.UNKNOWN

    def _owner(self, attempt: Attempt) -> tuple[Written, Exception | None]:
        """Whose the version is, by reading it back; or why it can't be read."""
        if not self.is_time_for(self._took):
            return Written.UNKNOWN, TimeoutError("no time is left to read it back")
        attempt.requests += 1
        began = self._clock.monotonic()
        try:
            found = self._read_whole(attempt, attempt.version)
        except Exception as exc:  # a store of the user's may raise anything
            self._took = max(self._took, self._clock.monotonic() - began)
            return Written.UNKNOWN, exc
        if found is None:
            return Written.UNKNOWN, None
        if not self.is_ours(found):
            return Written.TAKEN, None
        self._landing.landed(attempt.version)
        return Written.OURS, None

    def settle(
        self, attempt: Attempt | None, failure: Exception
    ) -> CommitOutcomeUnknownError | None:
        """Find out whether the commit landed, where an exception left that open.

        Args:
            attempt: the one under way; None between two.
            failure: what ended the commit.

        Returns:
            The error that says that the commit may be there; None where `Landing` knows.
        """
        if isinstance(failure, CommitOutcomeUnknownError):
            return failure
        tried = self._landing.tried
        if self._landing.version is not None:
            return None
        if tried is None:
            return self._elsewhere
        if isinstance(failure, CorruptCommitError):
            # Whichever writer tore the file of that version, no commit can be read there.
            return self.in_doubt
        if attempt is None or attempt.version != tried:
            attempt = Attempt(tried)
        owner, seen = self._owner(attempt)
        if owner is Written.OURS:
            return None
        if isinstance(seen, TornCommitError):
            return seen
        if owner is Written.TAKEN or (seen is None and not self._sent):
            self.in_doubt = self._elsewhere
            self._landing.refused(tried)
            return self.in_doubt
        found = "the file does not exist" if seen is None else f"reading it back failed ({seen})"
        return self.in_doubt or CommitOutcomeUnknownError(
            commit_path(self._table, tried),
            f"writing it was stopped ({type(failure).__name__}: {failure}), and {found}",
        )

    def _given(self) -> Iterator[str]:
        """The lines, for the store; one is held back, to know when the last one is taken."""
        held = None
        digest, began = LineDigest(), self._clock.monotonic()
        lines = iter(self._lines)
        while (line := self._made(lines)) is not None:
            digest.add(line)
            if held is not None:
                yield held
            held = line
        # Last but for the line itself: until a store has that, no version can hold all of the
        # commit.
        self._landing.given(digest.value)
        self._given_at = self._clock.monotonic()
        if self.makes_lines_as_it_goes:
            self.deadline += self._given_at - began
        self._sent = self._took_all = True
        if held is not None:
            yield held

    def _made(self, lines: Iterator[str]) -> str | None:
        try:
            return next(lines, None)
        except Exception as exc:
            self._unmade = exc
            raise

    def _read_whole(self, attempt: Attempt, version: int) -> WinningCommit | None:
        """Read a commit that may be ours; of ours nothing may be missing.

        Raises:
            TornCommitError: it is ours, and not all that was sent.
            CorruptCommitError: the file is not a commit, and does not say that it is ours.
            OSError: the storage can't be read.
        """
        try:
            found = read_winner(self._store, self._table, version)
        except CorruptCommitError as exc:
            self._check_whole(attempt, version, exc)
            raise
        if found is not None and self.is_ours(found):
            self._check_whole(attempt, version, None)
        return found

    def _check_whole(
        self, attempt: Attempt, version: int, broken: CorruptCommitError | None
    ) -> None:
        attempt.requests += 1
        path = commit_path(self._table, version)
        data = read_log_file(self._store, path, LogBudget.from_store(self._store))
        # The txnId is in the first line; that a file is ours does not say that it is whole.
        if self._landing.was_given(digest_of_file(data)):
            return  # it has become whole since it was read
        if broken is not None and not self._begins_as_ours(data):
            return
        lines = data.count(b"\n")
        raise TornCommitError(
            path,
            f"version {version} is torn: it holds {len(data)} bytes in {lines} complete lines, "
            f"which are only part of this writer's commit (txnId {self._lines.commit_info.txn_id})",
        ) from broken

    def _begins_as_ours(self, data: bytes) -> bool:
        first = self._lines.commit_info.to_json().encode()
        begin = data.split(b"\n", 1)[0].rstrip(b"\r")
        # Without a whole first line there may be no txnId; the time that precedes it decides then.
        txn_id = f'"{self._lines.commit_info.txn_id}"'.encode()
        return txn_id in begin or (len(begin) > len(b'{"commitInfo":') and first.startswith(begin))

    def is_ours(self, commit: WinningCommit) -> bool:
        """Whether an earlier write of this commit made it, by its txnId."""
        return commit.txn_id is not None and commit.txn_id == self._lines.commit_info.txn_id

    def repeat(self, look: Callable[[], None]) -> None:
        """Look at something in the log; allow a little time for storage that fails.

        Args:
            look: changes nothing; done again where the storage failed, not where it raises what
                the log is like.

        Raises:
            DeltaError: as `look` raises it, at once.
            OSError: the storage can't be read.
        """
        tries = 0
        while True:
            tries += 1
            began = self._clock.monotonic()
            try:
                return look()
            except OSError as exc:
                took = self._clock.monotonic() - began
                late = not self.is_time_for(2 * took)
                if isinstance(exc, DeltaError) or late or tries > _READ_TRIES:
                    raise
            self._backoff.wait(0.005, at_most=self._limits.max_wait)

    def read(self, attempt: Attempt, version: int) -> WinningCommit | None:
        """Read a commit; allow a little time for storage that fails or shows half a file.

        Returns:
            None if the table has no such version.

        Raises:
            TornCommitError: it is a part of this writer's commit.
            CorruptCommitError: the file is not a commit.
            OSError: the storage can't be read.
        """
        path = commit_path(self._table, version)
        tries = 0
        while True:
            attempt.requests += 1
            tries += 1
            began = self._clock.monotonic()
            try:
                return self._read_whole(attempt, version)
            except (CorruptCommitError, TornCommitError):
                if tries > _HALF_VISIBLE_TRIES or not self._store.is_partial_write_visible(path):
                    raise
            except OSError as exc:
                self._took = self._clock.monotonic() - began
                # A last look may follow, which takes as long again.
                late = self.deadline - self._clock.monotonic() < 2 * self._took
                if late or tries > _READ_TRIES:
                    if version == attempt.version:
                        # It exists, but whose is it? A store may have met its own file.
                        self.in_doubt = self.in_doubt or CommitOutcomeUnknownError(
                            path, f"it exists, but reading it failed ({exc})"
                        )
                    raise
            self._backoff.wait(0.005, at_most=self._limits.max_wait)


def _left_in_doubt(table: str, landing: Landing) -> CommitOutcomeUnknownError | None:
    if landing.elsewhere is not None:
        return CommitOutcomeUnknownError(
            commit_path(table, landing.elsewhere),
            "another process was asked to commit it, as this version or a later one, and did not "
            "say what became of it",
        )
    if landing.tried is None:
        return None
    return CommitOutcomeUnknownError(
        commit_path(table, landing.tried), "an earlier commit of this transaction may still land"
    )


class LineDigest:
    """Takes lines one by one."""

    __slots__ = ("_hash",)

    def __init__(self) -> None:
        """No lines yet."""
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, line: str) -> None:
        """Take the next line, without its end."""
        # A lone surrogate is for the store to refuse.
        self._add(line.encode("utf-8", "surrogatepass"))

    def _add(self, line: bytes) -> None:
        self._hash.update(line + b"\n")

    @property
    def value(self) -> bytes:
        """What stands for the lines so far, and for no others."""
        return self._hash.digest()


def digest_of_file(data: bytes) -> bytes:
    """The digest of a file's lines, however they end; empty ones say nothing."""
    digest = LineDigest()
    for line in data.split(b"\n"):
        if line := line.rstrip(b"\r"):
            digest._add(line)
    return digest.value
