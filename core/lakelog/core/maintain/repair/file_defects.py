"""What is broken of the data files that the newest version lists."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from lakelog.core.actions.file_table import to_add_files
from lakelog.core.data.file_reader import DataStores
from lakelog.core.data.file_writer import add_files_at
from lakelog.core.deletion_vectors.stored_vectors import vector_path
from lakelog.core.errors import DeltaError
from lakelog.core.maintain.repair.defects import Defect
from lakelog.core.stats.structs import with_wide_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakelog.core.actions import AddFile
    from lakelog.core.data.file_layout import FileLayout
    from lakelog.core.state.snapshot import Snapshot

_AT_ONCE = 1000


@dataclass(slots=True)
class FileDefects:
    """What was found, and the actions that mend it."""

    defects: list[Defect] = field(default_factory=list)
    gone: list[AddFile] = field(default_factory=list)
    """Files that the storage no longer has."""
    before: list[AddFile] = field(default_factory=list)
    """Files that get other sizes or statistics, as they are in the log."""
    after: list[AddFile] = field(default_factory=list)
    """The same, as they should be."""

    def add(self, kind: str, path: str, problem: str, mend: str | None) -> None:
        """Note one."""
        self.defects.append(Defect(kind=kind, path=path, problem=problem, mend=mend))


def find_file_defects(snapshot: Snapshot, layout: FileLayout) -> FileDefects:
    """Look for the files of a version on the storage; nothing is changed.

    Args:
        snapshot: the version.
        layout: which columns get statistics.

    Raises:
        CorruptLogError: a path that no file can have, or that leaves the table.
        OSError: the storage failed: then it is not known that a file is gone.
    """
    found = FileDefects()
    stores = DataStores(snapshot)
    table = snapshot.file_table
    for start in range(0, table.num_rows, _AT_ONCE):
        adds = to_add_files(table.slice(start, _AT_ONCE))
        paths = stores.places.resolve(add.path for add in adds)
        for add, path, size in zip(adds, paths, _sizes(stores, paths), strict=True):
            _look(found, snapshot, layout, stores, add, path, size)
    return found


def _sizes(stores: DataStores, paths: Sequence[str]) -> Iterator[int | None]:
    """The bytes of files, asked for many at a time; `None` for those that are not there."""
    by_store: dict[int, tuple[Any, list[str]]] = {}
    for path in paths:
        store = stores.for_path(path)
        by_store.setdefault(id(store), (store, []))[1].append(path)
    sizes: dict[str, int | None] = {}
    for store, some in by_store.values():
        infos = store.filesystem.get_file_info([store.filesystem_path(path) for path in some])
        sizes |= {
            p: info.size if info.is_file else None for p, info in zip(some, infos, strict=True)
        }
    return (sizes[path] for path in paths)


def _look(
    found: FileDefects,
    snapshot: Snapshot,
    layout: FileLayout,
    stores: DataStores,
    add: AddFile,
    path: str,
    size: int | None,
) -> None:
    if size is None:
        found.gone.append(add)
        rows = "an unknown number of" if add.num_records is None else f"{add.num_records:,}"
        found.add(
            "missing file",
            path,
            f"the storage does not have it; the log says that it has {rows} rows",
            "it is removed from the log: its rows are gone either way",
        )
        return
    vector = add.deletion_vector
    if vector is not None:
        place = vector_path(vector.to_json_value(), snapshot.table)
        if place is not None and list(_sizes(stores, [place])) == [None]:
            problem = f"{place}, which says which of its rows are deleted, is gone"
            found.add("deletion vector", path, problem, None)
            return
    wrong = size != add.size
    lacks = layout.stats is not None and not _has_rows(add.stats)
    if not wrong and not lacks:
        return
    try:
        measured = _read_again(layout, stores, add, path)
    except (pa.ArrowException, OSError, DeltaError, ValueError) as exc:
        found.add("damaged file", path, f"it can't be read: {exc}", None)
        return
    said, has = add.num_records, measured.num_records
    if said is not None and said != has:
        # Then it is another file, whose rows may not be the table's.
        found.add("damaged file", path, f"it has {has:,} rows, and {said:,} by the log", None)
        return
    found.before.append(add)
    found.after.append(measured)
    if wrong:
        problem = f"it has {size:,} bytes, and {add.size:,} by the log"
        found.add("wrong size", path, problem, "the log gets its size and statistics")
    else:
        found.add("statistics", path, "the log has none of it", "they are read from its footer")


def _has_rows(stats: str | None) -> bool:
    try:
        value = orjson.loads(stats or "null")
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) and type(value.get("numRecords")) is int


def _read_again(layout: FileLayout, stores: DataStores, add: AddFile, path: str) -> AddFile:
    store = stores.for_path(path)
    folder, _, name = store.filesystem_path(path).rpartition("/")
    rows = 0

    def see(footer: Any) -> None:
        nonlocal rows
        rows = footer.num_rows

    [read] = add_files_at(
        store.filesystem,
        folder,
        [(name, add.partition_values)],
        layout.schema,
        layout.partition_columns,
        stats=layout.stats,
        data_change=False,
        on_footer=see,
    ) or [replace(add, size=store.filesystem.get_file_info(f"{folder}/{name}").size)]
    stats = read.stats
    if add.deletion_vector is not None:
        stats = with_wide_bounds(stats, rows)
    return replace(add, size=read.size, stats=stats, data_change=False)
