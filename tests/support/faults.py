"""A store with faults at chosen calls, around one that works."""

from __future__ import annotations

import enum
from collections import deque
from typing import TYPE_CHECKING

from lakelog.logstores import (
    Capabilities,
    CommitOutcomeUnknownError,
    FileStatus,
    LogStore,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow.fs


class Crash(BaseException):
    """The process dies here: no handler of the code under test may save it."""


class Fault(enum.Enum):
    """What happens to one write."""

    NONE = enum.auto()
    LANDS_UNKNOWN = enum.auto()
    """The file is made; the caller is told that nobody knows."""
    LANDS_EXISTS = enum.auto()
    """The file is made; a retry inside the store then met it, and the caller hears "exists"."""
    LANDS_OSERROR = enum.auto()
    """The file is made; the caller is told that the storage failed."""
    LANDS_CRASH = enum.auto()
    """The file is made; the writer dies before it hears of it."""
    LOST_UNKNOWN = enum.auto()
    """The request never arrived; the caller is told that nobody knows."""
    LATE_UNKNOWN = enum.auto()
    """The request is on its way: it arrives just before the next write, whoever's it is."""
    OSERROR = enum.auto()
    CRASH = enum.auto()
    """The writer dies before the request left."""
    SPURIOUS_EXISTS = enum.auto()
    """The storage says that the file exists, and it does not."""


class FaultyLogStore(LogStore):
    """Hands every call on to `inner`, with the scripted faults in between.

    Attributes:
        writes: faults of the next exclusive writes, first to last; none left means no fault.
        before_write: called with the path before each exclusive write, for a rival to slip in.
        failing_reads: how many of the next reads fail with `OSError`.
        calls: every call as (operation, path).
    """

    def __init__(self, inner: LogStore, *writes: Fault) -> None:
        super().__init__(inner.conf)
        self.inner = inner
        self.writes: deque[Fault] = deque(writes)
        self.before_write: Callable[[str], object] | None = None
        self.failing_reads = 0
        self.calls: list[tuple[str, str]] = []
        self._late: list[tuple[str, list[str]]] = []

    def read(self, path: str) -> Iterator[str]:
        self.calls.append(("read", path))
        if self.failing_reads:
            self.failing_reads -= 1
            raise OSError(f"injected: {path} can't be read")
        return self.inner.read(path)

    def read_bytes(self, path: str) -> bytes:
        return "".join(f"{line}\n" for line in self.read(path)).encode()

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        self.calls.append(("write", path))
        if overwrite:
            self.inner.write(path, lines, overwrite=True)
            return
        self.deliver_late()
        if self.before_write is not None:
            self.before_write(path)
        self._write(self.writes.popleft() if self.writes else Fault.NONE, path, list(lines))

    def _write(self, fault: Fault, path: str, lines: list[str]) -> None:
        if fault is Fault.NONE or fault.name.startswith("LANDS"):
            self.inner.write(path, lines)
        if fault is Fault.LATE_UNKNOWN:
            self._late.append((path, lines))
        if fault in (Fault.LANDS_CRASH, Fault.CRASH):
            raise Crash
        if fault in (Fault.LANDS_EXISTS, Fault.SPURIOUS_EXISTS):
            raise FileExistsError(path)
        if fault in (Fault.LANDS_OSERROR, Fault.OSERROR):
            raise OSError(f"injected: {path} can't be written")
        if fault.name.endswith("UNKNOWN"):
            raise CommitOutcomeUnknownError(path, "injected")

    def deliver_late(self) -> None:
        """Let the requests that are on their way arrive."""
        late, self._late = self._late, []
        for path, lines in late:
            try:
                self.inner.write(path, lines)
            except FileExistsError:
                continue

    def list_from(self, path: str) -> Iterator[FileStatus]:
        self.calls.append(("list", path))
        return self.inner.list_from(path)

    def is_partial_write_visible(self, path: str) -> bool:
        return self.inner.is_partial_write_visible(path)

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        return self.inner.filesystem

    def filesystem_path(self, path: str) -> str:
        return self.inner.filesystem_path(path)

    def create_folder(self, path: str) -> None:
        self.inner.create_folder(path)
