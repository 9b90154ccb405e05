"""Which of some files the storage does not have."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from lakelog.core.compute import pc
from lakelog.core.data.places import DataPlaces
from lakelog.core.deletion_vectors.reader import vector_path

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.logstores import LogStore

__all__ = ["rows_with_missing_files"]

_THREADS: Final = 16
_AT_ONCE: Final = 256
_FEW: Final = 8
"""Up to this many files are looked up without threads."""


def rows_with_missing_files(
    store: LogStore, table: str, rows: pa.Table
) -> tuple[list[bool], list[str]]:
    """Look whether data files, and the files of their deletion vectors, exist.

    Args:
        store: the table's, whose file system has the files.
        table: its URI.
        rows: of `lakelog.core.actions.file_table.FILE_SCHEMA`.

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
    gone = _missing(store, wanted)
    lacks = [place in gone or vector in gone for place, vector in zip(places, vectors, strict=True)]
    return lacks, sorted(gone)


def _missing(store: LogStore, places: list[str]) -> set[str]:
    def look(some: list[str]) -> list[str]:
        found = store.filesystem.get_file_info([store.filesystem_path(each) for each in some])
        return [place for place, info in zip(some, found, strict=True) if not info.is_file]

    if len(places) <= _FEW:
        return set(look(places))
    # Object stores answer one question at a time: a few in flight hide the way there and back.
    size = min(_AT_ONCE, -(-len(places) // _THREADS))
    parts = [places[start : start + size] for start in range(0, len(places), size)]
    with ThreadPoolExecutor(min(_THREADS, len(parts))) as pool:
        return {each for some in pool.map(look, parts) for each in some}
