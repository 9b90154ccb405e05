"""Does `pipe_file(mode="create")` of a file system refuse a taken name, also under a race?

Many fsspec file systems ignore the mode and overwrite; that shows at once. One that passes has
shown nothing about other processes and hosts: this is a search for a failure, not a proof.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from lakelog.logstores.threads import run_together

WRITERS: Final = 20
ROUNDS: Final = 3

_lock = threading.Lock()
_passed: set[tuple[str, str]] = set()


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a probe saw."""

    failure: str | None
    """Why exclusive creates can't be relied on; `None` if no failure was seen."""
    move_overwrites: bool | None = None
    """Whether `mv` silently replaced its target; `None` if it was not tried."""


def probed(fs: Any, folder: str, *, once: bool = False) -> ProbeResult:
    """Try exclusive creates in a folder.

    Args:
        fs: an fsspec file system.
        folder: as the file system spells it. Probe files are hidden by a dot, and removed.
        once: skip what passed before in this process, and what is only informative.
    """
    key = (type(fs).__qualname__, fs._fs_token)
    if once and key in _passed:
        return ProbeResult(None)
    names = [f"{folder}/.lakelog-probe-{uuid.uuid4().hex}" for _ in range(ROUNDS + 3)]
    try:
        failure = _only_looks(fs) or _refuses(fs, names[0]) or _races(fs, names[3:])
        moved = None if once or failure else _move_overwrites(fs, names[1], names[2])
    finally:
        for name in names:
            with contextlib.suppress(Exception):
                fs.rm_file(name)
    if failure is None:
        with _lock:
            _passed.add(key)
    return ProbeResult(failure, moved)


def _only_looks(fs: Any) -> str | None:
    """Recognise fsspec's own `pipe_file`, whose race is too short for a probe to meet.

    It asks `exists`, then writes. The local file system inherits it, and that in memory does
    the same in its `open`: with threads switched often, 54 of 300 races had two winners.
    """
    from fsspec.implementations.memory import MemoryFileSystem
    from fsspec.spec import AbstractFileSystem

    inner = getattr(fs, "fs", fs)  # a DirFileSystem passes all on
    looks = (AbstractFileSystem.pipe_file, MemoryFileSystem.pipe_file)
    if getattr(type(inner), "pipe_file", None) in looks:
        return (
            f"{type(inner).__name__} has no exclusive create of its own: fsspec's pipe_file checks "
            "whether the name is free, then writes"
        )
    return None


def _refuses(fs: Any, name: str) -> str | None:
    try:
        fs.pipe_file(name, b"first", mode="create")
    except NotImplementedError:
        return "it has no pipe_file(mode='create')"
    try:
        fs.pipe_file(name, b"second", mode="create")
    except Exception:  # noqa: BLE001, RUF100  # each file system has its own refusal
        if fs.cat_file(name) == b"first":
            return None
        return "a refused create changed the file"
    return "a create of a taken name was not refused"


def _races(fs: Any, names: list[str]) -> str | None:
    """What went wrong in the first failed race."""
    return next(filter(None, map(_Race(fs), names)), None)


class _Race:
    """Writers that create one name at once."""

    def __init__(self, fs: Any) -> None:
        self._fs = fs

    def __call__(self, name: str) -> str | None:
        def attempt(who: int) -> int | None:
            try:
                self._fs.pipe_file(name, f"writer {who}".encode(), mode="create")
            except Exception:  # noqa: BLE001, RUF100
                return None
            return who

        outcomes = run_together([partial(attempt, who) for who in range(WRITERS)])
        won = [who for who in outcomes if who is not None]
        if len(won) != 1:
            return f"{len(won)} of {WRITERS} concurrent creates of one name won"
        if self._fs.cat_file(name) != f"writer {won[0]}".encode():
            return "the file does not hold what the one winner wrote"
        return None


def _move_overwrites(fs: Any, source: str, target: str) -> bool:
    fs.pipe_file(source, b"new")
    fs.pipe_file(target, b"old")
    with contextlib.suppress(Exception):
        fs.mv(source, target)
    return bool(fs.cat_file(target) == b"new")
