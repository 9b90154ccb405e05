"""A service that has seen many commits holds no more than one that has seen few."""

from __future__ import annotations

import gc
import pathlib
import sys
import threading
import tracemalloc
from typing import TYPE_CHECKING

from lakelog.logstores.service import LogStoreService, frames
from lakelog.logstores.service.endpoint import Endpoint
from lakelog.logstores.service.frames import packed, write_frame
from support.bridge_client import ENDPOINT, ServedStore, answer, connected

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 3
MORE = 300
WAIT = 1.0
"""Seconds for the thread of a connection to end; one that is kept does not."""
LEAST = 48
"""Bytes of the smallest thing that a commit could leave in a list or a dict, its place included."""


def _held(work: Callable[[int], None], first: int, count: int) -> tracemalloc.Snapshot:
    """What Python holds after some commits."""
    for version in range(first, first + count):
        work(version)
    for thread in threading.enumerate():
        if thread.name == "lakelog-client":
            thread.join(WAIT)
    gc.collect()
    # What the snapshots themselves take is no commit's.
    others = [tracemalloc.Filter(False, tracemalloc.__file__)]
    if sys.version_info[:2] == (3, 12):
        # Its pathlib interns what a path consists of, and in 3.12 alone what is interned stays.
        others.append(tracemalloc.Filter(False, pathlib.__file__))
    return tracemalloc.take_snapshot().filter_traces(others)


def _left_by_commits(work: Callable[[int], None]) -> tuple[int, str]:
    """Bytes that a round of commits leaves, and where they come from.

    The least of some rounds: what a commit leaves is left in each of them, and in one only what
    the rest of the process happens to do meanwhile, as when a large table of its own is made anew.
    """
    tracemalloc.start()
    try:
        before = _held(work, 0, 50)
        rounds = []
        for number in range(ROUNDS):
            after = _held(work, 50 + number * MORE, MORE)
            grown = after.compare_to(before, "lineno")
            rounds.append((sum(each.size_diff for each in grown), grown))
            before = after
    finally:
        tracemalloc.stop()
    least, grown = min(rounds, key=lambda each: each[0])
    return least, "\n".join(map(str, grown[:10]))


def test_commits_by_new_connections_leave_nothing(tmp_path: pathlib.Path) -> None:
    with LogStoreService(endpoint_file=tmp_path / "bridge") as service:
        store = ServedStore({ENDPOINT: str(service.endpoint_file)})
        left, where = _left_by_commits(
            lambda version: store.write(f"{tmp_path}/{version:020d}.json", ["x"])
        )
    assert left < MORE * LEAST, where


def test_commits_by_one_connection_leave_nothing(tmp_path: pathlib.Path) -> None:
    with (
        LogStoreService(endpoint_file=tmp_path / "bridge") as service,
        connected(Endpoint.read(service.endpoint_file)) as (out, source),
    ):

        def commit(version: int) -> None:
            path = f"{tmp_path}/{version:020d}.json"
            write_frame(out, frames.WRITE, packed(False, path))
            write_frame(out, frames.DATA, b"x\n")
            write_frame(out, frames.END)
            out.flush()
            answer(source, path)

        left, where = _left_by_commits(commit)
    assert left < MORE * LEAST, where
