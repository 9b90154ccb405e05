"""The LogStore contract: four operations, and what a store declares about itself."""

from __future__ import annotations

import contextlib
import enum
import uuid
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from lakelog.logstores._log_limit import check_length, log_limit
from lakelog.logstores._settings import storage_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow.fs

__all__ = ["Capabilities", "FileStatus", "LogStore", "Scope"]


class Scope(enum.IntEnum):
    """How far apart two writers may be and still exclude each other.

    The members are ordered: a wider scope includes every narrower one.
    """

    NONE = 0
    """Nobody is excluded: two writers may both believe that they created a file."""
    PROCESS = 1
    """Threads of one process, across all store instances in it."""
    HOST = 2
    """Processes of one host."""
    CLUSTER = 3
    """Every writer that can reach the storage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a store guarantees on the storage that it was opened for.

    The transaction core reads these once and picks its commit lock from them, so a store must
    declare what holds, never what is hoped for.
    """

    exclusive_create: Scope
    """Between which writers `write(overwrite=False)` has exactly one winner."""
    partial_write_visible: bool
    """Whether a reader may see half of a file under its final name."""
    atomic_overwrite: bool
    """Whether `write(overwrite=True)` swaps whole contents: a reader gets old or new."""
    consistent_listing: bool
    """Whether every listing that starts after a write ended includes the written file."""
    ordered_listing: bool
    """Whether the storage itself lists in name order. `list_from` is ordered either way."""
    durable: bool
    """Whether a write that returned survives the crash of the writer's host."""
    min_commit_interval: float = 0.0
    """Seconds that the storage wants between two writes of one name (GCS: 1.0)."""

    def as_json(self) -> dict[str, str | bool | float]:
        """The same with the scope's name in lower case, fit for a JSON document."""
        return {**asdict(self), "exclusive_create": self.exclusive_create.name.lower()}


@dataclass(frozen=True, slots=True, order=True)
class FileStatus:
    """One entry of a listing."""

    path: str
    """Full URI, in the spelling of the URI that was listed."""
    length: int = field(compare=False)
    """Size in bytes; 0 for a folder."""
    modification_time: int = field(compare=False)
    """Milliseconds since 1970-01-01 UTC."""
    is_directory: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        """The last component of the path."""
        return self.path.rsplit("/", 1)[-1]


