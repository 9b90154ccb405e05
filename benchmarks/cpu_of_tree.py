"""The CPU time of a process and of all that it started, by Linux's `/proc`."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Seconds of a process and its descendants, those that have ended and were waited for included.

    Args:
        pid: of the process.
    """
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        # The name of a program may hold anything; what follows its bracket is numbers.
        fields = stat.rpartition(")")[2].split()
        number = int(entry.name)
        children.setdefault(int(fields[1]), []).append(number)
        ticks[number] = sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
    waiting, total = [pid], 0
    while waiting:
        one = waiting.pop()
        total += ticks.get(one, 0)
        waiting += children.get(one, [])
    return total / _TICKS
