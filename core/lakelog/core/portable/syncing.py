"""Files of the local disk, made durable: a commit that names them needs that.

Pickled by value to executors, as `lakelog.core.portable.hive_writer` is.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from lakelog.logstores.threads import WRITES, at_once

if TYPE_CHECKING:
    from collections.abc import Container, Sequence


def sync_files(root: str, paths: Sequence[str], done: Container[str] = ()) -> None:
    """Flush files of the local disk, and the entries of them and of their folders.

    Files are flushed several at once, and each folder once, whatever the number of its files.

    Args:
        root: the folder that they are in; its own entry is flushed as well.
        paths: relative to it.
        done: those of them that `sync_file` has flushed; their folders are still to do.

    Raises:
        OSError: the disk refused.
    """
    files = [f"{root}/{path}" for path in paths if path not in done]
    inner = {parent for path in paths for parent in _parents(path)}
    folders = [*(f"{root}/{each}" for each in inner), root] if paths else []
    if len(paths) == 1:
        for each in (*files, *folders):
            sync_file(each)
        return
    # A folder after what is in it: an entry on the disk is that of a whole file. The disk puts
    # those that wait together into one write.
    at_once(sync_file, files, WRITES, "lakelog-sync")
    at_once(sync_file, folders, WRITES, "lakelog-sync")


def _parents(path: str) -> list[str]:
    names = path.split("/")[:-1]
    return ["/".join(names[: count + 1]) for count in range(len(names))]


def sync_file(path: str) -> None:
    """Flush one file, or the entries of one folder.

    Raises:
        OSError: the disk refused.
    """
    import fcntl

    full: int | None = getattr(fcntl, "F_FULLFSYNC", None)
    handle = os.open(path, os.O_RDONLY)
    try:
        if full is not None:  # macOS, whose fsync stops at the disk's cache
            try:
                fcntl.fcntl(handle, full)
                return
            except OSError as error:
                # A network mount may lack it. A disk's error might not be said a second time.
                if error.errno in (errno.EIO, errno.ENOSPC, errno.EDQUOT):
                    raise
        os.fsync(handle)
    finally:
        os.close(handle)
