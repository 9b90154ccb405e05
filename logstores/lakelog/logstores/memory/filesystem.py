"""The trees of `MemoryLogStore` as a pyarrow file system. A path is `name/key`."""

# The module imports pyarrow.fs (40 ms), so it is imported only where bytes are needed.

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs

from lakelog.logstores.memory.named_trees import tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores.memory.named_trees import Node, Tree


@cache
def memory_filesystem() -> pafs.FileSystem:
    """The one file system over all trees of this process."""
    return pafs.PyFileSystem(MemoryHandler())


class MemoryHandler(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow ships no types
    """What pyarrow calls; it holds nothing itself, so that it may be pickled."""

    # Not an `ObjectFiles`: a tree has real folders, moves in one step, and hands out its bytes
    # without a copy. Here there are no requests to page through, to repeat or to bound in time.

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryHandler)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(MemoryHandler)

    def get_type_name(self) -> str:
        """The name that pyarrow shows."""
        return "memory"

    def normalize_path(self, path: str) -> str:
        """Nothing but trailing slashes is optional."""
        return path.rstrip("/")

    def get_file_info(self, paths: list[str]) -> list[Any]:
        """What is at each path."""
        return [_info(path, *_at(path)) for path in paths]

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        """What is in a folder, or below it."""
        where, key = _locate(selector.base_dir)
        node = where.get(key)
        if node is None or not node.is_directory:
            if node is None and selector.allow_not_found:
                return []
            raise FileNotFoundError(selector.base_dir)
        base = selector.base_dir.rstrip("/")
        return [
            _info(path, where, child, node)
            for path, child, node in _walk(where, base, key, selector.recursive)
        ]

    def create_dir(self, path: str, recursive: bool) -> None:
        """Make a folder."""
        where, key = _locate(path)
        if not recursive and where.get(key.rpartition("/")[0]) is None:
            raise FileNotFoundError(path)
        where.make_folder(key)

    def delete_dir(self, path: str) -> None:
        """Remove a folder and all in it."""
        where, key = _locate(path)
        where.delete(key)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        """Empty a folder."""
        where, key = _locate(path)
        if missing_dir_ok and where.get(key) is None:
            return
        for name, _ in where.children(key):
            where.delete(f"{key}/{name}" if key else name)

    def delete_root_dir_contents(self) -> None:
        """Refuse: the root holds every table of the process."""
        raise PermissionError("the root of the memory file system is never emptied")

    def delete_file(self, path: str) -> None:
        """Remove a file."""
        where, key = _locate(path)
        where.data(key)
        where.delete(key)

    def move(self, src: str, dest: str) -> None:
        """Rename within one tree."""
        (where, source), (there, target) = _locate(src), _locate(dest)
        if where is not there:
            raise OSError(f"{src} and {dest} are in two trees: copy, then delete")
        where.move(source, target)

    def copy_file(self, src: str, dest: str) -> None:
        """Copy a file."""
        (where, source), (there, target) = _locate(src), _locate(dest)
        there.put(target, where.data(source), overwrite=True)

    def open_input_stream(self, path: str) -> Any:
        """The bytes of a file as they are now, without a copy."""
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> Any:
        """The bytes of a file as they are now, without a copy."""
        where, key = _locate(path)
        return pa.BufferReader(where.data(key))

    def open_output_stream(self, path: str, metadata: Any) -> Any:  # noqa: ARG002
        """A file that appears whole when the stream is closed."""
        return pa.PythonFile(_Sink(*_parent_checked(path)), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> Any:  # noqa: ARG002
        """As `open_output_stream`, after the bytes that the file has."""
        where, key = _parent_checked(path)
        before = b"" if where.get(key) is None else where.data(key)
        return pa.PythonFile(_Sink(where, key, before), mode="w")


class _Sink(io.BytesIO):
    """Bytes on their way to a tree."""

    def __init__(self, where: Tree, key: str, before: bytes = b"") -> None:
        super().__init__()
        self.write(before)
        self._where, self._key = where, key

    def close(self) -> None:
        if not self.closed:
            self._where.put(self._key, self.getvalue(), overwrite=True)
        super().close()


def _locate(path: str) -> tuple[Tree, str]:
    name, _, key = path.partition("/")
    return tree(name), key.strip("/")


def _at(path: str) -> tuple[Tree, str, Node | None]:
    where, key = _locate(path)
    return where, key, where.get(key)


def _parent_checked(path: str) -> tuple[Tree, str]:
    where, key = _locate(path)
    where.children(key.rpartition("/")[0])
    return where, key


def _info(path: str, where: Tree, key: str, node: Node | None) -> Any:  # noqa: ARG001
    if node is None:
        return pafs.FileInfo(path, pafs.FileType.NotFound)
    if node.is_directory:
        return pafs.FileInfo(path, pafs.FileType.Directory)
    return pafs.FileInfo(
        path,
        pafs.FileType.File,
        size=node.length,
        mtime_ns=node.modification_time * 1_000_000,
    )


def _walk(where: Tree, base: str, key: str, recursive: bool) -> Iterator[tuple[str, str, Node]]:
    for name, node in where.children(key):
        child = f"{key}/{name}" if key else name
        yield f"{base}/{name}", child, node
        if recursive and node.is_directory:
            yield from _walk(where, f"{base}/{name}", child, recursive)