class LogStore(ABC):
    """The storage of a table's log, shared by writers that never meet.

    A path is a full URI string (`s3://bucket/table/_delta_log/x.json`) or, for the local file
    system, a plain absolute path. URIs are *not* percent-encoded: a path is what the storage
    calls the file.

    A store promises:

    1. *Whole or absent.* A file that `write` makes becomes visible under its name all at once,
       or not at all. The one exception is declared: `is_partial_write_visible`.
    2. *One winner.* Of all writers that race to create one name with `overwrite=False`, on any
       number of threads, processes and hosts within `capabilities.exclusive_create`, exactly one
       returns; every other gets `FileExistsError`, and the file holds the winner's bytes.
    3. *Seen once, seen by all.* After `write` returns, every later `read` and `list_from`, by
       anybody, includes the file.

    It does not promise that a writer which got any other exception wrote nothing: see `write`.

    Subclasses are constructed as `Class(conf)`, where `conf` is the user's whole Spark conf.
    Instances are safe for use by several threads and may be pickled or forked: they hold no
    state that excludes writers.
    """

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        """Keep the conf; open nothing, so that a store can be made before its storage is up."""
        self._conf: dict[str, str] = dict(conf or {})

    @property
    def conf(self) -> Mapping[str, str]:
        """The conf that the store was made with."""
        return self._conf

    @abstractmethod
    def read(self, path: str) -> Iterator[str]:
        r"""Yield the lines of a UTF-8 file, without their line ends, lazily.

        A line ends at `\n` or `\r\n` only. An empty file yields nothing.

        Raises:
            FileNotFoundError: no such file. Raised by this call or by the first `next()`.
            UnicodeDecodeError: the file is not UTF-8.
        """

    def read_bytes(self, path: str) -> bytes:
        r"""The whole file at once, for readers that want no lines: a commit of a million actions.

        Where `read` would give the lines a and b this gives `a\nb\n`; what ends the lines may
        be as the writer left it. This one is made of `read`; stores that have the bytes give them.

        Raises:
            FileNotFoundError: no such file.
            FileTooLargeError: it has more bytes than `spark.lakelog.log.maxBytes`. Found before
                it is read where the storage tells a length then.
        """
        lines, length, limit = [], 0, log_limit(self.conf)
        for line in self.read(path):
            lines.append(f"{line}\n")
            length += len(line) + 1
            check_length(path, length, limit)
        return "".join(lines).encode()

    @abstractmethod
    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        r"""Write each line and a `\n` after it, as one file, all or nothing.

        An exception from `lines` itself leaves no file and passes through.

        Args:
            path: the file to make. Its folder exists, or the storage has no folders.
            lines: text without line ends.
            overwrite: replace an existing file; with `False` (the way to commit) refuse to.

        Raises:
            FileExistsError: `overwrite=False` and the name is taken by another writer's file.
                The store has settled that it is not this call's own (a lost reply, retried).
            FileNotFoundError: the folder does not exist.
            CommitOutcomeUnknownError: the storage did not say whether the file was made, and
                reading it back did not settle it. The file may exist, now or later.
            OSError: anything else; the file was not made.
        """

    @abstractmethod
    def list_from(self, path: str) -> Iterator[FileStatus]:
        """Yield the entries of the folder that holds `path` whose name is >= that of `path`.

        Ascending by name (code points), not recursive, folders and foreign files included.
        `path` itself need not exist. Every write that returned before the call is included.

        Raises:
            FileNotFoundError: the folder does not exist (on an object store: nothing is in it).
                Raised by this call or by the first `next()`.
        """

    @abstractmethod
    def is_partial_write_visible(self, path: str) -> bool:
        """Say whether a reader may see a half-written file at `path`, under its final name."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What this store guarantees; the same for the life of the instance."""

    @property
    @abstractmethod
    def filesystem(self) -> pyarrow.fs.FileSystem:
        """The same storage for bulk bytes: data files and checkpoints.

        Paths on it are what `filesystem_path` returns.
        """

    @abstractmethod
    def filesystem_path(self, path: str) -> str:
        """Translate a URI of this store to the spelling that `filesystem` takes."""

    def settings(self) -> Mapping[str, str]:
        """The settings in force, for people (`lakelog doctor` shows them). No value is a secret.

        This one gives the keys of the conf that concern storage, secrets starred out. A store
        may add what it took from elsewhere, such as where its credentials come from.
        """
        return storage_settings(self.conf)

    def create_folder(self, path: str) -> None:
        """Make a folder and its parents; do nothing where it exists or storage has no folders.

        Raises:
            OSError: it cannot be made (permissions, a file of that name).
        """
        self.filesystem.create_dir(self.filesystem_path(path), recursive=True)

    @contextlib.contextmanager
    def staged(self, path: str) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
        """Write a file of any size, such as a checkpoint, that becomes visible all at once.

        Gives a file system and a path on it that no reader looks at; write there, and verify.
        When the block ends the file is published at `path`, replacing what is there; when it
        raises, the draft is removed and `path` is as it was.

        This one publishes by a move of `filesystem`, from a hidden name in the same folder. A
        store whose moves copy, or do not replace, overrides it.

        Raises:
            OSError: the storage refused; nothing was published.
        """
        folder, _, name = self.filesystem_path(path).rpartition("/")
        filesystem = self.filesystem
        draft = f"{folder}/.{name}.{uuid.uuid4()}.tmp"
        try:
            yield filesystem, draft
            filesystem.move(draft, f"{folder}/{name}")
        except BaseException:
            with contextlib.suppress(OSError):
                filesystem.delete_file(draft)
            raise

    def close(self) -> None:  # noqa: B027  # most stores hold nothing open
        """Release connections. Using the store afterwards is an error; closing twice is not."""
