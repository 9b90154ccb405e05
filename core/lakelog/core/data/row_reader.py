"""The rows of one data file, exactly in the table's types.

What a file lacks is null; what it has in a narrower type is widened; partition columns come from
the log and not from the file; rows of a deletion vector are left out. A `RowReader` is picklable
and knows no store, so that an engine can send it to wherever the files are read.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pyarrow as pa

from lakelog.core.arrays import integers
from lakelog.core.arrow.arrow_casts import cast_table
from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.arrow.limited_text import with_padding
from lakelog.core.arrow.repeated import repeated
from lakelog.core.compute import pc
from lakelog.core.data.parquet import as_utc, matching_row_groups
from lakelog.core.errors import DataFileError
from lakelog.core.schema import StructType
from lakelog.core.schema.column_mapping import (
    by_field_id,
    by_name,
    by_physical_name,
    field_id,
    physical_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyarrow.fs import FileSystem

    from lakelog.core.expressions.tree import Expression
    from lakelog.core.schema.column_mapping import Match

_T = TypeVar("_T")
_R = TypeVar("_R")

BATCH_ROWS = 1 << 16
"""The rows of a batch by default, unless the rows are long."""
_BATCH_BYTES = 16 << 20
_BUFFER_BYTES = 1 << 20
"""What is read at once of a column on a local disk."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A row group with all its rows, including those that a deletion vector removed."""

    count: int
    rows: pa.Table | None
    """`None` where `RowReader.prune` is true for none of them."""
    total: int
    """The rows of the whole file."""


