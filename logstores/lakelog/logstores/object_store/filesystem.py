"""Data files and checkpoints on an object store, as a pyarrow file system on an `ObjectClient`.

For what Arrow has no file system for, or none that takes the settings. Paths are `bucket/key`.
Folders need not exist: making one does nothing, and one that holds an object is there, as is one
that a marker object stands for.

A client with ranges (`RangedObjectClient`) is asked for the bytes that are read; from any other an
object is fetched whole when it is opened, which is right for some tens of megabytes. What is
written goes through a local file, and appears whole when it is closed.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
from abc import abstractmethod
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import pyarrow as pa
import pyarrow.fs as pafs

from lakelog.logstores.object_store.client import ObjectEntry, ObjectInfo, RangedObjectClient
from lakelog.logstores.object_store.create_once import RetryPolicy, repeat

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from lakelog.logstores.object_store.client import ObjectClient
    from lakelog.logstores.object_store.store import ObjectLogStore

_READ_AHEAD: Final = 1 << 20
_ONE_READ: Final = 32 << 20
"""Most bytes that one request asks for."""

_T = TypeVar("_T")


def object_filesystem(store: ObjectLogStore, root: str) -> pafs.FileSystem:
    """The storage of a store as a pyarrow file system. It may be pickled as the store may.

    Args:
        store: makes the requests, and repeats them as it does its own.
        root: what to put before a path to make a URI of it: `oss://`.
    """
    return pafs.PyFileSystem(_StoreFiles(store, root))


class ObjectFiles(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow ships no types
    """What pyarrow calls. A subclass says how to reach a bucket; it must be picklable."""

    def __init__(self, type_name: str, policy: RetryPolicy) -> None:
        """Connect at the first use.

        Args:
            type_name: the name that pyarrow shows, after `py::`.
            policy: how patiently requests are repeated.
        """
        self._type_name = type_name
        self._policy = policy

    @abstractmethod
    def _locate(self, path: str) -> tuple[ObjectClient, str]:
        """The client of the path's bucket, and the key in it; empty for the bucket itself."""

    @abstractmethod
    def _identity(self) -> Hashable:
        """What two handlers for the same storage have in common."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._identity() == self._identity()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._identity())

    def get_type_name(self) -> str:
        """The name that pyarrow shows."""
        return self._type_name

    def normalize_path(self, path: str) -> str:
        """Nothing but trailing slashes is optional."""
        return path.rstrip("/")

    def get_file_info(self, paths: list[str]) -> list[Any]:
        """What is at each path."""
        return [self._info(path.rstrip("/")) for path in paths]

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        """What is in a folder, or below it."""
        base = selector.base_dir.rstrip("/")
        found = list(self._below(base, deep=selector.recursive))
        if not found and not selector.allow_not_found:
            raise FileNotFoundError(f"{base} does not exist: no object is below it")
        folders = {entry.name.rstrip("/") for entry in found if entry.is_prefix}
        if selector.recursive:
            folders.update(folder for entry in found for folder in _parents(entry.name))
        infos = [
            pafs.FileInfo(f"{base}/{name}", pafs.FileType.Directory)
            for name in sorted(folders - {""})
        ]
        files = [entry for entry in found if not entry.is_prefix and entry.name]
        return infos + [
            _file(f"{base}/{each.name}", each.length, each.modification_time) for each in files
        ]

    def create_dir(self, path: str, recursive: bool) -> None:
        """Do nothing: there need be no folders."""

    def delete_dir(self, path: str) -> None:
        """Remove all below a folder."""
        self.delete_dir_contents(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        """Remove all below a folder, the deepest first, as real directories want it."""
        path = path.rstrip("/")
        client, key = self._locate(path)
        if not key:
            raise PermissionError(f"{path}: a bucket is never emptied as a whole")
        found = list(self._below(path, deep=True))
        if not found and not missing_dir_ok:
            info = self._head(path)
            if info is None or not info.is_folder:
                raise FileNotFoundError(f"{path} does not exist: no object is below it")
        for name in sorted((entry.name for entry in found), reverse=True):
            self._delete(client, f"{key}/{name}")

    def delete_root_dir_contents(self) -> None:
        """Refuse: the root holds every bucket of the account."""
        raise PermissionError("the buckets of an account are never emptied")

    def delete_file(self, path: str) -> None:
        """Remove an object."""
        self._file_at(path)
        client, key = self._locate(path)
        self._delete(client, key)

    def move(self, src: str, dest: str) -> None:
        """Copy, then delete: not atomic, and it replaces a file of that name."""
        self.copy_file(src, dest)
        self.delete_file(src)

    def copy_file(self, src: str, dest: str) -> None:
        """Copy through this host."""
        with self.open_input_file(src) as source, self._sink(dest) as target:
            shutil.copyfileobj(source, target, _ONE_READ)

    def open_input_stream(self, path: str) -> Any:
        """The object from its start; random access comes with it."""
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> Any:
        """The object as it is now: when it is replaced, the next read fails, or gives the old."""
        client, key = self._locate(path)
        if isinstance(client, RangedObjectClient):
            return pa.PythonFile(self._reader(client, key, path), mode="r")
        return pa.BufferReader(self._again(path, lambda: client.get(key)))

    def open_output_stream(self, path: str, metadata: Any) -> Any:  # noqa: ARG002
        """An object that appears whole when the stream is closed."""
        return pa.PythonFile(self._sink(path), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        """Refuse: objects are not appended to."""
        raise NotImplementedError(f"{path}: an object can't be appended to")

    def publish(self, path: str, source: Path) -> None:
        """Upload a local file."""
        client, key = self._locate(path)
        self._again(path, lambda: client.upload(key, source))

    def _sink(self, path: str) -> io.IOBase:
        return _Sink(self, path)

    def _reader(self, client: RangedObjectClient, key: str, path: str) -> io.BufferedIOBase:
        info = self._file_at(path)

        def read(start: int, length: int) -> bytes:
            return self._again(path, lambda: client.get_range(key, start, length, info.state))

        return io.BufferedReader(_Ranges(read, info.length), _READ_AHEAD)

    def _file_at(self, path: str) -> ObjectInfo:
        info = self._head(path)
        if info is None or info.is_folder:
            raise FileNotFoundError(f"{path} does not exist")
        return info

    def _delete(self, client: ObjectClient, key: str) -> None:
        self._again(key, lambda: client.delete(key))

    def _head(self, path: str) -> ObjectInfo | None:
        client, key = self._locate(path.rstrip("/"))
        if not key:
            return None
        if isinstance(client, RangedObjectClient):
            return self._again(path, lambda: client.info(key))
        return self._listed_info(client, path, key)

    def _listed_info(self, client: ObjectClient, path: str, key: str) -> ObjectInfo | None:
        folder, slash, name = key.rpartition("/")
        found = None
        with contextlib.suppress(FileNotFoundError):  # the bucket
            for entry in self._pages(path, lambda at: client.page(folder + slash, name, at, None)):
                if entry.name > f"{name}/":
                    break
                if entry.name == name:
                    found = ObjectInfo(
                        entry.length, entry.modification_time, "", is_folder=entry.is_prefix
                    )
                    if not entry.is_prefix:
                        break
        return found

    def _info(self, path: str) -> Any:
        info = self._head(path)
        if info is not None and not info.is_folder:
            return _file(path, info.length, info.modification_time)
        if info is None:
            client, key = self._locate(path)
            prefix = f"{key}/" if key else ""
            try:
                # Two, since a client may pass one over in what it shows.
                found, more = self._again(path, lambda: client.page(prefix, "", None, 2))
            except FileNotFoundError:  # the bucket
                found, more = [], None
            if not (found or more):
                return pafs.FileInfo(path, pafs.FileType.NotFound)
        return pafs.FileInfo(path, pafs.FileType.Directory)

    def _below(self, folder: str, *, deep: bool) -> Iterator[ObjectEntry]:
        """What is right below a folder, or at any depth; the folder's own marker is named ""."""
        client, key = self._locate(folder)
        prefix = f"{key}/" if key else ""
        if deep and isinstance(client, RangedObjectClient):
            yield from self._pages(folder, lambda after: client.flat_page(prefix, after))
            return
        for entry in self._pages(folder, lambda after: client.page(prefix, "", after, None)):
            if deep and entry.is_prefix:
                for inner in self._below(f"{folder}/{entry.name}", deep=True):
                    yield _under(entry.name, inner)
            else:
                yield entry

    def _pages(
        self, path: str, page: Callable[[str | None], tuple[list[ObjectEntry], str | None]]
    ) -> Iterator[ObjectEntry]:
        continuation: str | None = None
        while True:
            entries, continuation = self._again(path, partial(page, continuation))
            yield from entries
            if continuation is None:
                return

    def _again(self, path: str, request: Callable[[], _T]) -> _T:
        return repeat(request, path, self._policy)


