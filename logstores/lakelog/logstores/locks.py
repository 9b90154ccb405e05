"""Locks by name for stores that exclude only the threads of a process, or no writer at all.

A lock of this module makes writers take turns. It is not a substitute for a store that refuses:
writers on another host never see it.
"""

# Flock wants descriptors, and the folder is checked without following links.
# ruff: noqa: PTH102, PTH118, PTH120

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakelog.logstores.errors import UnsafeLogStoreError
from lakelog.logstores.systems import after_fork, need

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEFAULT_TIMEOUT = 600.0
"""Seconds that a lock is waited for."""

_FIRST_NAP, _LONGEST_NAP = 0.0005, 0.05


class LockHeldError(TimeoutError):
    """Others held a lock for as long as it was waited for; no handler of a signal raises it."""


class _Entry:
    """A lock and how many threads hold or want it; the last one drops it from the table."""

    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0


_entries: dict[str, _Entry] = {}
_entries_lock = threading.Lock()
_lock_files: set[int] = set()
"""Those that this process has open."""


def _forget_locks() -> None:
    # The threads that held them are not in the child of a fork. Their lock files are open there,
    # and would stay locked for as long as the child lives, though the parent has closed them.
    global _entries_lock
    _entries_lock = threading.Lock()
    _entries.clear()
    while _lock_files:
        os.close(_lock_files.pop())


after_fork(_forget_locks)


@contextmanager
def process_lock(key: str, *, timeout: float = DEFAULT_TIMEOUT) -> Iterator[None]:
    """Hold the lock of that name against all threads of this process. Not reentrant.

    Args:
        key: any text, usually the URI of a table.
        timeout: seconds to wait; 0 only looks.

    Raises:
        LockHeldError: another thread held it all that time.
    """
    with _entries_lock:
        entry = _entries.setdefault(key, _Entry())
        entry.users += 1
    try:
        if not entry.lock.acquire(timeout=timeout):
            raise LockHeldError(
                f"another thread of this process held the lock {key} for {timeout} s"
            )
        try:
            yield
        finally:
            entry.lock.release()
    finally:
        with _entries_lock:
            entry.users -= 1
            if not entry.users:
                _entries.pop(key, None)


@contextmanager
def host_lock(
    key: str,
    *,
    timeout: float = DEFAULT_TIMEOUT,
    sleep: Callable[[float], object] = time.sleep,
) -> Iterator[None]:
    """Hold the lock of that name against all processes of this user on this host.

    It is `flock` on a file in a folder of the user's own below the folder for temporary files
    (`TMPDIR`), so the kernel releases it when the holder dies, however it dies. Lock files are
    never removed: a file that another process has open and waits on must not be replaced.

    Args:
        key: any text, usually the URI of a table.
        timeout: seconds to wait; 0 only looks.
        sleep: how to wait between two looks.

    Raises:
        LockHeldError: another thread or process held it all that time.
        UnsafeLogStoreError: the folder belongs to another user or is open to others; the system
            has no such locks.
    """
    need(os, "O_NOFOLLOW", "a lock against the other processes of a host")
    deadline = time.monotonic() + timeout
    # Threads queue here first, fairly; below, waiters poll.
    with process_lock("host " + key, timeout=timeout):
        fd = _open_lock_file(key)
        _lock_files.add(fd)
        try:
            _flock(fd, key, deadline, timeout, sleep)
            yield
        finally:
            if fd in _lock_files:  # not in the child of a fork, where it may be another file by now
                _lock_files.remove(fd)
                os.close(fd)


def _flock(
    fd: int, key: str, deadline: float, timeout: float, sleep: Callable[[float], object]
) -> None:
    import fcntl

    nap = _FIRST_NAP
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
        left = deadline - time.monotonic()
        if left <= 0:
            raise LockHeldError(
                f"another process of this host held the lock {key} for {timeout} s "
                f"(file {lock_file(key)})"
            )
        sleep(min(nap, left))
        nap = min(nap * 2, _LONGEST_NAP)


def lock_file(key: str) -> str:
    """The file that `host_lock` locks for a name."""
    digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return os.path.join(tempfile.gettempdir(), f"lakelog-{os.getuid()}", f"{digest}.lock")


def _open_lock_file(key: str) -> int:
    path = lock_file(key)
    folder = os.path.dirname(path)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        _refuse_foreign(folder)
    return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _refuse_foreign(folder: str) -> None:
    """In a shared /tmp another user may have made the folder first, to hold or see our locks."""
    found = os.lstat(folder)
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if not mine or found.st_mode & 0o077:
        raise UnsafeLogStoreError(
            f"{folder} must be a folder of user {os.getuid()} with mode 0700, to hold locks. "
            "Remove it, or set TMPDIR to a folder of your own."
        )
