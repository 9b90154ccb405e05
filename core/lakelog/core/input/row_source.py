"""The rows of a write: in memory, or a stream that is read a piece at a time.

A stream is joined to pieces of a useful size, however small its batches are, and is never held as
a whole. What can export itself again (a DataFrame, a dataset) is read again where that is needed;
a reader or a generator can be read once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from lakelog.core.arrow.encodings import held_bytes, row_pieces, table_bytes
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.input.given_rows import arrow_stream, arrow_table, kept_columns

if TYPE_CHECKING:
    from lakelog.core.input.given_rows import GivenRows
    from lakelog.core.schema import StructType

_ROWS: Final = 1 << 17
_BYTES: Final = 32 << 20
_DECODED: Final = 256 << 20
"""Bytes of rows in memory that are written as one piece, whatever they take now."""

_Stream: TypeAlias = tuple[pa.Schema, Iterator[Any]]


class RowSource:
    """What was given, with a schema that is known before its rows are."""

    def __init__(self, given: GivenRows, schema: StructType | None = None) -> None:
        """Find out how it is read; a generator gives its first batch already.

        Args:
            given: in any of the forms of `GivenRows`.
            schema: of rows that are Python's; `None`: that of the rows.

        Raises:
            DeltaAnalysisError: it has no rows, or rows that Arrow can't hold.
        """
        self._given: Any = given
        self._is_spent = False
        self._table: pa.Table | None = None
        self._stream: _Stream | None = None
        found = _stream_of(given) if schema is None else None
        if found is None:
            table = arrow_table(given, schema)
            self._table = table
            self.schema: pa.Schema = table.schema
        else:
            self._stream = found
            self.schema = found[0]

    @property
    def is_spent(self) -> bool:
        """Whether its rows were taken, and can't be had again."""
        return self._is_spent

    @property
    def count(self) -> int | None:
        """How many rows there are; `None` of a stream."""
        return None if self._table is None else self._table.num_rows

    def tables(self) -> Iterator[pa.Table]:
        """All rows, in at least one table, which may be empty.

        Raises:
            DeltaAnalysisError: a batch of a stream has another schema than the first one.
        """
        if self._table is not None:
            # In memory already; decoded they may take many times as much.
            yield from row_pieces(self._table, max(_DECODED, 2 * held_bytes(self._table)))
            return
        found = self._stream or _stream_of(self._given)
        assert found is not None
        self._stream = None
        self._is_spent = _is_read_once(self._given)
        yield from _joined(self.schema, found[1])


def stream_of_batches(given: GivenRows) -> pa.RecordBatchReader | None:
    """A generator or list of batches, or a dataset, as one stream; `None` for any other rows.

    Raises:
        DeltaAnalysisError: a generator without a batch, or of something else; while it is read, a
            batch that has another schema than the first one.
    """
    found = _stream_of(given)
    if found is None:
        return None
    schema, batches = found
    checked = (one for number, each in enumerate(batches) for one in _checked(each, schema, number))
    return pa.RecordBatchReader.from_batches(schema, checked)


def _joined(schema: pa.Schema, batches: Iterator[Any]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = size = 0
    is_first = True
    for each in _pieces(schema, batches):
        held += each.to_batches()
        rows += each.num_rows
        size += table_bytes(each)
        if rows >= _ROWS or size >= _BYTES:
            # Nothing here may hold rows while the next ones come.
            del each
            found = [pa.Table.from_batches(held, schema)]
            held, rows, size, is_first = [], 0, 0, False
            yield found.pop()
    if held or is_first:
        yield pa.Table.from_batches(held, schema)


def _pieces(schema: pa.Schema, batches: Iterator[Any]) -> Iterator[pa.Table]:
    for number, each in enumerate(batches):
        found = pa.Table.from_batches(_checked(each, schema, number), schema)
        del each
        yield from row_pieces(found, _BYTES)


def _checked(given: Any, schema: pa.Schema, number: int) -> list[pa.RecordBatch]:
    found = _schema_of(given, number)
    if not found.equals(schema):
        raise DeltaAnalysisError(
            f"the stream changes its schema: its batch {number}, counted from 0, has "
            f"{_difference(found, schema)}. Nothing was written. Give batches of one schema, or "
            "write those of each schema by a call of their own."
        )
    return given.to_batches() if isinstance(given, pa.Table) else [given]


def _difference(found: pa.Schema, schema: pa.Schema) -> str:
    """What another schema has that is not in the first one; else what it lacks."""
    ours = {field.name: field for field in schema}
    for field in found:
        if field.name not in ours:
            return f"the column {field.name} ({field.type}), which the first one does not have"
        was = ours[field.name]
        if field != was:
            shown = [f"{e.type}{'' if e.nullable else ' not null'}" for e in (field, was)]
            return f"{field.name} as {shown[0]}, and the first one as {shown[1]}"
    lacks = [name for name in schema.names if name not in found.names]
    if lacks:
        return f"no column {', '.join(lacks)}, which the first one has"
    return f"the columns {', '.join(found.names)}, and the first one {', '.join(schema.names)}"


def _schema_of(batch: Any, number: int) -> pa.Schema:
    if not isinstance(batch, pa.RecordBatch | pa.Table):
        raise DeltaAnalysisError(
            "a generator must give batches or tables of pyarrow, and its value number "
            f"{number}, counted from 0, is of type {type(batch).__name__}. Nothing was written."
        )
    return batch.schema


def _is_read_once(given: Any) -> bool:
    return isinstance(given, pa.RecordBatchReader | Iterator)


def _stream_of(given: Any) -> _Stream | None:
    """The schema and the batches of a stream; `None` where rows are in memory."""
    if type(given).__module__ == "pyarrow._dataset":
        given = _reader_of(given)
    if isinstance(given, pa.RecordBatchReader):
        return given.schema, given
    if isinstance(given, Sequence) and given and isinstance(given[0], pa.RecordBatch | pa.Table):
        given = iter(given)
    if isinstance(given, Iterator):
        first = next(given, None)
        if first is None:
            raise DeltaAnalysisError(
                "the generator gave no batch, so that the columns are unknown: give an empty "
                "batch, or a pyarrow.RecordBatchReader, which has a schema"
            )
        return _schema_of(first, 0), chain([first], given)
    reader = arrow_stream(given)
    if reader is None:
        return None
    names = kept_columns(reader.schema)
    batches = (batch.select(names) for batch in reader)
    return pa.schema([reader.schema.field(name) for name in names]), batches


def _reader_of(given: Any) -> pa.RecordBatchReader:
    """A dataset or a scanner of pyarrow, with little read ahead."""
    if hasattr(given, "to_reader"):
        return given.to_reader()
    scanner = given.scanner(batch_readahead=2, fragment_readahead=1, batch_size=_ROWS)
    return scanner.to_reader()
