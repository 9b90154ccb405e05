"""The files by which the processes of a host commit to one table as one (see `host_commit`).

Each table has a folder in `<temporary files>/lakelog-<uid>/`, which is the user's own (0700):

- `<time>-<id>.request` is a commit that waits. `<time>-<id>.wake` is a FIFO that its process holds
  open to read: a byte in it wakes the process, and when nothing has it open the process is gone.
- `<txnId>.group/` is one commit of several of them. A request is taken by being moved into it,
  which one mover alone can do.
- `<txnId>.group/<n>` are the steps of that commit, numbered from 0: symbolic links that point to no
  file, whose text is the step. A link is made with its text and at once, or not at all where the
  name exists, and needs no space on a full disk. So who makes step n alone decides what follows
  step n - 1, whoever else believes that it is their turn.

- `<version>.version` has the lines of a version that one of them committed lately, after the txnId
  of the version before, so that the others need not ask the storage for it.

A step is one of

- `try VERSION LINES`: the lines in the file LINES are about to be sent as that version by the
  group's leader. They may be there from now on, or be on their way there.
- `again VERSION LINES`: others than the leader are about to send them again, to the same version.
  Only the last step can follow.
- `landed VERSION`, `dissolved`, `unknown VERSION`: the last one.
"""

# FIFOs, links and moves want names and descriptors.
# ruff: noqa: PTH102, PTH104, PTH108, PTH110, PTH112, PTH115, PTH116, PTH118, PTH120, PTH122, PTH123, PTH208, PTH211

from __future__ import annotations

import contextlib
import errno
import os
import select
import shutil
import time
import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from lakelog.logstores.systems import after_fork

if TYPE_CHECKING:
    from collections.abc import Iterator

_REQUEST, _WAKE, _DRAFT, _GROUP = ".request", ".wake", ".draft", ".group"
_GONE, _VERSION = ".gone", ".version"
_KEPT = 100
"""Versions."""
_OLD = 60 * 10**9
"""Nanoseconds."""
_ATTEMPTS = "attempts"
_KINDS = ("try", "again", "landed", "dissolved", "unknown")
_STALE_SECONDS = 7 * 86400.0

_open_fifos: set[int] = set()


def _close_fifos() -> None:
    # The child of a fork would keep its parent's requests alive.
    for fd in _open_fifos:
        with contextlib.suppress(OSError):
            os.close(fd)
    _open_fifos.clear()


after_fork(_close_fifos)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a group's commit."""

    kind: str
    """`try`, `again`, `landed`, `dissolved` or `unknown`."""
    version: int = -1
    lines: str = ""
    """The name of the file that holds what is sent; of a `try` and an `again`."""

    @property
    def is_last(self) -> bool:
        """Whether nothing can follow."""
        return self.kind not in ("try", "again")

    @property
    def text(self) -> str:
        """As the link has it."""
        return " ".join([self.kind, str(self.version), self.lines]).rstrip()

    @classmethod
    def parse(cls, text: str) -> Step:
        """A step by the text of its link.

        Raises:
            OSError: it says no step.
        """
        kind, _, rest = text.partition(" ")
        version, _, lines = rest.partition(" ")
        if kind not in _KINDS or not _is_number(version.removeprefix("-")):
            raise OSError(errno.EILSEQ, "This is no step of a commit", text)
        return cls(kind, int(version), lines)


