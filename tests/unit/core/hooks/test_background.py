"""Work that nobody waits for is done in order, bounded, and not left behind by exit or fork."""

from __future__ import annotations

import itertools
import logging
import os
import subprocess
import sys
import threading
from collections import defaultdict
from functools import partial
from types import SimpleNamespace

import pytest

from lakelog.core.hooks import background
from lakelog.core.hooks.background import do_later, wait_for_all

PATIENCE = 60


def workers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "lakelog-background"]


@pytest.fixture(autouse=True)
def _own_queue(monkeypatch):
    for each in workers():  # of other tests
        each.join(PATIENCE)
    monkeypatch.setattr(background, "_background", background._Background())
    yield
    assert wait_for_all(PATIENCE)


@pytest.fixture
def held():
    """What a piece of work waits for; let go when the test is over, whatever comes."""
    event = threading.Event()
    yield event
    event.set()


def occupied(table, held):
    """Keep the thread of a table busy until it is let go."""
    begun = threading.Event()

    def work():
        begun.set()
        held.wait(PATIENCE)

    do_later(table, "a long one", work)
    assert begun.wait(PATIENCE)


def test_the_work_of_a_table_is_done_in_order_and_never_by_two_threads(held):
    done: dict[str, list[int]] = defaultdict(list)
    at_once: dict[str, int] = defaultdict(int)
    lock = threading.Lock()

    def work(table, number):
        with lock:
            at_once[table] += 1
            assert at_once[table] == 1
        done[table].append(number)
        with lock:
            at_once[table] -= 1

    occupied("a", held)
    for number in range(10):
        for table in ("a", "b", "c"):
            do_later(table, "work", partial(work, table, number))
    held.set()
    assert wait_for_all(PATIENCE)
    assert done == {table: list(range(10)) for table in ("a", "b", "c")}


def test_a_table_that_is_slow_holds_up_no_other(held):
    occupied("slow", held)
    done = threading.Event()
    do_later("other", "work", done.set)
    assert done.wait(PATIENCE)


def test_there_are_never_more_threads_than_eight(held):
    begun = threading.Semaphore(0)

    def work():
        begun.release()
        held.wait(PATIENCE)

    for number in range(20):
        do_later(f"t{number}", "work", work)
    for _ in range(8):
        assert begun.acquire(timeout=PATIENCE)
    assert len(workers()) == 8


def test_no_thread_is_left_when_nothing_is_left_to_do():
    do_later("t", "work", lambda: None)
    assert wait_for_all(PATIENCE)
    for each in workers():
        each.join(PATIENCE)
    assert not workers()


def test_a_failure_is_logged_and_the_next_is_done_all_the_same(held, caplog):
    occupied("t", held)

    def fails():
        raise OSError("no space")

    done = []
    do_later("t", "the checksum of version 7", fails)
    do_later("t", "work", lambda: done.append(1))
    held.set()
    assert wait_for_all(PATIENCE)
    assert "t: the checksum of version 7 failed: no space" in caplog.text
    assert done == [1]


def test_what_waits_is_bounded_and_the_oldest_gives_way(held, caplog):
    occupied("t", held)
    done: list[int] = []
    for number in range(1000):
        do_later("t", "work", partial(done.append, number))
        assert len(background._background.waiting) <= 64
    with caplog.at_level(logging.WARNING):
        held.set()
        assert wait_for_all(PATIENCE)
        for each in workers():
            each.join(PATIENCE)
    assert done == list(range(936, 1000))
    assert "936 writes that follow commits were left out" in caplog.text


def test_where_no_thread_can_be_had_it_is_done_at_once(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done = []
    do_later("t", "work", lambda: done.append(threading.current_thread()))
    assert done == [threading.current_thread()]
    with pytest.raises(OSError, match="no space"):
        do_later("t", "work", lambda: (_ for _ in ()).throw(OSError("no space")))


AT_EXIT = """
import atexit, sys, threading
from lakelog.core.hooks.background import do_later

def written(text):
    with open(sys.argv[1], "a") as file:
        file.write(text + "\\n")

def slow():
    threading.main_thread().join()
    written("slow")

@atexit.register
def _():
    do_later("t", "work", lambda: written(f"late, in {threading.current_thread().name}"))

def daemon():
    do_later("t", "work", slow)
    do_later("t", "work", lambda: written("after it"))
# What a daemon hands in is done by a thread that is none.
thread = threading.Thread(target=daemon, daemon=True)
thread.start()
thread.join()
sys.exit(3)
"""


def test_the_end_of_a_process_waits_for_it_and_work_after_that_is_done_in_line(tmp_path):
    command = [sys.executable, "-c", AT_EXIT, str(tmp_path / "done")]
    assert subprocess.run(command, check=False, timeout=PATIENCE).returncode == 3
    assert (tmp_path / "done").read_text().splitlines() == [
        "slow",
        "after it",
        "late, in MainThread",
    ]


def test_at_the_end_of_a_process_a_storage_that_does_not_answer_is_given_up(
    held, monkeypatch, caplog
):
    occupied("t", held)
    done = []
    do_later("t", "work", lambda: done.append(1))
    times = itertools.count(step=11.0)
    monkeypatch.setattr(background, "time", SimpleNamespace(monotonic=lambda: next(times)))
    monkeypatch.setattr(background, "_is_ending", lambda: True)
    held.set()
    assert wait_for_all(PATIENCE)
    for each in workers():
        each.join(PATIENCE)
    assert not done
    assert "1 writes that follow commits were left out" in caplog.text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the machine has no fork")
def test_a_forked_child_does_nothing_of_its_parents_work_and_all_of_its_own(tmp_path, held):
    occupied("t", held)
    path = tmp_path / "done"

    def written():
        with path.open("a") as file:
            file.write(f"{os.getpid()}\n")

    do_later("t", "work", written)
    # As if another thread had it at the fork.
    background._background.changed.acquire()
    child = os.fork()
    if not child:
        try:
            do_later("t", "work", written)
            os._exit(0 if wait_for_all(PATIENCE) else 1)
        finally:
            os._exit(2)
    background._background.changed.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert path.read_text() == f"{child}\n"
    held.set()
    assert wait_for_all(PATIENCE)
    assert path.read_text() == f"{child}\n{os.getpid()}\n"
