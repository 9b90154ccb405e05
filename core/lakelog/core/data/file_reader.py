"""The data files of a snapshot: where each one is, and its rows, read by `row_reader`."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from lakelog.core.arrays import scalar_of
from lakelog.core.data.ahead import made_ahead
from lakelog.core.data.file_locations import DataPlaces
from lakelog.core.data.row_reader import RowReader
from lakelog.core.deletion_vectors.stored_vectors import DeletionVector, vector_path
from lakelog.core.errors import (
    READ_NEWER,
    CorruptLogError,
    DataFileError,
    DataFileMissingError,
    listed_file,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from lakelog.core.data.row_reader import Piece
    from lakelog.core.data.table_version import TableVersion
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.schema import StructType
    from lakelog.logstores.contract import LogStore

_AHEAD_BYTES = 64 << 20
"""Of rows that wait for who works on those before them: some of what is decoded while a row group
is encoded."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of the log, located but not read."""

    path: str
    """Where the storage has it."""
    partition: Mapping[str, Any]
    """Partition column -> scalar."""
    partition_values: Mapping[str, str | None]
    """The same as the log has it."""
    size: int = 0
    """Bytes; 0 where the log does not say."""
    vector: DeletionVector | None = None


class DataStores:
    """Which store has a data file: the table's, unless the log names another by a full URI."""

    def __init__(self, snapshot: TableVersion) -> None:
        """Start with no store; each one is made when it is needed."""
        self._snapshot = snapshot
        self.places: DataPlaces = DataPlaces(snapshot.table)
        self._others: dict[str, LogStore] = {}

    def for_path(self, path: str) -> LogStore:
        """The store of a storage path."""
        root, snapshot = storage_root(path), self._snapshot
        if root == storage_root(snapshot.table):
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
            if descriptor["storageType"] == "u" and path is not None:
                self.places.check(path, path.removeprefix(f"{table}/"))
            place = "" if path is None else self.for_path(path).filesystem_path(path)
            return DeletionVector.from_descriptor(descriptor, place, table, version, data_file)
        except ValueError as exc:
            raise CorruptLogError(
                f"the deletion vector of {data_file} in version {version} of {table} can't be "
                f"found: {exc}",
                table=table,
                path=data_file,
                version=version,
            ) from exc


