"""Jobs that begin at the same moment, each in a thread of its own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_T = TypeVar("_T")
_PATIENCE: Final = 60.0
"""Seconds that a thread waits for the others to be there."""


def run_together(jobs: Sequence[Callable[[], _T]]) -> list[_T]:
    """Run some jobs, all released by one barrier, and give what they return, in their order.

    If not all of them can be started, because of Ctrl-C or for want of threads, none is: those
    that wait are let go. Jobs that have begun are waited for in any case, so that nothing is still
    at work when the caller cleans up.

    Raises:
        BaseException: the first of what jobs raised, or what stopped them from being started.
    """
    gate = threading.Barrier(len(jobs), timeout=_PATIENCE)

    def run(job: Callable[[], _T]) -> _T:
        gate.wait()
        return job()

    with ThreadPoolExecutor(len(jobs), "lakelog-together") as pool:
        try:
            running = [pool.submit(run, job) for job in jobs]
            return [each.result() for each in running]
        except BaseException:
            gate.abort()
            raise
