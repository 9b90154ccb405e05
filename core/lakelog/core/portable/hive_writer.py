"""The inner loop of every write: batches in, Parquet files in Hive layout out.

Spark pickles this code by value to executors that have no lakelog: register each module of
`PICKLED_BY_VALUE` with cloudpickle. So they import the standard library, pyarrow and each other,
nothing else, and results are plain tuples, the columns of `RESULT_DDL`, that travel in an Arrow
batch.

Memory is bounded by `WritePlan.buffer_bytes` however many partitions there are: a full budget
turns the largest buffer into a row group, and `max_open_files` bounds the open files.

Parquet footers made by pyarrow leave NaN out of minimum and maximum, while Spark orders NaN above
every number and skips row groups by these bounds: `x > 5` would lose rows. So a column that
holds a NaN gets no statistics in its file; a file in which a NaN comes late is ended there.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from array import array
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from lakelog.core.portable.arrival import check_arrived
from lakelog.core.portable.leaves import (
    Leaf,
    filled_variants,
    leaf_columns,
    leaves,
    relaxed,
    renamed,
    without_hidden,
)
from lakelog.core.portable.made_files import delete_made, make_folder
from lakelog.core.portable.partition_text import partition_folder, partition_texts, random_folder
from lakelog.core.portable.syncing import sync_file, sync_files
from lakelog.logstores.threads import REQUESTS, WRITES, at_once

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyarrow.fs import FileSystem

pc: Any = pyarrow.compute  # made at import time: no checker sees its functions

PICKLED_BY_VALUE = (
    "lakelog.core.portable.arrival",
    "lakelog.core.portable.interval_text",
    "lakelog.core.portable.leaves",
    "lakelog.core.portable.made_files",
    "lakelog.core.portable.syncing",
    "lakelog.core.portable.hive_writer",
    "lakelog.core.portable.partition_text",
    "lakelog.core.portable.shown_values",
    "lakelog.logstores.threads",
)
"""The modules that make up this code."""

RESULT_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("num_records", pa.int64()),
        ("partition_values", pa.string()),
        ("footer", pa.binary()),
        ("nan_columns", pa.string()),
        ("modification_time", pa.int64()),
    ]
)
"""One row a file. `path` is relative to the root and not percent-encoded; `partition_values` is a
JSON object of serialised values; `footer` is a Parquet file of metadata alone; `nan_columns` is
a JSON list of `[path parts, null count]`, the columns without statistics; times are milliseconds.
"""

RESULT_DDL = (
    "path string, size bigint, num_records bigint, partition_values string, "
    "footer binary, nan_columns string, modification_time bigint"
)
"""`RESULT_SCHEMA` as Spark writes schemas."""

_CODECS = {"snappy": ".snappy", "gzip": ".gz", "zstd": ".zstd", "lz4": ".lz4", "brotli": ".br"}
_OBJECT_STORES = frozenset({"s3", "gcs", "abfs", "py::gcs", "py::lakelog-azure"})
_SPLIT_ROWS = 1 << 17
_SPLIT_BYTES = 64 << 20
_SAMPLE_ROWS, _SAMPLE_BYTES = 20_000, 16 << 20
_MOST_CODES = 1 << 62
_SMALL_BYTES = 1 << 20
_MANY = 16


@dataclass(frozen=True)
class WritePlan:
    """What to write where; picklable, so that a driver sends it to executors."""

    root: str
    """The table's folder, as `filesystem` spells it."""
    schema: pa.Schema
    """Every column, those of the partitioning included, with Delta's Arrow types."""
    partition_columns: tuple[str, ...] = ()
    month_columns: frozenset[str] = frozenset()
    """Those of the partition columns whose integers are intervals of so many months."""
    stored: pa.Schema | None = None
    """The same columns in the same order under the names, and with the field ids, that files
    have; `None`: they have those of `schema`, and no ids."""
    prefix_length: int = 0
    """So many random characters are each file's folder; 0: Hive's folders of its partition."""
    materialize_partitions: bool = False
    """Whether partition columns are in the files too, after the others."""
    filesystem: FileSystem | None = None
    """`None` means the local one."""
    compression: str = "zstd"
    max_rows_per_file: int = 0
    """0 means no limit."""
    target_file_bytes: int = 1 << 30
    """A file that has reached this size is ended."""
    row_group_rows: int = 1 << 18
    """Few enough that the next ones are read while one is encoded."""
    row_group_bytes: int = 128 << 20
    """Arrow bytes, before encoding."""
    buffer_bytes: int = 256 << 20
    max_open_files: int = 64
    folder: str = ""
    """Where under `root` the files lie; what they are reported as begins with it."""
    fsync: bool = True
    """Whether local files are on disk before they are reported: a durable commit needs that."""