class TableFileReader:
    """Finds and reads files of one version of a table."""

    def __init__(
        self,
        snapshot: TableVersion,
        read: StructType,
        prune: Expression | None = None,
        purpose: Literal["read", "tell"] = "read",
        *,
        looks: bool = False,
    ) -> None:
        """Prepare the reader; nothing is read yet.

        Args:
            snapshot: the version.
            read: the columns that come out; some of `Snapshot.read_schema`.
            prune: row groups without a row for which it is true are left out.
            purpose: as `cast_table` has it.
            looks: as `RowReader.looks` has it.
        """
        self._snapshot = snapshot
        self._stores = DataStores(snapshot)
        self.columns: frozenset[str] = frozenset(read.names)
        """The names of those that come out."""
        self.reader: RowReader = RowReader(
            snapshot.read_schema,
            tuple(snapshot.partition_columns),
            read,
            prune,
            snapshot.properties.column_mapping_mode,
            snapshot.conf.session_tz,
            purpose,
            looks,
        )

    def find(self, files: pa.Table) -> list[DataFile]:
        """The files of some rows of `FILE_SCHEMA`, in their order.

        Raises:
            CorruptLogError: the log does not say where a deletion vector is, or has a value of
                a partition column that comes out and that can't be read.
        """
        from lakelog.core.data.readable_partitions import readable_partitions

        snapshot = self._snapshot
        paths = self._stores.places.resolve(files["path"].to_pylist())
        sizes = [size or 0 for size in files["size"].to_pylist()]
        found = [DataFile(path, {}, {}, size) for path, size in zip(paths, sizes, strict=True)]
        if snapshot.partition_columns:
            values = readable_partitions(snapshot, files, self.columns)
            texts = files["partition_values"].to_pylist()
            found = [
                replace(
                    each,
                    partition={name: values[name][i] for name in values.column_names},
                    partition_values=dict(texts[i] or ()),
                )
                for i, each in enumerate(found)
            ]
        vectors = files["deletion_vector"]
        if vectors.null_count == files.num_rows:
            return found
        return [
            file if vector is None else replace(file, vector=self._stores.vector(vector, file.path))
            for file, vector in zip(found, vectors.to_pylist(), strict=True)
        ]

    def store_of(self, file: DataFile) -> LogStore:
        """The store that has a file."""
        return self._stores.for_path(file.path)

    def store_of_vector(self, file: DataFile) -> LogStore:
        """The store that has a file's deletion vector; that of the file where it has none."""
        # A clone's vectors may be in another storage than its files.
        path = None if file.vector is None else file.vector.path
        return self._stores.for_path(file.path if path is None else path)

    def rows(self, file: DataFile) -> pa.Table:
        """The rows of a file that may match `prune`, without those of its deletion vector.

        Raises:
            DataFileMissingError: the storage does not have it.
            DataFileError: a damaged deletion vector, or columns that can't be identified.
        """
        store = self._stores.for_path(file.path)
        with self._explained(file):
            return self.reader.rows(
                store.filesystem,
                store.filesystem_path(file.path),
                file.partition,
                file.partition_values,
                self.deleted(file),
            )

    def batches(self, file: DataFile, batch_rows: int | None = None) -> Generator[pa.Table]:
        """The rows of `rows`, a few at a time; see `RowReader.batches`.

        Raises:
            DataFileMissingError: the storage does not have it.
            DataFileError: a damaged deletion vector, or columns that can't be identified.
        """
        return self.batches_without(file, self.deleted(file), batch_rows)

    def batches_without(
        self,
        file: DataFile,
        deleted: Callable[[int], pa.BooleanArray] | None,
        batch_rows: int | None = None,
        reader: RowReader | None = None,
    ) -> Generator[pa.Table]:
        """The same, where the caller says which rows are left out.

        Args:
            file: from `find`.
            deleted: given the number of the file's rows, which of them; `None` for no row.
            batch_rows: as `RowReader.batches` has it.
            reader: reads it instead of this one's.
        """
        store = self._stores.for_path(file.path)
        with self._explained(file):
            yield from (reader or self.reader).batches(
                store.filesystem,
                store.filesystem_path(file.path),
                file.partition,
                file.partition_values,
                batch_rows,
                deleted,
            )

    def pieces(self, file: DataFile, *, use_threads: bool = False) -> Iterator[Piece]:
        """All rows of a file, deleted ones included, a few at a time; see `RowReader.pieces`.

        Args:
            file: the one to read.
            use_threads: whether its columns are decoded side by side.

        Raises:
            DataFileMissingError: the storage does not have it.
            DataFileError: columns that can't be identified.
        """
        store = self._stores.for_path(file.path)
        with self._explained(file):
            yield from self.reader.pieces(
                store.filesystem,
                store.filesystem_path(file.path),
                file.partition,
                file.partition_values,
                use_threads=use_threads,
            )

    def pieces_ahead(self, files: Iterable[DataFile]) -> Generator[tuple[int, Piece]]:
        """`pieces` of some files, each with the number of its file, read by another thread.

        Close it where no more is wanted.

        Raises:
            DataFileMissingError: the storage does not have one.
            DataFileError: columns that can't be identified.
        """
        numbered = (
            (number, piece)
            for number, file in enumerate(files)
            for piece in self.pieces(file, use_threads=True)
        )
        return made_ahead(numbered, _AHEAD_BYTES, _piece_bytes)

    def file_schema(self, file: DataFile) -> pa.Schema:
        """The columns that a file has, under its own names.

        Raises:
            DataFileMissingError: the storage does not have it.
        """
        store = self._stores.for_path(file.path)
        with self._explained(file):
            return self.reader.file_schema(store.filesystem, store.filesystem_path(file.path))

    def deleted(self, file: DataFile) -> Callable[[int], pa.BooleanArray] | None:
        """Which rows the deletion vector has, given the number of the file's rows."""
        vector = file.vector
        if vector is None:
            return None
        return partial(vector.deleted, self.store_of_vector(file).filesystem)

    def gone(self, file: DataFile, count: int | None) -> pa.BooleanArray:
        """Which rows of a file its deletion vector removed: none where it has no vector.

        Args:
            file: from `find`.
            count: its rows, deleted ones included; `None` where the log does not say: then the
                file is asked.

        Raises:
            DataFileMissingError: the storage does not have the file or the vector.
            DataFileError: a damaged deletion vector.
        """
        if count is None:
            count = sum(piece.count for piece in self.pieces(file))
        deleted = self.deleted(file)
        return pa.repeat(scalar_of(False, pa.bool_()), count) if deleted is None else deleted(count)

    def _seen_instead(self, file: DataFile, error: Exception) -> str | None:
        """What is wrong with a file that can't be read; `None` where that is not the reason."""
        store = self._stores.for_path(file.path)
        try:
            with store.filesystem.open_input_file(store.filesystem_path(file.path)) as source:
                size = source.size()
                begin = source.read_at(min(size, _HEAD), 0)
                end = source.read_at(min(size, len(_MAGIC)), max(size - len(_MAGIC), 0))
        except OSError:
            return None  # the storage fails
        if not size:
            return "it is empty"
        seen = _what_is_there(begin, end)
        return "it is damaged" if seen is None and isinstance(error, pa.ArrowInvalid) else seen

    @contextmanager
    def _explained(self, file: DataFile) -> Iterator[None]:
        snapshot = self._snapshot
        try:
            with listed_file(file.path, snapshot.table, snapshot.version, READ_NEWER):
                yield
        except DataFileMissingError:
            raise
        except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as exc:
            if seen := self._seen_instead(file, exc):
                raise DataFileError(
                    f"the data file {file.path} can't be read: {seen}. Version "
                    f"{snapshot.version} of {snapshot.table} lists it. Restore it from a backup, "
                    f"or write its rows again and remove it from the table. ({exc})",
                    table=snapshot.table,
                    path=file.path,
                    version=snapshot.version,
                ) from exc
            exc.add_note(f"while reading {file.path}, a file of {snapshot!r}")
            raise
        except Exception as exc:
            exc.add_note(f"while reading {file.path}, a file of {snapshot!r}")
            raise


_MAGIC = b"PAR1"
"""At both ends of a Parquet file."""
_HEAD = 64


def _what_is_there(begin: bytes, end: bytes) -> str | None:
    """What a file is that is no Parquet file; `None` for one that looks like one."""
    whole = begin.startswith(_MAGIC), end == _MAGIC
    if all(whole):
        return None
    if any(whole):
        return "it is cut off or was written over in part"
    text = begin.lstrip().lower()
    if text.startswith((b"<", b"{", b"[")):
        what = "HTML or XML" if text.startswith(b"<") else "JSON"
        return f"it is no Parquet file but begins like {what}: a proxy or an error page got stored"
    return "it is no Parquet file"


def _piece_bytes(numbered: tuple[int, Piece]) -> int:
    rows = numbered[1].rows
    return 0 if rows is None else int(rows.nbytes)


def storage_root(uri: str) -> str:
    """Scheme and authority; empty for a local path."""
    return "/".join(uri.split("/", 3)[:3]) if "://" in uri else ""
