"""A log on any fsspec file system, which excludes exactly as many writers as are declared.

fsspec has one interface for storages that keep very different promises, so nothing is
assumed. The conf declares between whom `pipe_file(mode="create")` has to have one winner:

    process, host    a lock of lakelog's ensures it, for all writers that use lakelog
    cluster          the storage has to: a look at the class and a probe search for signs that it
                     does not

A rename never decides between writers: most fsspec file systems silently replace its target.
"""

from __future__ import annotations

import contextlib
import errno
import tempfile
import time
import uuid
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lakelog.contrib.fsspec_probe import ProbeResult, probed
from lakelog.logstores import (
    Capabilities,
    CommitOutcomeUnknownError,
    FileStatus,
    LogStore,
    LogStoreConfError,
    MissingExtraError,
    Scope,
    UnsafeLogStoreError,
    keys,
)
from lakelog.logstores.lines import decode_lines, encode_lines
from lakelog.logstores.locks import host_lock, process_lock
from lakelog.logstores.travelling import own_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow.fs

SCOPE_KEY: Final = keys.FSSPEC_SCOPE.name
"""Between whom `pipe_file(mode="create")` has one winner: none, process, host or cluster."""
ATOMIC_KEY: Final = keys.FSSPEC_ATOMIC.name
"""`true`: a file appears under its name whole or not at all, as on object stores."""
OPTIONS_KEY: Final = "spark.lakelog.fsspec.options."
"""Before each option of the file system's constructor."""
_SINGLE_WRITER_KEY: Final = keys.SINGLE_WRITER.name
_LOOKS: Final = 3
"""At a file that a failed write may have made."""
_PRECONDITION: Final = "pre-conditions"
"""s3fs reports a taken key as an OSError of errno 22 with Amazon's sentence in it."""