@dataclass
class _File:
    """One partition's buffer, and its Parquet file once that is open."""

    values: tuple[str | None, ...]
    pending: list[pa.RecordBatch] = field(default_factory=list)
    pending_rows: int = 0
    pending_bytes: int = 0
    path: str = ""
    rows: int = 0
    sink: Any = None
    writer: Any = None
    collected: list[Any] = field(default_factory=list)
    nan_nulls: dict[tuple[str, ...], int] = field(default_factory=dict)
    """Columns without statistics -> their nulls so far."""


class PartitionedWriter:
    """Writes batches to as many files as the plan asks for; reports them when closed.

    File names carry a fresh UUID, so that a task that runs twice never meets its own files, and
    `abort` may delete all that this writer made: nothing else refers to it yet.
    """

    def __init__(
        self,
        plan: WritePlan,
        part: int = 0,
        *,
        keeps_footers: bool = False,
        checks_later: bool = False,
    ) -> None:
        """Open nothing yet.

        Args:
            plan: what to write where.
            part: the number in the file names, by custom that of Spark's partition.
            keeps_footers: whether results have footers as pyarrow's `FileMetaData`, for who stays
                in this process.
            checks_later: whether the caller calls `check_arrived` before anything names the files,
                so that `close` leaves to it what takes one round trip.
        """
        from pyarrow.fs import LocalFileSystem

        self._plan = plan
        self._part = part
        self._keeps_footers = keeps_footers
        self._checks_later = checks_later
        self._open_files = 0
        self._filesystem = plan.filesystem or LocalFileSystem()
        fields = [pa.field(f.name, relaxed(f.type), f.nullable) for f in plan.schema]
        self._schema = pa.schema(fields)
        self._stored = _relaxed(plan.stored, fields)
        names = dict(zip(self._schema.names, self._stored.names, strict=True))
        self._partitions = tuple(names[each] for each in plan.partition_columns)
        inside = [f for f in self._stored if f.name not in self._partitions]
        if plan.materialize_partitions:
            inside += [self._stored.field(each) for each in self._partitions]
        self._file_schema = pa.schema(inside)
        self._leaves: list[Leaf] = list(leaves(inside))
        self._id = uuid.uuid4()
        self._count = 0
        self._files: dict[tuple[str | None, ...], _File] = {}
        self._staged: list[pa.RecordBatch] = []
        self._staged_rows = self._staged_bytes = self._buffered = 0
        self._folders: set[str] = set()
        self._made: list[str] = []
        self._dictionary: list[str] | None = None
        self._results: list[tuple[Any, ...]] = []
        self._arrived = 0
        """So many of them the storage was asked for."""
        self._is_synced = plan.fsync and self._filesystem.type_name == "local"
        self._synced: set[str] = set()
        """Files that are on the disk; not the entries of their folders."""
        self._counts = threading.Lock()
        """Of `_buffered` and `_open_files`."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a batch; its columns are found by name and cast to the plan's types.

        Raises:
            KeyError: a column is missing.
            pyarrow.ArrowInvalid: a value does not fit its type, or a null is in a required column.
            PartitionValueError: the log has no text for a partition value; also from `close`.
        """
        if batch.num_rows == 0:
            return
        batch = self._conform(batch)
        if not self._plan.partition_columns:
            self._add((), batch)
            return
        self._staged.append(batch)
        self._staged_rows += batch.num_rows
        self._staged_bytes += batch.nbytes
        if self._staged_rows >= _SPLIT_ROWS or self._staged_bytes >= _SPLIT_BYTES:
            self._split_staged()

    def close(self) -> list[tuple[Any, ...]]:
        """End every file; give one tuple a file, in the order of `RESULT_SCHEMA`.

        Raises:
            OSError: the storage refused a file, or does not have it; see `check_arrived`.
        """
        self._split_staged()
        self._finish_small()
        while self._files:
            self._finish(next(iter(self._files)))
        if self._is_synced:
            # All at once: one after the other, the disk would be waited for once a file.
            sync_files(self._plan.root, [each[0] for each in self._results], self._synced)
        # While a commit is tried other writers wait: many round trips are made before it.
        if not self._checks_later or len(self._results) > REQUESTS:
            self.check_arrived()
        return self._results

    def check_arrived(self) -> None:
        """Ask the storage for the files that `close` reported.

        Raises:
            OSError: it does not have one of them as it was written.
        """
        root = self._plan.root
        files = [(f"{root}/{path}", size) for path, size, *_ in self._results[self._arrived :]]
        check_arrived(self._filesystem, files)
        self._arrived = len(self._results)

    def abort(self) -> None:
        """Drop the buffers and delete the files made so far, as far as the storage lets us."""
        for each in self._files.values():
            if each.sink is not None:
                with contextlib.suppress(Exception):
                    each.writer.close()
                with contextlib.suppress(OSError):
                    each.sink.close()
        self._files.clear()
        self._staged.clear()
        delete_made(self._filesystem, self._plan.root, self._made)

    def _conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = []
        for each in self._schema:
            column = batch.column(each.name)
            if column.null_count and not each.nullable:
                raise pa.ArrowInvalid(f"column {each.name!r} is required, and a row has null there")
            columns.append(column if column.type == each.type else column.cast(each.type))
        if self._plan.stored is not None:
            pairs = zip(columns, self._stored, strict=True)
            columns = [renamed(column, each.type) for column, each in pairs]
        return pa.RecordBatch.from_arrays(columns, schema=self._stored)

    def _split_staged(self) -> None:
        if not self._staged:
            return
        staged = pa.Table.from_batches(self._staged).combine_chunks().to_batches()
        self._staged, self._staged_rows, self._staged_bytes = [], 0, 0
        for batch in staged:
            for key, rows in self._split(batch):
                self._add(key, rows)

    def _split(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[str | None, ...], Any]]:
        """Group rows by partition. Each group is a copy: a slice would pin the whole batch."""
        columns = [
            batch.column(name).dictionary_encode(null_encoding="encode")
            for name in self._partitions
        ]
        texts = [
            partition_texts(column.dictionary, name, months=name in self._plan.month_columns)
            for column, name in zip(columns, self._plan.partition_columns, strict=True)
        ]
        codes = _combined([column.indices for column in columns])
        data = batch.select(self._file_schema.names)
        order = pc.sort_indices(codes)
        ends = pc.run_end_encode(codes.take(order)).run_ends.to_pylist()
        first = order.take(_numbers([0, *ends[:-1]]))
        places = [column.indices.take(first).to_pylist() for column in columns]
        start = 0
        for end, *found in zip(ends, *places, strict=True):
            key = tuple(text[index] for text, index in zip(texts, found, strict=True))
            rows = data if len(ends) == 1 else data.take(order[start:end])
            yield key, rows
            start = end

    def _add(self, key: tuple[str | None, ...], batch: pa.RecordBatch) -> None:
        limit = self._plan.max_rows_per_file
        while batch.num_rows:
            # Last used is last in order: the first one is closed when too many are open.
            each = self._files.pop(key, None) or _File(key)
            self._files[key] = each
            room = limit - each.rows - each.pending_rows if limit else batch.num_rows
            head, batch = batch.slice(0, room), batch.slice(room)
            each.pending.append(head)
            each.pending_rows += head.num_rows
            each.pending_bytes += head.nbytes
            self._buffered += head.nbytes
            if limit and each.rows + each.pending_rows >= limit:
                self._finish(key)
            elif (
                each.pending_rows >= self._plan.row_group_rows
                or each.pending_bytes >= self._plan.row_group_bytes
            ):
                self._flush(each)
        while self._buffered > self._plan.buffer_bytes:
            self._flush(max(self._files.values(), key=lambda f: f.pending_bytes))

    def _flush(self, each: _File) -> None:
        """Turn a buffer into a row group."""
        if not each.pending:
            return
        table = pa.Table.from_batches(each.pending, schema=self._file_schema)
        columns = [without_hidden(filled_variants(column)) for column in table.columns]
        table = pa.Table.from_arrays(columns, schema=self._file_schema)
        with self._counts:
            self._buffered -= each.pending_bytes
        each.pending = []
        each.pending_rows = each.pending_bytes = 0
        nans = self._nan_leaves(table)
        if each.writer is not None and not nans <= each.nan_nulls.keys():
            self._end(each)
        writer = each.writer or self._open(each, table, nans)
        for path, column in leaf_columns(table, each.nan_nulls).items():
            each.nan_nulls[path] += column.null_count
        writer.write_table(table, row_group_size=table.num_rows)
        each.rows += table.num_rows
        if each.sink.tell() >= self._plan.target_file_bytes:
            self._end(each)

    def _nan_leaves(self, table: pa.Table) -> set[tuple[str, ...]]:
        floats = [p for p, kind, plain in self._leaves if plain and pa.types.is_floating(kind)]
        columns = leaf_columns(table, floats).items()
        return {path for path, column in columns if pc.any(pc.is_nan(column)).as_py()}

    def _open(self, each: _File, table: pa.Table, nans: set[tuple[str, ...]]) -> Any:
        import pyarrow.parquet

        parquet: Any = pyarrow.parquet
        plan = self._plan
        while self._open_files >= plan.max_open_files:
            self._finish(next(key for key, other in self._files.items() if other.writer))
        if self._dictionary is None:
            self._dictionary = self._dictionary_leaves(table)
        if not each.path:
            self._name(each)
        self._make_folder(each.path.rpartition("/")[0])
        each.sink = self._filesystem.open_output_stream(f"{plan.root}/{each.path}")
        each.nan_nulls = dict.fromkeys(nans, 0)
        each.collected = []
        each.writer = parquet.ParquetWriter(
            each.sink,
            self._file_schema,
            compression=plan.compression,
            use_dictionary=self._dictionary,
            write_statistics=[".".join(p) for p, _, plain in self._leaves if p not in nans],
            metadata_collector=each.collected,
            store_schema=False,
        )
        with self._counts:
            self._open_files += 1
        return each.writer

    def _name(self, each: _File) -> None:
        plan = self._plan
        codec = _CODECS.get(plan.compression, "")
        name = f"part-{self._part:05d}-{self._id}.c{self._count:03d}{codec}.parquet"
        self._count += 1
        folder = (
            random_folder(plan.prefix_length)
            if plan.prefix_length
            else partition_folder(plan.partition_columns, each.values)
        )
        each.path = "/".join(filter(None, (plan.folder, folder, name)))
        self._made.append(each.path)

    def _make_folder(self, folder: str) -> None:
        # An object store has no folders; asking for one costs requests or makes a marker object.
        # One whose credentials are renewed says so before what it is.
        kind = self._filesystem.type_name.rpartition(" ")[2]
        if folder not in self._folders and kind not in _OBJECT_STORES:
            make_folder(self._filesystem, self._plan.root, folder)
        self._folders.add(folder)

    def _dictionary_leaves(self, table: pa.Table) -> list[str]:
        """Leaves worth a dictionary: by a sample, less than half of the values are distinct.

        A dictionary that fails costs up to 1 MB a row group, a quarter of a file of keys.
        """
        few = table.num_rows * _SAMPLE_BYTES // max(table.nbytes, 1)
        sample = table.slice(0, min(_SAMPLE_ROWS, max(few, 1)))
        columns = leaf_columns(sample, (path for path, _, plain in self._leaves if plain))
        repeated = {
            path: 2 * pc.count_distinct(column).as_py() < len(sample)
            for path, column in columns.items()
        }
        return [".".join(path) for path, _, _ in self._leaves if repeated.get(path, True)]

    def _finish(self, key: tuple[str | None, ...]) -> None:
        """Write what is left of a partition and forget it."""
        each = self._files[key]
        self._flush(each)
        self._end(each)
        del self._files[key]

    def _finish_small(self) -> None:
        """Write the files that are small and not begun, where they are many, several at once."""

        def write(each: _File) -> None:
            path = each.path
            self._flush(each)
            self._end(each)
            if self._is_synced:
                # The disk is waited for while others are made.
                sync_file(f"{self._plan.root}/{path}")
                self._synced.add(path)

        for key in [key for key, each in self._files.items() if each.writer is not None]:
            self._finish(key)
        small = {k: f for k, f in self._files.items() if f.pending_bytes <= _SMALL_BYTES}
        if len(small) < _MANY:
            return
        # By the first one it is chosen which columns get a dictionary, in all files.
        first, *others = small
        self._finish(first)
        for key in others:
            self._name(small[key])
        order = {small[key].path: number for number, key in enumerate(others)}
        done = len(self._results)
        threads = min(WRITES, self._plan.max_open_files)
        at_once(write, [small[key] for key in others], threads, "lakelog-write")
        self._results[done:] = sorted(self._results[done:], key=lambda each: order[each[0]])
        for key in others:
            del self._files[key]

    def _end(self, each: _File) -> None:
        if each.writer is None:
            return
        each.writer.close()
        size = each.sink.tell()
        each.sink.close()
        with self._counts:
            self._open_files -= 1
        values = dict(zip(self._partitions, each.values, strict=True))
        nans = json.dumps(list(each.nan_nulls.items()))
        made, now = self._footer(each.collected[0]), time.time_ns() // 1_000_000
        self._results.append((each.path, size, each.rows, json.dumps(values), made, nans, now))
        each.writer = each.sink = None
        each.path, each.rows = "", 0

    def _footer(self, made: Any) -> Any:
        if self._keeps_footers:
            return made
        sink = pa.BufferOutputStream()
        made.write_metadata_file(sink)
        return sink.getvalue().to_pybytes()


