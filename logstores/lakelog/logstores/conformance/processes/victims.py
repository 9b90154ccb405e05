"""A process that writes and kills itself on the way: no handler, no `finally`, no flush."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

from lakelog.logstores.conformance.processes.racers import payload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores.conformance.processes.children import Channel
    from lakelog.logstores.contract import LogStore

__all__ = ["LINES", "die_writing"]

LINES = payload(9, 4000)


def die_writing(store: LogStore, channel: Channel, mode: str, path: str, point: str) -> None:
    """Write `LINES` and die at a point.

    Args:
        store: where.
        channel: says "returned" if the write came to its end first.
        mode: `create`, `overwrite` or `staged`.
        path: what to write.
        point: `at line <n>`, or `after <i>/<n>` of the time that a write takes beyond its lines.
    """
    first, _, last = point.removeprefix("after ").partition("/")
    end_at = int(point.removeprefix("at line ")) if point.startswith("at line") else None
    tail = 0.0
    if end_at is None:
        tail = _tail_seconds(store, mode, path) * int(first) / int(last)
    _write(store, mode, path, _dying_lines(end_at, tail))
    channel.answer("returned")
    _die()


def _dying_lines(end_at: int | None, tail: float) -> Iterator[str]:
    for number, line in enumerate(LINES):
        if number == end_at:
            _die()
        yield line
    if end_at is not None:
        _die()
    threading.Timer(tail, _die).start()


def _tail_seconds(store: LogStore, mode: str, path: str) -> float:
    """How long a write like this one takes beyond its lines, measured on a hidden name."""
    folder, _, name = path.rpartition("/")
    twin = f"{folder}/.twin-{name}"
    ended = [0.0]

    def lines() -> Iterator[str]:
        yield from LINES
        ended[0] = time.perf_counter()

    _write(store, mode, twin, lines())
    return time.perf_counter() - ended[0]


def _write(store: LogStore, mode: str, path: str, lines: Iterator[str]) -> None:
    if mode != "staged":
        store.write(path, lines, overwrite=mode == "overwrite")
        return
    with store.staged(path) as (filesystem, draft), filesystem.open_output_stream(draft) as stream:
        for line in lines:
            stream.write(line.encode() + b"\n")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
