"""The LogStore contract: what a store does, and what it declares about itself."""

from __future__ import annotations

import contextlib
import enum
import uuid
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from lakelog.logstores.deletion import delete_each
from lakelog.logstores.limits import check_length, log_limit
from lakelog.logstores.logins import without_logins
from lakelog.logstores.settings import storage_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow.fs


class Scope(enum.IntEnum):
    """How far apart two writers may be and still exclude each other.

    The members are ordered: a wider scope includes every narrower one.
    """

    NONE = 0
    """No writer is excluded: two may both believe that they created a file."""
    PROCESS = 1
    """Threads of one process, across all store instances in it."""
    HOST = 2
    """Processes of one host."""
    CLUSTER = 3
    """Every writer that can reach the storage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a store guarantees on the storage that it was opened for.

    The transaction core acts on every field but `ordered_listing`, so a store must declare what
    holds, never what is hoped for.
    """

    exclusive_create: Scope
    """Between which writers `write(overwrite=False)` has exactly one winner.

    The core chooses the commit lock by it, and refuses to commit where it is `Scope.NONE`.
    """
    partial_write_visible: bool
    """Whether a reader may see half of a file under its final name.

    If so, the core takes a commit lock, and reads a torn commit again before it calls it corrupt.
    """
    atomic_overwrite: bool
    """Whether `write(overwrite=True)` and `staged` swap whole contents: a reader gets old or new.

    If not, the core reads a checkpoint once more under its final name before it points
    `_last_checkpoint` at it, and reads that back too.
    """
    consistent_listing: bool
    """Whether every listing that starts after a write ended includes the written file.

    If not, the core looks for commits around every listing by reading them.
    """
    durable: bool
    """Whether a write that returned survives the crash of the writer's host.

    If not, the core warns once before the first commit through the store, unless
    `spark.lakelog.store.warnNotDurable` is `false`.
    """
    ordered_listing: bool = False
    """Whether the storage itself lists in name order. For information only: `lakelog doctor` shows
    it, and no code depends on it, because `list_from` is ordered either way."""
    min_commit_interval: float = 0.0
    """Seconds that the storage wants between two writes of one name (GCS: 1.0)."""

    @property
    def decides_afar(self) -> bool:
        """Whether a create decides between all hosts, a journey away.

        Then the core lets it be the look for a newer version as well. Not so where a store excludes
        nobody, or a lock does it for it, nor in the memory of a process.
        """
        return self.exclusive_create == Scope.CLUSTER

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

    A store defines six members, in order of need: `write`, `read` and `list_from` are the log;
    `capabilities` says what they are worth; `filesystem` and `filesystem_path` show the same
    storage for data files and checkpoints. The others have defaults that a store may improve on:
    first `read_bytes`, through which commits are read, and `staged`, which publishes checkpoints;
    then `create_folder`, `delete_files`, `is_partial_write_visible`, `settings` and `close`.

    A store promises:

    1. *Whole or absent.* A file that `write` makes becomes visible under its name all at once,
       or not at all. The one exception is declared: `capabilities.partial_write_visible`.
    2. *One winner.* Of all writers that race to create one name with `overwrite=False`, on any
       number of threads, processes and hosts within `capabilities.exclusive_create`, exactly one
       returns; every other gets `FileExistsError`, and the file holds the winner's bytes.
    3. *Seen once, seen by all.* After `write` returns, every later `read` and `list_from`, by any
       process, includes the file. A listing that may lag is declared:
       `capabilities.consistent_listing`.

    It does not promise that a writer which got any other exception wrote nothing: see `write`.

    Subclasses are constructed as `Class(conf)`, where `conf` is the user's whole Spark conf.
    Instances are safe for use by several threads and may be pickled or forked: they hold no
    state that excludes writers. Spark's executors, and the processes of `format("lakelog")`, import
    the class and that of a `filesystem` written in Python by name, so both have to be importable
    there: installed, or sent along by `--py-files` or `SparkContext.addPyFile`.
    """

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        """Keep the conf; open nothing, so that a store can be made before its storage is up."""
        self._conf: dict[str, str] = dict(conf or {})

    def __getstate__(self) -> dict[str, Any]:
        """Without the logins of catalogs; a subclass that leaves out more begins with these."""
        state = dict(self.__dict__)
        if "_conf" in state:
            state["_conf"] = without_logins(state["_conf"])
        return state

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
        r"""The whole file at once. Commits and JSON checkpoints are read through it.

        Where `read` would give the lines a and b this gives `a\nb\n`; what ends the lines may
        be as the writer left it. This default calls `read`, line by line; a store that has the
        bytes at hand should give them, because a commit may have a million lines.

        Raises:
            FileNotFoundError: no such file.
            FileTooLargeError: it has more bytes than `spark.lakelog.log.maxBytes`. Checked before
                reading if the storage reports a length.
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

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What this store guarantees; the same for the life of the instance."""

    def is_partial_write_visible(self, path: str) -> bool:  # noqa: ARG002  # an override's
        """Whether a reader may see a half-written file at `path`, under its final name.

        This one gives `capabilities.partial_write_visible`. A store overrides it only where some
        paths do better than that: it must not return true where the capability is false.
        """
        return self.capabilities.partial_write_visible

    @property
    @abstractmethod
    def filesystem(self) -> pyarrow.fs.FileSystem:
        """The same storage for bulk bytes: data files and checkpoints.

        Paths on it are what `filesystem_path` returns. It is pickled and sent to Spark's
        executors. The operations used, in order of need:

        - `open_input_file`: data files, deletion vectors and checkpoints, at any offset; commits,
          where Spark's executors replay a large log.
        - `open_output_stream`: data files, and the drafts of `staged`.
        - `get_file_info`: of a path, whether a file is there, its size and time; of a selector,
          a folder's files, for `convert_to_delta` and symlink manifests.
        - `delete_file`: data files of a commit that failed, expired files of the log, drafts.
        - `create_dir`, recursive: partition folders, and `create_folder`. An object store does
          nothing.
        - `move`: `staged`, unless the store overrides it, and files that Spark has written.
        - `delete_dir`: leftovers of Spark's own writer, and outdated manifests.

        Appending and copying are not used.
        """

    @abstractmethod
    def filesystem_path(self, path: str) -> str:
        """Translate a URI of this store to the spelling that `filesystem` takes."""

    def settings(self) -> Mapping[str, str]:
        """The settings in force, as `lakelog doctor` shows them. No value is a secret.

        This one gives the keys of the conf that concern storage, secrets starred out. A store
        may add settings from elsewhere, such as where its credentials come from.
        """
        return storage_settings(self.conf)

    def create_folder(self, path: str) -> None:
        """Make a folder and its parents; do nothing where it exists or storage has no folders.

        Raises:
            OSError: it cannot be made (permissions, a file of that name).
        """
        self.filesystem.create_dir(self.filesystem_path(path), recursive=True)

    def delete_files(self, paths: Sequence[str]) -> dict[str, Exception]:
        """Delete many files; one that is not there is not an error, and a failure stops nothing.

        This one deletes file by file through `filesystem`, on some threads. A store whose service
        takes many names in a request should send them so.

        Args:
            paths: URIs of files, none of them twice.

        Returns:
            Path -> why, of those that could not be deleted. They may be gone all the same.
        """
        filesystem = self.filesystem

        def delete(path: str) -> None:
            filesystem.delete_file(self.filesystem_path(path))

        return delete_each(paths, delete)

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


class StandIn(LogStore):
    """A store that stands before another: what that one is, and is called, is what counts."""

    @property
    @abstractmethod
    def storage(self) -> LogStore:
        """The other, as it is now."""


def behind(store: LogStore) -> LogStore:
    """The store that does the work of a store: another for a stand-in, else itself."""
    return store.storage if isinstance(store, StandIn) else store
