"""The rows that a MERGE removes from files, by their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.engine.dml import TouchedFile, empty_mask, mask_of
from lakelog.core.engine.log import to_add_files
from lakelog.core.engine.scan import TableFileReader
from lakelog.core.engine.values import pc
from lakelog.core.schema import StructType
from lakelog.spark.reading.row_positions import FILE, ROW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core import Snapshot
    from lakelog.core.actions import AddFile
    from lakelog.core.engine.scan import DataFile


def touched_by_places(
    snapshot: Snapshot, files: pa.Table, places: pa.Table, numbers: Mapping[str, int]
) -> list[TouchedFile]:
    """The files that some rows are in, and where in each.

    Args:
        snapshot: the version.
        files: rows of its `file_table`.
        places: `FILE` and `ROW` of rows that no deletion vector has removed; each once.
        numbers: of the files, by the values of `FILE`.
    """
    if not places.num_rows:
        return []
    places = places.sort_by([(FILE, "ascending"), (ROW, "ascending")])
    counts = pc.value_counts(places[FILE]).to_pylist()
    mine = files.take(pa.array([numbers[each["values"]] for each in counts], pa.int64()))
    reader = TableFileReader(snapshot, StructType())
    found, start = [], 0
    adds = to_add_files(mine)
    for each, add, file in zip(counts, adds, reader.find(mine), strict=True):
        rows: Any = places[ROW].slice(start, each["counts"]).combine_chunks()
        start += each["counts"]
        count = _rows_of(add, file, reader)
        deleted = reader.deleted(file)
        gone = empty_mask(count) if deleted is None else deleted(count)
        hit = mask_of(rows, count)
        found.append(TouchedFile(add, file, gone, hit))
    return found


def _rows_of(add: AddFile, file: DataFile, reader: TableFileReader) -> int:
    known = add.num_records
    return sum(piece.count for piece in reader.pieces(file)) if known is None else known
