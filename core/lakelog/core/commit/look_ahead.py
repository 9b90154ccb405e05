"""Winners' commits, fetched several at a time where each is a journey.

A writer that lost reads the commits that came before it, one by one, until none is left. Where a
request takes a round trip, another commit lands meanwhile, and another: who has fallen behind by a
few versions never catches up with writers that begin afresh. So the next versions are asked for
beside the one that is read, twice as many each time.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from lakelog.core.conflicts.winner import read_winner
from lakelog.logstores.contract import Scope
from lakelog.logstores.threads import beside

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.commit.attempt import Attempt
    from lakelog.core.conflicts.winner import WinningCommit
    from lakelog.logstores import LogStore

_WORTH: Final = 0.003
"""Seconds a request takes from which on a thread for another one costs less than the wait."""
_MOST: Final = 8


class LookAhead:
    """What is after a version that was lost. Used for one attempt, by one thread."""

    def __init__(
        self,
        store: LogStore,
        table: str,
        attempt: Attempt,
        beside: Callable[[], object] | None = None,
    ) -> None:
        """Fetch nothing yet.

        Args:
            store: of the table's log.
            table: the table's URI.
            attempt: counts the requests. One at a time is made where its write took little time.
            beside: one more request that is made where several are, each time; it never raises.
        """
        self._store = store
        self._table = table
        self._attempt = attempt
        self._beside = beside
        far = store.capabilities.exclusive_create == Scope.CLUSTER
        self._width = 2 if far and attempt.write_seconds >= _WORTH else 1
        self._found: dict[int, WinningCommit] = {}
        self._missing: set[int] = set()

    def read(
        self,
        version: int,
        read: Callable[[int], WinningCommit | None],
        is_ours: Callable[[WinningCommit], bool],
    ) -> WinningCommit | None:
        """The commit of a version; ask for versions in ascending order.

        Args:
            version: the one that is wanted.
            read: reads it as it has to be read where much depends on it: failures of the storage
                are repeated, a commit of ours is whole. What was fetched ahead without a failure,
                and is another's, needs none of that.
            is_ours: whether this writer made a commit.

        Returns:
            None if the log had no such version a moment ago.
        """
        known = self._found.pop(version, None)
        if known is not None and not is_ours(known):
            return known
        # A version can only be missing now if all after it are: a later one was there, so look.
        # What was missing when it was fetched may have come since. It decides only that no more is
        # read now; the create that follows finds out by itself.
        if version in self._missing and not self._found:
            return None
        if self._width == 1:
            return read(version)
        return self._read_more(version, read)

    def _read_more(
        self, version: int, read: Callable[[int], WinningCommit | None]
    ) -> WinningCommit | None:
        ahead = [
            each for each in range(version + 1, version + self._width) if each not in self._found
        ]
        self._missing.clear()
        others: list[Callable[[], object]] = [partial(self._fetch, each) for each in ahead]
        if self._beside is not None:
            others.append(self._beside)
        self._attempt.requests += len(others)
        with beside(max(1, len(others)), "lakelog-winners") as begun:
            for each in others:
                begun.begin(each)
            # By the writer itself, with its repeats: the others are a bet, and what they lose is
            # read again.
            winner = read(version)
            while begun:
                begun.take()
        self._width = min(_MOST, 2 * self._width)
        return winner

    def _fetch(self, version: int) -> None:
        try:
            found = read_winner(self._store, self._table, version)
        except Exception:  # it is read again when its turn comes
            return
        if found is None:
            self._missing.add(version)
        else:
            self._found[version] = found
