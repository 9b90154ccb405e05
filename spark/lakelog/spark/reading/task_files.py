"""How many files one task reads, however small they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyarrow.fs import FileSystem

_REMOTE = 64
_LOCAL = 512


def most_files(filesystems: Iterable[FileSystem]) -> int:
    """The most files of a task.

    Away from a local disk each of them is a request or two, which other tasks could wait for at the
    same time. On one a task takes as long to begin as a hundred small files take to read.

    Args:
        filesystems: where the files are.
    """
    return _LOCAL if all(each.type_name == "local" for each in filesystems) else _REMOTE
