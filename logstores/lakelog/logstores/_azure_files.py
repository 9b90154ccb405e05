"""One Azure account as a pyarrow file system, on the SDK, for what Arrow's own can't reach.

Paths are `container/key`. Folders need not exist: making one does nothing, and one that holds a
blob is there, as is one that a marker blob stands for.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import pyarrow as pa
import pyarrow.fs as pafs

from lakelog.logstores._azure_client import AzureClient
from lakelog.logstores._settle import RetryPolicy, repeat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.logstores._azure_conf import AzureSettings
    from lakelog.logstores._azure_entries import BlobInfo
    from lakelog.logstores._object_client import ObjectEntry

__all__ = ["BlobFiles"]

_READ_AHEAD: Final = 1 << 20
_ONE_READ: Final = 32 << 20
"""Most bytes that one request asks for."""

_T = TypeVar("_T")


class BlobFiles(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow ships no types
    """What pyarrow calls. It holds settings only, so that it may be pickled."""

    def __init__(self, settings: AzureSettings, budget: float) -> None:
        """Connect at the first use.

        Args:
            settings: endpoint and credentials.
            budget: seconds that an operation may be repeated.
        """
        self._settings = settings
        self._policy = RetryPolicy(budget)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlobFiles) and other._settings == self._settings

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._settings)

    def get_type_name(self) -> str:
        """The name that pyarrow shows."""
        return "azure-blob"

    def normalize_path(self, path: str) -> str:
        """Nothing but trailing slashes is optional."""
        return path.rstrip("/")

    def get_file_info(self, paths: list[str]) -> list[Any]:
        """What is at each path."""
        return [self._info(path.rstrip("/")) for path in paths]

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        """What is in a folder, or below it."""
        base = selector.base_dir.rstrip("/")
        client, key = self._locate(base)
        prefix = f"{key}/" if key else ""
        found = list(self._entries(client, base, prefix, flat=selector.recursive))
        if not found and not selector.allow_not_found:
            raise FileNotFoundError(f"{base} does not exist: no blob is below it")
        folders = {entry.name for entry in found if entry.is_prefix}
        files = [entry for entry in found if not entry.is_prefix and entry.name]
        for entry in found if selector.recursive else ():
            folders.update(_parents(entry.name))
        infos = [
            pafs.FileInfo(f"{base}/{name}", pafs.FileType.Directory)
            for name in sorted(folders - {""})
        ]
        return infos + [
            _file(f"{base}/{each.name}", each.length, each.modification_time) for each in files
        ]

    def create_dir(self, path: str, recursive: bool) -> None:
        """Do nothing: there need be no folders."""

    def delete_dir(self, path: str) -> None:
        """Remove all below a folder, and the blob that stands for it if there is one."""
        self.delete_dir_contents(path)
        client, key = self._locate(path.rstrip("/"))
        self._again(path, lambda: client.delete(key))

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        """Remove all below a folder, the deepest first, as real directories want it."""
        client, key = self._locate(path.rstrip("/"))
        if not key:
            raise PermissionError("a container is never emptied as a whole")
        found = list(self._entries(client, path, f"{key}/", flat=True))
        if not found and not missing_dir_ok and self._head(path) is None:
            raise FileNotFoundError(f"{path} does not exist: no blob is below it")
        for name in sorted((entry.name for entry in found), reverse=True):
            self._delete(client, f"{key}/{name}")

    def delete_root_dir_contents(self) -> None:
        """Refuse: the root holds every container of the account."""
        raise PermissionError("the containers of an account are never emptied")

    def delete_file(self, path: str) -> None:
        """Remove a blob."""
        info = self._head(path)
        if info is None or info.is_folder:
            raise FileNotFoundError(f"{path} does not exist")
        client, key = self._locate(path)
        self._delete(client, key)

    def move(self, src: str, dest: str) -> None:
        """Copy, then delete: not atomic, and it replaces what is there."""
        self.copy_file(src, dest)
        self.delete_file(src)

    def copy_file(self, src: str, dest: str) -> None:
        """Copy through this host."""
        with self._reader(src) as source, _Sink(self, dest) as target:
            shutil.copyfileobj(source, target, _ONE_READ)

    def open_input_stream(self, path: str) -> Any:
        """The blob from its start; random access comes with it."""
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> Any:
        """The blob as it is now: when it is replaced, the next read fails."""
        return pa.PythonFile(self._reader(path), mode="r")

    def open_output_stream(self, path: str, metadata: Any) -> Any:  # noqa: ARG002
        """A blob that appears whole when the stream is closed."""
        return pa.PythonFile(_Sink(self, path), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        """Refuse: block blobs are not appended to."""
        raise NotImplementedError(f"{path}: a block blob is not appended to")

    def publish(self, path: str, source: Path) -> None:
        """Upload a local file."""
        client, key = self._locate(path)
        self._again(path, lambda: client.upload(key, source))

    def read_range(self, path: str, start: int, length: int, etag: str) -> bytes:
        """Some bytes of a blob that has not been replaced."""
        client, key = self._locate(path)
        return self._again(path, lambda: client.get_range(key, start, length, etag))

    def _reader(self, path: str) -> io.BufferedReader:
        info = self._head(path)
        if info is None or info.is_folder:
            raise FileNotFoundError(f"{path} does not exist")
        return io.BufferedReader(_Ranges(self, path, info), _READ_AHEAD)

    def _delete(self, client: AzureClient, key: str) -> None:
        self._again(key, lambda: client.delete(key))

    def _head(self, path: str) -> BlobInfo | None:
        client, key = self._locate(path.rstrip("/"))
        return self._again(path, lambda: client.info(key)) if key else None

    def _info(self, path: str) -> Any:
        info = self._head(path)
        if info is not None and not info.is_folder:
            return _file(path, info.length, info.modification_time)
        if info is None:
            client, key = self._locate(path)
            prefix = f"{key}/" if key else ""
            try:
                # Two, since the lock blob counts and is not shown.
                found, more = self._again(path, lambda: client.page(prefix, "", None, 2))
            except FileNotFoundError:  # the container
                found, more = [], None
            if not (found or more):
                return pafs.FileInfo(path, pafs.FileType.NotFound)
        return pafs.FileInfo(path, pafs.FileType.Directory)

    def _entries(
        self, client: AzureClient, path: str, prefix: str, *, flat: bool
    ) -> Iterator[ObjectEntry]:
        continuation: str | None = None
        while True:
            token = continuation

            def request(after: str | None = token) -> tuple[list[ObjectEntry], str | None]:
                if flat:
                    return client.flat_page(prefix, after)
                return client.page(prefix, "", after, None)

            entries, continuation = self._again(path, request)
            yield from entries
            if continuation is None:
                return

    def _locate(self, path: str) -> tuple[AzureClient, str]:
        container, _, key = path.partition("/")
        return AzureClient(self._settings, container), key

    def _again(self, path: str, request: Callable[[], _T]) -> _T:
        return repeat(request, path, self._policy)


class _Ranges(io.RawIOBase):
    """One state of a blob, read by ranges."""

    def __init__(self, files: BlobFiles, path: str, info: BlobInfo) -> None:
        super().__init__()
        self._files, self._path, self._info = files, path, info
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._info.length}[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(cast("bytearray", buffer)).cast("B")
        length = min(len(view), self._info.length - self._at, _ONE_READ)
        if length <= 0:
            return 0
        view[:length] = self._files.read_range(self._path, self._at, length, self._info.etag)
        self._at += length
        return length


class _Sink(io.RawIOBase):
    """Bytes on their way through a local file, uploaded at the close."""

    def __init__(self, files: BlobFiles, path: str) -> None:
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


def _parents(name: str) -> Iterator[str]:
    parts = name.split("/")[:-1]
    for count in range(1, len(parts) + 1):
        yield "/".join(parts[:count])


def _file(path: str, length: int, modification_time: int) -> Any:
    return pafs.FileInfo(
        path, pafs.FileType.File, size=length, mtime_ns=modification_time * 1_000_000
    )
