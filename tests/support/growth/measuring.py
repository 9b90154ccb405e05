"""How the cost of an operation grows: n, 2n, 4n."""

from __future__ import annotations

import gc
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from lakelog.core.expressions.parse import sql as sql_texts
from support.garbage import uncollected

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.growth.operations import Measured
    from support.growth.worlds import Axis, Worlds

LINEARITHMIC = 2.15
"""What the second doubling adds to the cost of n·log n, where n is some thousands, as a multiple of
what the first one added. It is 2 for a linear cost and 4 for a quadratic one."""


_OTHERS = (
    "threading.py",
    "concurrent/futures/_base.py",
    "concurrent/futures/thread.py",
    "weakref.py",
    "_weakrefset.py",
    # Rewrites what has run often, at some time of its own, where coverage is measured.
    "slipcover/slipcover.py",
    "slipcover/bytecode.py",
)
"""How often these run depends on who waits for whom, or on what ran before."""


class Costs(NamedTuple):
    """What the same work cost at n, 2n and 4n."""

    once: float
    twice: float
    four: float

    @property
    def curvature(self) -> float:
        """See `LINEARITHMIC`; whatever the work costs before it begins does not count."""
        grown = self.twice - self.once
        return (self.four - self.twice) / grown if grown > 0 else 0.0

    def grow_too_fast(self, *, limit: float = LINEARITHMIC, slack: float = 0.01) -> bool:
        """Whether they grow faster than n·log n.

        Args:
            limit: the `curvature` that they may have.
            slack: the part of the largest cost that may be chance.
        """
        allowed = self.twice + limit * max(self.twice - self.once, 0)
        return self.four > allowed + slack * self.four

    def __str__(self) -> str:
        """The three figures, and the curvature."""
        return f"{self.once:g}, {self.twice:g}, {self.four:g} ({self.curvature:.2f})"


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python the work runs, calls and returns counted too.

    The figure is the same on every machine, however busy it is. It takes in the threads that the
    work starts, but for their waits, and leaves out what C does within a line: a search in a list
    is one. Threads that others start meanwhile do not count, nor does the collector of garbage.
    """
    count = 0
    started: list[threading.Thread] = []

    def begin(frame: Any, what: str, argument: Any) -> Any:
        """The first call of a thread."""
        if threading.current_thread() not in started:
            sys.settrace(None)
            return None
        sys.settrace(call)
        return call(frame, what, argument)

    def call(frame: Any, _what: str, _argument: Any) -> Any:
        nonlocal count
        if frame.f_code is threading.Thread.start.__code__:
            started.append(frame.f_locals["self"])
        if frame.f_code.co_filename.endswith(_OTHERS):
            return None
        count += 1
        return line

    def line(_frame: Any, _what: str, _argument: Any) -> Any:
        nonlocal count
        count += 1
        return line

    before, before_threads = sys.gettrace(), threading.gettrace()
    with uncollected():
        threading.settrace(begin)
        sys.settrace(call)
        try:
            work()
        finally:
            sys.settrace(before)
            threading.settrace(before_threads)
    return count


def cpu_seconds(work: Callable[[], object]) -> float:
    """The CPU's time that the work takes in this process, in all of its threads."""
    gc.collect()
    with uncollected():
        before = time.process_time()
        work()
        return time.process_time() - before


def costs(
    measured: Measured,
    axis: Axis,
    worlds: Worlds,
    *,
    n: int,
    meter: Callable[[Callable[[], object]], float],
    times: int = 1,
) -> Costs:
    """What an operation costs on tables that are n, 2n and 4n large in one way.

    Args:
        measured: the operation.
        axis: the way.
        worlds: makes the tables; each run gets one of its own.
        n: the smallest size.
        meter: `lines_run` or `cpu_seconds`.
        times: the least of so many runs counts, the sizes taking turns.
    """
    least = [float("inf")] * 3
    for _ in range(times):
        for k in range(3):
            world = worlds.new(axis, n << k, measured.properties)
            work = measured.prepare(world)
            # A small table's texts would all be remembered from the last run, a large one's none.
            sql_texts._remembered.cache_clear()
            least[k] = min(least[k], meter(work))
            worlds.drop(world)
    return Costs(*least)
