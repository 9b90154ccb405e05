"""Which of some files the storage does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakelog.core.compute import pc
from lakelog.core.data.file_locations import DataPlaces
from lakelog.core.deletion_vectors.stored_vectors import vector_path
from lakelog.core.paths import is_local
from lakelog.core.progress import Progress
from lakelog.logstores.threads import REQUESTS, at_once, in_order

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.core.progress import ProgressCallback
    from lakelog.logstores import LogStore

_AT_ONCE: Final = 256
_FEW: Final = 8
"""Up to this many files are looked up without threads, and fewer in a folder without listing it."""
_MANY: Final = 256
"""From this many files on, folders are listed. A page of a listing names a thousand."""
_SPARSE: Final = 20
"""Unless there are more than so many other files to each of them."""


def rows_with_missing_files(
    store: LogStore, table: str, rows: pa.Table, known: int, report: ProgressCallback | None = None
) -> tuple[list[bool], list[str]]:
    """Look whether data files, and the files of their deletion vectors, exist.

    Args:
        store: the table's, whose file system has the files.
        table: its URI.
        rows: of `lakelog.core.actions.file_table.FILE_SCHEMA`.
        known: how many files the table's folder holds, as far as the log knows.
        report: called now and then with how many files were looked for.

    Returns:
        For each row whether something of it is missing, and the places of all that is, sorted.

    Raises:
        CorruptLogError: a relative path that leaves the table.
        OSError: the storage failed.
    """
    places = DataPlaces(table).resolve(rows["path"].to_pylist())
    vectors: list[str | None] = [None] * len(places)
    column = rows["deletion_vector"]
    if column.null_count < len(column):
        flat = column.combine_chunks()
        for index in pc.indices_nonzero(flat.is_valid()).to_pylist():
            vectors[index] = vector_path(flat[index].as_py(), table)
    wanted = sorted({*places, *(each for each in vectors if each is not None)})
    if len(wanted) >= _MANY and len(wanted) * _SPARSE >= known and not is_local(table):
        wanted = _not_listed(store, wanted)
    gone = _missing(store, wanted, report or (lambda _: None))
    lacks = [place in gone or vector in gone for place, vector in zip(places, vectors, strict=True)]
    return lacks, sorted(gone)


def _not_listed(store: LogStore, places: list[str]) -> list[str]:
    """Those of some files that no listing of their folders shows.

    A storage may spell a name otherwise, and a folder that can't be listed shows nothing: what is
    left has yet to be looked up one by one.
    """
    from pyarrow.fs import FileSelector

    folders: dict[str, list[str]] = {}
    for place in places:
        folders.setdefault(place.rpartition("/")[0], []).append(place)

    def look(folder: str) -> list[str]:
        wanted = folders[folder]
        if len(wanted) < _FEW:
            return wanted
        selector = FileSelector(store.filesystem_path(folder), allow_not_found=True)
        try:
            infos = store.filesystem.get_file_info(selector)
        except OSError:
            return wanted
        found = {each.path for each in infos if each.is_file}
        return [each for each in wanted if store.filesystem_path(each) not in found]

    looked = at_once(look, [*folders], REQUESTS, "lakelog-missing")
    return sorted(each for some in looked for each in some)


def _missing(store: LogStore, places: list[str], report: ProgressCallback) -> set[str]:
    def look(some: list[str]) -> list[str]:
        found = store.filesystem.get_file_info([store.filesystem_path(each) for each in some])
        return [place for place, info in zip(some, found, strict=True) if not info.is_file]

    if len(places) <= _FEW:
        return set(look(places))
    # Object stores answer one question at a time: a few in flight hide the way there and back.
    size = min(_AT_ONCE, -(-len(places) // REQUESTS))
    parts = [places[start : start + size] for start in range(0, len(places), size)]
    gone: set[str] = set()
    for number, some in enumerate(in_order(look, parts, REQUESTS, "lakelog-missing"), 1):
        gone.update(some)
        done = min(number * size, len(places))
        report(Progress(text="looking for files", done=done, total=len(places), unit="files"))
    return gone
