"""The processes that one session leader has started: their names, their CPU time, their end."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

__all__ = ["Member", "cpu_seconds", "end_session", "members"]

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Member:
    """A process of a session."""

    pid: int
    parent: int
    name: str


def members(session: int) -> list[Member]:
    """Those that a session leader started and that have not ended, itself included."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            head, _, tail = stat.read_text().rpartition(")")
            fields = tail.split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(Member(int(stat.parent.name), int(fields[1]), head.partition("(")[2]))
    return found


def cpu_seconds(session: int) -> float:
    """Seconds of CPU time that all processes of a session have used."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                # Its own, and those of its children that have ended.
                ticks += sum(int(each) for each in fields[11:15])
    return ticks / _TICKS


def end_session(leader: subprocess.Popen[Any]) -> None:
    """`kill -9` for the whole session: PySpark's daemons have process groups of their own."""
    while found := members(leader.pid):
        for each in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each.pid, signal.SIGKILL)
    leader.wait()
    if leader.stdout is not None:
        leader.stdout.close()
