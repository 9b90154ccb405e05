"""The files that a writer makes below a table's folder, and takes back if it fails.

A link of the local file system below that folder is never written or deleted through: what lies
behind it is somebody else's, readers of the table refuse it, and `VACUUM` can't tell that it is in
use. The table's folder itself may be a link, or be reached by one.

Imports the standard library and pyarrow only: `writer` takes it along to executors.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyarrow.fs import FileSystem


class LinkedFolderError(OSError):
    """A folder of a table is a link, so nothing was written or deleted in it."""


def link_on_the_way(root: str, path: str) -> str | None:
    """The first link that leads from a folder to something below it; `None` without one.

    Args:
        root: the folder, as the operating system names it; may be a link itself.
        path: relative to it.
    """
    place = root.rstrip("/")
    for name in path.split("/"):
        place = f"{place}/{name}"
        if name and os.path.islink(place):  # noqa: PTH114  # once a folder of every write
            return place
    return None


def refuse_link(root: str, folder: str) -> None:
    """Refuse a folder that a link leads to.

    Args:
        root: as in `link_on_the_way`.
        folder: relative to it.

    Raises:
        LinkedFolderError: a folder on the way, or it, is a link.
    """
    link = link_on_the_way(root, folder) if folder else None
    if link is not None:
        raise LinkedFolderError(
            errno.ELOOP,
            f"{link} is a link in the table {root}, and files of a table are neither written nor "
            "deleted through links: readers would refuse them. Put the folder itself where the "
            "link is, or move the whole table and link to it",
            link,
        )


def make_folder(filesystem: FileSystem, root: str, folder: str) -> None:
    """Make a folder of a table, and its parents.

    Args:
        filesystem: has `root`.
        root: the table's folder.
        folder: relative to it.

    Raises:
        LinkedFolderError: a folder on the way, or it, is a link.
        OSError: it can't be made.
    """
    if filesystem.type_name == "local":
        refuse_link(root, folder)
    filesystem.create_dir(f"{root}/{folder}" if folder else root, recursive=True)


def delete_made(filesystem: FileSystem, root: str, paths: Iterable[str]) -> None:
    """Delete files that the caller has made under names of his own, as far as storage lets us.

    Args:
        filesystem: has `root`.
        root: the table's folder.
        paths: relative to it.
    """
    is_local = filesystem.type_name == "local"
    for path in paths:
        with suppress(OSError):
            if is_local:
                refuse_link(root, path.rpartition("/")[0])
            filesystem.delete_file(f"{root}/{path}")


def drop_folder(filesystem: FileSystem, root: str, folder: str) -> None:
    """Delete a folder that the caller has made under a name of his own, as `delete_made`.

    Args:
        filesystem: has `root`.
        root: the table's folder.
        folder: relative to it; all that is in it goes.
    """
    with suppress(OSError):
        if filesystem.type_name == "local":
            refuse_link(root, folder)
        filesystem.delete_dir(f"{root}/{folder}")
