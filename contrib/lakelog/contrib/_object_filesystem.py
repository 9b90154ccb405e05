"""Data files on an object store that Arrow has no file system for, through the store's client.

Whole objects go to and fro: a file is fetched once when it is opened, and sent once when it is
closed. Right for logs, checkpoints and files of some tens of megabytes.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores._objects import ObjectEntry, ObjectLogStore

__all__ = ["object_filesystem"]


def object_filesystem(store: ObjectLogStore, root: str) -> pafs.FileSystem:
    """The storage of a store as a pyarrow file system.

    Args:
        store: makes the requests, and repeats them as it does its own.
        root: what to put before a path to make a URI of it: `oss://`.
    """
    return pafs.PyFileSystem(_Handler(store, root))


class _Handler(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow ships no types
    """What pyarrow calls."""

    def __init__(self, store: ObjectLogStore, root: str) -> None:
        self._store = store
        self._root = root

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Handler)
            and (type(other._store), other._root) == (type(self._store), self._root)
            and other._store.conf == self._store.conf
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self._store), self._root))

    def get_type_name(self) -> str:
        return self._root.partition(":")[0]

    def normalize_path(self, path: str) -> str:
        return path.rstrip("/")

    def get_file_info(self, paths: list[str]) -> list[Any]:
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> Any:
        folder, _, name = path.rstrip("/").rpartition("/")
        kinds = {entry.is_prefix: entry for entry in self._entries(folder, name, exactly=True)}
        entry = kinds.get(False) or kinds.get(True)
        return pafs.FileInfo(path, pafs.FileType.NotFound) if entry is None else _info(path, entry)

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        base = selector.base_dir.rstrip("/")
        found = [
            each
            for path, entry in self._below(base, selector.recursive)
            if (each := _info(path, entry)) is not None
        ]
        if not found and not selector.allow_not_found:
            raise FileNotFoundError(base)
        return found

    def _below(self, folder: str, recursive: bool) -> Iterator[tuple[str, ObjectEntry]]:
        for entry in self._entries(folder, ""):
            if not entry.name:  # the marker of the folder itself
                continue
            path = f"{folder}/{entry.name}"
            yield path, entry
            if recursive and entry.is_prefix:
                yield from self._below(path, recursive)

    def _entries(self, folder: str, start: str, *, exactly: bool = False) -> Iterator[ObjectEntry]:
        client, prefix = self._store._locate(f"{self._root}{folder}/")
        for entry in self._store._pages(self._root + folder, client, prefix, start, None):
            if exactly and entry.name > f"{start}/":
                return
            if not exactly or entry.name == start:
                yield entry

    def create_dir(self, path: str, recursive: bool) -> None:
        """There are no folders."""

    def delete_dir(self, path: str) -> None:
        self.delete_dir_contents(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        found = list(self._below(path.rstrip("/"), recursive=True))
        if not (found or missing_dir_ok):
            raise FileNotFoundError(path)
        for each, entry in found:
            if not entry.is_prefix:
                self._delete(each)

    def delete_root_dir_contents(self) -> None:
        raise PermissionError("the buckets of an account are never emptied")

    def delete_file(self, path: str) -> None:
        if self._info(path).type != pafs.FileType.File:
            raise FileNotFoundError(path)
        self._delete(path)

    def _delete(self, path: str) -> None:
        client, key = self._store._locate(self._root + path)
        self._store._again(self._root + path, lambda: client.delete(key))

    def move(self, src: str, dest: str) -> None:
        self.copy_file(src, dest)
        self._delete(src)

    def copy_file(self, src: str, dest: str) -> None:
        with self.open_output_stream(dest, None) as stream:
            stream.write(self._fetched(src))

    def open_input_stream(self, path: str) -> Any:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> Any:
        return pa.BufferReader(self._fetched(path))

    def _fetched(self, path: str) -> bytes:
        client, key = self._store._locate(self._root + path)
        return self._store._again(self._root + path, lambda: client.get(key))

    def open_output_stream(self, path: str, metadata: Any) -> Any:  # noqa: ARG002
        return pa.PythonFile(_Sink(self, path), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        raise NotImplementedError(f"{path}: an object has no append")

    def publish(self, path: str, source: Path) -> None:
        """Send a local file."""
        client, key = self._store._locate(self._root + path)
        self._store._again(self._root + path, lambda: client.upload(key, source))


class _Sink(io.RawIOBase):
    """Bytes on their way, in a local file, sent at the close."""

    def __init__(self, owner: _Handler, path: str) -> None:
        super().__init__()
        self._owner, self._path = owner, path
        self._folder = tempfile.TemporaryDirectory(prefix="lakelog-")
        self._draft = Path(self._folder.name) / "draft"
        self._file = self._draft.open("wb")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        if not self.closed:
            try:
                self._file.close()
                self._owner.publish(self._path, self._draft)
            finally:
                self._folder.cleanup()
                super().close()


def _info(path: str, entry: ObjectEntry) -> Any:
    if entry.is_prefix:
        return pafs.FileInfo(path, pafs.FileType.Directory)
    return pafs.FileInfo(
        path,
        pafs.FileType.File,
        size=entry.length,
        mtime_ns=entry.modification_time * 1_000_000,
    )
