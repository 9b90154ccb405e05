"""Reading the rows of a snapshot: data files to Arrow, exactly in the table's types.

Files are read by a few threads, in order, never more than a window ahead of whoever takes the
batches. `file_rows` says what becomes of one file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelog.core.arrow_types import to_arrow_schema
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.file_rows import in_order, without_columns
from lakelog.core.names import several
from lakelog.core.schema import StructField, StructType
from lakelog.core.table_files import TableFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakelog.core.expressions import Expression, Filter
    from lakelog.core.snapshot import Snapshot
    from lakelog.core.table_files import DataFile

__all__ = ["Scan"]


class Scan:
    """One read of a snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        columns: str | Sequence[str] | None = None,
        filter: Filter | None = None,  # noqa: A002  # as in `Snapshot.to_arrow`
    ) -> None:
        """Resolve columns and filter against the schema; read nothing.

        Raises:
            DeltaAnalysisError: a column that does not exist, or one twice.
            InvalidPredicateError: the filter can't be parsed or names an unknown column.
        """
        self._snapshot = snapshot
        self._schema = snapshot.read_schema
        self._expression: Expression | None = None
        needed: set[str] = set()
        if filter is not None:
            from lakelog.core.expressions import columns as columns_of
            from lakelog.core.expressions import normalize_filter

            self._expression = normalize_filter(
                filter,
                self._schema,
                session_tz=snapshot.conf.session_tz,
                now_ms=snapshot.clock.now_ms(),
            )
            if self._expression is not None:
                needed = {path[0].lower() for path in columns_of(self._expression)}
        chosen = None if columns is None else several(columns)
        self._output = _chosen(snapshot, self._schema, chosen)
        shown = {each.name for each in self._output}
        hidden = [f for f in self._schema if f.name.lower() in needed and f.name not in shown]
        self._read = StructType((*self._output, *hidden))
        self._files = TableFiles(snapshot, self._read, self._expression)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of what comes out."""
        return to_arrow_schema(self._output)

    def to_arrow(self) -> pa.Table:
        """All rows.

        Raises:
            DataFileMissingError: the log lists a file that the storage does not have.
            DataFileError: a damaged deletion vector, or a file without the ids of its columns.
            InvalidPredicateError: the filter can't be evaluated here.
        """
        tables = list(self._tables())
        if not tables:
            return self.schema.empty_table()
        if not len(self._output):
            return without_columns(sum(table.num_rows for table in tables))
        return pa.concat_tables(tables)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, piece by piece; see `to_arrow`."""
        for table in self._tables():
            yield from table.to_batches()

    def _tables(self) -> Iterator[pa.Table]:
        """A table a file, in the order of the log."""
        self._check_filter()
        files = self._files.find(self._snapshot.file_table_for(self._expression))
        yield from in_order(self._table, files, min(2 * (os.cpu_count() or 1), 32))

    def _check_filter(self) -> None:
        """Refuse what can't be evaluated before any file is opened, or none is left to open."""
        if self._expression is not None:
            from lakelog.core.evaluate import evaluate_mask

            nothing = to_arrow_schema(self._read).empty_table()
            evaluate_mask(self._expression, nothing, self._schema)

    def _table(self, file: DataFile) -> pa.Table:
        table = self._files.rows(file)
        if self._expression is not None:
            from lakelog.core.evaluate import evaluate_mask

            table = table.filter(evaluate_mask(self._expression, table, self._schema))
        return table.select([each.name for each in self._output])


def _chosen(snapshot: Snapshot, schema: StructType, columns: Sequence[str] | None) -> StructType:
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
                f"the column {name!r} is asked for twice", table=snapshot.table, column=name
            )
        found[each.name] = each
    return StructType(tuple(found.values()))