class _StoreFiles(ObjectFiles):
    """The files of a store, by its own client."""

    def __init__(self, store: ObjectLogStore, root: str) -> None:
        super().__init__(root.partition(":")[0], store._policy)
        self._store = store
        self._root = root

    def _locate(self, path: str) -> tuple[ObjectClient, str]:
        bucket, slash, key = path.partition("/")
        # A store's URI of a bucket ends with a slash.
        return self._store._locate(f"{self._root}{bucket}{slash or '/'}{key}")

    def _identity(self) -> Hashable:
        return type(self._store), self._root, frozenset(self._store.conf.items())


class _Ranges(io.RawIOBase):
    """One state of an object, read by ranges."""

    def __init__(self, read: Callable[[int, int], bytes], length: int) -> None:
        super().__init__()
        self._read, self._length = read, length
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(cast("bytearray", buffer)).cast("B")
        length = min(len(view), self._length - self._at, _ONE_READ)
        if length <= 0:
            return 0
        view[:length] = self._read(self._at, length)
        self._at += length
        return length


class _Sink(io.RawIOBase):
    """Bytes on their way through a local file, uploaded at the close."""

    def __init__(self, files: ObjectFiles, path: str) -> None:
        super().__init__()
        self._files, self._path = files, path
        self._draft = tempfile.NamedTemporaryFile(prefix="lakelog-")  # noqa: SIM115

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._draft.write(data)

    def tell(self) -> int:
        return self._draft.tell()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None and not self.closed:
            self._draft.close()  # half a copy is nothing
            super().close()
        super().__exit__(None, None, None)

    def close(self) -> None:
        if not self.closed:
            try:
                self._draft.flush()
                self._files.publish(self._path, Path(self._draft.name))
            finally:
                self._draft.close()
                super().close()


def _under(folder: str, entry: ObjectEntry) -> ObjectEntry:
    # A marker keeps the slash that its key ends with.
    name = f"{folder}/{entry.name}"
    is_folder = entry.is_prefix or not entry.name
    return ObjectEntry(name, entry.length, entry.modification_time, is_folder)


def _parents(name: str) -> Iterator[str]:
    parts = name.split("/")[:-1]
    for count in range(1, len(parts) + 1):
        yield "/".join(parts[:count])


def _file(path: str, length: int, modification_time: int) -> Any:
    return pafs.FileInfo(
        path, pafs.FileType.File, size=length, mtime_ns=modification_time * 1_000_000
    )
