"""Which rows of which files a condition is true for: the first half of DELETE and UPDATE."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.actions.file_table import to_add_files
from lakelog.core.arrays import array_of, empty_table, scalar_of
from lakelog.core.compute import pc
from lakelog.core.data.file_reader import TableFileReader
from lakelog.core.dml.merge.positions import mask_of
from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.tree import columns
from lakelog.core.progress import Progress
from lakelog.core.schema import StructType
from lakelog.logstores.threads import in_order, readers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lakelog.core.actions import AddFile
    from lakelog.core.data.file_reader import DataFile
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.progress import ProgressCallback
    from lakelog.core.state.snapshot import Snapshot


@dataclass(frozen=True)
class TouchedFile:
    """A data file and, by position, what happens to its rows."""

    add: AddFile
    """As the log has it."""
    file: DataFile
    gone: pa.BooleanArray
    """The rows that an earlier deletion vector removed."""
    hit: pa.BooleanArray
    """The other rows for which the condition is true: at least one."""

    @cached_property
    def masked(self) -> pa.BooleanArray:
        """Rows deleted before or now."""
        return pc.or_(self.gone, self.hit)

    @property
    def is_whole(self) -> bool:
        """Whether no row is left."""
        return bool(self.masked.true_count == len(self.masked))


def empty_mask(count: int) -> pa.BooleanArray:
    """A mask of `count` rows, all False."""
    return pa.repeat(scalar_of(False, pa.bool_()), count)


def touched_files(
    snapshot: Snapshot,
    files: pa.Table,
    condition: Expression | None,
    report: ProgressCallback | None = None,
) -> Iterator[TouchedFile]:
    """The files with rows for which a condition is true, one after another.

    Only the condition's columns are read, and files by a few threads at once. What is kept of a
    file is two bits a row.

    Args:
        snapshot: the version.
        files: rows of `FILE_SCHEMA` that may hold such rows.
        condition: bound to the schema; a row for which it is null is not touched. `None` is true
            for every row.
        report: called after each file.

    Raises:
        InvalidPredicateError: a part of the condition that only Spark can evaluate.
        DataFileMissingError: the log lists a file that the storage does not have.
        DataFileError: a damaged deletion vector, or columns that can't be identified.
    """
    finder = _Finder(snapshot, condition)
    places = finder.files.find(files)
    found = in_order(finder.masks, places, readers(), "lakelog-scan")
    adds = to_add_files(files)
    for done, (add, place, (gone, hit)) in enumerate(zip(adds, places, found, strict=True), 1):
        if report is not None:
            report(Progress(text="searching", done=done, total=len(adds), unit="files"))
        if hit.true_count:
            yield TouchedFile(add, place, gone, hit)


def can_evaluate(snapshot: Snapshot, condition: Expression) -> bool:
    """Whether `touched_files` can evaluate a condition, or only Spark can.

    Args:
        snapshot: the version.
        condition: bound to its schema.
    """
    try:
        _Finder(snapshot, condition)
    except InvalidPredicateError:
        return False
    return True


def touched_at(
    snapshot: Snapshot, files: pa.Table, hits: Mapping[int, Mapping[int, bytes]]
) -> list[TouchedFile]:
    """The files with rows that an engine found, by the bitmaps of their positions.

    Args:
        snapshot: the version.
        files: rows of `FILE_SCHEMA`.
        hits: row of `files` -> position, a multiple of 8 -> which of the rows from there are hit,
            a bit each, the lowest first. None of them is deleted already.

    Raises:
        DataFileMissingError: a file vanished.
        DataFileError: a damaged deletion vector.
    """
    numbers = sorted(hits)
    chosen = files.take(array_of(numbers, pa.int64()))
    return _touched(snapshot, chosen, lambda number, gone: _mask(hits[numbers[number]], len(gone)))


def touched_rows(snapshot: Snapshot, files: pa.Table, rows: pa.Table) -> list[TouchedFile]:
    """The files with rows that an engine found, by their places.

    Args:
        snapshot: the version.
        files: rows of `FILE_SCHEMA`.
        rows: `file`, the row of `files`, and `row`, the position in that file: each place once, and
            none that is deleted already.

    Raises:
        DataFileMissingError: a file vanished.
        DataFileError: a damaged deletion vector.
        ValueError: a file has fewer rows.
    """
    rows = rows.sort_by([("file", "ascending"), ("row", "ascending")])
    counts = pc.value_counts(rows["file"]).to_pylist()
    ends = list(accumulate((each["counts"] for each in counts), initial=0))
    chosen = files.take(array_of([each["values"] for each in counts], pa.int64()))

    def mask(number: int, gone: pa.BooleanArray) -> pa.BooleanArray:
        start, end = ends[number : number + 2]
        positions: Any = rows["row"].slice(start, end - start).combine_chunks()
        if positions[-1].as_py() >= len(gone):
            raise _past_the_end(positions[-1].as_py(), len(gone))
        return mask_of(positions, len(gone))

    return _touched(snapshot, chosen, mask)


def touched_whole(snapshot: Snapshot, files: pa.Table) -> list[TouchedFile]:
    """Files of which every row that is left is hit; no row is read to know that.

    Args:
        snapshot: the version.
        files: rows of `FILE_SCHEMA`; those without a row that is left are passed over.

    Raises:
        DataFileMissingError: a file vanished whose statistics don't tell how many rows it has.
        DataFileError: a damaged deletion vector.
    """
    found = _touched(snapshot, files, lambda _, gone: pc.invert(gone))
    return [each for each in found if each.hit.true_count]


def _touched(
    snapshot: Snapshot,
    files: pa.Table,
    hit_of: Callable[[int, pa.BooleanArray], pa.BooleanArray],
) -> list[TouchedFile]:
    """Files whose hits are known by the number of the file and by what is gone of it."""
    reader = TableFileReader(snapshot, StructType())
    places = reader.find(files)

    def masks(number: int) -> tuple[pa.BooleanArray, pa.BooleanArray]:
        gone = reader.gone(places[number], adds[number].num_records)
        return gone, hit_of(number, gone)

    adds = list(to_add_files(files))
    found = in_order(masks, range(len(adds)), readers(), "lakelog-scan")
    return [
        TouchedFile(add, place, gone, hit)
        for add, place, (gone, hit) in zip(adds, places, found, strict=True)
    ]


def _past_the_end(row: int, count: int) -> ValueError:
    return ValueError(f"row {row} of a file of {count} rows is hit")


def _mask(pieces: Mapping[int, bytes], count: int) -> pa.BooleanArray:
    bits = bytearray(-(-count // 8))
    for start, piece in pieces.items():
        at = start // 8
        used = piece.rstrip(b"\0")
        if at + len(used) > len(bits):
            raise _past_the_end(start + 8 * len(used) - 1, count)
        bits[at : at + len(used)] = used
    return pa.Array.from_buffers(pa.bool_(), count, [None, pa.py_buffer(bytes(bits))])


class _Finder:
    def __init__(self, snapshot: Snapshot, condition: Expression | None) -> None:
        """Refuse what can't be evaluated, before any file is opened."""
        from lakelog.core.arrow.arrow_types import to_arrow_schema

        schema, self._mask = snapshot.read_schema, None
        names = set() if condition is None else {path[0].lower() for path in columns(condition)}
        read = StructType(tuple(f for f in schema if f.name.lower() in names))
        self.files = TableFileReader(snapshot, read, condition)
        if condition is not None:
            from lakelog.core.expressions.arrow.masks import typed_mask

            self._mask = typed_mask(condition, schema)
            self._mask(empty_table(to_arrow_schema(read)))

    def masks(self, file: DataFile) -> tuple[pa.BooleanArray, pa.BooleanArray]:
        """Which rows are gone, and which of the others are hit."""
        pieces = self.files.pieces(file)
        found = [
            empty_mask(piece.count) if piece.rows is None else self._true_for(piece.rows)
            for piece in pieces
        ]
        hit: Any = pa.concat_arrays(found) if found else empty_mask(0)
        deleted = self.files.deleted(file)
        if deleted is None:
            return empty_mask(len(hit)), hit
        gone = deleted(len(hit))
        return gone, pc.and_not(hit, gone)

    def _true_for(self, rows: pa.Table) -> pa.BooleanArray:
        if self._mask is None:
            return pa.repeat(scalar_of(True, pa.bool_()), rows.num_rows)
        return pc.fill_null(self._mask(rows), False)
