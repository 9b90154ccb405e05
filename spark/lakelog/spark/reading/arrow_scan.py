"""A snapshot's files as a DataFrame, read by the executors' Python workers with pyarrow.

For storages that the session's Hadoop can't open, and for tables whose files Spark's own reader
would misread (`arrow_only_features`). The executors need pyarrow and no connector.
The store's file system travels to them with whatever credentials it holds, inside the function,
where neither plans nor logs show it; lakelog travels as an archive.

Spark prunes nothing of such a DataFrame: columns and files are chosen before (`DeltaReader.where`,
the option `columns`; commands that change rows choose by their conditions).
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.engine.scan import (
    DataStores,
    DeletionVector,
    RowReader,
    check_partition_values,
    partition_schema_of,
    read_ahead,
    typed_partition_table,
)
from lakelog.core.engine.schemas import mapped_like
from lakelog.core.engine.values import array_of, scalar_of, to_arrow_schema
from lakelog.core.errors import DataFileMissingError
from lakelog.core.schema import StructType
from lakelog.logstores.threads import DECODERS
from lakelog.spark.reading.joined import joined_batches
from lakelog.spark.reading.row_positions import FILE, ROW, with_places
from lakelog.spark.reading.task_files import most_files
from lakelog.spark.reading.variants import for_spark
from lakelog.spark.workers.executor_tasks import rows_on_executors, task_numbers
from lakelog.spark.workers.filesystems import for_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from pyarrow.fs import FileSystem
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType as SparkStructType

    from lakelog.core import Expression, Snapshot

_MOST_TASK_BYTES = 64 << 20
_LEAST_TASK_BYTES = 4 << 20
_WANTED_TASKS = 32
"""A table of fewer full tasks than this is cut into smaller ones, so that small tables use all
cores."""
_OF_VECTORS = ("path", "deletion_vector", "vector_place", "vector_filesystem")


@dataclass(frozen=True)
class ScanJob:
    """What is sent to the executors."""

    table: str
    version: int
    """The one whose columns come out."""
    reader: RowReader
    filesystems: list[FileSystem]
    files: pa.Table
    """`path`: where the storage has it; `place`: the same as file system number `filesystem`
    spells it; `partition_values`; `size`; `deletion_vector` as in `FILE_SCHEMA`, whose file is
    `vector_place` in file system number `vector_filesystem`; `version`: one that has the file."""
    pieces: pa.Table
    """`file`: a row of `files`; the row groups of share `part` of `parts`."""
    starts: list[int]
    """Task -> its first piece; one entry more at the end."""
    positions: bool = False
    """Whether rows come with `FILE`, the file's number as a string, and `ROW`."""

    @property
    def tasks(self) -> int:
        """How many there are."""
        return len(self.starts) - 1

    def only(self, kept: pa.ChunkedArray[Any]) -> ScanJob:
        """The same read of fewer files.

        Args:
            kept: for each of `files` whether it stays.
        """
        files = self.files.filter(kept)
        pieces, starts = _dealt(files["size"].to_pylist(), most_files(self.filesystems))
        return replace(self, files=files, pieces=pieces, starts=starts)

    def batches(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        first, end = self.starts[number : number + 2]
        pieces = self.pieces.slice(first, end - first)
        chosen = self.files.take(pieces["file"])
        names = self.reader.partition_columns
        schema = partition_schema_of(self.reader.schema, names)
        typed = (
            typed_partition_table(chosen, schema, session_tz=self.reader.session_tz)
            if names
            else None
        )

        def rows(row: int) -> Generator[pa.Table]:
            values = dict(chosen["partition_values"][row].as_py() or ())
            scalars = {name: typed[name][row] for name in names} if typed is not None else {}
            share = pieces["part"][row].as_py(), pieces["parts"][row].as_py()
            filesystem = self.filesystems[chosen["filesystem"][row].as_py()]
            place = chosen["place"][row].as_py()
            deleted = self._deleted({name: chosen[name][row].as_py() for name in _OF_VECTORS})
            number = scalar_of(str(pieces["file"][row].as_py()), pa.string())
            found = self.reader.batches(
                filesystem,
                place,
                scalars,
                values,
                deleted=deleted,
                share=share,
                position=ROW if self.positions else None,
            )
            try:
                for table in found:
                    if self.positions:
                        key = pa.repeat(number, table.num_rows)
                        table = table.add_column(table.num_columns - 1, FILE, key)
                    yield for_spark(table)
            # The file of a deletion vector, of which the error tells already.
            except DataFileMissingError:
                raise
            except FileNotFoundError as exc:
                file = {name: chosen[name][row].as_py() for name in ("path", "version")}
                raise self._missing(**file) from exc

        streams = (partial(rows, row) for row in range(len(pieces)))
        with closing(read_ahead(streams, workers=min(len(pieces), DECODERS))) as tables:
            yield from joined_batches(tables)

    def _deleted(self, file: Mapping[str, Any]) -> Callable[[int], pa.BooleanArray] | None:
        if file["deletion_vector"] is None:
            return None
        vector = DeletionVector.from_descriptor(
            file["deletion_vector"], file["vector_place"], self.table, self.version, file["path"]
        )
        return partial(vector.deleted, self.filesystems[file["vector_filesystem"] or 0])

    def _missing(self, path: str, version: int) -> DataFileMissingError:
        return DataFileMissingError(
            f"version {version} of {self.table} has the data file {path}, which does not "
            "exist. Restore the file, or read a version without it; if VACUUM deleted it, that "
            "version can no longer be read",
            path=path,
            table=self.table,
            version=version,
        )


class ArrowScan:
    """One read of a set of files of one version."""

    def __init__(
        self,
        snapshot: Snapshot,
        files: pa.Table,
        schema: SparkStructType,
        prune: Expression | None = None,
        *,
        positions: bool = False,
    ) -> None:
        """Distribute the files over tasks; nothing is opened yet.

        Args:
            snapshot: the version.
            files: rows of `FILE_SCHEMA`; `version` says which one has them, if not `snapshot`.
            schema: the columns to read, as a DataFrame shows them.
            prune: row groups without a row for which it is true may be left out.
            positions: whether rows come with `FILE` and `ROW`.

        Raises:
            CorruptLogError: the log does not say where a deletion vector is, or has a value of
                a partition column of `schema` that can't be read.
        """
        check_partition_values(snapshot, files, schema.names)
        self._schema = with_places(schema) if positions else schema
        self._bytes = int(sum(files["size"].to_pylist()))
        stores = DataStores(snapshot)
        paths = stores.places.resolve(files["path"].to_pylist())
        filesystems: dict[int, FileSystem] = {}

        def found(path: str | None) -> tuple[int | None, str | None]:
            if path is None:
                return None, None
            store = stores.for_path(path)
            filesystems.setdefault(id(store), for_workers(store.filesystem))
            return list(filesystems).index(id(store)), store.filesystem_path(path)

        vectors = [
            None if each is None else stores.vector(each, path).path
            for each, path in zip(files["deletion_vector"].to_pylist(), paths, strict=True)
        ]
        placed, placed_vectors = [found(each) for each in paths], [found(each) for each in vectors]
        pieces, starts = _dealt(files["size"].to_pylist(), most_files(filesystems.values()))
        if "version" not in files.column_names:
            versions = pa.repeat(scalar_of(snapshot.version, pa.int64()), files.num_rows)
            files = files.append_column("version", versions)
        self.job: ScanJob = ScanJob(
            table=snapshot.table,
            version=snapshot.version,
            reader=RowReader(
                snapshot.read_schema,
                tuple(snapshot.partition_columns),
                mapped_like(StructType.from_json(schema.json()), snapshot.read_schema),
                prune,
                snapshot.properties.column_mapping_mode,
                snapshot.conf.session_tz,
            ),
            filesystems=list(filesystems.values()),
            files=pa.table(
                {
                    "path": array_of(paths, pa.string()),
                    "place": array_of([place for _, place in placed], pa.string()),
                    "filesystem": array_of([number for number, _ in placed], pa.int32()),
                    "partition_values": files["partition_values"],
                    "size": files["size"],
                    "deletion_vector": files["deletion_vector"],
                    "vector_place": array_of([place for _, place in placed_vectors], pa.string()),
                    "vector_filesystem": array_of([n for n, _ in placed_vectors], pa.int32()),
                    "version": files["version"],
                }
            ),
            pieces=pieces,
            starts=starts,
            positions=positions,
        )

    def to_df(self, spark: SparkSession) -> DataFrame:
        """Plan the read.

        A missing file is noticed when the DataFrame runs; `unwrap_error` says which.

        Args:
            spark: a session, classic or Connect.
        """
        tasks = self.job.tasks
        if not tasks:
            return spark.createDataFrame([], self._schema)
        numbers = task_numbers(spark, tasks, self._bytes)
        return rows_on_executors(numbers, self.job, self._schema)

    def to_arrow(self) -> pa.Table:
        """Read in this process."""
        batches = (batch for number in range(self.job.tasks) for batch in self.job.batches(number))
        schema = to_arrow_schema(self.job.reader.read)
        if self.job.positions:
            schema = schema.append(pa.field(FILE, pa.string())).append(pa.field(ROW, pa.int64()))
        return pa.Table.from_batches(batches, schema)


def _dealt(sizes: Sequence[int], most: int) -> tuple[pa.Table, list[int]]:
    """Pieces of files, in the files' order, and where each task's begin; `most` files in a task.

    Files that are larger than a task are read in shares, so that no worker holds a whole one.
    """
    task_bytes = min(_MOST_TASK_BYTES, max(_LEAST_TASK_BYTES, sum(sizes) // _WANTED_TASKS))
    columns: dict[str, list[Any]] = {"file": [], "part": [], "parts": []}
    starts: list[int] = []
    taken = 0
    for row, size in enumerate(sizes):
        parts = max(1, -(-size // _MOST_TASK_BYTES))
        for part in range(parts):
            count = len(columns["file"])
            if not starts or taken + size // parts > task_bytes or count - starts[-1] >= most:
                starts.append(count)
                taken = 0
            taken += size // parts
            for name, value in zip(columns, (row, part, parts), strict=True):
                columns[name].append(value)
    pieces = pa.table({name: array_of(each, pa.int32()) for name, each in columns.items()})
    return pieces, [*starts, len(pieces)] if starts else [0]
