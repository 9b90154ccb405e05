"""How many threads read commits, and what becomes of a failure among them."""

from __future__ import annotations

import itertools
import threading

import pytest

from lakelog.core.log.readers import read_side_by_side
from lakelog.logstores.threads import MOST_REQUESTS

_PATIENCE = 30.0


class _Crowd:
    """Counts those who read at the same time; they wait until so many have come."""

    def __init__(self, size: int, before: int = 1) -> None:
        """How many others come depends on how long the caller took for the first ones."""
        self._caller, self._before = threading.get_ident(), before
        self._barrier = threading.Barrier(size)
        self._lock = threading.Lock()
        self._inside = self.most = 0

    def read(self, key: int) -> int:
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)
            is_early = self._before > 0 and threading.get_ident() == self._caller
            self._before -= is_early
        if not is_early:
            self._barrier.wait(_PATIENCE)
        with self._lock:
            self._inside -= 1
        return key * key


def _waits(seconds: float) -> itertools.count[float]:
    return itertools.count(0.0, seconds)


@pytest.mark.parametrize(
    ("seconds", "readers"),
    [(0.0, 16), (0.012, 20), (0.03, 50), (0.1, MOST_REQUESTS), (60.0, MOST_REQUESTS)],
)
def test_as_many_read_as_the_wait_wants(seconds: float, readers: int) -> None:
    # Without these many threads at once the barrier would never open, and break.
    crowd = _Crowd(readers)
    keys = range(1 + readers * 4)
    found = read_side_by_side(crowd.read, keys, far=True, clock=_waits(seconds).__next__)
    assert found == [key * key for key in keys]
    assert crowd.most <= readers


def test_on_a_disk_of_this_host_sixteen_are_enough() -> None:
    crowd = _Crowd(16, before=2)
    keys = range(2 + 16 * 8)
    found = read_side_by_side(crowd.read, keys, far=False, clock=_waits(60.0).__next__)
    assert found == [key * key for key in keys]
    assert crowd.most <= 16


def test_what_a_disk_of_this_host_has_at_hand_needs_no_threads() -> None:
    keys = range(200)
    readers = []

    def read(key: int) -> int:
        readers.append(threading.get_ident())
        return key

    assert read_side_by_side(read, keys, far=False, clock=_waits(0.0).__next__) == [*keys]
    assert set(readers) == {threading.get_ident()}


def test_one_file_that_took_long_begins_no_threads() -> None:
    keys = range(200)
    times = itertools.accumulate(0.1 if number % 2 else 0.0 for number in itertools.count())
    readers = []

    def read(key: int) -> int:
        readers.append(threading.get_ident())
        return key

    assert read_side_by_side(read, keys, far=False, clock=times.__next__) == [*keys]
    assert set(readers) == {threading.get_ident()}


@pytest.mark.parametrize("count", [0, 1, 2, 3, 17, 200])
def test_every_key_is_read_once_and_keeps_its_place(count: int) -> None:
    asked: list[int] = []

    def read(key: int) -> int:
        asked.append(key)
        return -key

    assert read_side_by_side(read, range(count), far=True) == [-key for key in range(count)]
    assert sorted(asked) == list(range(count))


@pytest.mark.parametrize("kind", [FileNotFoundError, KeyboardInterrupt])
def test_a_failure_ends_the_reading_and_is_raised(kind: type[BaseException]) -> None:
    asked: list[int] = []

    def read(key: int) -> int:
        asked.append(key)
        if key >= 3:
            raise kind(str(key))
        return key

    with pytest.raises(kind, match=r"^3$"):
        read_side_by_side(read, range(10_000), far=True)
    assert len(asked) < 1000
