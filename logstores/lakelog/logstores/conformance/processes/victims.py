"""Processes that write and kill themselves on the way: no handler, no `finally`, no flush.

Each is a process of its own (`die_writing`), or a fork of one that only imported what they need and
never used its store (`let_die`): a storage SDK takes longer to import than a write takes.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from lakelog.logstores.conformance.processes.children import PATIENCE
from lakelog.logstores.conformance.processes.racers import payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.logstores.conformance.processes.children import Channel
    from lakelog.logstores.contract import LogStore

LINES = payload(9, 4000)
_BOTOCORE = ("botocore.session", "botocore.client", "botocore.httpsession")
_SDKS = {
    "lakelog.logstores.azure": ("azure.storage.blob",),
    "lakelog.logstores.gcs": ("google.cloud.storage",),
    "lakelog.logstores.s3": _BOTOCORE,
    "lakelog.contrib.ibm_cos": _BOTOCORE,
    "lakelog.contrib.oracle_oci": ("oci",),
}
"""What stores of ours import at their first use; none of it starts a thread."""


def let_die(store: LogStore, channel: Channel) -> None:
    """Answer each list of `[mode, path, point]` with the fates of as many forks, all at once.

    The first answer is whether this process can be forked. A fate is the exit code, and whether
    the write had returned.

    Args:
        store: what each of them has a copy of. Nothing uses this one.
        channel: where lists come from, each of what `die_writing` is told.
    """
    for kind in type(store).__mro__:
        for name in _SDKS.get(kind.__module__.removesuffix(".store"), ()):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    alone = _is_alone()
    channel.answer(alone)
    for targets in channel if alone else ():
        forks = [_fork(store, *target) for target in targets]
        channel.answer([_fate(process, returned) for process, returned in forks])


def _is_alone() -> bool:
    """Whether no other thread could hold a lock at a fork; Linux alone tells of those of C."""
    try:
        return len(list(Path("/proc/self/task").iterdir())) == 1
    except OSError:
        return False


def _fork(store: LogStore, mode: str, path: str, point: str) -> tuple[int, int]:
    """A victim, and the end of a pipe by which it tells that its write returned."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    try:
        # Should it hang, and its parent be ended, it must neither stay nor keep the answers open.
        signal.alarm(int(PATIENCE))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        _write_and_die(store, mode, path, point, lambda: os.write(writing, b"returned"))
    except BaseException:  # noqa: BLE001, RUF100  # a fork must not run on as its parent
        traceback.print_exc()
    finally:
        os._exit(1)


def _fate(process: int, returned: int) -> tuple[int, bool]:
    with open(returned, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status), bool(said)


def die_writing(store: LogStore, channel: Channel, mode: str, path: str, point: str) -> None:
    """Write `LINES` and die at a point.

    Args:
        store: where.
        channel: says "returned" if the write came to its end first.
        mode: `create`, `overwrite` or `staged`.
        path: what to write.
        point: `at line <n>`, or `after <i>/<n>` of the time that a write takes beyond its lines.
    """
    _write_and_die(store, mode, path, point, lambda: channel.answer("returned"))


def _write_and_die(
    store: LogStore, mode: str, path: str, point: str, returned: Callable[[], object]
) -> None:
    first, _, last = point.removeprefix("after ").partition("/")
    end_at = int(point.removeprefix("at line ")) if point.startswith("at line") else None
    tail = 0.0
    if end_at is None:
        tail = _tail_seconds(store, mode, path) * int(first) / int(last)
    _write(store, mode, path, _dying_lines(end_at, tail))
    returned()
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
