"""What is in a table's folder: the files that may go by their names, and the folders.

Never followed, and never listed: symbolic links, hidden folders (the log among them), and folders
that hold a log of their own, because they are other tables.
"""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakelog.core.log.names import LOG_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

    from lakelog.logstores import LogStore

__all__ = ["FoundFile", "FoundFolder", "Tree", "is_plain", "list_tree", "local_root"]

_THREADS: Final = 16
_LEVELS: Final = 3
"""How many levels of folders are listed one by one, to find enough of them to list at once."""
_TELL_EVERY: Final = 10_000


class FoundFile(NamedTuple):
    """A file that is not hidden."""

    path: str
    """Relative to the table's folder, as the storage spells it."""
    size: int
    """Bytes."""
    modified: int
    """Milliseconds since 1970-01-01 UTC, by the storage's clock."""


class FoundFolder(NamedTuple):
    """A folder that is not hidden."""

    path: str
    modified: int
    is_empty: bool
    """Whether there is nothing in it but empty folders; false on storage without real folders."""


class Tree:
    """What a listing has found."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.files: list[FoundFile] = []
        """Without those that were not asked for."""
        self.folders: list[FoundFolder] = []
        self.seen = 0
        """How many files there are that are not hidden."""
        self.checksums: set[str] = set()
        """Hadoop's `.x.crc` beside the file `x`, on a local file system."""


def list_tree(
    store: LogStore,
    table: str,
    is_hidden: Callable[[str], bool],
    known: Container[str],
    progress: Callable[[int], None],
) -> Tree:
    """List a table's folder, and whatever is below it.

    Args:
        store: the table's.
        table: its URI.
        is_hidden: by the name of a file or folder, whether it is none of the table's.
        known: relative paths that need not be reported; their times are not asked for.
        progress: called now and then with the number of files seen.

    Raises:
        OSError: a folder can't be listed.
    """
    root = local_root(store, table)
    if root is not None:
        return _walk(root, is_hidden, known, progress)
    return _list(store, store.filesystem_path(table), is_hidden, known, progress)


def local_root(store: LogStore, table: str) -> str | None:
    """The table's folder as the operating system names it; `None` on other storage."""
    from pyarrow.fs import LocalFileSystem

    is_local = isinstance(store.filesystem, LocalFileSystem)
    return store.filesystem_path(table).rstrip("/") if is_local else None


def is_plain(path: str) -> bool:
    """Whether a relative path is one that a URI can spell in just one way."""
    parts = path.split("/")
    if "" in parts or "." in parts or ".." in parts:
        return False
    try:
        path.encode()
    except UnicodeEncodeError:  # a name that is not UTF-8
        return False
    return True


def _walk(
    root: str,
    is_hidden: Callable[[str], bool],
    known: Container[str],
    progress: Callable[[int], None],
) -> Tree:
    """By the operating system's calls: pyarrow follows links, and asks for the time of each."""
    tree = Tree()
    folders: list[tuple[str, int, bool]] = []
    waiting = [("", 0)]
    told = 0
    while waiting:
        folder, modified = waiting.pop()
        prefix = f"{folder}/" if folder else ""
        try:
            with os.scandir(f"{root}/{prefix}") as found:
                entries = list(found)
        except FileNotFoundError:
            if not folder:
                raise
            continue  # removed since it was listed
        if folder and LOG_FOLDER in [each.name for each in entries]:
            folders.append((folder, modified, False))
            continue
        bare = True
        for each in entries:
            name = each.name
            if is_hidden(name):
                bare = False
                if name.endswith(".crc"):
                    tree.checksums.add(prefix + name)
                continue
            if each.is_dir(follow_symlinks=False):
                if (info := _stat(each)) is not None:
                    waiting.append((prefix + name, _millis(info)))
                continue
            bare = False
            tree.seen += 1
            path = prefix + name
            if path in known or each.is_symlink():
                continue
            info = _stat(each)
            # A name that a folder has is never empty, nor a dot; only its letters may be odd.
            plain = path.isascii() or is_plain(path)
            if info is not None and stat.S_ISREG(info.st_mode) and plain:
                tree.files.append(FoundFile(path, info.st_size, _millis(info)))
        if folder:
            folders.append((folder, modified, bare))
        if tree.seen - told >= _TELL_EVERY:
            told = tree.seen
            progress(told)
    tree.folders = _with_emptiness(folders)
    return tree


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None


def _millis(info: os.stat_result) -> int:
    return info.st_mtime_ns // 1_000_000


def _with_emptiness(folders: Iterable[tuple[str, int, bool]]) -> list[FoundFolder]:
    """Tell which folders have no files in folders below them, either."""
    full: set[str] = set()
    found = []
    # The deepest first, so that a folder knows of those below it.
    for path, modified, bare in sorted(folders, key=lambda each: -each[0].count("/")):
        is_empty = bare and path not in full
        if not is_empty:
            full.add(path.rpartition("/")[0])
        found.append(FoundFolder(path, modified, is_empty and is_plain(path)))
    return found


def _list(
    store: LogStore,
    base: str,
    is_hidden: Callable[[str], bool],
    known: Container[str],
    progress: Callable[[int], None],
) -> Tree:
    """By the store's file system: the first levels one by one, what is below them at once."""
    from pyarrow.fs import FileSelector, FileType

    filesystem = store.filesystem
    tree = Tree()

    def ask(folder: str, *, recursive: bool) -> list[tuple[str, Any]]:
        where = f"{base}/{folder}" if folder else base
        infos = filesystem.get_file_info(
            FileSelector(where, recursive=recursive, allow_not_found=bool(folder))
        )
        # What is spelled otherwise is left alone.
        start = f"{base}/"
        return [(i.path[len(start) :], i) for i in infos if i.path.startswith(start)]

    def take(folder: str, found: list[tuple[str, Any]]) -> Iterator[str]:
        """Take the files; yield the folders."""
        foreign = [path[: -len(LOG_FOLDER)] for path, _ in found if path.endswith(f"/{LOG_FOLDER}")]
        foreign += [p[: p.index(f"/{LOG_FOLDER}/") + 1] for p, _ in found if f"/{LOG_FOLDER}/" in p]
        others = tuple(set(foreign))
        if f"{folder}/" in others:
            return
        depth = len(folder) + 1 if folder else 0
        for path, info in found:
            if (others and path.startswith(others)) or any(map(is_hidden, path[depth:].split("/"))):
                continue
            if info.type == FileType.Directory:
                tree.folders.append(FoundFolder(path, 0, is_empty=False))
                yield path
            elif info.type == FileType.File:
                tree.seen += 1
                modified = info.mtime_ns
                if path not in known and modified is not None and is_plain(path):
                    tree.files.append(FoundFile(path, info.size or 0, modified // 1_000_000))

    with ThreadPoolExecutor(_THREADS, "lakelog-vacuum") as pool:
        folders = list(take("", ask("", recursive=False)))
        for _ in range(_LEVELS - 1):
            if not 0 < len(folders) < _THREADS:
                break
            listed = list(pool.map(lambda each: ask(each, recursive=False), folders))
            below = [list(take(*each)) for each in zip(folders, listed, strict=True)]
            folders = [each for found in below for each in found]
        for folder, found in zip(
            folders, pool.map(lambda each: ask(each, recursive=True), folders), strict=True
        ):
            for _ in take(folder, found):
                pass
            progress(tree.seen)
    return tree
