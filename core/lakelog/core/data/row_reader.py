"""The rows of one data file, exactly in the table's types.

What a file lacks is null; what it has in a narrower type is widened; partition columns come from
the log and not from the file; rows of a deletion vector are left out. A `RowReader` is picklable
and knows no store, so that an engine can send it to wherever the files are read.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from lakelog.core.arrays import integers
from lakelog.core.arrow.arrow_casts import cast_table
from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.arrow.encodings import table_bytes
from lakelog.core.arrow.limited_text import with_padding
from lakelog.core.arrow.repeated import repeated
from lakelog.core.compute import pc
from lakelog.core.data.parquet import as_utc, matching_row_groups
from lakelog.core.errors import DataFileError
from lakelog.core.expressions.tree import columns as columns_of
from lakelog.core.schema import StructType
from lakelog.core.schema.column_mapping import (
    by_field_id,
    by_name,
    by_physical_name,
    field_id,
    physical_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyarrow.fs import FileSystem

    from lakelog.core.expressions.tree import Expression
    from lakelog.core.schema.column_mapping import Match

BATCH_ROWS = 1 << 16
"""The rows of a batch by default, unless the rows are long."""
_BATCH_BYTES = 16 << 20
_PIECE_ROWS, _PIECE_BYTES = 1 << 18, 32 << 20
"""Of a piece: commands work on larger ones faster."""
_FIRST_ROWS, _GROWTH = 64, 16
"""Each batch has at most so many times the rows of the one before it, from which its size is
known."""
_BUFFER_BYTES = 1 << 20
"""What is read at once of a column on a local disk."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a file that follow each other, including those that a deletion vector removed."""

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
    looks: bool = False
    """Whether values decide about row groups where statistics don't: of a disk, the columns of
    `prune` are read first."""

    def rows(
        self,
        filesystem: FileSystem,
        path: str,
        partition: Mapping[str, Any],
        partition_values: Mapping[str, str | None],
        deleted: Callable[[int], pa.BooleanArray] | None = None,
    ) -> pa.Table:
        """All rows of a file that may match, in memory; see `batches`.

        Args:
            filesystem: has the file.
            path: as the file system spells it.
            partition: partition column -> Arrow scalar of its type.
            partition_values: the same as the log has it.
            deleted: given the number of the file's rows, which of them are deleted.

        Raises:
            FileNotFoundError: no such file.
            DataFileError: columns are found by field ids, and the file has none.
        """
        with self._opened(filesystem, path) as parquet:
            names = self._sources(parquet.schema_arrow, path)
            groups = self._groups(parquet.metadata, partition_values, (0, 1))
            if self.looks and filesystem.type_name == "local":
                groups = self._seen_to_match(parquet, path, groups, names, partition)
            kept = None if deleted is None else _kept(parquet.metadata, groups, deleted)
            count = sum(parquet.metadata.row_group(i).num_rows for i in groups)
            data = None
            if names and groups:
                data = parquet.read_row_groups(groups, columns=names, use_threads=False)
            elif names:  # pyarrow 18.0 can't read none
                data = parquet.schema_arrow.empty_table().select(names)
            return self._formed(data, count, partition, kept)

    def pieces(
        self,
        filesystem: FileSystem,
        path: str,
        partition: Mapping[str, Any],
        partition_values: Mapping[str, str | None],
        *,
        use_threads: bool = False,
    ) -> Iterator[Piece]:
        """All rows of a file, a few at a time, so that each row's position is known.

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
            total = parquet.metadata.num_rows
            for group in range(parquet.metadata.num_row_groups):
                if group not in wanted:
                    yield Piece(parquet.metadata.row_group(group).num_rows, None, total)
                    continue
                found = _bounded(
                    parquet, group, names, _PIECE_ROWS, _PIECE_BYTES, use_threads=use_threads
                )
                for data in found:
                    count = data.num_rows
                    rows = self._formed(data if names else None, count, partition)
                    yield Piece(count, rows, total)

    def batches(
        self,
        filesystem: FileSystem,
        path: str,
        partition: Mapping[str, Any],
        partition_values: Mapping[str, str | None],
        batch_rows: int | None = None,
        deleted: Callable[[int], pa.BooleanArray] | None = None,
        share: tuple[int, int] = (0, 1),
        position: str | None = None,
    ) -> Iterator[pa.Table]:
        """The rows of a file that may match, a few at a time.

        Memory follows from how long the rows are once they are decoded, however large the file's
        row groups are, and however few bytes say it all.

        Args:
            filesystem: has the file.
            path: as the file system spells it.
            partition: partition column -> Arrow scalar of its type.
            partition_values: the same as the log has it.
            batch_rows: how many rows at most, and fewer of them where rows are long; where it is
                `None`, `BATCH_ROWS`.
            deleted: given the number of the file's rows, which of them are deleted.
            share: which part of how many: the row groups are dealt out in runs.
            position: the name of a last column with each row's position in the file, from 0.

        Raises:
            FileNotFoundError: no such file.
            DataFileError: columns are found by field ids, and the file has none.
        """
        with self._opened(filesystem, path, buffer_bytes=_BUFFER_BYTES) as parquet:
            names = self._sources(parquet.schema_arrow, path)
            metadata = parquet.metadata
            gone = None if deleted is None else deleted(metadata.num_rows)
            sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
            groups = self._groups(metadata, partition_values, share)
            if self.looks and filesystem.type_name == "local":
                groups = self._seen_to_match(parquet, path, groups, names, partition)
            for group in groups:
                at = sum(sizes[:group])
                found = _bounded(parquet, group, names, batch_rows or BATCH_ROWS, _BATCH_BYTES)
                for data in found:
                    start, count = at, data.num_rows
                    at += count
                    kept = None if gone is None else pc.invert(gone.slice(start, count))
                    rows = self._formed(data if names else None, count, partition, kept)
                    if position is not None:
                        places = integers(range(start, at), pa.int64())
                        places = places if kept is None else places.filter(kept)
                        rows = rows.append_column(position, places)
                    yield rows

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

    def _seen_to_match(
        self,
        parquet: Any,
        path: str,
        groups: list[int],
        names: Sequence[str],
        partition: Mapping[str, Any],
    ) -> list[int]:
        """The row groups that have a row for which `prune` is true, unless most of them have."""
        if self.prune is None or len(groups) < 2:
            return groups
        needed = {each[0].lower() for each in columns_of(self.prune)}
        shown = StructType(tuple(field for field in self.read if field.name.lower() in needed))
        if len(shown) < len(needed):
            return groups
        reader = replace(self, read=shown, prune=None)
        sources = reader._sources(parquet.schema_arrow, path)
        if not sources or len(sources) == len(names):
            return groups  # nothing else would be read
        try:
            from lakelog.core.expressions.arrow.masks import typed_mask

            mask = typed_mask(self.prune, self.schema)
            types = [parquet.schema_arrow.field(each).type for each in sources]

            def has_match(group: int) -> bool:
                found: Iterable[pa.Table]
                if all(map(pa.types.is_primitive, types)):
                    found = [parquet.read_row_group(group, columns=sources, use_threads=False)]
                else:  # which may be longer than what is stored
                    found = _bounded(parquet, group, sources, _PIECE_ROWS, _PIECE_BYTES)
                formed = (reader._formed(data, data.num_rows, partition) for data in found)
                return any(mask(rows).true_count for rows in formed)

            matching: list[int] = []
            for place, group in enumerate(groups):
                if has_match(group):
                    matching.append(group)
                if 2 * len(matching) > place + 2:
                    return matching + groups[place + 1 :]
        except Exception:  # of a row that is deleted, as a division by its zero
            return groups
        return matching


def _bounded(
    parquet: Any,
    group: int,
    names: Sequence[str],
    most_rows: int,
    most_bytes: int,
    *,
    use_threads: bool = False,
) -> Iterator[pa.Table]:
    """A row group in tables of limited size; without columns where there are no names.

    A footer tells how long rows are when they are encoded. One text that a million rows share is
    stored once, and each of them gets a copy: only rows that are decoded tell how long they are.
    """
    about = parquet.metadata.row_group(group)
    if not names:
        for start in range(0, about.num_rows, most_rows):
            yield without_columns(min(most_rows, about.num_rows - start))
        return
    # No text is longer than all that is stored.
    rows = min(most_rows, max(_FIRST_ROWS, most_bytes // max(about.total_byte_size, 1)))
    found = parquet.iter_batches(rows, row_groups=[group], columns=names, use_threads=use_threads)
    held: list[pa.Table] = []
    count = size = 0
    for batch in found:
        table = pa.Table.from_batches([batch])
        # The file may say that Arrow keeps the dictionary of a column.
        decoded = table_bytes(table)
        held.append(table)
        count, size = count + table.num_rows, size + decoded
        width = max(decoded // table.num_rows, 1)
        room = min(most_rows - count, (most_bytes - size) // width)
        if room < 1:
            yield pa.concat_tables(held)
            held, count, size = [], 0, 0
            room = max(min(most_rows, most_bytes // width), 1)
        rows = min(room, _GROWTH * rows)
        # Each batch is read with the number that is set by then.
        parquet.reader.set_batch_size(rows)
    if held:
        yield pa.concat_tables(held)


def _kept(
    metadata: Any, groups: Sequence[int], deleted: Callable[[int], pa.BooleanArray]
) -> pa.BooleanArray:
    """Which rows of some row groups are left; rows are counted through the whole file."""
    gone = deleted(metadata.num_rows)
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    ends = list(accumulate(sizes))
    parts = [pc.invert(gone.slice(ends[i] - sizes[i], sizes[i])) for i in groups]
    return pa.concat_arrays(parts) if parts else pa.nulls(0, pa.bool_())


def without_columns(rows: int) -> pa.Table:
    """A table of `count` rows without columns, which joining or building tables would lose."""
    return pa.table({"_": pa.nulls(rows)}).select([])
