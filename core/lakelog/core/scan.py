"""Reading the rows of a snapshot: data files to Arrow, exactly in the table's types.

Files are read by a few threads, in order, never more than a window ahead of whoever takes the
batches. `file_rows` says what becomes of one file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrow_types import to_arrow_schema
from lakelog.core.deletion_vectors import DeletionVector, vector_path
from lakelog.core.errors import CorruptLogError, DataFileMissingError, DeltaAnalysisError
from lakelog.core.file_rows import RowReader, in_order, without_columns
from lakelog.core.paths import data_path
from lakelog.core.schema import StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lakelog.core.expressions import Expression, Filter
    from lakelog.core.snapshot import Snapshot
    from lakelog.logstores._contract import LogStore

__all__ = ["DataStores", "Scan"]


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    """Where the storage has it."""
    partition: dict[str, Any]
    """Partition column -> scalar."""
    partition_values: dict[str, str | None]
    """The same as the log has it."""
    vector: DeletionVector | None = None


class DataStores:
    """Which store has a data file: the table's, unless the log names another by a full URI."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Make no store yet."""
        self._snapshot = snapshot
        self._others: dict[str, LogStore] = {}

    def of(self, path: str) -> LogStore:
        """The store of a storage path."""
        root, snapshot = _root(path), self._snapshot
        if root == _root(snapshot.table):
            return snapshot.store
        if root not in self._others:
            from lakelog.logstores import log_store_for

            self._others[root] = log_store_for(path, snapshot.conf)
        return self._others[root]

    def vector(self, descriptor: Mapping[str, Any], data_file: str) -> DeletionVector:
        """The deletion vector of a data file, not read yet.

        Raises:
            CorruptLogError: the log does not say where it is.
        """
        table, version = self._snapshot.table, self._snapshot.version
        try:
            path = vector_path(descriptor, table)
            place = "" if path is None else self.of(path).filesystem_path(path)
            return DeletionVector.of(descriptor, place, table, version, data_file)
        except ValueError as exc:
            raise CorruptLogError(
                f"the deletion vector of {data_file} in version {version} of {table} can't be "
                f"found: {exc}",
                table=table,
                path=data_file,
                version=version,
            ) from exc


class Scan:
    """One read of a snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,  # noqa: A002  # as in `Snapshot.to_arrow`
    ) -> None:
        """Resolve columns and filter against the schema; read nothing.

        Raises:
            DeltaAnalysisError: a column that does not exist, or one twice.
            InvalidPredicateError: the filter can't be parsed or names an unknown column.
        """
        self._snapshot = snapshot
        self._partitioned = bool(snapshot.partition_columns)
        self._schema = snapshot.read_schema
        self._expression: Expression | None = None
        needed: set[str] = set()
        if filter is not None:
            from lakelog.core.expressions import columns as columns_of
            from lakelog.core.expressions import normalize_filter

            self._expression = normalize_filter(filter, self._schema)
            if self._expression is not None:
                needed = {path[0].lower() for path in columns_of(self._expression)}
        self._output = _chosen(snapshot, self._schema, columns)
        shown = {each.name for each in self._output}
        hidden = [f for f in self._schema if f.name.lower() in needed and f.name not in shown]
        self._read = StructType((*self._output, *hidden))
        self._reader = RowReader(
            self._schema,
            tuple(snapshot.partition_columns),
            self._read,
            self._expression,
            snapshot.properties.column_mapping_mode,
        )
        self._stores = DataStores(snapshot)

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
        yield from in_order(self._table, self._files(), min(2 * (os.cpu_count() or 1), 32))

    def _check_filter(self) -> None:
        """Refuse what can't be evaluated before any file is opened, or none is left to open."""
        if self._expression is not None:
            from lakelog.core.evaluate import evaluate_mask

            nothing = to_arrow_schema(self._read).empty_table()
            evaluate_mask(self._expression, nothing, self._schema)

    def _files(self) -> list[_File]:
        from lakelog.core.partitions import typed_partition_table

        rows = self._snapshot.file_table_for(self._expression)
        paths = [data_path(self._snapshot.table, path) for path in rows["path"].to_pylist()]
        files = [_File(path, {}, {}) for path in paths]
        if self._partitioned:
            values = typed_partition_table(rows, self._snapshot.partition_schema)
            texts = rows["partition_values"].to_pylist()
            files = [
                _File(path, {name: values[name][i] for name in values.column_names}, dict(text))
                for i, (path, text) in enumerate(zip(paths, texts, strict=True))
            ]
        vectors = rows["deletion_vector"]
        if vectors.null_count == rows.num_rows:
            return files
        return [
            file if found is None else replace(file, vector=self._stores.vector(found, file.path))
            for file, found in zip(files, vectors.to_pylist(), strict=True)
        ]

    def _table(self, file: _File) -> pa.Table:
        try:
            table = self._rows(file)
        except DataFileMissingError:
            raise
        except FileNotFoundError as exc:
            version = self._snapshot.version
            raise DataFileMissingError(
                f"the data file {file.path} is missing: version {version} of "
                f"{self._snapshot.table} lists it. Vacuum may have deleted it, if the version is "
                "older than the retention, or somebody did by hand. Read a newer version, or "
                "restore the file.",
                table=self._snapshot.table,
                path=file.path,
                version=version,
            ) from exc
        except Exception as exc:
            exc.add_note(f"while reading {file.path}, a file of {self._snapshot!r}")
            raise
        if self._expression is not None:
            from lakelog.core.evaluate import evaluate_mask

            table = table.filter(evaluate_mask(self._expression, table, self._schema))
        return table.select([each.name for each in self._output])

    def _rows(self, file: _File) -> pa.Table:
        """The rows of a file that may match, with the columns of `_read`."""
        store = self._stores.of(file.path)
        path, deleted = store.filesystem_path(file.path), None
        if file.vector is not None:
            # A clone's vectors may lie in another storage than its files.
            where = store if file.vector.path is None else self._stores.of(file.vector.path)
            deleted = partial(file.vector.deleted, where.filesystem)
        return self._reader.rows(
            store.filesystem, path, file.partition, file.partition_values, deleted=deleted
        )


def _root(uri: str) -> str:
    """Scheme and authority; empty for a local path."""
    return "/".join(uri.split("/", 3)[:3]) if "://" in uri else ""


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
