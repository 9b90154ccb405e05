"""How much Python a piece of work runs: a figure that is the same on every machine."""

from __future__ import annotations

import math
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["curvature", "limit", "lines_run"]


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python the work runs, calls and returns counted too.

    That takes in the threads that it starts, and leaves out what C does within a line: a search
    in a list is one, however long the list.
    """
    count = 0

    def event(_frame: Any, _event: str, _argument: Any) -> Any:
        nonlocal count
        count += 1
        return event

    before, before_threads = sys.gettrace(), threading.gettrace()
    threading.settrace(event)
    sys.settrace(event)
    try:
        work()
    finally:
        sys.settrace(before)
        threading.settrace(before_threads)
    return count


def curvature(costs: tuple[float, float, float]) -> float:
    """What the second doubling of n adds to the cost, as a multiple of what the first one added.

    2 where cost is linear, 4 where it is quadratic, whatever the work costs before it begins.

    Args:
        costs: those of n, 2n and 4n.
    """
    once, twice, four = costs
    return (four - twice) / (twice - once) if twice > once else 0.0


def limit(n: int, tolerance: float = 1.05) -> float:
    """The `curvature` of n·log n, and a little more.

    Args:
        n: the smallest of the three sizes.
        tolerance: what it is multiplied by.
    """
    grown = [k * n * math.log(k * n) for k in (1, 2, 4)]
    return tolerance * curvature((grown[0], grown[1], grown[2]))