class Group:
    """One commit of several requests, as its folder says; any number of processes may look."""

    def __init__(self, queue: HostQueue, txn_id: str) -> None:
        """Name it; nothing is read or made yet."""
        self.txn_id = txn_id
        self._queue = queue
        self._folder = os.path.join(queue.folder, txn_id + _GROUP)
        self._made = 0
        """Steps that this object has seen or made: the number of the next."""
        self.tried: int | None = None
        """The version that this object has last said that it is about to send."""

    def make(self) -> None:
        """Make the folder; there must be none."""
        os.mkdir(self._folder, 0o700)

    def take(self, name: str) -> bool:
        """Take a request that waits; False where another has it, or it was withdrawn."""
        try:
            os.rename(self._queue.path(name + _REQUEST), os.path.join(self._folder, name))
        except FileNotFoundError:
            return False
        return True

    def has(self, name: str) -> bool:
        """Whether it took a request."""
        return os.path.exists(os.path.join(self._folder, name))

    def members(self) -> list[str]:
        """The requests that have not heard their outcome."""
        return [each for each in self._names() if "-" in each and each[0].isdigit()]

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._folder)
        except FileNotFoundError:
            return []

    def last(self) -> Step | None:
        """The last step so far; None before the first."""
        steps = [int(each) for each in self._names() if _is_number(each)]
        if not steps:
            return None
        self._made = max(steps) + 1
        return self._step(self._made - 1)

    def _step(self, number: int) -> Step:
        return Step.parse(os.readlink(os.path.join(self._folder, str(number))))

    def sent(self) -> bytes | None:
        """What was sent last, as the step before the outcome says; after `last`."""
        step = self._step(self._made - 2) if self._made > 1 else None
        return None if step is None or step.is_last else self.kept(step.lines)

    def add(self, step: Step) -> bool:
        """Make the step that follows those which this object has seen.

        Returns:
            Whether it was made; if not, another process has made a step there.

        Raises:
            OSError: no file can be made, or the group is gone.
        """
        try:
            os.symlink(step.text, os.path.join(self._folder, str(self._made)))
        except FileExistsError:
            return False
        self._made += 1
        if step.kind == "try":
            self.tried = step.version
        return True

    def keep(self, lines: bytes) -> str:
        """Keep what is about to be sent; the name of the file."""
        name = f"lines.{uuid.uuid4().hex}"
        with open(os.path.join(self._folder, name), "wb") as file:
            file.write(lines)
        return name

    def kept(self, name: str) -> bytes:
        """What `keep` kept."""
        with open(os.path.join(self._folder, name), "rb") as file:
            return file.read()

    def keep_attempts(self, lines: bytes) -> None:
        """Keep the records of the attempts, before the last step."""
        with open(os.path.join(self._folder, _ATTEMPTS), "wb") as file:
            file.write(lines)

    def attempts(self) -> bytes:
        """What `keep_attempts` kept; nothing where the one who tried is gone."""
        try:
            return self.kept(_ATTEMPTS)
        except FileNotFoundError:
            return b""

    def is_awaited(self) -> bool:
        """Whether a process lives that waits for the outcome."""
        return any(self._queue.is_alive(each) for each in self.members())

    def wake(self) -> None:
        """Wake those who wait for the outcome."""
        for each in self.members():
            self._queue.wake(each)

    def forget(self, name: str) -> None:
        """A request has heard its outcome."""
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._folder, name))

    def remove(self) -> None:
        """Remove it with all that it holds, and what is left of members that are gone."""
        for each in self.members():
            self._queue.drop(each)
        _remove_at_once(self._folder)


