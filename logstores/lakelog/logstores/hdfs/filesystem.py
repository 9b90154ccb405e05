"""HDFS as a pyarrow file system, on hdfs-native. A path is `/authority/path`.

Neither pyarrow's own HadoopFileSystem nor a wrapped fsspec one would do: the first deletes the
target of a move before it moves, the second refuses a target that exists. `move` here replaces
in one step, on the NameNode.
"""

# The module imports pyarrow.fs (40 ms), so it is imported only where bytes are needed.

from __future__ import annotations

import io
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs

from lakelog.logstores.hdfs.client import CHUNK
from lakelog.logstores.object_store.store import TryAgainError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import hdfs_native

    from lakelog.logstores.hdfs.access import Hdfs
    from lakelog.logstores.hdfs.client import HdfsClient


def hdfs_filesystem(hdfs: Hdfs) -> pafs.FileSystem:
    """The file system of a conf; it can be pickled."""
    return pafs.PyFileSystem(HdfsHandler(hdfs))


class HdfsHandler(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow ships no types
    """What pyarrow calls."""

    # Not an `ObjectFiles`: that one makes up folders from keys, moves by copying, and uploads a
    # file when it is closed. HDFS has folders, moves in one step, and takes bytes as they come; a
    # common base would keep the names of the methods and no line of what they do.

    def __init__(self, hdfs: Hdfs) -> None:
        self._hdfs = hdfs

    def __reduce__(self) -> tuple[type[HdfsHandler], tuple[Hdfs]]:
        return type(self), (self._hdfs,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HdfsHandler) and other._hdfs.conf == self._hdfs.conf

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(frozenset(self._hdfs.conf.items()))

    def get_type_name(self) -> str:
        """The name that pyarrow shows."""
        return "hdfs-native"

    def normalize_path(self, path: str) -> str:
        """Nothing but trailing slashes is optional."""
        return path.rstrip("/")

    def get_file_info(self, paths: list[str]) -> list[Any]:
        """What is at each path."""
        found = []
        for path in paths:
            client, where = self._locate(path)
            status = client.again(where, partial(client.status, where))
            found.append(_info(path, status))
        return found

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        """What is in a folder, or below it."""
        client, where = self._locate(selector.base_dir)
        base = selector.base_dir.rstrip("/")
        try:
            return list(_walk(client, base, where, selector.recursive))
        except FileNotFoundError:
            if selector.allow_not_found:
                return []
            raise

    def create_dir(self, path: str, recursive: bool) -> None:
        """Make a folder; an existing one is not an error."""
        client, where = self._locate(path)
        client.again(where, lambda: client.make_folder(where, parents=recursive))

    def delete_dir(self, path: str) -> None:
        """Remove a folder and all in it."""
        client, where = self._locate(path)
        if where == "/":
            raise PermissionError("the root of an HDFS is never deleted")
        if not _delete(client, where, recursive=True):
            raise FileNotFoundError(2, "No such folder", path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        """Empty a folder."""
        client, where = self._locate(path)
        if where == "/":
            raise PermissionError("the root of an HDFS is never emptied")
        try:
            found = client.again(where, lambda: client.entries(where))
        except FileNotFoundError:
            if missing_dir_ok:
                return
            raise
        for each in found:
            client.again(each.path, partial(client.delete, each.path, recursive=True))

    def delete_root_dir_contents(self) -> None:
        """Refuse: the root holds every cluster."""
        raise PermissionError("the root of an HDFS is never emptied")

    def delete_file(self, path: str) -> None:
        """Remove a file."""
        client, where = self._locate(path)
        status = client.again(where, lambda: client.status(where))
        if status is not None and status.isdir:
            raise IsADirectoryError(21, "Is a directory", path)
        if status is None or not _delete(client, where):
            raise FileNotFoundError(2, "No such file", path)

    def move(self, src: str, dest: str) -> None:
        """Rename in one step; a file that is there is replaced.

        A lost answer is settled by the source: once it is gone, the move has happened.
        """
        (client, source), (there, target) = self._locate(src), self._locate(dest)
        if client is not there:
            raise OSError(f"{src} and {dest} are in two clusters: copy, then delete")
        lost = False

        def rename() -> None:
            nonlocal lost
            try:
                client.rename(source, target, overwrite=True)
            except FileNotFoundError:
                if not lost or client.status(target) is None:
                    raise
            except TryAgainError as error:
                lost = lost or error.may_have_landed
                raise

        client.again(target, rename)

    def copy_file(self, src: str, dest: str) -> None:
        """Copy a file, through this process."""
        with self.open_input_file(src) as source, self.open_output_stream(dest, None) as sink:
            while data := source.read(CHUNK):
                sink.write(data)

    def open_input_stream(self, path: str) -> Any:
        """The bytes of a file, in order."""
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> Any:
        """The bytes of a file, anywhere."""
        client, where = self._locate(path)
        reader = client.again(where, lambda: client.reader(where))
        return pa.PythonFile(_Source(client, where, reader), mode="r")

    def open_output_stream(self, path: str, metadata: Any) -> Any:  # noqa: ARG002
        """A file that is visible from the start and whole when the stream is closed."""
        client, where = self._locate(path)
        writer = client.again(
            where, lambda: client.writer(where, overwrite=True, create_parent=False)
        )
        return pa.PythonFile(_Sink(client, where, writer), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        """Refuse: nothing here appends."""
        raise NotImplementedError("files on HDFS are written once here, not appended to")

    def _locate(self, path: str) -> tuple[HdfsClient, str]:
        authority, slash, where = path.lstrip("/").partition("/")
        return self._hdfs.at(authority)[0], (slash + where).rstrip("/") or "/"


class _Source(io.RawIOBase):
    """Reads that are bounded in time and repeated."""

    def __init__(self, client: HdfsClient, path: str, reader: hdfs_native.FileReader) -> None:
        super().__init__()
        self._client, self._path, self._reader = client, path, reader
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._reader)}[whence]
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(len(self._reader) - self._at, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        parts = []
        while wanted > 0:
            at, count = self._at, min(wanted, 16 * CHUNK)
            data = self._piece(at, count)
            parts.append(data)
            self._at += len(data)
            wanted -= len(data)
        return b"".join(parts)

    def _piece(self, at: int, count: int) -> bytes:
        client, path = self._client, self._path
        return client.again(path, lambda: client.piece(path, self._reader, at, count))


class _Sink(io.RawIOBase):
    """Writes that are bounded in time."""

    def __init__(self, client: HdfsClient, path: str, writer: hdfs_native.FileWriter) -> None:
        super().__init__()
        self._client, self._path, self._writer = client, path, writer

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        for start in range(0, len(view), CHUNK):
            piece = bytes(view[start : start + CHUNK])
            self._do(partial(self._writer.write, piece))
        return len(view)

    def close(self) -> None:
        if not self.closed:
            try:
                self._do(self._writer.close)
            finally:
                super().close()

    def _do(self, work: Any) -> None:
        try:
            self._client.call(self._path, work)
        except TryAgainError as error:
            # Half of a piece may be written; it is unknown where to go on.
            raise OSError(f"{self._path}: {error}") from error


def _info(path: str, status: hdfs_native.FileStatus | None) -> Any:
    if status is None:
        return pafs.FileInfo(path, pafs.FileType.NotFound)
    if status.isdir:
        return pafs.FileInfo(path, pafs.FileType.Directory)
    return pafs.FileInfo(
        path,
        pafs.FileType.File,
        size=status.length,
        mtime_ns=status.modification_time * 1_000_000,
    )


def _delete(client: HdfsClient, where: str, *, recursive: bool = False) -> bool:
    """Delete; whether something was there, or may have been when an answer was lost."""
    lost = False

    def delete() -> bool:
        nonlocal lost
        try:
            return client.delete(where, recursive=recursive) or lost
        except TryAgainError as error:
            lost = lost or error.may_have_landed
            raise

    return client.again(where, delete)


def _walk(client: HdfsClient, base: str, where: str, recursive: bool) -> Iterator[Any]:
    for each in client.again(where, lambda: client.entries(where)):
        name = each.path.rpartition("/")[2]
        yield _info(f"{base}/{name}", each)
        if recursive and each.isdir:
            yield from _walk(client, f"{base}/{name}", each.path, recursive)
