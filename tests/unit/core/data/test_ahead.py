"""Streams are read ahead by threads: in order or not, in bounded memory, and nobody is left."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest

from lakelog.core.data import ahead
from lakelog.core.data.ahead import read_ahead, read_while_quick

if TYPE_CHECKING:
    from collections.abc import Generator


class Streams:
    """So many streams of numbers; knows how many items were made and which streams are closed."""

    def __init__(self, *lengths: int, fails: int = -1) -> None:
        self.lengths = lengths
        self.fails = fails
        self.made = [0] * len(lengths)
        self.closed: set[int] = set()

    def __iter__(self):
        return iter([partial(self.numbers, index) for index in range(len(self.lengths))])

    def numbers(self, index: int) -> Generator[tuple[int, int]]:
        try:
            for each in range(self.lengths[index]):
                self.made[index] += 1
                yield index, each
            if index == self.fails:
                raise ValueError("the disk")
        finally:
            self.closed.add(index)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_all_items_come_in_order(workers: int) -> None:
    streams = Streams(3, 0, 40, 1, 7)
    found = list(read_ahead(streams, workers=workers))
    assert found == [(i, n) for i, length in enumerate(streams.lengths) for n in range(length)]
    assert streams.closed == {0, 1, 2, 3, 4}


def test_without_an_order_a_slow_stream_holds_up_no_one() -> None:
    others_came = threading.Event()

    def slow() -> Generator[str]:
        assert others_came.wait(60)
        yield "slow"

    def fast() -> Generator[str]:
        yield "fast"

    found = read_ahead([slow, fast, fast], workers=2, ordered=False)
    assert [next(found), next(found)] == ["fast", "fast"]
    others_came.set()
    assert list(found) == ["slow"]


def test_what_is_ready_is_bounded() -> None:
    streams = Streams(1000, 1000, 1000, 1000)
    found = read_ahead(streams, workers=3, items=2)
    taken = [next(found) for _ in range(10)]
    found.close()
    assert taken[-1] == (0, 9)
    # Those taken, two that are ready, and one that was being read when they were.
    assert streams.made[0] <= 13
    assert max(streams.made[1:3]) <= 3
    assert streams.made[3] == 0
    assert streams.closed <= {0, 1, 2}


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_comes_after_the_items_before_it_and_closes_the_others(workers: int) -> None:
    streams = Streams(2, 2, 1000, fails=1)
    before = set(threading.enumerate())
    found = read_ahead(streams, workers=workers)
    assert [next(found) for _ in range(4)] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    with pytest.raises(ValueError, match="the disk"):
        next(found)
    assert streams.closed >= {0, 1}
    after = set(threading.enumerate()) - before
    assert not [each for each in after if each.name.startswith("lakelog-scan")]


class Times:
    """Clocks of a thread that works for a millisecond at each item, and waits besides."""

    def __init__(self, waits: float) -> None:
        self.wall = self.work = 0.0
        self.waits = waits

    def perf_counter(self) -> float:
        return self.wall

    def thread_time(self) -> float:
        return self.work

    def stream(self, items: int) -> Generator[int]:
        for each in range(items):
            self.work += 0.001
            self.wall += 0.001 + self.waits
            yield each


@pytest.mark.parametrize(("waits", "opened"), [(0.0, 40), (0.002, 40), (0.05, 1), (0.006, 3)])
def test_a_reader_that_mostly_waits_leaves_the_rest_to_threads(
    waits: float, opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = Times(waits)
    monkeypatch.setattr(ahead, "time", times)
    left = iter([partial(times.stream, 4)] * 40)
    assert list(read_while_quick(left)) == [0, 1, 2, 3] * opened
    assert len(list(left)) == 40 - opened


def test_what_is_read_while_it_is_quick_is_closed_in_the_middle() -> None:
    streams = Streams(2, 5, fails=0)
    found = read_while_quick(iter(streams))
    assert [next(found), next(found)] == [(0, 0), (0, 1)]
    with pytest.raises(ValueError, match="the disk"):
        next(found)
    streams = Streams(2, 5)
    found = read_while_quick(iter(streams))
    assert [next(found) for _ in range(3)][-1] == (1, 0)
    found.close()
    assert streams.closed == {0, 1}


ABANDONED = """
from lakelog.core.data.ahead import read_ahead
def numbers():
    yield from range(1000)
found = read_ahead([numbers] * 5, workers=3)
print(next(found))
"""


def test_a_process_that_stops_in_the_middle_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ABANDONED], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "0"