class Ticket:
    """A request of this process that waits, or was taken."""

    def __init__(self, queue: HostQueue, request: bytes) -> None:
        """Let it wait.

        Raises:
            OSError: no file can be made; then there is no request.
        """
        self._queue = queue
        self.name: str = _new_name()
        wake, draft = queue.path(self.name + _WAKE), queue.path(self.name + _DRAFT)
        self._fd = -1
        try:
            os.mkfifo(wake, 0o600)
            # For both: so it never meets an end when those who wake it close theirs.
            self._fd = os.open(wake, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            _open_fifos.add(self._fd)
            with open(draft, "wb") as file:
                file.write(request)
            try:
                os.rename(draft, self._file)
            except OSError:
                # On a network share a move may be done and its answer be an error. Then the request
                # is there, and may have been taken.
                if os.path.lexists(draft):
                    raise
        except BaseException:
            for each in (draft, self._file):
                with contextlib.suppress(OSError):
                    os.unlink(each)
            self.close()
            raise

    def wait(self, seconds: float) -> None:
        """Wait to be woken, at most so long."""
        # Not `select`: that knows no descriptors from 1024 on.
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        if poll.poll(seconds * 1000):
            with contextlib.suppress(BlockingIOError):
                os.read(self._fd, 4096)

    @cached_property
    def _file(self) -> str:
        return self._queue.path(self.name + _REQUEST)

    def is_waiting(self) -> bool:
        """Whether no group has taken it."""
        return os.path.exists(self._file)

    def withdraw(self) -> bool:
        """Take the request back; False where a group has it."""
        try:
            os.unlink(self._file)
        except FileNotFoundError:
            return False
        return True

    def group(self) -> Group | None:
        """The group that took it; None where none is found."""
        return next((each for each in self._queue.groups() if each.has(self.name)), None)

    def close(self) -> None:
        """Wait no more."""
        with contextlib.suppress(OSError):
            os.unlink(self._queue.path(self.name + _WAKE))
        if self._fd in _open_fifos:
            _open_fifos.discard(self._fd)
            os.close(self._fd)


class HostQueue:
    """The folder of one table."""

    def __init__(self, folder: str) -> None:
        """Name it; it is made with the first request."""
        self.folder = folder

    def path(self, name: str) -> str:
        """A file in it."""
        return os.path.join(self.folder, name)

    def enter(self, request: bytes) -> Ticket:
        """Let a request wait.

        Raises:
            OSError: no file can be made; then there is no request.
        """
        try:
            return Ticket(self, request)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.folder, 0o700)
            self._remove_stale_ones()
            return Ticket(self, request)

    def _remove_stale_ones(self) -> None:
        # Those of tables that are gone, and of the time before the last start of the host.
        parent = os.path.dirname(self.folder)
        for name in os.listdir(parent):
            path = os.path.join(parent, name)
            with contextlib.suppress(OSError):
                old = time.time() - os.stat(path).st_mtime > _STALE_SECONDS
                # The clock may have been set: who waits there is not old.
                if old and path != self.folder and not HostQueue(path)._is_in_use():
                    _remove_at_once(path)

    def _is_in_use(self) -> bool:
        waking = (each for each in self._names() if each.endswith(_WAKE))
        return any(self.is_alive(each.removesuffix(_WAKE)) for each in waking)

    def _names(self) -> list[str]:
        try:
            return os.listdir(self.folder)
        except FileNotFoundError:
            return []

    def waiting(self) -> list[str]:
        """The requests that wait, who came first first; those of processes that are gone go."""
        found = []
        for name in sorted(each[: -len(_REQUEST)] for each in self._names() if _is_request(each)):
            if self.is_alive(name):
                found.append(name)
            else:
                self.drop(name)
        return found

    def sweep(self) -> None:
        """Remove what processes left that were killed before their request was there."""
        for each in self._names():
            name, kind = os.path.splitext(each)
            if kind == _GONE:
                shutil.rmtree(self.path(each), ignore_errors=True)
            made = name.partition("-")[0]
            if kind not in (_WAKE, _DRAFT) or not _is_number(made) or self.is_alive(name):
                continue
            if time.time_ns() - int(made) > _OLD:
                self.drop(name)

    def read(self, name: str) -> bytes | None:
        """What a request says; None where it does not wait any more."""
        try:
            with open(self.path(name + _REQUEST), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def drop(self, name: str) -> None:
        """Remove a request whose process is gone."""
        for each in (_REQUEST, _WAKE, _DRAFT):
            with contextlib.suppress(OSError):
                os.unlink(self.path(name + each))

    def share(self, version: int, lines: bytes) -> None:
        """Let the others know what a version holds; nothing where none ever waited here."""
        if not os.path.isdir(self.folder):
            return
        with contextlib.suppress(OSError):  # they read it from the storage
            draft = self.path(_new_name() + _DRAFT)
            with open(draft, "wb") as file:
                file.write(lines)
            os.rename(draft, self.path(f"{version}{_VERSION}"))
            for each in self._names():
                name, kind = os.path.splitext(each)
                # Greater ones are of a table that was there before.
                is_version = kind == _VERSION and _is_number(name)
                if is_version and not version - _KEPT < int(name) <= version:
                    os.unlink(self.path(each))

    def shared(self, version: int) -> bytes | None:
        """What a version holds, where another process has said so."""
        try:
            with open(self.path(f"{version}{_VERSION}"), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def groups(self) -> Iterator[Group]:
        """Those that are not removed yet."""
        for each in self._names():
            if each.endswith(_GROUP):
                yield Group(self, each[: -len(_GROUP)])

    def is_alive(self, name: str) -> bool:
        """Whether the process of a request still waits for it, as far as that can be found out."""
        return self._signal(name, b"")

    def wake(self, name: str) -> bool:
        """Wake the process of a request; False where it is gone."""
        return self._signal(name, b"!")

    def _signal(self, name: str, data: bytes) -> bool:
        try:
            fd = os.open(self.path(name + _WAKE), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as exc:
            # Others, as of too many open files, say nothing of that process; it looks by itself.
            return exc.errno not in (errno.ENXIO, errno.ENOENT)
        try:
            if data:
                os.write(fd, data)
        except BlockingIOError:
            pass  # it has been woken often enough
        except BrokenPipeError:
            return False
        finally:
            os.close(fd)
        return True


def _remove_at_once(folder: str) -> None:
    # For whoever else is at work there: a step that is gone alone would be made again.
    gone = folder + _GONE
    with contextlib.suppress(FileNotFoundError):
        os.rename(folder, gone)
    shutil.rmtree(gone, ignore_errors=True)


def _new_name() -> str:
    """One that none has had, in the order of time."""
    return f"{time.time_ns():020}-{uuid.uuid4().hex}"


def _is_request(name: str) -> bool:
    return name.endswith(_REQUEST)


def _is_number(name: str) -> bool:
    # There are digits that `int` does not read.
    return name.isascii() and name.isdigit()
