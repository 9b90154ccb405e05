"""A table as it was at one version."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from lakelog.core.actions.file_table import to_add_files
from lakelog.core.clock import utc_time
from lakelog.core.errors import CorruptCheckpointError, CorruptLogError, DeltaError, LogGapError
from lakelog.core.expressions.context import EvalContext
from lakelog.core.features.in_commit_timestamps import required_time
from lakelog.core.features.terms import TableTerms
from lakelog.core.log.file_names import commit_path
from lakelog.core.log.segment import list_log
from lakelog.core.schema import StructType
from lakelog.core.schema.column_mapping import read_schema_of
from lakelog.core.schema.types import COLUMN_HEADS, column_cells
from lakelog.core.state.checksums import check_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    import pyarrow as pa
    from pyarrow.dataset import Dataset

    from lakelog.core.actions import (
        AddFile,
        CommitInfo,
        DomainMetadata,
        Metadata,
        Protocol,
        SetTransaction,
    )
    from lakelog.core.clock import Clock
    from lakelog.core.conf import DeltaConf
    from lakelog.core.data.table_scan import Scan
    from lakelog.core.expressions.filter import Filter
    from lakelog.core.features.table_properties import TableProperties
    from lakelog.core.progress import GivenProgress
    from lakelog.core.schema import StructField
    from lakelog.core.state.file_state import FileState
    from lakelog.core.state.replay import State
    from lakelog.logstores.contract import LogStore

T = TypeVar("T")

_SHOWN_LOG = 1 << 20
"""Bytes of the log that are read for a picture in a notebook, at most."""


class Snapshot:
    """One version of a table. It never changes; everything costly is read when asked for.

    The files are columns (`file_table`); action objects are made only by `files`.
    """

    def __init__(
        self,
        table: str,
        store: LogStore,
        conf: DeltaConf,
        clock: Clock,
        state: State,
        terms: TableTerms | None = None,
    ) -> None:
        """Wrap a state; get snapshots from a `DeltaLog` instead."""
        self._table = table
        self._store = store
        self._conf = conf
        self._clock = clock
        self._state = state
        # By hand: `cached_property` of Python 3.11 holds one lock for all snapshots, and these two
        # wait for the storage.
        self._timestamp: int | None = None
        self._file_table: pa.Table | None = None
        self.terms: TableTerms = terms or TableTerms(state.metadata, state.protocol)
        """What metadata and protocol ask of writers; one object while neither changes."""

    @property
    def table(self) -> str:
        """The table's URI."""
        return self._table

    @property
    def store(self) -> LogStore:
        """Internal, for the core: the store of the log, whose file system also has the data."""
        return self._store

    @property
    def clock(self) -> Clock:
        """The clock, also for `current_date()` in filters."""
        return self._clock

    @property
    def conf(self) -> DeltaConf:
        """The conf that the table was opened with."""
        return self._conf

    @property
    def state(self) -> State:
        """Internal, for the core: what the log says, unwrapped."""
        return self._state

    @property
    def version(self) -> int:
        """The version; the first is 0."""
        return self._state.version

    @property
    def timestamp(self) -> int:
        """When the version was committed: milliseconds since the epoch.

        The in-commit timestamp where the table has them, else the storage's modification time
        of the commit file.

        Raises:
            LogGapError: the commit is gone.
            CorruptCommitError: it should carry its time, but does not.
        """
        if self._timestamp is None:
            self._timestamp = self._read_timestamp()
        return self._timestamp

    @property
    def time(self) -> datetime:
        """`timestamp` as a time in UTC.

        Raises:
            LogGapError: the commit is gone.
            CorruptCommitError: it should carry its time, but does not.
        """
        return utc_time(self.timestamp)

    def _read_timestamp(self) -> int:
        # First: a copy of the table has other file times, and a file time is that of the storage's
        # clock.
        if self.properties.in_commit_timestamps:
            return self._in_commit_timestamp()
        # Known from the listing that opened the table; after commits of this process it is not.
        if self._state.timestamp is not None:
            return self._state.timestamp
        found = list_log(self._store, self._table, self.version, self.version).commits
        if self.version not in found:
            raise self._commit_is_gone()
        return found[self.version].modification_time

    def _in_commit_timestamp(self) -> int:
        info, path = self._state.info, commit_path(self._table, self.version)
        if info is not None and info.in_commit_timestamp is not None:
            return info.in_commit_timestamp
        # A checkpoint or a compacted log does not keep it.
        from lakelog.core.log.commit_identity import read_commit_info

        try:
            commit_info = read_commit_info(self._store, path)
        except FileNotFoundError:
            raise self._commit_is_gone() from None
        return required_time(commit_info, self._table, path, self.version)

    def _commit_is_gone(self) -> LogGapError:
        path = commit_path(self._table, self.version)
        return LogGapError(
            f"the commit {path} is gone, so the time of version {self.version} of {self._table} "
            "can't be read. Open the table again.",
            table=self._table,
            path=path,
            version=self.version,
            missing=[self.version],
        )

    @property
    def metadata(self) -> Metadata:
        """Schema, partitioning and properties, as in the log."""
        return self._state.metadata

    @property
    def protocol(self) -> Protocol:
        """What a client must support to read, and to write, the table."""
        return self._state.protocol

    @cached_property
    def schema(self) -> StructType:
        """The columns, partition columns among them.

        Raises:
            CorruptLogError: the metadata's schema is not a valid one.
        """
        try:
            return self.terms.schema
        except (ValueError, KeyError, TypeError) as exc:
            raise CorruptLogError(
                f"the schema of {self._table} at version {self.version} can't be read: {exc}",
                table=self._table,
                path=commit_path(self._table, self.version),
                version=self.version,
            ) from exc

    @cached_property
    def read_schema(self) -> StructType:
        """`schema` for readers of files, their statistics and their partition values.

        Where the table maps columns, and only there, fields say under which name and id they are
        stored in files (`lakelog.core.schema.column_mapping`).

        Raises:
            CorruptLogError: the table maps columns, and a column lacks its name or id.
        """
        mode = self.properties.column_mapping_mode
        if mode == "none" and "delta.columnMapping." not in self.metadata.schema_string:
            return self.schema
        try:
            return read_schema_of(self.schema, mode)
        except ValueError as exc:
            raise CorruptLogError(
                f"{self._table} maps columns by {mode}, but at version {self.version} {exc}",
                table=self._table,
                path=commit_path(self._table, self.version),
                version=self.version,
            ) from exc

    @cached_property
    def properties(self) -> TableProperties:
        """The table's properties as values."""
        return self.terms.properties

    @property
    def has_deletion_vectors(self) -> bool:
        """Whether a file of the version has one."""
        vectors = self.file_table["deletion_vector"]
        return int(vectors.null_count) < len(vectors)

    @property
    def partition_columns(self) -> list[str]:
        """The names of the partition columns, in order."""
        return list(self.metadata.partition_columns)

    @cached_property
    def partition_schema(self) -> StructType:
        """The partition columns with their types, in partition order."""
        found = []
        for name in self.metadata.partition_columns:
            field = self.read_schema.get(name)
            # A name in another case is as good as missing: the values are stored under the exact
            # name and would read as null. Delta does not open such a table either.
            if field is None or field.name != name:
                raise CorruptLogError(
                    f"{self._table} is partitioned by {name!r}, which its schema does not have",
                    table=self._table,
                    path=commit_path(self._table, self.version),
                    version=self.version,
                )
            found.append(field)
        return StructType(tuple(found))

    @property
    def transactions(self) -> Mapping[str, int]:
        """Application -> the last version that it recorded (`txnVersion`)."""
        oldest = self._oldest_transaction
        return {
            app: txn.version
            for app, txn in self._state.transactions.items()
            if _is_kept(txn, oldest)
        }

    def txn_version(self, app_id: str) -> int:
        """The version that an application recorded last, or -1: one of `transactions`.

        Args:
            app_id: the application.
        """
        txn = self._state.transactions.get(app_id)
        return txn.version if txn and _is_kept(txn, self._oldest_transaction) else -1

    @property
    def _oldest_transaction(self) -> int | None:
        keep = self.properties.set_transaction_retention_ms
        return None if keep is None else self._clock.now_ms() - keep

    @property
    def domain_metadata(self) -> Mapping[str, DomainMetadata]:
        """Domain -> its metadata; removed domains are not listed."""
        return self._state.domains

    @property
    def commit_info(self) -> CommitInfo | None:
        """The provenance of this version, where its commit was read and has any."""
        return self._state.info

    @property
    def file_table(self) -> pa.Table:
        """The live files as columns: `lakelog.core.actions.file_table.FILE_SCHEMA`.

        The first call reads them, and compares them with the version's checksum where it has one
        (`lakelog.core.state.checksums`).

        Raises:
            CorruptLogError: the checkpoint can't be read and nothing can replace it; or the
                checksum does not match, where the conf makes that fatal.
        """
        if self._file_table is None:
            live = self._of_files(lambda files: files.live)
            check_state(self._store, self._table, self._state, self._conf)
            self._file_table = live
        return self._file_table

    @property
    def held_files(self) -> int:
        """Internal, for engines: how many rows of `file_table` are in memory by now."""
        return 0 if self._file_table is None else self._file_table.num_rows

    @property
    def tombstones(self) -> pa.Table:
        """Files that were removed and are still recorded: `TOMBSTONE_SCHEMA`."""
        return self._of_files(lambda files: files.tombstones)

    def _of_files(self, ask: Callable[[FileState], T]) -> T:
        """Ask the state's files, which are read from what the log had when it was opened.

        By now log cleanup may have removed that, where a newer checkpoint gives the same version.
        """
        try:
            return ask(self._state.files)
        except CorruptCheckpointError as exc:
            from lakelog.core.state.replay import load_state

            try:
                reread = load_state(self._store, self._table, self.version)
            except (DeltaError, OSError):
                raise exc from None
            if reread.metadata.id != self.metadata.id or reread.segment == self._state.segment:
                raise
            self._state = replace(self._state, files=reread.files)
            return ask(reread.files)

    @property
    def num_files(self) -> int:
        """How many files are live."""
        return int(self.file_table.num_rows)

    @property
    def size_in_bytes(self) -> int:
        """Bytes of all live files."""
        import pyarrow.compute

        compute: Any = pyarrow.compute  # its functions are made at import
        return int(compute.sum(self.file_table["size"]).as_py() or 0)

    def files(self, where: Filter | None = None) -> list[AddFile]:
        """The live files that may hold rows for which a condition is true.

        Args:
            where: SQL text, an `Expression` or pyarrow's tuples; `None` for all files.

        Raises:
            InvalidPredicateError: the condition can't be parsed or names an unknown column.
        """
        return to_add_files(self.file_table_for(where))

    def file_table_for(self, where: Filter | None = None) -> pa.Table:
        """The rows of `file_table` that `files` makes actions of.

        Raises:
            InvalidPredicateError: the condition can't be parsed or names an unknown column.
            CorruptLogError: the schema lacks a partition column.
        """
        if where is None:
            return self.file_table
        from lakelog.core.expressions.filter import normalize_filter
        from lakelog.core.state.file_selection import FileSelection

        schema = self.read_schema
        context = EvalContext.of(self.conf, self._clock.now_ms())
        expression = normalize_filter(where, schema, context)
        if expression is None:
            return self.file_table
        columns = tuple(self.partition_schema.names)
        selection = FileSelection(expression, schema, columns, session_tz=context.session_tz)
        found = self._of_files(lambda files: files.selected(selection))
        return selection.select(self.file_table) if found is None else found

    def to_arrow(
        self,
        columns: str | Sequence[str] | None = None,
        where: Filter | None = None,
    ) -> pa.Table:
        """Read the rows.

        Args:
            columns: which, in this order; all if `None`.
            where: only rows for which it is true.

        Raises:
            InvalidPredicateError: the condition can't be evaluated here.
            DeltaAnalysisError: a column does not exist.
            DataFileMissingError: the log lists a file that the storage does not have.
            DataFileError: a damaged deletion vector, or a file without the ids of its columns.
        """
        from lakelog.core.data.table_scan import Scan

        return Scan(self, columns, where).to_arrow()

    def to_batches(
        self,
        columns: str | Sequence[str] | None = None,
        where: Filter | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows batch by batch, in memory for few of them at a time; see `to_arrow`."""
        return self.scan(columns, where).to_batches()

    def scan(
        self,
        columns: str | Sequence[str] | None = None,
        where: Filter | None = None,
        *,
        progress: GivenProgress = None,
    ) -> Scan:
        """The rows, not read yet: to be counted, limited, or read by batches or as a stream.

        Args:
            columns: which, in this order; all if `None`.
            where: only rows for which it is true.
            progress: called now and then with how many rows are read; or `auto` for a bar.

        Raises:
            DeltaAnalysisError: a column that does not exist, or is given twice.
            InvalidPredicateError: the condition can't be parsed or names an unknown column.
        """
        from lakelog.core.data.table_scan import Scan

        return Scan(self, columns, where, progress=progress)

    def to_pyarrow_dataset(self) -> Dataset:
        """The files as a dataset of pyarrow; see `Scan.to_pyarrow_dataset`.

        Raises:
            UnsupportedFeatureError: the table has what such a dataset can't do; `scan` reads it.
        """
        return self.scan().to_pyarrow_dataset()

    def print_schema(self) -> None:
        """Print the columns as a tree, as Spark's `printSchema` does."""
        from lakelog.core.schema.tree_text import schema_tree

        sys.stdout.write(f"{schema_tree(self.schema)}\n")

    def _repr_html_(self) -> str:
        """For notebooks: columns, partitioning, sizes of files, properties; see `_sizes`."""
        from lakelog.core.shown.notebook import html_page, html_table

        numbers = {name: f"{i}." for i, name in enumerate(self.partition_columns, 1)}
        *heads, last = COLUMN_HEADS

        def cells(each: StructField) -> tuple[object, ...]:
            *values, comment = column_cells(each)
            return *values, numbers.get(each.name), comment

        table = html_table(repr(self), (*heads, "partition", last), self.schema.fields, cells)
        more = self.properties._html_table() if self.metadata.configuration else ""
        return html_page(table, self._sizes(), more)

    def _sizes(self) -> str:
        """A picture of the files' sizes where they are in memory, or little has to be read."""
        segment = self._state.segment
        if self._file_table is None:
            length = sum(each.length for each in segment.commits)
            if segment.checkpoint is not None:
                if "v2Checkpoint" in self.terms.features:
                    return ""  # its parts may be of any size
                length += segment.checkpoint.size_in_bytes
            if length > _SHOWN_LOG:
                return ""
        try:
            files = self.file_table
        except (DeltaError, OSError):
            return ""  # what reads the table says it
        if not files.num_rows:
            return ""
        from lakelog.core.shown.notebook import sizes_picture
        from lakelog.core.state.file_sizes import size_classes, size_range

        return sizes_picture([(size_range(each), each["files"]) for each in size_classes(files)])

    def __repr__(self) -> str:
        """`Snapshot(/lake/flights, version 7)`."""
        return f"Snapshot({self._table}, version {self.version})"

    if not TYPE_CHECKING:  # a type checker would take any name for one that is there

        def __getattr__(self, name: str) -> NoReturn:
            from lakelog.core.names_elsewhere import SNAPSHOT, refuse_name

            refuse_name("a Snapshot", name, SNAPSHOT.get(name))


def _is_kept(txn: SetTransaction, oldest: int | None) -> bool:
    # Once a retention is set, a record without a time counts as expired.
    return oldest is None or (txn.last_updated is not None and txn.last_updated > oldest)
