"""The log in the memory of one process: for tests, notebooks and examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.logstores.contract import Capabilities, FileStatus, LogStore, Scope
from lakelog.logstores.errors import LogStoreConfError
from lakelog.logstores.lines import decode_lines, encode_lines
from lakelog.logstores.locations import shown
from lakelog.logstores.memory.named_trees import forget_tree, tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow.fs

    from lakelog.logstores.memory.named_trees import Node, Tree

_CAPABILITIES = Capabilities(
    exclusive_create=Scope.PROCESS,
    partial_write_visible=False,
    atomic_overwrite=True,
    consistent_listing=True,
    ordered_listing=True,
    durable=False,
)


class MemoryLogStore(LogStore):
    """A log in memory, at `memory://name/path`; the default for the scheme `memory`.

    All instances of a process share what is under one name; `filesystem` shows the same files.
    Folders are as on a disk: they exist when made, and only then.
    """

    def read(self, path: str) -> Iterator[str]:  # noqa: D102  # the contract says it
        where, key = _locate(path)
        return _read(where, key)

    def read_bytes(self, path: str) -> bytes:  # noqa: D102
        where, key = _locate(path)
        return where.data(key)

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:  # noqa: D102
        where, key = _locate(path)
        where.put(key, b"".join(encode_lines(lines)), overwrite=overwrite)

    def list_from(self, path: str) -> Iterator[FileStatus]:  # noqa: D102
        shown, slash, start = path.rpartition("/")
        where, folder = _locate(shown + slash)
        children = [pair for pair in where.children(folder) if pair[0] >= start]
        return (_status(shown + slash + name, node) for name, node in children)

    @property
    def capabilities(self) -> Capabilities:  # noqa: D102
        return _CAPABILITIES

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:  # noqa: D102
        from lakelog.logstores.memory.filesystem import memory_filesystem

        return memory_filesystem()

    def filesystem_path(self, path: str) -> str:  # noqa: D102
        name, key = _parts(path)
        return f"{name}/{key}".rstrip("/") if key else name or "/"

    def create_folder(self, path: str) -> None:  # noqa: D102
        where, key = _locate(path)
        where.make_folder(key)

    @staticmethod
    def forget(name: str) -> None:
        """Drop all that is under `memory://name`."""
        forget_tree(name)


def _parts(uri: str) -> tuple[str, str]:
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme.lower() != "memory" or not rest.startswith("/"):
        raise LogStoreConfError(f"{shown(uri)} is not a path in memory: give memory://name/path")
    if not rest.startswith("//"):
        return "", rest.strip("/")
    name, _, key = rest[2:].partition("/")
    return name, key.strip("/")


def _locate(uri: str) -> tuple[Tree, str]:
    name, key = _parts(uri)
    return tree(name), key


def _read(where: Tree, key: str) -> Iterator[str]:
    # splitlines of bytes also breaks at a lone \r; a split at \n doesn't.
    return decode_lines(_pieces(where.data(key)))


def _pieces(data: bytes) -> Iterator[bytes]:
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        yield data[start : end + 1]
        start = end + 1
    if start < len(data):
        yield data[start:]


def _status(path: str, node: Node) -> FileStatus:
    return FileStatus(path, node.length, node.modification_time, node.is_directory)
