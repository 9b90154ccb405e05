"""The rows of many small files in few batches: each batch costs Spark more than a row of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BATCH_ROWS = 1 << 16
_JOINED_BYTES = 4 << 20


def joined_batches(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    """The rows of tables with one schema, in their order.

    The first batch comes with the first table, and each later one that is made of several has as
    many rows as came before it, up to a bound: who wants few rows gets them soon.

    Args:
        tables: what one task reads, a file each.
    """
    held: list[pa.Table] = []
    rows = size = given = 0
    for table in tables:
        is_large = table.num_rows >= _BATCH_ROWS or table.nbytes >= _JOINED_BYTES
        # Tables without columns lose their rows when they are joined.
        alone = is_large or not table.num_columns
        if alone:
            yield from _batches(held)
            yield from table.to_batches(max_chunksize=_BATCH_ROWS)
            held, rows, size, given = [], 0, 0, given + rows + table.num_rows
            continue
        held.append(table)
        rows, size = rows + table.num_rows, size + table.nbytes
        if rows >= min(given, _BATCH_ROWS) or size >= _JOINED_BYTES:
            yield from _batches(held)
            held, rows, size, given = [], 0, 0, given + rows
    yield from _batches(held)


def _batches(held: list[pa.Table]) -> Iterator[pa.RecordBatch]:
    if held:
        # Columns may differ in whether they allow nulls.
        joined = pa.concat_tables(held, promote_options="default").combine_chunks()
        yield from joined.to_batches(max_chunksize=_BATCH_ROWS)
