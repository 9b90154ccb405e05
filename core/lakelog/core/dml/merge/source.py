"""The rows that are merged: in memory or, where a stream is large, in a temporary file.

The file is Arrow's own and mapped into memory, so that its rows are read where they are needed and
what was read can be dropped again by the operating system. It has no name: nothing is left of it,
whatever becomes of the process.
"""

from __future__ import annotations

import bisect
import mmap
import tempfile
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.arrays import empty_table
from lakelog.core.arrow.arrow_casts import cast_table
from lakelog.core.arrow.arrow_types import from_arrow_schema, to_arrow_schema
from lakelog.core.arrow.encodings import held_bytes, row_pieces, table_bytes, taken
from lakelog.core.compute import pc
from lakelog.core.dml.merge.names import check_unambiguous
from lakelog.core.dml.merge.positions import Positions
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.input.given_rows import arrow_stream, arrow_table, kept_columns, without_index
from lakelog.core.input.row_source import stream_of_batches
from lakelog.logstores import keys as store_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.core.input.given_rows import GivenRows
    from lakelog.core.schema import StructType

_ROWS: Final = 1 << 16
"""Rows of a record batch of the file."""
_BYTES: Final = 16 << 20
"""Bytes of a record batch of the file."""


class SourceRows:
    """Rows that are taken by their numbers."""

    def __init__(self, table: pa.Table) -> None:
        """Hold rows.

        Args:
            table: in Delta's types; it may be mapped from a file.
        """
        self.table = table

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return int(self.table.num_rows)

    @cached_property
    def _batches(self) -> tuple[list[pa.RecordBatch], list[int]]:
        batches = self.table.to_batches()
        starts, at = [], 0
        for each in batches:
            starts.append(at)
            at += each.num_rows
        return batches, starts

    def take(self, names: list[str], places: pa.Array[Any]) -> pa.Table:
        """Some rows, in the given order.

        Arrow's own `take` joins all chunks of a column first, in memory.

        Args:
            names: the columns.
            places: the numbers of the rows.
        """
        chosen = self.table.select(names)
        if not names or all(each.num_chunks < 2 for each in chosen.columns):
            return taken(chosen, places) if names else chosen.take(places)
        batches, starts = self._batches
        order = pc.sort_indices(places)
        ascending = places.take(order)
        numbers, pieces, at = Positions(ascending), [], 0
        while at < len(ascending):
            index = bisect.bisect_right(starts, numbers[at]) - 1
            batch, start = batches[index], starts[index]
            end = bisect.bisect_left(numbers, start + batch.num_rows, lo=at)
            inside = pc.subtract_checked(ascending[at:end], start)
            pieces.append(taken(pa.Table.from_batches([batch.select(names)]), inside))
            at = end
        found = pa.concat_tables([empty_table(chosen.schema), *pieces])
        return taken(found, pc.sort_indices(order))


class MergeSource:
    """The rows that were given; a stream is read when they are first needed, and once."""

    def __init__(self, given: GivenRows) -> None:
        """Remember what was given."""
        self._given: GivenRows | None = given
        self._rows: SourceRows | None = None
        self.schema: StructType | None = None
        """Of the rows, once they are read."""

    def rows(self, limit: int) -> SourceRows:
        """The rows, in Delta's types.

        Args:
            limit: a stream of more bytes goes into a temporary file.

        Raises:
            DeltaAnalysisError: what was given has no rows, or rows that no table can hold, or two
                columns of one name; or a stream has failed before and can't be read again.
            OSError: there is no room for the file.
        """
        if self._rows is not None:
            return self._rows
        if self._given is None:
            raise DeltaAnalysisError(
                "the source of this MERGE is a stream that failed while it was read, and can't be "
                "read again from its beginning; begin a new MERGE with a new stream"
            )
        stream = arrow_stream(self._given) or stream_of_batches(self._given)
        if stream is None:
            table = arrow_table(self._given)
            if table_bytes(table) <= max(limit, 2 * held_bytes(table)):
                self.schema = _schema_of(table.schema)
                self._rows = SourceRows(cast_table(table, self.schema))
                self._given = None
                return self._rows
            stream = table.to_reader()
        kept = set(kept_columns(stream.schema))
        self.schema = _schema_of(pa.schema([each for each in stream.schema if each.name in kept]))
        self._given = None
        self._rows = SourceRows(_read(stream, self.schema, limit))
        return self._rows


def _schema_of(columns: pa.Schema) -> StructType:
    schema = from_arrow_schema(columns)
    check_unambiguous(schema)
    return schema


def _read(stream: pa.RecordBatchReader, schema: StructType, limit: int) -> pa.Table:
    held: list[pa.Table] = []
    size = 0
    file: _File | None = None
    try:
        for each in _pieces(stream):
            rows = cast_table(each, schema)
            if file is not None:
                file.write(rows)
                continue
            held.append(rows)
            size += rows.nbytes
            if size > limit:
                file = _File(to_arrow_schema(schema))
                while held:
                    file.write(held.pop(0))
        if file is not None:
            return file.mapped()
    except BaseException:
        if file is not None:
            file.abandon()
        raise
    return pa.concat_tables(held) if held else empty_table(to_arrow_schema(schema))


def _pieces(stream: pa.RecordBatchReader) -> Iterator[pa.Table]:
    for batch in stream:
        yield from row_pieces(without_index(pa.Table.from_batches([batch])), _BYTES)


class _File:
    def __init__(self, schema: pa.Schema) -> None:
        self._file = tempfile.TemporaryFile(prefix="lakelog-merge-")  # noqa: SIM115  # kept open
        self._writer = pa.ipc.new_file(pa.PythonFile(self._file, "w"), schema)
        self._held: list[pa.Table] = []
        self._rows = self._bytes = 0

    def write(self, rows: pa.Table) -> None:
        self._held.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= _ROWS or self._bytes >= _BYTES:
            self._flush()

    def _flush(self) -> None:
        whole = pa.concat_tables(self._held).combine_chunks() if self._held else None
        self._held, self._rows, self._bytes = [], 0, 0
        if whole is None:
            return
        try:
            self._writer.write_table(whole, max_chunksize=_ROWS)
        except OSError as exc:
            raise OSError(
                exc.errno,
                f"the source of the MERGE is larger than {store_keys.MERGE_SOURCE_LIMIT}, and "
                f"can't be held in a file in {tempfile.gettempdir()}: {exc}. Make room there, name "
                "another folder by the environment variable TMPDIR, or raise the limit",
            ) from exc

    def mapped(self) -> pa.Table:
        """All rows, as they lie in the file."""
        self._flush()
        self._writer.close()
        self._file.flush()
        with self._file:
            # The mapping outlives the file's handle, and the name that it never had.
            data = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return pa.ipc.open_file(pa.py_buffer(data)).read_all()

    def abandon(self) -> None:
        """Drop the file."""
        self._held.clear()
        self._file.close()
