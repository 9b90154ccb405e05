"""The one door by which files of a table are deleted, or replaced under the names that they have.

What passes is a file below the table's folder that no link leads to, and where the protocol names
the files of a folder, one with such a name:

| in | passes |
|---|---|
| `_delta_log` | files of the log, hints, drafts of both |
| `_delta_log/.tmp` | drafts |
| `_delta_log/_sidecars` | sidecars |
| `_delta_log/_repair` | claims of repairs |
| `_symlink_format_manifest` | manifests, and Hadoop's checksums of them |
| anywhere else | what its caller found to be unused, but nothing of another table's log |

`_delta_log` may be a link for what is written in it, as it is for commits: nothing is ever deleted
there then. A link of the local file system can be changed while a command runs, so it is looked
for with each batch. Files that an attempt has made itself, under random names, are taken back by
`portable.made_files`, by the same rule.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakelog.core.log.drafts import DRAFT_FOLDER, is_draft
from lakelog.core.log.file_names import (
    LAST_CHECKPOINT,
    LAST_VACUUM,
    LOG_FOLDER,
    SIDECAR_FOLDER,
    parse_log_name,
)
from lakelog.core.paths import is_local
from lakelog.core.portable.arrival import check_arrived
from lakelog.core.portable.made_files import refuse_link

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow.fs

    from lakelog.logstores.contract import LogStore

MANIFEST_FOLDER = "_symlink_format_manifest"
MANIFEST_NAME = "manifest"

REPAIR_FOLDER = "_repair"
"""In the log: what repairs keep."""
CLAIM = ".claim"
"""What the name of a repair's claim ends with."""

_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_SIDECAR = re.compile(rf"(?i)(?:[0-9]{{20}}\.checkpoint\.[0-9]+\.[0-9]+\.)?{_UUID}\.parquet")
"""What writers call sidecars: a UUID, of some after the name of a part."""


class OwnFiles:
    """Deletes and replaces files of one table. Paths are URIs of the table's store."""

    def __init__(self, store: LogStore, table: str) -> None:
        """Touch nothing.

        Args:
            store: the table's.
            table: its URI.
        """
        self._store = store
        self._base = f"{table.rstrip('/')}/"
        self._root = store.filesystem_path(table).rstrip("/") if is_local(table) else None

    def delete(self, paths: Sequence[str]) -> dict[str, Exception]:
        """Delete files, as `LogStore.delete_files` does.

        Returns:
            Path -> why, of those that are still there: the storage refused, or the door did.
        """
        refused: dict[str, Exception] = {}
        folders: dict[str, OSError | None] = {}
        passed = []
        for path in paths:
            folder = path.rpartition("/")[0]
            if folder not in folders:
                # Asked again for each batch: a link may be put there while a long command runs.
                folders[folder] = self.link_error(folder)
            error = folders[folder] or self._refusal_of_name(path)
            if error is None:
                passed.append(path)
            else:
                refused[path] = error
        return {**refused, **self._store.delete_files(passed)} if passed else refused

    def delete_file(self, path: str) -> None:
        """Delete one file.

        Raises:
            FileNotFoundError: there is none.
            OSError: the storage refused, or the door did.
        """
        error = self.link_error(path.rpartition("/")[0]) or self._refusal_of_name(path)
        if error is not None:
            raise error
        self._store.filesystem.delete_file(self._store.filesystem_path(path))

    def delete_empty_folder(self, path: str) -> bool:
        """Delete a folder of the local file system if nothing is in it; say whether that was done.

        Elsewhere empty folders do not exist, or do no harm.
        """
        if self._root is None or self.link_error(path) is not None:
            return False
        try:
            os.rmdir(self._store.filesystem_path(path))  # noqa: PTH106  # never what is in it
        except OSError:
            return False
        return True

    @contextmanager
    def staged(self, path: str) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
        """`LogStore.staged`, for a file of the log or a manifest.

        Raises:
            OSError: the storage refused, or the door did; nothing was written.
        """
        self._check_replaced(path)
        with self._store.staged(path) as place:
            yield place

    def put(self, path: str, data: bytes) -> None:
        """Write a file of the log or a manifest, whether or not there is one.

        Raises:
            OSError: the storage refused, or does not have it as it was sent; or the door refused.
        """
        with self.staged(path) as (filesystem, draft):
            with filesystem.open_output_stream(draft) as sink:
                sink.write(data)
            check_arrived(filesystem, [(draft, len(data))], "It was not written")

    def replace(self, path: str, lines: Iterable[str]) -> None:
        """`LogStore.write` with `overwrite=True`, for a file of the log.

        Raises:
            OSError: the storage refused, or the door did.
        """
        self._check_replaced(path)
        self._store.write(path, lines, overwrite=True)

    def create_folder(self, path: str) -> None:
        """Make a folder and its parents.

        Raises:
            LinkedFolderError: a link leads there.
            OSError: it can't be made.
        """
        error = self.link_error(path, log_may_be=True)
        if error is not None:
            raise error
        self._store.create_folder(path)

    def owns(self, path: str) -> bool:
        """Whether a path is one that the door lets pass, links aside."""
        return path.startswith(self._base) and _is_ours(path[len(self._base) :].split("/"))

    def _check_replaced(self, path: str) -> None:
        error = self.link_error(path.rpartition("/")[0], log_may_be=True) or self._refusal_of_name(
            path
        )
        if error is not None:
            raise error

    def link_error(self, folder: str, *, log_may_be: bool = False) -> OSError | None:
        """Why nothing in a folder is touched: a link leads there; `None` if none does.

        Args:
            folder: the URI of a folder in the table.
            log_may_be: whether `_delta_log` itself may be a link.
        """
        if self._root is None or not folder.startswith(self._base):
            return None
        root, inner = self._root, folder[len(self._base) :]
        if log_may_be and inner.partition("/")[0] == LOG_FOLDER:
            root, inner = f"{root}/{LOG_FOLDER}", inner.partition("/")[2]
        try:
            refuse_link(root, inner)
        except OSError as error:
            return error
        return None

    def _refusal_of_name(self, path: str) -> OSError | None:
        if self.owns(path):
            return None
        return OSError(
            errno.EPERM,
            f"{path} was not touched: it is not a file that belongs to the table "
            f"{self._base[:-1]}. To delete or move it anyway, use other means",
            path,
        )


def _is_ours(parts: list[str]) -> bool:
    if not {"", ".", ".."}.isdisjoint(parts):
        return False
    name = parts[-1]
    if parts[0] == LOG_FOLDER:
        return _is_of_log(parts[1:-1], name)
    if parts[0] == MANIFEST_FOLDER:
        return name in (MANIFEST_NAME, f".{MANIFEST_NAME}.crc")
    return LOG_FOLDER not in parts


def _is_of_log(folders: list[str], name: str) -> bool:
    if not folders:
        is_hint = name in (LAST_CHECKPOINT, LAST_VACUUM)
        return is_hint or parse_log_name(name) is not None or is_draft(name)
    if folders == [SIDECAR_FOLDER]:
        return _SIDECAR.fullmatch(name) is not None or is_draft(name)
    if folders == [REPAIR_FOLDER]:
        return name.endswith(CLAIM)
    return folders == [DRAFT_FOLDER] and is_draft(name, DRAFT_FOLDER)
