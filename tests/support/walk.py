"""Which files of lakelog a piece of work enters, and what it crosses from one to another."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import lakelog.core
import lakelog.logstores
from support.garbage import uncollected

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

# Not by the folder's name alone: a clone may be called lakelog, and hold an environment.
_ROOTS = tuple(
    f"{Path(root).parent}/" for root in (lakelog.core.__file__, lakelog.logstores.__file__)
)


@dataclass
class Walk:
    """What was entered.

    Attributes:
        files: those with a function that was called.
        calls: from one of them into another, as `caller -> file:function`.
        arrow_buffers: how often Arrow asked for memory, as each array that it builds does; `None`
            where pyarrow does not count it.
    """

    files: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    arrow_buffers: int | None = None


def walk(work: Callable[[], object]) -> Walk:
    """Do something, and follow it in this thread."""
    found = Walk()

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call" or not _is_ours(frame):
            return
        caller = frame.f_back
        while caller is not None and not _is_ours(caller):
            caller = caller.f_back
        found.files.add(_module(frame))
        if caller is not None and _module(caller) != _module(frame):
            found.calls.append(f"{_module(caller)} -> {_module(frame)}:{frame.f_code.co_name}")

    pool, before = pa.default_memory_pool(), sys.getprofile()
    with uncollected():
        # pyarrow counts them from 20 on.
        count = getattr(pool, "num_allocations", lambda: None)
        buffers = count()
        sys.setprofile(note)
        try:
            work()
        finally:
            sys.setprofile(before)
        found.arrow_buffers = None if buffers is None else count() - buffers
    return found


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_ROOTS)


def _module(frame: FrameType) -> str:
    return frame.f_code.co_filename.rpartition("/lakelog/")[2]
