"""Which rows of which files a condition is true for: the first half of DELETE and UPDATE."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.compute import pc
from lakelog.core.expressions import columns
from lakelog.core.file_rows import in_order
from lakelog.core.file_table import to_add_files
from lakelog.core.schema import StructType
from lakelog.core.table_files import TableFiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.core.actions import AddFile
    from lakelog.core.expressions import Expression
    from lakelog.core.snapshot import Snapshot
    from lakelog.core.table_files import DataFile

__all__ = ["TouchedFile", "nothing_marked", "touched_files"]


@dataclass(frozen=True)
class TouchedFile:
    """A data file and, by position, what is to become of its rows."""

    add: AddFile
    """As the log has it."""
    file: DataFile
    gone: pa.BooleanArray
    """The rows that a deletion vector took before."""
    hit: pa.BooleanArray
    """The other rows for which the condition is true: at least one."""

    @cached_property
    def masked(self) -> pa.BooleanArray:
        """All rows that count no more."""
        return pc.or_(self.gone, self.hit)

    @property
    def is_whole(self) -> bool:
        """Whether no row is left."""
        return bool(self.masked.true_count == len(self.masked))


def nothing_marked(count: int) -> pa.BooleanArray:
    """So many rows, none of them marked."""
    return pa.repeat(pa.scalar(False), count)


def touched_files(
    snapshot: Snapshot, files: pa.Table, condition: Expression | None
) -> Iterator[TouchedFile]:
    """The files with rows for which a condition is true, one after another.

    Only the condition's columns are read, and files by a few threads at once. What is kept of a
    file is two bits a row.

    Args:
        snapshot: the version.
        files: rows of `FILE_SCHEMA` that may hold such rows.
        condition: bound to the schema; a row for which it is null is not touched. `None` is true
            for every row.

    Raises:
        InvalidPredicateError: a part of the condition that only Spark can evaluate.
        DataFileMissingError: the log lists a file that the storage does not have.
        DataFileError: a damaged deletion vector, or columns that can't be told apart.
    """
    finder = _Finder(snapshot, condition)
    finder.check()
    places = finder.files.find(files)
    workers = min(2 * (os.cpu_count() or 1), 32)
    found = in_order(finder.masks, places, workers)
    for add, place, (gone, hit) in zip(to_add_files(files), places, found, strict=True):
        if hit.true_count:
            yield TouchedFile(add, place, gone, hit)


class _Finder:
    def __init__(self, snapshot: Snapshot, condition: Expression | None) -> None:
        self._condition = condition
        self._schema = snapshot.read_schema
        names = set() if condition is None else {path[0].lower() for path in columns(condition)}
        self._read = StructType(tuple(f for f in self._schema if f.name.lower() in names))
        self.files = TableFiles(snapshot, self._read, condition)

    def check(self) -> None:
        """Refuse what can't be evaluated before any file is opened."""
        from lakelog.core.arrow_types import to_arrow_schema

        self._true_for(to_arrow_schema(self._read).empty_table())

    def masks(self, file: DataFile) -> tuple[pa.BooleanArray, pa.BooleanArray]:
        """Which rows are gone, and which of the others are hit."""
        pieces = self.files.pieces(file)
        found = [
            nothing_marked(piece.count) if piece.rows is None else self._true_for(piece.rows)
            for piece in pieces
        ]
        hit: Any = pa.concat_arrays(found) if found else nothing_marked(0)
        deleted = self.files.deleted(file)
        if deleted is None:
            return nothing_marked(len(hit)), hit
        gone = deleted(len(hit))
        return gone, pc.and_not(hit, gone)

    def _true_for(self, rows: pa.Table) -> pa.BooleanArray:
        if self._condition is None:
            return pa.repeat(pa.scalar(True), rows.num_rows)
        from lakelog.core.evaluate import evaluate_mask

        mask = evaluate_mask(self._condition, rows, self._schema)
        if isinstance(mask, pa.ChunkedArray):
            mask = mask.combine_chunks()
        return pc.fill_null(mask, False)
