"""A table's folder on a local disk, listed by the operating system's own calls.

pyarrow follows links, and asks for the time of each file. Several folders are listed at once,
because on a mounted network disk each answer takes its time; a few shares are on their way at once,
taken in the order in which they were found, so that memory holds no more than those.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from lakelog.core.log.file_names import LOG_FOLDER
from lakelog.core.maintain.vacuum.found import FoundFile, FoundFolder, Tree, is_plain
from lakelog.logstores.threads import REQUESTS, beside

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

_AHEAD: Final = 2 * REQUESTS
"""Shares that are listed, or wait to be taken, at once."""
_SHARE: Final = 32
"""Folders a share, at most: a thread for each would cost more than the listing."""
_REPORT_EVERY: Final = 10_000


class _Listed(NamedTuple):
    """One folder, without what is in those below it."""

    path: str
    """Relative to the table's folder; `""` for that."""
    modified: int
    bare: bool
    """Whether there is nothing but folders in it."""
    files: list[FoundFile]
    seen: int
    checksums: list[str]
    below: list[tuple[str, int]]
    """Folders, and when they were changed."""
    links: list[str]


def walk(
    root: str,
    is_hidden: Callable[[str], bool],
    known: Container[str],
    progress: Callable[[int], None],
) -> Tree:
    """List a folder, and whatever is below it; the arguments are those of `list_tree`.

    Args:
        root: as the operating system names it.
        is_hidden: by the name of a file or folder.
        known: relative paths to leave out of the result.
        progress: called now and then with the number of files seen.

    Raises:
        OSError: a folder can't be listed.
    """
    tree = Tree()
    folders: list[tuple[str, int, bool]] = []
    waiting: deque[tuple[str, int]] = deque([("", 0)])
    reported = 0

    def look(share: list[tuple[str, int]]) -> list[_Listed]:
        found = (_listed(root, *each, is_hidden, known) for each in share)
        return [each for each in found if each is not None]

    with beside(REQUESTS, "lakelog-vacuum") as begun:
        while waiting or begun:
            taken: list[_Listed]
            if len(waiting) == 1 and not begun:
                taken = look([waiting.popleft()])  # nothing to do beside it
            else:
                while waiting and len(begun) < _AHEAD:
                    size = min(_SHARE, -(-len(waiting) // REQUESTS), len(waiting))
                    begun.begin(look, [waiting.popleft() for _ in range(size)])
                taken = begun.take()
            for each in taken:
                tree.files += each.files
                tree.checksums.update(each.checksums)
                tree.seen += each.seen
                tree.links += each.links
                waiting += each.below
                if each.path:
                    folders.append((each.path, each.modified, each.bare))
            if tree.seen - reported >= _REPORT_EVERY:
                reported = tree.seen
                progress(reported)
    tree.folders = _with_emptiness(folders)
    return tree


def _listed(
    root: str,
    folder: str,
    modified: int,
    is_hidden: Callable[[str], bool],
    known: Container[str],
) -> _Listed | None:
    """One folder; `None` if it was removed since it was found."""
    prefix = f"{folder}/" if folder else ""
    try:
        with os.scandir(f"{root}/{prefix}") as found:
            entries = list(found)
    except FileNotFoundError:
        if not folder:
            raise
        return None
    if folder and any(each.name == LOG_FOLDER for each in entries):
        return _Listed(folder, modified, False, [], 0, [], [], [])
    files: list[FoundFile] = []
    checksums: list[str] = []
    below: list[tuple[str, int]] = []
    links: list[str] = []
    bare, seen = True, 0
    for each in entries:
        name = each.name
        if is_hidden(name):
            bare = False
            if name.endswith(".crc"):
                checksums.append(prefix + name)
            continue
        if each.is_dir(follow_symlinks=False):
            if (info := _stat(each)) is not None:
                below.append((prefix + name, _millis(info)))
            continue
        bare = False
        seen += 1
        path = prefix + name
        if each.is_symlink():
            links.append(path)
            continue
        if path in known:
            continue
        info = _stat(each)
        # A name that a folder has is never empty, nor a dot; only its letters may be odd.
        plain = path.isascii() or is_plain(path)
        if info is not None and stat.S_ISREG(info.st_mode) and plain:
            files.append(FoundFile(path, info.st_size, _millis(info)))
    return _Listed(folder, modified, bare, files, seen, checksums, below, links)


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
