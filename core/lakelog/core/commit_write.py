"""Writing one version, and finding out whose it is where the storage did not say.

The steps of `commit_loop` that settle an outcome: 1 (create), 3 (the storage did not say) and
4 (refused for another reason).
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from lakelog.core.errors import CommitOutcomeUnknownError, CorruptCommitError
from lakelog.core.paths import commit_path
from lakelog.core.winners import read_winner

if TYPE_CHECKING:
    from lakelog.core.backoff import Backoff, RetryLimits
    from lakelog.core.clock import Clock
    from lakelog.core.commit_attempt import Attempt, Lines
    from lakelog.core.winners import WinningCommit
    from lakelog.logstores import LogStore

__all__ = ["CommitWriter", "Written"]

_HALF_VISIBLE_TRIES = 10
_READ_TRIES = 3


class Written(enum.Enum):
    """Whose the version is after a write."""

    OURS = enum.auto()
    TAKEN = enum.auto()
    UNKNOWN = enum.auto()


class CommitWriter:
    """Writes the lines of one commit, and keeps in mind whether they may be in the log."""

    def __init__(
        self,
        store: LogStore,
        clock: Clock,
        table: str,
        lines: Lines,
        limits: RetryLimits,
        backoff: Backoff,
    ) -> None:
        """Take what does not change between attempts.

        Args:
            store: of the table's log.
            clock: measures the writes.
            table: the table's URI.
            lines: of the commit; its commitInfo carries the txnId.
            limits: how often an unknown outcome is borne.
            backoff: the waits between reads.
        """
        self._store = store
        self._clock = clock
        self._table = table
        self._lines = lines
        self._limits = limits
        self._backoff = backoff
        self._unknown = 0
        self.in_doubt: CommitOutcomeUnknownError | None = None
        """Set while a write of ours may still land."""

    def write(self, attempt: Attempt) -> Written:
        """Create the version, and settle what the storage left open.

        Raises:
            CommitOutcomeUnknownError: the storage did not say, time and again.
            OSError: the storage refused; nothing was made.
        """
        path = commit_path(self._table, attempt.version)
        began = self._clock.monotonic()
        attempt.requests += 1
        try:
            self._store.write(path, self._lines, overwrite=False)
        except FileExistsError:
            return Written.TAKEN
        except CommitOutcomeUnknownError as exc:
            attempt.error = str(exc)
            return self._settle(attempt, exc)
        except OSError as exc:
            # By contract nothing was made. A store of the user's may be less exact than that.
            attempt.error = f"{type(exc).__name__}: {exc}"
            return self._settle_failure(attempt, path, exc)
        finally:
            attempt.write_seconds = self._clock.monotonic() - began
        return Written.OURS

    def _settle_failure(self, attempt: Attempt, path: str, failure: OSError) -> Written:
        attempt.requests += 1
        try:
            found = read_winner(self._store, self._table, attempt.version)
        except (OSError, CorruptCommitError) as exc:
            # Neither written nor readable: nobody can say what is there.
            self.in_doubt = self.in_doubt or CommitOutcomeUnknownError(
                path, f"writing it failed ({failure}), and so did reading it back ({exc})"
            )
            raise failure from None
        if found is not None and self.is_ours(found):
            return Written.OURS
        if self.in_doubt is None:
            raise failure
        return self._settle(attempt, self.in_doubt)

    def _settle(self, attempt: Attempt, unknown: CommitOutcomeUnknownError) -> Written:
        owner = self._owner(attempt)
        if owner is Written.UNKNOWN:
            self.in_doubt = unknown
            self._unknown += 1
            if self._unknown > self._limits.unknown:
                raise unknown
        return owner

    def _owner(self, attempt: Attempt) -> Written:
        """Whose the version is, by reading it back."""
        attempt.requests += 1
        try:
            found = read_winner(self._store, self._table, attempt.version)
        except (OSError, CorruptCommitError, CommitOutcomeUnknownError):
            return Written.UNKNOWN
        if found is None:
            return Written.UNKNOWN
        return Written.OURS if self.is_ours(found) else Written.TAKEN

    def is_ours(self, commit: WinningCommit) -> bool:
        """Whether an earlier write of this commit made it, by its txnId."""
        return commit.txn_id is not None and commit.txn_id == self._lines.commit_info.txn_id

    def read(self, attempt: Attempt, version: int) -> WinningCommit | None:
        """Read a commit; give a failing storage, or one that shows half a file, a little time.

        Returns:
            None if the table has no such version.

        Raises:
            CorruptCommitError: the file is no commit.
            OSError: the storage can't be read.
        """
        path = commit_path(self._table, version)
        tries = 0
        while True:
            attempt.requests += 1
            tries += 1
            try:
                return read_winner(self._store, self._table, version)
            except CorruptCommitError:
                if tries > _HALF_VISIBLE_TRIES or not self._store.is_partial_write_visible(path):
                    raise
            except OSError as exc:
                if tries > _READ_TRIES:
                    if version == attempt.version:
                        # It exists, but whose is it? A store may have met its own file.
                        self.in_doubt = self.in_doubt or CommitOutcomeUnknownError(
                            path, f"it exists, and reading it failed ({exc})"
                        )
                    raise
            self._backoff.wait(0.005, at_most=self._limits.max_wait)
