"""The rows of a bin in the order of a curve, with bounded memory.

A sample of the columns says where the curve runs, and where to cut it into stretches with about
as many rows each. What fits in memory is sorted there. More is dealt out by stretch to files of the
local temporary folder, and each of these is sorted when it is read back.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import array_of, integers
from lakelog.core.compute import pc
from lakelog.core.maintain.optimize.curves import Curve, counted_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_SAMPLE_ROWS = 200_000
_MEMORY_BYTES = 256 << 20
"""Rows that are sorted at once, as Arrow has them."""
_STRETCH_BYTES = 32 << 20
"""Of files, so that the rows of a stretch are likely to fit in memory."""
_MOST_STRETCHES = 256
_SLICE_ROWS, _SLICE_BYTES = 1 << 17, 32 << 20


@dataclass(frozen=True, slots=True)
class RowOrder:
    """What rows are ordered by."""

    columns: tuple[tuple[str, ...], ...]
    """The paths of the columns, in the schema's spelling."""
    curve: str
    """`zorder` or `hilbert`."""

    def values(self, rows: pa.Table) -> list[pa.ChunkedArray[Any]]:
        """The columns of some rows."""
        found = []
        for top, *inner in self.columns:
            column = rows.column(top)
            found.append(pc.struct_field(column, inner) if inner else column)
        return found


def ordered(
    read: Callable[[], Iterable[pa.Table]],
    keys: Callable[[], Iterable[pa.Table]],
    order: RowOrder,
    *,
    size: int,
    outputs: int,
) -> Iterator[tuple[int, pa.Table]]:
    """Rows in the order of a curve, each with the number of the output that it belongs to.

    Args:
        read: gives the rows; called once.
        keys: gives the columns of `order` of the same rows; called once, before.
        order: by what.
        size: bytes of the files that the rows come from.
        outputs: into how many parts the rows are cut, numbered from 0 and given in order.
    """
    sample = _sample(order.values(each) for each in keys())
    if not sample:
        return
    curve = Curve(order.curve, sample)
    per_output = max(1, min(_MOST_STRETCHES, -(-size // _STRETCH_BYTES)) // outputs)
    stretches = outputs * per_output
    cuts = _cuts(curve.places(sample), stretches)
    if stretches == 1:
        yield from ((0, rows) for rows in _sorted_runs(read(), curve, order))
        return
    with _Spill(stretches) as spill:
        for rows in read():
            places = curve.places(order.values(rows))
            spill.deal(rows, counted_below(cuts, places, equal=True))
        for number in range(stretches):
            for rows in _sorted_runs(spill.read(number), curve, order):
                yield number // per_output, rows


def _sample(parts: Iterable[list[pa.ChunkedArray[Any]]]) -> list[pa.ChunkedArray[Any]]:
    """Every n-th row, with n so that not many more are kept than are needed."""
    step, seen = 1, 0
    kept: list[list[pa.ChunkedArray[Any]]] = []
    count = 0
    for columns in parts:
        rows = len(columns[0])
        places = integers(range(-seen % step, rows, step), pa.int64())
        seen += rows
        if len(places):
            kept.append([column.take(places) for column in columns])
            count += len(places)
        while count > 1 and (count > _SAMPLE_ROWS or _bytes(kept) > _MEMORY_BYTES):
            step *= 2
            whole = _joined(kept)
            every = integers(range(0, count, 2), pa.int64())
            kept = [[column.take(every) for column in whole]]
            count = len(every)
    return _joined(kept)


def _bytes(parts: list[list[pa.ChunkedArray[Any]]]) -> int:
    return sum(column.nbytes for columns in parts for column in columns)


def _joined(parts: list[list[pa.ChunkedArray[Any]]]) -> list[pa.ChunkedArray[Any]]:
    if not parts:
        return []
    return [
        pa.chunked_array([chunk for column in columns for chunk in column.chunks], columns[0].type)
        for columns in zip(*parts, strict=True)
    ]


def _cuts(places: pa.Array[Any], stretches: int) -> pa.Array[Any]:
    """The first place of each stretch but the first."""
    order = places.take(pc.sort_indices(places))
    return order.take(
        array_of([len(order) * i // stretches for i in range(1, stretches)], pa.int64())
    )


def _sorted_runs(parts: Iterable[pa.Table], curve: Curve, order: RowOrder) -> Iterator[pa.Table]:
    """Rows in order: all of them where they fit in memory, else as many at a time as do."""
    run: list[pa.Table] = []
    size = 0
    for part in parts:
        run.append(part)
        size += part.nbytes
        if size >= _MEMORY_BYTES:
            yield from _sorted(run, curve, order)
            size = 0
    if run:
        yield from _sorted(run, curve, order)


def _sorted(run: list[pa.Table], curve: Curve, order: RowOrder) -> Iterator[pa.Table]:
    """The rows of a run in order; it is emptied, so that nothing is in memory twice."""
    rows = pa.concat_tables(run).combine_chunks()  # else each slice would search all chunks
    run.clear()
    columns = order.values(rows)
    keys: dict[str, Any] = {"place": curve.places(columns)}
    by = [("place", "ascending")]
    if len(columns) == 1:
        # A curve through one column is the column's own order.
        keys["value"] = columns[0]
        by.append(("value", "ascending"))
    indices = pc.sort_indices(pa.table(keys), sort_keys=by)
    step = max(1, min(_SLICE_ROWS, _SLICE_BYTES * rows.num_rows // max(rows.nbytes, 1)))
    for start in range(0, len(indices), step):
        yield rows.take(indices.slice(start, step))


class _Spill:
    """Rows on the local disk, by number of their stretch; gone when the block ends."""

    def __init__(self, count: int) -> None:
        self._stack = ExitStack()
        self._writers: list[Any] = [None] * count

    def __enter__(self) -> _Spill:
        made = tempfile.TemporaryDirectory(prefix="lakelog-optimize-")
        self._folder = Path(self._stack.enter_context(made))
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._writers:
            if each is not None:
                each.close()
        self._stack.close()

    def deal(self, rows: pa.Table, numbers: pa.Array[Any]) -> None:
        order = pc.sort_indices(numbers)
        ends = pc.run_end_encode(numbers.take(order))
        rows, start = rows.take(order), 0
        for number, end in zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True):
            self._writer(number, rows.schema).write_table(rows.slice(start, end - start))
            start = end

    def _writer(self, number: int, schema: pa.Schema) -> Any:
        if self._writers[number] is None:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writers[number] = pa.ipc.new_stream(
                str(self._folder / str(number)), schema, options=options
            )
        return self._writers[number]

    def read(self, number: int) -> Iterator[pa.Table]:
        if self._writers[number] is None:
            return
        self._writers[number].close()
        path = self._folder / str(number)
        with pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as stream:
            for batch in stream:
                yield pa.Table.from_batches([batch])
        path.unlink()
