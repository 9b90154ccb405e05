"""A service that has seen many commits holds no more than one that has seen few."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from typing import TYPE_CHECKING

from lakelog.logstores.service import LogStoreService, frames
from lakelog.logstores.service.endpoint import Endpoint
from lakelog.logstores.service.frames import packed, write_frame
from support.bridge_client import ENDPOINT, ServedStore, answer, connected

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MORE = 600
WAIT = 1.0
"""Seconds for the thread of a connection to end; one that is kept does not."""
LEAST = 48
"""Bytes of the smallest thing that a commit could leave in a list or a dict, its place included."""


def _held(work: Callable[[int], None], first: int, count: int) -> int:
    """Bytes that Python holds after some commits."""
    for version in range(first, first + count):
        work(version)
    for thread in threading.enumerate():
        if thread.name == "lakelog-client":
            thread.join(WAIT)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _growth(work: Callable[[int], None], first: int) -> int:
    tracemalloc.start()
    try:
        before = _held(work, first, 50)
        return _held(work, first + 50, MORE) - before
    finally:
        tracemalloc.stop()


def test_commits_by_new_connections_leave_nothing(tmp_path: Path) -> None:
    with LogStoreService(endpoint_file=tmp_path / "bridge") as service:
        store = ServedStore({ENDPOINT: str(service.endpoint_file)})
        growth = _growth(lambda version: store.write(f"{tmp_path}/{version:020d}.json", ["x"]), 0)
    assert growth < MORE * LEAST


def test_commits_by_one_connection_leave_nothing(tmp_path: Path) -> None:
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

        growth = _growth(commit, 0)
    assert growth < MORE * LEAST
