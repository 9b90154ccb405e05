"""Removing what the checks wrote."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakelog.logstores.contract import LogStore


def remove_folder(store: LogStore, root: str) -> str:
    """Delete a folder and all that is in it, through the store's file system.

    Returns:
        Why something is left; empty when nothing is.
    """
    problem = ""
    try:
        filesystem, path = store.filesystem, store.filesystem_path(root)
        # Arrow's GCS deletes the files, and then fails for want of an object for the folder.
        with suppress(FileNotFoundError):
            filesystem.delete_dir(path)
    except (OSError, NotImplementedError) as error:
        problem = str(error)
    try:
        left = _remove_each(store, root)
    except (OSError, NotImplementedError) as error:
        return problem or str(error)
    return f"{left} files could not be deleted; {problem}".rstrip("; ") if left else ""


def _remove_each(store: LogStore, root: str) -> int:
    """Delete what there is file by file; the number of files that are left."""
    import pyarrow.fs

    filesystem = store.filesystem
    path = store.filesystem_path(root)
    selector = pyarrow.fs.FileSelector(path, allow_not_found=True, recursive=True)

    def files() -> list[Any]:
        found = filesystem.get_file_info(selector)
        return [each for each in found if each.type == pyarrow.fs.FileType.File]

    for each in files():
        with suppress(OSError):
            filesystem.delete_file(each.path)
    return len(files())