class FsspecLogStore(LogStore):
    """A log on the fsspec file system that the URI's scheme names.

    Conf: `spark.lakelog.fsspec.exclusiveCreate` declares the scope and
    `spark.lakelog.fsspec.wholeFiles` that files appear whole;
    `spark.lakelog.fsspec.options.<name>` goes to the file system.
    """

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        """Read the declarations; open nothing.

        Raises:
            LogStoreConfError: a declaration has another value than those allowed.
        """
        super().__init__(conf)
        self._declared = _declared_scope(self.conf)
        self._whole = keys.FSSPEC_ATOMIC.of(self.conf)
        self._options = {
            key.removeprefix(OPTIONS_KEY): _option(value)
            for key, value in self.conf.items()
            if key.startswith(OPTIONS_KEY)
        }
        self._protocol = "file"

    def read(self, path: str) -> Iterator[str]:
        """The lines of a file, which is fetched whole.

        Raises:
            FileNotFoundError: no such file.
        """
        fs, inner = self._open(path)
        data: bytes = fs.cat_file(inner)
        return decode_lines(_cut(data))

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        """One `pipe_file` of the whole body.

        A storage that fails without saying whether it wrote is asked for the file. One that holds
        the same bytes is this commit (each carries a `txnId` of its own); one with others is
        another writer's; without one, the outcome is unknown.

        Raises:
            UnsafeLogStoreError: no scope is declared, or a probe contradicts the declaration.
            FileExistsError: another writer has the name.
            CommitOutcomeUnknownError: the storage failed, and the file is not there to compare.
            OSError: the storage refused.
        """
        body = b"".join(encode_lines(lines))
        fs, inner = self._open(path)
        if overwrite:
            fs.pipe_file(inner, body, mode="overwrite")
            return
        self._ensure_declared(fs, inner)
        with self._alone(fs, inner):
            if self._declared != Scope.CLUSTER:
                _refuse_taken(fs, inner, path)
            self._create(fs, inner, path, body)

    def _create(self, fs: Any, inner: str, path: str, body: bytes) -> None:
        try:
            fs.pipe_file(inner, body, mode="create")
        except Exception as error:
            if _is_conflict(error):
                raise FileExistsError(f"{path} exists: another writer made it") from error
            if isinstance(error, (FileNotFoundError, PermissionError, NotImplementedError)):
                raise
            self._settle(fs, inner, path, body, error)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """The folder's entries from the name on, sorted here.

        Raises:
            FileNotFoundError: the folder does not exist, or nothing is in it.
        """
        folder, _, start = path.rpartition("/")
        fs, inner = self._open(folder)
        fs.invalidate_cache(inner)
        inner = inner.rstrip("/")
        entries = [
            entry
            for entry in fs.ls(inner, detail=True)
            # Some list the marker of a folder as an entry of it, and a file as its own content.
            if entry["name"].rstrip("/") != inner
        ]
        found = {entry["name"].rstrip("/").rpartition("/")[2]: entry for entry in entries}
        return (
            FileStatus(
                f"{folder}/{name}",
                int(found[name].get("size") or 0),
                _modified(found[name]),
                found[name]["type"] == "directory",
            )
            for name in sorted(found)
            if name >= start
        )

    @property
    def capabilities(self) -> Capabilities:
        """What was declared, and the minimum for the rest.

        Declaring a scope also guarantees listings that show what was written.
        """
        return Capabilities(
            exclusive_create=self._declared or Scope.NONE,
            partial_write_visible=not self._whole,
            atomic_overwrite=self._whole,
            consistent_listing=self._declared is not None,
            durable=False,
        )

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        """The file system that the last path named, as pyarrow wraps it.

        Its first use may fail as `filesystem_path` can.
        """
        from lakelog.contrib.fsspec_filesystem import filesystem_of

        return filesystem_of(self._latest)

    def filesystem_path(self, path: str) -> str:
        """The path without its scheme, as the file system spells it."""
        return self._open(path)[1]

    def create_folder(self, path: str) -> None:
        """Make a folder and its parents, where the file system has folders."""
        fs, inner = self._open(path)
        fs.makedirs(inner, exist_ok=True)

    @contextlib.contextmanager
    def staged(self, path: str) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
        """Stage in a local temporary file, then upload it.

        A file that the file system may show in parts is uploaded under a hidden name and moved,
        where the file system has a move of its own that replaces. Elsewhere whoever reads while
        it is uploaded, or after a crash, may see part of it: `capabilities` says so.
        """
        from pyarrow.fs import LocalFileSystem

        fs, inner = self._open(path)
        with tempfile.TemporaryDirectory(prefix="lakelog-") as folder:
            draft = Path(folder) / "draft"
            yield LocalFileSystem(), str(draft)
            if self._whole or not _has_its_own_move(fs):
                fs.put_file(str(draft), inner)
            else:
                _put_and_move(fs, str(draft), inner)

    def probe(self, folder: str) -> ProbeResult:
        """Test whether exclusive creates in a folder have one winner; see `ProbeResult`.

        Args:
            folder: where two dozen small files are made, and removed again.
        """
        fs, inner = self._open(folder)
        return probed(fs, inner)

    def _open(self, path: str) -> tuple[Any, str]:
        protocol, separator, _ = path.partition("://")
        self._protocol = protocol if separator else "file"
        fs = self._file_system(self._protocol)
        return fs, fs._strip_protocol(path)

    def __getstate__(self) -> dict[str, Any]:
        """Drop the settings of other storages."""
        cls = type(self)
        conf = own_settings(self.conf, f"{cls.__module__}.{cls.__qualname__}")
        return {**self.__dict__, "_conf": conf}

    def _latest(self) -> Any:
        return self._file_system(self._protocol)

    def _file_system(self, protocol: str) -> Any:
        try:
            import fsspec
        except ImportError as error:
            raise MissingExtraError("fsspec", "FsspecLogStore") from error
        try:
            # Listings must be current, so no cache of the file system's is used.
            return fsspec.filesystem(protocol, use_listings_cache=False, **self._options)
        except ImportError as error:
            raise LogStoreConfError(
                f"fsspec knows {protocol!r}, but its package is not installed: {error}"
            ) from error
        except (TypeError, ValueError) as error:
            raise LogStoreConfError(
                f"fsspec has no file system {protocol!r} with the options "
                f"{sorted(self._options)}: {type(error).__name__}. Check the scheme and "
                f"{OPTIONS_KEY}*"
            ) from error

    def _alone(self, fs: Any, inner: str) -> contextlib.AbstractContextManager[None]:
        """Hold the file's lock, if a lock can cover the declared scope."""
        key = f"fsspec {type(fs).__qualname__} {inner}"
        if self._declared == Scope.CLUSTER:
            return contextlib.nullcontext()
        return host_lock(key) if self._declared == Scope.HOST else process_lock(key)

    def _ensure_declared(self, fs: Any, inner: str) -> None:
        if keys.SINGLE_WRITER.of(self.conf):
            return
        if self._declared is None or self._declared == Scope.NONE:
            raise UnsafeLogStoreError(
                f"lakelog does not know which writers exclude each other on {type(fs).__name__}, "
                "so one commit could overwrite another. Declare it: "
                f"{SCOPE_KEY}=process or host, if all writers use lakelog in one process or on one "
                "host; cluster, if the storage's pipe_file(mode='create') has one winner among all "
                f"writers. If only one process ever writes the table, set "
                f"{_SINGLE_WRITER_KEY}=true."
            )
        if self._declared != Scope.CLUSTER:
            return
        result = probed(fs, inner.rpartition("/")[0], once=True)
        if result.failure:
            raise UnsafeLogStoreError(
                f"{SCOPE_KEY} is cluster, but {type(fs).__name__} shows otherwise: "
                f"{result.failure}. Use another store for this storage, or {SCOPE_KEY}=host if "
                "all its writers are on one host and use lakelog."
            )

    def _settle(self, fs: Any, inner: str, path: str, body: bytes, error: Exception) -> None:
        """Compare what is there with what was sent.

        Raises:
            FileExistsError: it is another's.
            CommitOutcomeUnknownError: there is nothing, or no answer.
        """
        seen = f"the storage failed ({type(error).__name__})"
        try:
            found = _read_back(fs, inner)
        except FileNotFoundError:
            raise CommitOutcomeUnknownError(path, f"{seen}, and the file is absent") from error
        except Exception as trouble:
            raise CommitOutcomeUnknownError(
                path, f"{seen}, and the file can't be read ({type(trouble).__name__})"
            ) from error
        if found == body:
            return
        if not self._whole and body.startswith(found):
            raise CommitOutcomeUnknownError(
                path, f"{seen}, and the file holds the first {len(found)} of {len(body)} bytes"
            ) from error
        raise FileExistsError(f"{path} exists: another writer made it") from error


