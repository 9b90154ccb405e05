"""A storage shared by simulated processes, and the store that each of them sees it through."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from lakelog.core.log.file_names import LOG_FOLDER, commit_path, parse_log_name
from lakelog.logstores import (
    Capabilities,
    CommitOutcomeUnknownError,
    FileStatus,
    LogStore,
    MemoryLogStore,
    Scope,
)
from support.faults import Crash, Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow.fs

    from simulation.scheduling import Actor
    from support.manual_clock import ManualClock

# As an object store: the create decides on its own, and nobody takes a lock.
_CAPABILITIES = Capabilities(
    exclusive_create=Scope.CLUSTER,
    partial_write_visible=False,
    atomic_overwrite=True,
    consistent_listing=True,
    ordered_listing=True,
    durable=True,
)


_WRITE_SECONDS = 0.05
"""What a process may take for as recent as a look is as old as that at most."""


class Storage:
    """What exists, what is on its way, and every commit that ever landed."""

    def __init__(self, name: str) -> None:
        """Begin with nothing, under `memory://<name>/`."""
        self.name = name
        self.inner = MemoryLogStore({})
        self.table = f"memory://{name}/t"
        self.landed: dict[int, list[str]] = {}
        """Version -> the lines of its commit."""
        self.cleaned: set[int] = set()
        """The versions whose commit files log cleanup removed."""
        self.story: list[str] = []
        """What happened, in order, for people."""
        self.complaints: list[str] = []
        self._late: list[tuple[str, list[str]]] = []

    @property
    def newest(self) -> int:
        return max(self.landed, default=-1)

    def create(self, path: str, lines: list[str]) -> None:
        self.inner.write(path, lines)
        name = parse_log_name(path.rpartition("/")[2])
        if name is None:
            return  # what lies beside the log
        if name.version in self.landed:
            self.complaints.append(f"version {name.version} was made twice")
        if name.version > self.newest + 1:
            self.complaints.append(f"version {name.version} was made behind {self.newest}")
        self.landed[name.version] = lines

    def send_late(self, path: str, lines: list[str]) -> None:
        self._late.append((path, lines))

    def deliver_late(self) -> None:
        """Let the requests that are on their way arrive."""
        late, self._late = self._late, []
        for path, lines in late:
            with contextlib.suppress(FileExistsError):
                self.create(path, lines)
                self.story.append(f"    a late request arrives and makes {_short(path)}")

    def clean_up(self) -> None:
        """Remove all commits but the newest, as log cleanup may once a checkpoint is there."""
        for version in self.landed:
            if version < self.newest and version not in self.cleaned:
                path = self.inner.filesystem_path(commit_path(self.table, version))
                self.inner.filesystem.delete_file(path)
                self.cleaned.add(version)

    def forget(self) -> None:
        MemoryLogStore.forget(self.name)


class ProcessStore(LogStore):
    """The storage as one process sees it. Before each operation its actor stops."""

    def __init__(self, storage: Storage, clock: ManualClock | None = None) -> None:
        super().__init__(storage.inner.conf)
        self._storage, self._clock = storage, clock
        self.actor: Actor | None = None
        self.who = ""
        self.troubles = 0
        """How many operations were made to fail."""

    def _step(self, operation: str, path: str) -> Fault:
        if self.actor is None:
            return Fault.NONE
        return self.actor.step(operation, path)

    def _tell(self, text: str) -> None:
        self._storage.story.append(f"    {self.who}: {text}")

    def _look(self, operation: str, path: str) -> None:
        if self._step(operation, path) in (Fault.OSERROR, Fault.LANDS_OSERROR):
            self.troubles += 1
            self._tell(f"{operation} {_short(path)} fails")
            raise OSError(f"injected: {path} can't be read")

    def read(self, path: str) -> Iterator[str]:
        return iter(self.read_bytes(path).decode().splitlines())

    def read_bytes(self, path: str) -> bytes:
        self._look("read", path)
        try:
            data = self._storage.inner.read_bytes(path)
        except FileNotFoundError:
            self._tell(f"reads {_short(path)}: not there")
            raise
        self._tell(f"reads {_short(path)}")
        return data

    def list_from(self, path: str) -> Iterator[FileStatus]:
        self._look("list", path)
        found = list(self._storage.inner.list_from(path))
        self._tell(f"lists from {_short(path)}: {', '.join(_short(f.name) for f in found)}")
        return iter(found)

    def create_folder(self, path: str) -> None:
        self._look("create folder", path)
        self._storage.inner.create_folder(path)

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        whole = list(lines)
        fate = self._step("write", path)
        if overwrite:
            self._tell(f"overwrites {_short(path)}")
            self._storage.inner.write(path, whole, overwrite=True)
            return
        if self._clock is not None:
            self._clock.advance(_WRITE_SECONDS)
        self.troubles += fate is not Fault.NONE
        if fate is Fault.LATE_UNKNOWN:
            self._storage.send_late(path, whole)
        if fate is Fault.NONE or fate.name.startswith("LANDS"):
            try:
                self._storage.create(path, whole)
            except FileExistsError:
                # The storage refuses, and the refusal is lost or garbled as a success would be.
                self._tell(f"writes {_short(path)}: exists, {fate.name}")
                if fate is Fault.NONE:
                    raise
            else:
                self._tell(f"writes {_short(path)}: made, {fate.name}")
        else:
            self._tell(f"writes {_short(path)}: {fate.name}")
        self._answer(fate, path)

    def _answer(self, fate: Fault, path: str) -> None:
        if fate is Fault.LANDS_CRASH:
            assert self.actor is not None
            self.actor.is_dead = True
            raise Crash
        if fate in (Fault.LANDS_EXISTS, Fault.SPURIOUS_EXISTS):
            raise FileExistsError(path)
        if fate in (Fault.LANDS_OSERROR, Fault.OSERROR):
            raise OSError(f"injected: {path} can't be written")
        if fate.name.endswith("UNKNOWN"):
            raise CommitOutcomeUnknownError(path, "injected")

    @contextlib.contextmanager
    def staged(self, path: str) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
        self._look("stage", path)
        with self._storage.inner.staged(path) as given:
            yield given
            self._look("publish", path)
        self._tell(f"publishes {_short(path)}")

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        return self._storage.inner.filesystem

    def filesystem_path(self, path: str) -> str:
        return self._storage.inner.filesystem_path(path)


def _short(path: str) -> str:
    """`7.json` for `…/_delta_log/00000000000000000007.json`."""
    return re.sub(r"^0*(?=\d)", "", path.rpartition("/")[2]) or LOG_FOLDER
