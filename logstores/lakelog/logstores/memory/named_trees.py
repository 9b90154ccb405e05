"""Named trees of files in the memory of this process."""

from __future__ import annotations

import errno
import os
import threading
import time
from dataclasses import dataclass

from lakelog.logstores.systems import after_fork


@dataclass(frozen=True, slots=True)
class Node:
    """A file, or a folder: then without data."""

    data: bytes | None
    modification_time: int

    @property
    def is_directory(self) -> bool:
        """Whether it is a folder."""
        return self.data is None

    @property
    def length(self) -> int:
        """Size in bytes; 0 for a folder."""
        return 0 if self.data is None else len(self.data)


class Tree:
    """Folders and files under one root. A key is a path without leading or trailing slash."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._folders: dict[str, dict[str, Node]] = {"": {}}

    def get(self, key: str) -> Node | None:
        """The node at `key`, or `None`."""
        if not key:
            return Node(None, 0)
        parent, name = _split(key)
        return self._folders.get(parent, {}).get(name)

    def data(self, key: str) -> bytes:
        """The bytes of a file.

        Raises:
            FileNotFoundError: nothing is there.
            IsADirectoryError: a folder is.
        """
        node = self.get(key)
        if node is None:
            raise self._error(errno.ENOENT, key)
        if node.data is None:
            raise self._error(errno.EISDIR, key)
        return node.data

    def put(self, key: str, data: bytes, *, overwrite: bool) -> None:
        """Make a file in an existing folder.

        Raises:
            FileExistsError: the name is taken and `overwrite` is false.
            FileNotFoundError: the folder does not exist.
            IsADirectoryError: a folder has the name.
        """
        parent, name = _split(key)
        with self._lock:
            folder = self._folder(parent)
            there = folder.get(name)
            if there is not None and not overwrite:
                raise self._error(errno.EEXIST, key)
            if not name or (there is not None and there.is_directory):
                raise self._error(errno.EISDIR, key)
            folder[name] = Node(data, _now())

    def children(self, key: str) -> list[tuple[str, Node]]:
        """Name and node of everything in a folder, by name.

        Raises:
            FileNotFoundError: the folder does not exist.
        """
        with self._lock:
            return sorted(self._folder(key).items(), key=lambda item: item[0])

    def make_folder(self, key: str) -> None:
        """Make a folder and its parents.

        Raises:
            NotADirectoryError: a file has one of the names.
        """
        with self._lock:
            parent = ""
            for name in key.split("/") if key else ():
                folder = self._folders[parent]
                node = folder.setdefault(name, Node(None, _now()))
                if not node.is_directory:
                    raise self._error(errno.ENOTDIR, key)
                parent = f"{parent}/{name}" if parent else name
                self._folders.setdefault(parent, {})

    def delete(self, key: str) -> None:
        """Remove a file, or a folder with all that is in it.

        Raises:
            FileNotFoundError: nothing is there.
        """
        parent, name = _split(key)
        with self._lock:
            if self._folder(parent).pop(name, None) is None:
                raise self._error(errno.ENOENT, key)
            for folder in [f for f in self._folders if f == key or f.startswith(key + "/")]:
                del self._folders[folder]

    def move(self, source: str, target: str) -> None:
        """Rename a file or a folder; a file at `target` is replaced.

        Raises:
            FileNotFoundError: `source`, or the folder of `target`, does not exist.
            FileExistsError: a folder is at `target`.
        """
        from_parent, from_name = _split(source)
        to_parent, to_name = _split(target)
        with self._lock:
            node = self._folder(from_parent).get(from_name)
            if node is None:
                raise self._error(errno.ENOENT, source)
            there = self._folder(to_parent).get(to_name)
            if there is not None and there.is_directory:
                raise self._error(errno.EEXIST, target)
            self._folders[to_parent][to_name] = node
            if source != target:
                del self._folders[from_parent][from_name]
            for folder in [f for f in self._folders if f == source or f.startswith(source + "/")]:
                self._folders[target + folder[len(source) :]] = self._folders.pop(folder)

    def _folder(self, key: str) -> dict[str, Node]:
        try:
            return self._folders[key]
        except KeyError:
            raise self._error(errno.ENOENT, key) from None

    def _error(self, code: int, key: str) -> OSError:
        prefix = f"memory://{self._name}/" if self._name else "memory:/"
        return OSError(code, os.strerror(code), prefix + key)


_trees: dict[str, Tree] = {}
_trees_lock = threading.Lock()


def tree(name: str) -> Tree:
    """The tree of that name; made at first use."""
    with _trees_lock:
        return _trees.setdefault(name, Tree(name))


def forget_tree(name: str) -> None:
    """Drop a tree and all that is in it."""
    with _trees_lock:
        _trees.pop(name, None)


def _renew_locks() -> None:
    # A fork copies locks in their present state, but not the threads that would release them.
    global _trees_lock
    _trees_lock = threading.Lock()
    for one in _trees.values():
        one._lock = threading.Lock()


after_fork(_renew_locks)


def _split(key: str) -> tuple[str, str]:
    parent, _, name = key.rpartition("/")
    return parent, name


def _now() -> int:
    return time.time_ns() // 1_000_000