def _numbers(values: Sequence[int]) -> pa.Array[Any]:
    """As `pyarrow.array` would, but that imports pandas, which takes longer than a small write."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(array("q", values))])


def _combined(columns: Sequence[pa.Array[Any]]) -> pa.Array[Any]:
    """One number a row: equal for two rows exactly if they are equal in all columns.

    Args:
        columns: of numbers that aren't negative, without nulls.
    """
    codes, count = columns[0].cast(pa.int64()), _count(columns[0])
    for column in columns[1:]:
        width = _count(column)
        if count * width > _MOST_CODES:
            # Of all the combinations that there could be, a batch has no more than its rows.
            encoded = codes.dictionary_encode()
            codes, count = encoded.indices.cast(pa.int64()), len(encoded.dictionary)
        codes = pc.add_checked(pc.multiply_checked(codes, width), column.cast(pa.int64()))
        count *= width
    return codes


def _count(codes: pa.Array[Any]) -> int:
    return (pc.max(codes).as_py() or 0) + 1


def _relaxed(stored: pa.Schema | None, fields: Sequence[pa.Field[Any]]) -> pa.Schema:
    """The columns as files have them, in the order of `fields`, which are the caller's."""
    if stored is None:
        return pa.schema(fields)
    return pa.schema([pa.field(f.name, relaxed(f.type), f.nullable, f.metadata) for f in stored])