def _has_its_own_move(fs: Any) -> bool:
    """Whether it does more than fsspec's own `mv`, which copies and takes `[a]` for a pattern."""
    from fsspec import AbstractFileSystem

    return type(fs).mv is not AbstractFileSystem.mv


def _put_and_move(fs: Any, local: str, inner: str) -> None:
    folder, _, name = inner.rpartition("/")
    hidden = f"{folder}/.{name}.{uuid.uuid4()}.tmp"
    try:
        fs.put_file(local, hidden)
        with contextlib.suppress(Exception):  # ftplib's are no OSErrors
            fs.mv(hidden, inner)
        # WebHDFS answers "false" to a move onto a file that is there, and fsspec drops the answer.
        if _is_taken(fs, hidden):
            fs.put_file(local, inner)
    finally:
        with contextlib.suppress(Exception):
            if _is_taken(fs, hidden):
                fs.rm_file(hidden)


def _read_back(fs: Any, inner: str) -> bytes:
    """The bytes of a file, asked for again where what failed its write spoils the first look."""
    for tries in range(_LOOKS):
        try:
            found: bytes = fs.cat_file(inner)
        except FileNotFoundError:
            raise
        except Exception:
            if tries == _LOOKS - 1:
                raise
            time.sleep(0.1 * 2**tries)
        else:
            return found
    raise AssertionError("unreachable")


def _refuse_taken(fs: Any, inner: str, path: str) -> None:
    """Check under the lock: many file systems ignore `mode="create"` and overwrite.

    Raises:
        FileExistsError: the name is taken.
    """
    if _is_taken(fs, inner):
        raise FileExistsError(f"{path} exists: another writer made it")


def _is_taken(fs: Any, inner: str) -> bool:
    try:  # `exists` would take any failure for "no"
        fs.info(inner)
    except FileNotFoundError:
        return False
    return True


def _is_conflict(error: Exception) -> bool:
    if isinstance(error, FileExistsError):
        return True
    return (
        isinstance(error, OSError)
        and error.errno == errno.EINVAL
        and _PRECONDITION in str(error).lower()
    )


def _declared_scope(conf: Mapping[str, str]) -> Scope | None:
    text = conf.get(SCOPE_KEY)
    if text is None:
        return None
    try:
        return Scope[text.strip().upper()]
    except KeyError:
        raise LogStoreConfError(
            f"{SCOPE_KEY} must be none, process, host or cluster, but it is {text!r}"
        ) from None


def _option(value: str) -> object:
    """`true`, `false` and whole numbers as such; all else as text."""
    lowered = value.strip().lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    return int(value) if value.strip().isdigit() else value


def _modified(entry: Mapping[str, Any]) -> int:
    """Milliseconds of the time that an entry has, under whatever name; 0 where it has none."""
    for name in ("mtime", "LastModified", "last_modified", "updated", "modified", "created"):
        value = entry.get(name)
        if isinstance(value, (int, float)):
            return int(value * 1000)
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return int(value.timestamp() * 1000)
    return 0


def _cut(data: bytes) -> Iterator[bytes]:
    # splitlines would also break at a lone \r.
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        yield data[start : end + 1]
        start = end + 1
    if start < len(data):
        yield data[start:]
