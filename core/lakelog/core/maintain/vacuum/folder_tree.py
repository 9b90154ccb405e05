"""What is in a table's folder: the files that may go by their names, and the folders.

Never followed, and never listed: symbolic links, hidden folders (the log among them), and folders
that hold a log of their own, because they are other tables.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from lakelog.core.log.file_names import LOG_FOLDER
from lakelog.core.maintain.vacuum.folder_walk import walk
from lakelog.core.maintain.vacuum.found import FoundFile, FoundFolder, Tree, is_plain
from lakelog.logstores.threads import REQUESTS, at_once, in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from lakelog.logstores import LogStore

_LEVELS: Final = 3
"""How many levels of folders are listed one by one, to find enough of them to list at once."""


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
        is_hidden: whether a file or folder of that name does not belong to the table.
        known: relative paths that need not be reported; their times are not asked for.
        progress: called now and then with the number of files seen.

    Raises:
        OSError: a folder can't be listed.
    """
    root = local_root(store, table)
    if root is not None:
        return walk(root, is_hidden, known, progress)
    return _list(store, store.filesystem_path(table), is_hidden, known, progress)


def local_root(store: LogStore, table: str) -> str | None:
    """The table's folder as the operating system names it; `None` on other storage."""
    from pyarrow.fs import LocalFileSystem

    is_local = isinstance(store.filesystem, LocalFileSystem)
    return store.filesystem_path(table).rstrip("/") if is_local else None


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

    folders = list(take("", ask("", recursive=False)))
    for _ in range(_LEVELS - 1):
        if not 0 < len(folders) < REQUESTS:
            break
        listed = at_once(partial(ask, recursive=False), folders, REQUESTS, "lakelog-vacuum")
        below = [list(take(*each)) for each in zip(folders, listed, strict=True)]
        folders = [each for found in below for each in found]
    # Each listing may be of very many files: few of them wait to be taken.
    listings = in_order(partial(ask, recursive=True), folders, REQUESTS, "lakelog-vacuum")
    for folder, listing in zip(folders, listings, strict=True):
        for _ in take(folder, listing):
            pass
        progress(tree.seen)
    return tree
