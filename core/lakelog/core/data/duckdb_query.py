"""A scan as a relation of DuckDB, which asks for its columns and its condition.

It asks datasets of pyarrow so, by expressions of pyarrow, and does not look at the rows again: the
whole condition is evaluated here, as pyarrow does. A condition of comparisons of columns with
values also leaves out files and row groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    Narrowed = Callable[[Sequence[str] | None, Any], Any]

_KNOWS_NAN = 2
"""The major version of DuckDB since which its conditions find NaN."""


def duckdb_relation(
    schema: pa.Schema, narrowed: Narrowed, duckdb: Any, connection: DuckDBPyConnection | None
) -> DuckDBPyRelation:
    """A relation whose rows are read when a query runs.

    Args:
        schema: of the rows.
        narrowed: `Scan.narrowed`, which gives them.
        duckdb: the module.
        connection: of DuckDB; its default one if `None`.

    Raises:
        DeltaAnalysisError: this DuckDB would lose rows.
    """
    version = str(duckdb.__version__)
    if int(version.partition(".")[0]) < _KNOWS_NAN:
        for each in schema:
            if _has_floats(each.type):
                raise DeltaAnalysisError(
                    f"DuckDB {version} loses the rows whose {each.name} is NaN when it pushes a "
                    f"condition into a scan; install duckdb>={_KNOWS_NAN}, leave the column out of "
                    "the scan, or name the scan itself in a query, which then reads all of it",
                    column=each.name,
                )
    asked = _as_dataset(schema, narrowed)
    given = {} if connection is None else {"connection": connection}
    relation: DuckDBPyRelation = duckdb.from_arrow(asked, **given)
    return relation


def _has_floats(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_floats(kind.field(at).type) for at in range(kind.num_fields))
    return bool(pa.types.is_floating(kind))


def _as_dataset(schema: pa.Schema, narrowed: Narrowed) -> Any:
    import pyarrow.dataset

    base: Any = pyarrow.dataset.Dataset

    class Asked(base):  # type: ignore[misc]
        """The part of a dataset's interface that DuckDB uses; handed to DuckDB only."""

        def __init__(self) -> None:
            """Don't make what is behind a dataset of pyarrow."""

        @property
        def schema(self) -> pa.Schema:
            """Of the rows."""
            return schema

        def scanner(self, columns: Sequence[str] | None = None, **asked: Any) -> _Scanner:
            """Some columns of the rows for which the condition `filter` is true."""
            return _Scanner(schema, narrowed, columns, asked.get("filter"))

    return Asked()


class _Scanner:
    """What DuckDB uses of a scanner."""

    def __init__(
        self,
        schema: pa.Schema,
        narrowed: Narrowed,
        columns: Sequence[str] | None,
        where: Any,
    ) -> None:
        self._where = where
        self._names = schema.names if columns is None else list(columns)
        if where is None:
            self._scan = narrowed(self._names, None)
        else:
            self._scan = narrowed(_needed(schema, self._names, where), where)
        read: pa.Schema = self._scan.schema
        self.projected_schema = pa.schema([read.field(name) for name in self._names])

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        if self._where is None:
            return self._scan.to_reader()
        return pa.RecordBatchReader.from_batches(self.projected_schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._scan.to_batches():
            rows = pa.Table.from_batches([batch]).filter(self._where)
            yield from rows.select(self._names).to_batches()


def _needed(schema: pa.Schema, names: Sequence[str], where: Any) -> list[str]:
    """These columns, and those that a condition names."""
    from lakelog.core.expressions.arrow.given import named_columns

    try:
        named, _ = named_columns(where, schema)
    except (pa.ArrowException, TypeError, ValueError):
        named = schema.names
    return list(dict.fromkeys([*names, *named]))
