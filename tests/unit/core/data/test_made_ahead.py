"""Row groups are read ahead of who encodes them, as many as a number of bytes has room for."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core.data.ahead import made_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PATIENCE = 30


def piece(rows: int) -> pa.Table:
    return pa.table({"x": pa.nulls(rows, pa.int64())})


def size_of(rows: pa.Table) -> int:
    return int(rows.nbytes)


WHOLE = piece(100_000).nbytes


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is submitted has been done: how far ahead a thread comes then depends on no clock."""

    def submit(_: ThreadPoolExecutor, task: Callable[..., None], *args: object) -> None:
        task(*args)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)


def most_waiting(sizes: Sequence[int], room: int) -> int:
    """The most bytes that were made and not used; what is made ahead is made in the same thread."""
    made: list[int] = []
    used, most = 0, 0

    def pieces() -> Iterator[pa.Table]:
        for size in sizes:
            made.append(piece(size).nbytes)
            yield piece(size)

    for each in made_ahead(pieces(), room, size_of):
        used += each.nbytes
        most = max(most, sum(made) - used)
    return most


@pytest.mark.parametrize("room", [1, 4, 8])
@pytest.mark.parametrize(
    "sizes",
    [
        [100_000] * 30,
        [10, *[100_000] * 30],
        [*[100_000] * 5, *[10] * 5, *[100_000] * 20],
        [n for _ in range(10) for n in (100_000, 100_000, 7)],
        [10] * 20 + [100_000] * 20,
    ],
    ids=["alike", "a small one first", "small ones between", "ends of files", "small ones before"],
)
@pytest.mark.usefixtures("at_once")
def test_no_more_waits_than_there_is_room_for(sizes: list[int], room: int) -> None:
    # The one that exceeds the room is the last.
    assert most_waiting(sizes, room * WHOLE) <= (room + 1) * WHOLE


def test_pieces_are_made_while_one_is_used() -> None:
    ahead = threading.Event()

    def pieces() -> Iterator[pa.Table]:
        for number in range(9):
            if number == 4:
                ahead.set()
            yield piece(10)

    rows = made_ahead(pieces(), 1 << 20, size_of)
    next(rows)
    assert ahead.wait(PATIENCE)
    assert len(list(rows)) == 8


def test_there_is_one_however_large() -> None:
    pieces = [piece(n) for n in (5, 1000, 3, 0, 100_000, 2)]
    assert [each.num_rows for each in made_ahead(pieces, 1, size_of)] == [5, 1000, 3, 0, 100_000, 2]
    assert list(made_ahead([], 1, size_of)) == []


def test_what_came_before_an_error_is_given() -> None:
    def pieces() -> Iterator[pa.Table]:
        yield piece(1)
        yield piece(2)
        raise OSError("the disk is gone")

    seen: list[int] = []
    with pytest.raises(OSError, match="the disk is gone"):
        seen.extend(each.num_rows for each in made_ahead(pieces(), 1 << 20, size_of))
    assert seen == [1, 2]


def test_who_stops_early_ends_the_reader() -> None:
    made: list[int] = []

    def pieces() -> Iterator[pa.Table]:
        for number in itertools.count():
            made.append(number)
            yield piece(100)

    of_others = set(threading.enumerate())
    rows = made_ahead(pieces(), 4 * piece(100).nbytes, size_of)
    next(rows)
    next(rows)
    rows.close()
    before = len(made)
    left = set(threading.enumerate()) - of_others
    assert not [each for each in left if "lakelog-scan" in each.name]
    assert len(made) == before


@pytest.mark.usefixtures("at_once")
def test_items_of_no_size_are_not_all_made_at_once() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10_000):
            made.append(number)
            yield number

    with closing(made_ahead(items(), 1 << 20, lambda _: 0)) as found:
        assert next(found) == 0
        assert 60 < len(made) < 70
        assert list(found) == list(range(1, 10_000))


PROGRAM = """
import atexit, sys
from lakelog.core.data.ahead import made_ahead

def items():
    return made_ahead(iter(range(1000)), 10, lambda _: 1)

def failing():
    kept = items()
    next(kept), next(kept)
    raise MemoryError("nobody closes it")

if sys.argv[1] == "at exit":
    atexit.register(lambda: print(sum(items())))
else:
    failing()
"""


def run(how: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, how]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_a_process_ends_although_no_one_closes_what_was_read_ahead() -> None:
    done = run("failing")
    assert done.returncode == 1
    assert "MemoryError: nobody closes it" in done.stderr


def test_when_the_interpreter_ends_all_is_made_without_a_thread() -> None:
    assert run("at exit").stdout.strip() == str(sum(range(1000)))


def test_without_a_thread_an_error_comes_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    def pieces() -> Iterator[pa.Table]:
        yield piece(1)
        yield piece(2)
        raise OSError("the disk is gone")

    monkeypatch.setattr(ThreadPoolExecutor, "submit", refuse)
    seen: list[int] = []
    with pytest.raises(OSError, match="the disk is gone"):
        seen.extend(each.num_rows for each in made_ahead(pieces(), 1 << 20, size_of))
    assert seen == [1, 2]
