"""Reading the rows of a snapshot: data files to Arrow, exactly in the table's types.

Files are read by a few threads, in order, never more than a window ahead of the consumer of the
batches. `row_reader` reads a single file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrow.types import to_arrow_schema
from lakelog.core.compute import pc
from lakelog.core.data.file_reader import TableFileReader
from lakelog.core.data.row_reader import in_order, without_columns
from lakelog.core.empty import empty_table
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import StructField, StructType
from lakelog.core.schema.rules import as_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakelog.core.data.file_reader import DataFile
    from lakelog.core.data.table_version import TableVersion
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.filters.filter import Filter

__all__ = ["Scan"]


class Scan:
    """One read of a snapshot."""

    def __init__(
        self,
        snapshot: TableVersion,
        columns: str | Sequence[str] | None = None,
        where: Filter | None = None,
    ) -> None:
        """Resolve columns and condition against the schema; nothing is read yet.

        Raises:
            DeltaAnalysisError: a column that does not exist, or is given twice.
            InvalidPredicateError: the condition can't be parsed or names an unknown column.
        """
        self._snapshot = snapshot
        self._schema = snapshot.read_schema
        self._expression: Expression | None = None
        needed: set[str] = set()
        if where is not None:
            from lakelog.core.expressions.tree import columns as columns_of
            from lakelog.core.filters.filter import normalize_filter

            self._expression = normalize_filter(
                where,
                self._schema,
                session_tz=snapshot.conf.session_tz,
                now_ms=snapshot.clock.now_ms(),
            )
            if self._expression is not None:
                needed = {path[0].lower() for path in columns_of(self._expression)}
        chosen = None if columns is None else as_list(columns)
        self._output = _chosen(snapshot, self._schema, chosen)
        shown = {each.name for each in self._output}
        hidden = [f for f in self._schema if f.name.lower() in needed and f.name not in shown]
        self._read = StructType((*self._output, *hidden))
        self._files = TableFileReader(snapshot, self._read, self._expression)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of what comes out."""
        return to_arrow_schema(self._output)

    def to_arrow(self) -> pa.Table:
        """All rows.

        Raises:
            DataFileMissingError: the log lists a file that the storage does not have.
            DataFileError: a damaged deletion vector, or a file without the ids of its columns.
            InvalidPredicateError: the condition can't be evaluated here.
        """
        tables = list(self._tables())
        if not tables:
            return empty_table(self.schema)
        if not len(self._output):
            return without_columns(sum(table.num_rows for table in tables))
        return pa.concat_tables(tables)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, piece by piece; see `to_arrow`."""
        for table in self._tables():
            yield from table.to_batches()

    def head(self, limit: int) -> pa.Table:
        """The first rows, in the order of the log; see `to_arrow`.

        Row group after row group is read, and none once there are enough.

        Args:
            limit: how many rows, at most.
        """
        self._check_filter()
        found: list[pa.Table] = []
        for file in self._files.find(self._snapshot.file_table_for(self._expression)):
            for table in self._pieces(file):
                found.append(table.slice(0, limit))
                limit -= found[-1].num_rows
                if limit <= 0:
                    return pa.concat_tables(found)
        return pa.concat_tables(found) if found else empty_table(self.schema)

    def _pieces(self, file: DataFile) -> Iterator[pa.Table]:
        """The rows of a file that come out, by row groups."""
        deleted, start = self._files.deleted(file), 0
        gone: Any = None
        for piece in self._files.pieces(file):
            rows, here = piece.rows, slice(start, start + piece.count)
            start += piece.count
            if rows is None:
                continue
            if deleted is not None:
                gone = deleted(piece.total) if gone is None else gone
                rows = rows.filter(pc.invert(gone[here]))
            yield self._shown(rows)

    def _tables(self) -> Iterator[pa.Table]:
        """A table a file, in the order of the log."""
        self._check_filter()
        files = self._files.find(self._snapshot.file_table_for(self._expression))
        yield from in_order(self._table, files, min(2 * (os.cpu_count() or 1), 32))

    def _check_filter(self) -> None:
        """Refuse what can't be evaluated, before any file is opened; also where none would be."""
        if self._expression is not None:
            from lakelog.core.filters.to_arrow import evaluate_mask

            nothing = empty_table(to_arrow_schema(self._read))
            evaluate_mask(self._expression, nothing, self._schema)

    def _table(self, file: DataFile) -> pa.Table:
        return self._shown(self._files.rows(file))

    def _shown(self, table: pa.Table) -> pa.Table:
        """The rows for which the condition is true, and the columns that were asked for."""
        if self._expression is not None:
            from lakelog.core.filters.to_arrow import evaluate_mask

            table = table.filter(evaluate_mask(self._expression, table, self._schema))
        return table.select([each.name for each in self._output])


def _chosen(
    snapshot: TableVersion, schema: StructType, columns: Sequence[str] | None
) -> StructType:
    if columns is None:
        return schema
    found: dict[str, StructField] = {}
    for name in columns:
        each = schema.get(name)
        if each is None:
            raise DeltaAnalysisError(
                f"{snapshot.table} has no column {name!r}; it has {', '.join(schema.names)}",
                table=snapshot.table,
                column=name,
            )
        if each.name in found:
            raise DeltaAnalysisError(
                f"the column {name!r} is requested twice", table=snapshot.table, column=name
            )
        found[each.name] = each
    return StructType(tuple(found.values()))
