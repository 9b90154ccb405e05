"""Whether files that were written are where they were written to.

A file system believes what answers it. Where a proxy or a gateway answers a PUT by itself (a login
page, an empty 200 or 204), Arrow's takes the file for written, and the storage never heard of it.
So before anything names a file, the storage is asked for it: that it is there, with as many bytes
as were sent. It is one request a file, several at a time.

Pickled by value to executors, as `lakelog.core.portable.hive_writer` is.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from lakelog.logstores.threads import REQUESTS, at_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyarrow.fs import FileSystem

_WAITS: Final = (0.1, 0.4, 1.5)
"""Seconds before it is asked again: a storage may show a new file late, or fail for a moment."""
_PATIENCE: Final = 30.0
"""Seconds: a request that fails after longer was repeated below, and no other is made."""


def check_arrived(
    filesystem: FileSystem,
    files: Sequence[tuple[str, int]],
    outcome: str = "Nothing was committed",
) -> None:
    """Ask the storage for files that were written.

    Args:
        filesystem: wrote them.
        files: the path and the bytes of each.
        outcome: what the error says of the work that the files are for.

    Raises:
        OSError: one of them is not there, or has another length, or the storage does not say.
    """
    seen, is_silent = _wrong(filesystem, files)
    for seconds in _WAITS:
        if not seen:
            return
        if is_silent:
            break
        time.sleep(seconds)
        seen, is_silent = _wrong(filesystem, [each for each in files if each[0] in seen])
    for path, size in files:
        if path in seen:
            what = seen[path]
            cause = what if isinstance(what, Exception) else None
            seen_as = f"whether they are there is not known ({what})" if cause else what
            raise OSError(
                f"{path}: {size} bytes were written and acknowledged, but {seen_as}. {outcome}. "
                "A proxy or a gateway on the way may have answered in the storage's "
                "place: look at its log, or let the storage's host pass by it (NO_PROXY)."
            ) from cause


def _wrong(
    filesystem: FileSystem, files: Sequence[tuple[str, int]]
) -> tuple[dict[str, str | Exception], bool]:
    """The paths at which not all is as it was written, and what is; and whether it is silent."""
    from pyarrow.fs import FileType

    found: dict[str, str | Exception] = {}
    silent: list[Exception] = []

    def look(file: tuple[str, int]) -> None:
        path, size = file
        if silent:
            found[path] = silent[0]
            return
        began = time.monotonic()
        try:
            info = filesystem.get_file_info(path)
        except Exception as exc:
            found[path] = exc
            if time.monotonic() - began > _PATIENCE:
                silent.append(exc)
            return
        if info.type in (FileType.NotFound, FileType.Directory):
            found[path] = "the storage has no such file"
        elif info.size not in (size, None):  # not every file system knows sizes
            found[path] = f"the storage has a file of {info.size} bytes"

    if len(files) == 1 or filesystem.type_name == "local":
        for each in files:
            look(each)
    else:
        at_once(look, files, REQUESTS, "lakelog-arrival")
    return found, bool(silent)