@dataclass(frozen=True)
class RowReader:
    """Reads files of one version of a table."""

    schema: StructType
    """The table's, as `Snapshot.read_schema` has it; so with the fields of `read`."""
    partition_columns: tuple[str, ...]
    read: StructType
    """The columns that come out, in order; some of the table's."""
    prune: Expression | None = None
    """Row groups without a row for which it is true are left out."""
    mapping: str = "none"
    """The table's mode of column mapping."""
    session_tz: str = "UTC"
    """The zone of partition values that name none."""
    purpose: Literal["read", "tell"] = "read"
    """As `cast_table` has it."""

    def rows(
        self,
        filesystem: FileSystem,
        path: str,
        partition: Mapping[str, Any],
        partition_values: Mapping[str, str | None],
        share: tuple[int, int] = (0, 1),
        deleted: Callable[[int], pa.BooleanArray] | None = None,
        position: str | None = None,
    ) -> pa.Table:
        """The rows of a file that may match.

        Args:
            filesystem: has the file.
            path: as the file system spells it.
            partition: partition column -> Arrow scalar of its type.
            partition_values: the same as the log has it.
            share: which part of how many: the row groups are dealt out in runs.
            deleted: given the number of the file's rows, which of them are deleted.
            position: the name of a last column with each row's position in the file, from 0.

        Raises:
            FileNotFoundError: no such file.
            DataFileError: columns are found by field ids, and the file has none.
        """
        with self._opened(filesystem, path) as parquet:
            names = self._sources(parquet.schema_arrow, path)
            groups = self._groups(parquet.metadata, partition_values, share)
            kept = None if deleted is None else _kept(parquet.metadata, groups, deleted)
            rows = self._read(parquet, names, groups, partition, kept)
            if position is None:
                return rows
            places = _positions(parquet.metadata, groups)
            places = places if kept is None else places.filter(kept)
            return rows.append_column(position, places)

    def pieces(
        self,
        filesystem: FileSystem,
        path: str,
        partition: Mapping[str, Any],
        partition_values: Mapping[str, str | None],
        *,
        use_threads: bool = False,
    ) -> Iterator[Piece]:
        """All rows of a file, by row groups, so that each row's position is known.

        Args:
            filesystem: has the file.
            path: as the file system spells it.
            partition: partition column -> Arrow scalar of its type.
            partition_values: the same as the log has it.
            use_threads: whether pyarrow's threads decode the columns side by side. It gains
                nothing where several files are read at once.

        Raises:
            FileNotFoundError: no such file.
            DataFileError: columns are found by field ids, and the file has none.
        """
        with self._opened(filesystem, path) as parquet:
            names = self._sources(parquet.schema_arrow, path)
            wanted = set(self._groups(parquet.metadata, partition_values, (0, 1)))
            for group in range(parquet.metadata.num_row_groups):
                count = parquet.metadata.row_group(group).num_rows
                rows = None
                if group in wanted:
                    rows = self._read(parquet, names, [group], partition, use_threads=use_threads)
                yield Piece(count, rows, parquet.metadata.num_rows)

    def batches(
        self,
        filesystem: FileSystem,
        path: str,
        partition: Mapping[str, Any],
        partition_values: Mapping[str, str | None],
        batch_rows: int | None = None,
        deleted: Callable[[int], pa.BooleanArray] | None = None,
    ) -> Iterator[pa.Table]:
        """The rows that `rows` has, a few at a time, however large the file's row groups are.

        Args:
            filesystem: has the file.
            path: as the file system spells it.
            partition: partition column -> Arrow scalar of its type.
            partition_values: the same as the log has it.
            batch_rows: how many rows at most; where it is `None`, `BATCH_ROWS`, and fewer of them
                where rows are long.
            deleted: given the number of the file's rows, which of them are deleted.

        Raises:
            FileNotFoundError: no such file.
            DataFileError: columns are found by field ids, and the file has none.
        """
        with self._opened(filesystem, path, buffer_bytes=_BUFFER_BYTES) as parquet:
            names = self._sources(parquet.schema_arrow, path)
            metadata = parquet.metadata
            gone = None if deleted is None else deleted(metadata.num_rows)
            sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
            for group in self._groups(metadata, partition_values, (0, 1)):
                at = sum(sizes[:group])
                rows = batch_rows or _batch_rows(metadata.row_group(group))
                for data in _pieces_of(parquet, group, names, rows):
                    count = data.num_rows
                    kept = None if gone is None else pc.invert(gone.slice(at, count))
                    at += count
                    yield self._formed(data if names else None, count, partition, kept)

    def file_schema(self, filesystem: FileSystem, path: str) -> pa.Schema:
        """The columns of a file, under its own names.

        Raises:
            FileNotFoundError: no such file.
        """
        with self._opened(filesystem, path) as parquet:
            return parquet.schema_arrow

    @contextmanager
    def _opened(self, filesystem: FileSystem, path: str, buffer_bytes: int = 0) -> Iterator[Any]:
        import pyarrow.parquet as pq

        # Many small reads cost little on a disk; on an object store each one is a request.
        joined = filesystem.type_name != "local"
        source = filesystem.open_input_file(path)
        with (
            source,
            pq.ParquetFile(
                source,
                coerce_int96_timestamp_unit="us",
                pre_buffer=joined,
                buffer_size=0 if joined else buffer_bytes,
            ) as parquet,
        ):
            yield parquet

    def _read(
        self,
        parquet: Any,
        names: Sequence[str],
        groups: Sequence[int],
        partition: Mapping[str, Any],
        kept: pa.BooleanArray | None = None,
        *,
        use_threads: bool = False,
    ) -> pa.Table:
        """The rows of some row groups, or of them those that are kept."""
        count = sum(parquet.metadata.row_group(i).num_rows for i in groups)
        data = None
        if names:
            data = parquet.read_row_groups(groups, columns=names, use_threads=use_threads)
        return self._formed(data, count, partition, kept)

    def _formed(
        self,
        data: pa.Table | None,
        count: int,
        partition: Mapping[str, Any],
        kept: pa.BooleanArray | None = None,
    ) -> pa.Table:
        """Rows as a file has them, in the form of the table; `None` where it has no column."""
        rows = None
        if data is not None and self.mapping == "none" and data.schema.equals(self._stored_as):
            rows = data
        elif data is not None:
            data = as_utc(data, self._stored, self._match)
            rows = cast_table(data, self._stored, purpose=self.purpose, match=self._match)
        if rows is not None:
            rows = with_padding(rows, self._stored)
        if kept is not None:
            count = kept.true_count
            rows = None if rows is None else rows.filter(kept)
        columns = []
        for field, target in zip(self.read, self._formed_as, strict=True):
            if field.name in self.partition_columns:
                columns.append(repeated(partition[field.name], count))
            elif rows is None:
                columns.append(pa.nulls(count, target.type))
            else:
                columns.append(rows.column(field.name))
        if not columns:
            return without_columns(count)
        return pa.Table.from_arrays(columns, schema=self._formed_as)

    @cached_property
    def _formed_as(self) -> pa.Schema:
        """`read`, as rows have it."""
        return to_arrow_schema(self.read)

    @cached_property
    def _stored(self) -> StructType:
        """The columns of `read` that files contain."""
        return StructType(tuple(f for f in self.read if f.name not in self.partition_columns))

    @cached_property
    def _stored_as(self) -> pa.Schema:
        """`_stored`, as rows have it."""
        return to_arrow_schema(self._stored)

    @property
    def _match(self) -> Match:
        return {"none": by_name, "name": by_physical_name, "id": by_field_id}[self.mapping]

    def _sources(self, file: pa.Schema, path: str) -> list[str]:
        """The names of the file's columns to read: one for each of `_stored` that it has."""
        stored = self._stored
        if self.mapping == "id" and len(file) and all(field_id(each) is None for each in file):
            raise DataFileError(
                f"{path} has no field ids, but the table finds its columns by them "
                "(delta.columnMapping.mode=id), so its columns can't be identified. Rewrite its "
                "rows with a client that supports column mapping.",
                path=path,
            )
        found: dict[str, str] = {}
        for each, field in zip(file, self._match(file, stored), strict=True):
            if field is not None and (field.name not in found or each.name == physical_name(field)):
                found[field.name] = each.name
        return [found[each.name] for each in stored if each.name in found]

    def _groups(
        self, metadata: Any, partition_values: Mapping[str, str | None], share: tuple[int, int]
    ) -> list[int]:
        part, parts = share
        count = metadata.num_row_groups
        mine = range(part * count // parts, (part + 1) * count // parts)
        if self.prune is None or len(mine) < 2:
            return list(mine)
        kept = matching_row_groups(
            metadata,
            self.prune,
            self.schema,
            self.partition_columns,
            partition_values,
            self._match,
            session_tz=self.session_tz,
        )
        return [group for group in kept if group in mine]


def _pieces_of(parquet: Any, group: int, names: Sequence[str], rows: int) -> Iterator[pa.Table]:
    """A row group, so many rows at a time; without columns where there are no names."""
    if names:
        found = parquet.iter_batches(rows, row_groups=[group], columns=names, use_threads=False)
        for batch in found:
            yield pa.Table.from_batches([batch])
        return
    total = parquet.metadata.row_group(group).num_rows
    for start in range(0, total, rows):
        yield without_columns(min(rows, total - start))


def _batch_rows(group: Any) -> int:
    """How many rows of a row group make a batch of a size that several of fit into memory."""
    width: int = group.total_byte_size // max(group.num_rows, 1)
    return max(1, min(BATCH_ROWS, _BATCH_BYTES // max(width, 1)))


def _kept(
    metadata: Any, groups: Sequence[int], deleted: Callable[[int], pa.BooleanArray]
) -> pa.BooleanArray:
    """Which rows of some row groups are left; rows are counted through the whole file."""
    gone = deleted(metadata.num_rows)
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    ends = list(accumulate(sizes))
    parts = [pc.invert(gone.slice(ends[i] - sizes[i], sizes[i])) for i in groups]
    return pa.concat_arrays(parts) if parts else pa.nulls(0, pa.bool_())


def _positions(metadata: Any, groups: Sequence[int]) -> pa.Array:
    """The positions of the rows of some row groups, counted through the whole file."""
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    ends = list(accumulate(sizes))
    parts = [integers(range(ends[i] - sizes[i], ends[i]), pa.int64()) for i in groups]
    return pa.concat_arrays(parts) if parts else pa.nulls(0, pa.int64())


def without_columns(rows: int) -> pa.Table:
    """A table of `count` rows without columns, which joining or building tables would lose."""
    return pa.table({"_": pa.nulls(rows)}).select([])


def reading_workers() -> int:
    """How many threads read data files: those of pyarrow decode, and these mostly wait."""
    return min(2 * (os.cpu_count() or 1), 32)


def in_order(function: Callable[[_T], _R], items: Sequence[_T], workers: int) -> Iterator[_R]:
    """`map` by some threads, never more than twice as many results ahead of the consumer."""
    if len(items) < 2:
        yield from map(function, items)
        return
    from concurrent.futures import Future, ThreadPoolExecutor

    pending: deque[Future[_R]] = deque()
    workers = min(workers, len(items))
    with ThreadPoolExecutor(workers, "lakelog-scan") as pool:
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) > 2 * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for each in pending:
                each.cancel()