def write_batches(
    batches: Iterable[pa.RecordBatch], plan: WritePlan, *, part: int = 0
) -> list[tuple[Any, ...]]:
    """Write all batches; on any failure delete what was written and pass the error on."""
    writer = PartitionedWriter(plan, part)
    try:
        for batch in batches:
            writer.write(batch)
        return writer.close()
    except BaseException:
        writer.abort()
        raise


def results_batch(results: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    """The tuples of `write_batches` as a batch of `RESULT_SCHEMA`."""
    columns = zip(*results, strict=True) if results else ((),) * len(RESULT_SCHEMA)
    arrays = [_array(c, f.type) for c, f in zip(columns, RESULT_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RESULT_SCHEMA)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
    """The array, of its buffers: `pyarrow.array` would import pandas first, a fifth of a second.

    Args:
        values: integers, texts or bytes, none of them null.
        kind: their type.
    """
    if pa.types.is_integer(kind):
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(array("q", values))])
    parts = [each.encode() if isinstance(each, str) else each for each in values]
    ends = array("i", accumulate(map(len, parts), initial=0))
    data = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(kind, len(parts), data)


def write_in_arrow(
    batches: Iterable[pa.RecordBatch], plan: WritePlan, *, part: int = 0
) -> Iterator[pa.RecordBatch]:
    """`write_batches` in the shape that `DataFrame.mapInArrow` wants."""
    results = write_batches(batches, plan, part=part)
    if results:
        yield results_batch(results)
