"""Files of the local disk, made durable: a commit that names them needs that.

Pickled by value to executors, as `lakelog.core.portable.writer` is.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["sync_files"]

_THREADS = 8
"""A sync waits and does not compute; the disk puts those that wait together into one write."""


def sync_files(root: str, paths: Sequence[str]) -> None:
    """Flush files of the local disk, and the entries of them and of their folders.

    Files are flushed several at once, and each folder once, whatever the number of its files.

    Args:
        root: the folder that they are in; its own entry is flushed, too.
        paths: relative to it.

    Raises:
        OSError: the disk refused.
    """
    files = [f"{root}/{path}" for path in paths]
    inner = {parent for path in paths for parent in _parents(path)}
    folders = [*(f"{root}/{each}" for each in inner), root] if paths else []
    if len(files) == 1:
        for each in (*files, *folders):
            _sync(each)
        return
    with ThreadPoolExecutor(_THREADS, "lakelog-sync") as pool:
        # A folder after what is in it: an entry on the disk is that of a whole file.
        list(pool.map(_sync_all, _shares(files)))
        list(pool.map(_sync_all, _shares(folders)))


def _parents(path: str) -> list[str]:
    names = path.split("/")[:-1]
    return ["/".join(names[: count + 1]) for count in range(len(names))]


def _shares(paths: list[str]) -> list[list[str]]:
    # A task for each file would cost more than its flush asks of the processor.
    return [share for first in range(_THREADS) if (share := paths[first::_THREADS])]


def _sync_all(paths: list[str]) -> None:
    for each in paths:
        _sync(each)


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
