"""A given list of a table's files, in place of listing its folder."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.maintain.vacuum.folder_tree import local_root
from lakelog.core.maintain.vacuum.found import FoundFile, FoundFolder, Tree, is_plain
from lakelog.core.paths import encode_path, path_key
from lakelog.logstores.threads import REQUESTS, at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from lakelog.logstores import LogStore

INVENTORY_SCHEMA: Final = pa.schema(
    [
        ("path", pa.string()),
        ("length", pa.int64()),
        ("isDir", pa.bool_()),
        ("modificationTime", pa.int64()),
    ]
)
"""The columns of Delta's `VACUUM … USING INVENTORY`: full, percent-encoded URIs; bytes; whether it
is a folder; milliseconds since 1970-01-01 UTC."""

_KINDS: Final = {
    "path": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    "length": (pa.types.is_integer,),
    "isDir": (pa.types.is_boolean,),
    "modificationTime": (pa.types.is_integer,),
}
_PLAIN: Final = re.compile(r"[A-Za-z0-9/._=-]*").fullmatch
_AT_ONCE: Final = 256


def written_paths(table: str, paths: Iterable[str]) -> list[str]:
    """Files of a table as URIs.

    Args:
        table: the table's URI.
        paths: relative to its folder, as the storage spells them.
    """
    root = table.rstrip("/")
    start = f"file:{encode_path(root)}/" if table.startswith("/") else f"{root}/"
    # Encoded with its slash in front: a colon in the first name means no scheme here.
    return [start + (path if _PLAIN(path) else encode_path(f"/{path}")[1:]) for path in paths]


def tree_of_inventory(
    store: LogStore,
    table: str,
    inventory: Any,
    is_hidden: Callable[[str], bool],
    known: Container[str],
) -> Tree:
    """The files of a table that an inventory names, with the times that the storage has for them.

    Args:
        store: the table's.
        table: its URI.
        inventory: an Arrow table, or anything that gives one; or the path of a Parquet file.
        is_hidden: whether a file or folder of that name does not belong to the table.
        known: relative paths that need not be reported.

    Raises:
        DeltaAnalysisError: a column is missing or has another type, or all paths lie elsewhere.
        OSError: the storage refused to say what is there.
    """
    rows = _rows_of(inventory, table)
    start = f"{table.rstrip('/')}/"
    files: set[str] = set()
    folders: set[str] = set()
    tree = Tree()
    inside = 0
    paths, kinds = rows["path"].to_pylist(), rows["isDir"].to_pylist()
    for uri, is_folder in zip(paths, kinds, strict=True):
        place = "" if uri is None else path_key(table, uri).rstrip("/")
        if not f"{place}/".startswith(start):
            continue
        inside += 1
        path = place[len(start) :]
        if not path or any(map(is_hidden, path.split("/"))) or not is_plain(path):
            continue
        tree.seen += not is_folder
        if path not in known:
            (folders if is_folder else files).add(path)
    if paths and not inside:
        raise DeltaAnalysisError(
            f"the inventory names no file below {table}; its first path is {paths[0]!r}. Paths "
            f"must be full URIs, spelled with the table's own, such as "
            f"{written_paths(table, ['part-0.parquet'])[0]!r}.",
            table=table,
        )
    tree.files = looked_up(store, table, files)
    root = local_root(store, table)
    if root is not None:
        tree.folders = [each for path in folders if (each := _folder(root, path)) is not None]
    return tree


def _rows_of(inventory: Any, table: str) -> pa.Table:
    if isinstance(inventory, str | os.PathLike):
        import pyarrow.parquet as pq

        inventory = pq.read_table(inventory)
    elif not isinstance(inventory, pa.Table):
        try:
            inventory = pa.table(inventory)
        except (TypeError, ValueError, pa.ArrowException):
            raise DeltaAnalysisError(
                f"the inventory for VACUUM of {table} is {type(inventory).__name__}: pass an Arrow "
                "table, something that can be one, or the path of a Parquet file.",
                table=table,
            ) from None
    names = inventory.schema.names
    wrong = [
        name
        for name, kinds in _KINDS.items()
        if names.count(name) != 1 or not any(is_kind(inventory[name].type) for is_kind in kinds)
    ]
    if wrong:
        raise DeltaAnalysisError(
            "[DELTA_INVALID_INVENTORY_SCHEMA] The schema for the specified INVENTORY does not "
            f"contain all of the required fields, or with other types ({', '.join(wrong)}). "
            "Required: path string, length bigint, isDir boolean, modificationTime bigint. Given: "
            f"{', '.join(f'{f.name} {f.type}' for f in inventory.schema)}.",
            table=table,
        )
    return inventory


def looked_up(store: LogStore, table: str, paths: Iterable[str]) -> list[FoundFile]:
    """What the storage says of files; those that are not there, or are links, are left out.

    Args:
        store: the table's.
        table: its URI.
        paths: relative to its folder.

    Raises:
        OSError: the storage refused.
    """
    wanted = sorted(paths)
    root = local_root(store, table)
    if root is not None:
        real = _RealFolders(root)
        return [each for path in wanted if (each := _file(root, path, real)) is not None]
    from pyarrow.fs import FileType

    filesystem, base = store.filesystem, f"{table.rstrip('/')}/"

    def ask(share: Sequence[str]) -> list[FoundFile]:
        infos = filesystem.get_file_info([store.filesystem_path(base + each) for each in share])
        return [
            FoundFile(path, info.size or 0, info.mtime_ns // 1_000_000)
            for path, info in zip(share, infos, strict=True)
            if info.type == FileType.File and info.mtime_ns is not None
        ]

    shares = [wanted[start : start + _AT_ONCE] for start in range(0, len(wanted), _AT_ONCE)]
    asked = at_once(ask, shares, REQUESTS, "lakelog-vacuum")
    return [each for found in asked for each in found]


class _RealFolders(dict[str, bool]):
    """Folder -> whether no link leads there."""

    def __init__(self, root: str) -> None:
        super().__init__()
        self._root = root
        self._real = os.path.realpath(root)

    def __missing__(self, folder: str) -> bool:
        real = os.path.realpath(f"{self._root}/{folder}")
        found = self[folder] = real == f"{self._real.rstrip('/')}/{folder}".rstrip("/")
        return found


def _file(root: str, path: str, real: _RealFolders) -> FoundFile | None:
    try:
        info = os.lstat(f"{root}/{path}")
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(info.st_mode) or not real[path.rpartition("/")[0]]:
        return None
    return FoundFile(path, info.st_size, info.st_mtime_ns // 1_000_000)


def _folder(root: str, path: str) -> FoundFolder | None:
    try:
        info = os.lstat(f"{root}/{path}")
        if not stat.S_ISDIR(info.st_mode) or not _RealFolders(root)[path]:
            return None
        is_empty = next(os.scandir(f"{root}/{path}"), None) is None
    except (FileNotFoundError, NotADirectoryError):
        return None
    return FoundFolder(path, info.st_mtime_ns // 1_000_000, is_empty)
