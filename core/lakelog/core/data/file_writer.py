"""Rows become data files, and data files become `add` actions.

`write_plan` says how to write a table's files; the plan is carried out here (Arrow data, no Spark)
or on executors (`lakelog.core.portable.hive_writer`), and `add_files` turns the results into
actions either way. `add_files_at` does the same for files that another program wrote, by their
footers.

Nothing here commits: a file is part of the table when a commit says so, and until then it is an
orphan that `VACUUM` may delete.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from lakelog.core.actions import AddFile
from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.arrow.stored_schema import stored_schema
from lakelog.core.data.partition_errors import partition_errors
from lakelog.core.errors import DataFileMissingError
from lakelog.core.paths import encode_path
from lakelog.core.portable.hive_writer import PartitionedWriter, WritePlan
from lakelog.core.schema import PrimitiveType, StructType
from lakelog.core.schema.column_mapping import physical_name, physical_schema
from lakelog.core.schema.rules import partition_schema
from lakelog.core.schema.types import YEAR_MONTH
from lakelog.core.stats.collect import StatsConfig, indexed_leaves, stats_from_footer
from lakelog.core.stats.footer_gaps import FooterGaps, read_gaps
from lakelog.logstores.threads import REQUESTS, at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from pyarrow.fs import FileSystem

    from lakelog.logstores import LogStore


def write_plan(
    store: LogStore,
    table: str,
    schema: StructType,
    partition_columns: Sequence[str] = (),
    **options: Any,
) -> WritePlan:
    """How files of a table are written.

    Args:
        store: gives the file system that data files lie on.
        table: the table's URI.
        schema: the table's schema, as `FileLayout` has it; columns of type `void` are left out
            of files.
        partition_columns: as the table's metadata has them.
        options: other fields of `WritePlan`, as `compression="zstd"`.

    Raises:
        DeltaAnalysisError: a type that Arrow can't write.
    """
    stored = StructType(tuple(f for f in schema if f.data_type != PrimitiveType("void")))
    return WritePlan(
        root=store.filesystem_path(table),
        schema=to_arrow_schema(stored),
        partition_columns=tuple(partition_columns),
        month_columns=frozenset(f.name for f in stored if f.data_type == YEAR_MONTH),
        stored=stored_schema(stored),
        filesystem=store.filesystem,
        **options,
    )


def add_files(
    results: Iterable[Sequence[Any]],
    schema: StructType,
    partition_columns: Sequence[str] = (),
    *,
    stats: StatsConfig | None = None,
    data_change: bool = True,
    on_footer: Callable[[Any], None] | None = None,
) -> list[AddFile]:
    """The actions for what `lakelog.core.portable.hive_writer` reported.

    Args:
        results: tuples in the order of `RESULT_SCHEMA`, such as the rows that Spark collected; a
            footer may also be pyarrow's `FileMetaData`.
        schema: the table's schema.
        partition_columns: as the table's metadata has them.
        stats: which columns get statistics; `None` for no statistics at all.
        data_change: the `dataChange` of the actions.
        on_footer: called with each file's footer.
    """
    inside = _PhysicalLayout.from_schema(schema, partition_columns, stats)
    found = []
    for path, size, _, values, footer, nans, modified in results:
        metadata = _read_footer(io.BytesIO(footer)) if isinstance(footer, bytes) else footer
        if on_footer is not None:
            on_footer(metadata)
        nan_columns = {tuple(parts): nulls for parts, nulls in json.loads(nans)}
        found.append(
            AddFile(
                path=encode_path(path),
                partition_values=json.loads(values),
                size=size,
                modification_time=modified,
                data_change=data_change,
                stats=inside.stats_of(metadata, FooterGaps(nan_columns)) if stats else None,
            )
        )
    return found


class _PhysicalLayout(NamedTuple):
    """The columns as data files store them, under their physical names."""

    schema: StructType
    partition_columns: list[str]
    stats: StatsConfig | None

    @classmethod
    def from_schema(
        cls, schema: StructType, partition_columns: Sequence[str], stats: StatsConfig | None
    ) -> _PhysicalLayout:
        names = [physical_name(field) for field in partition_schema(schema, partition_columns)]
        return cls(physical_schema(schema), names, stats.for_files(schema) if stats else None)

    def stats_of(self, footer: Any, gaps: FooterGaps) -> str:
        return stats_from_footer(
            footer,
            self.schema,
            partition_columns=self.partition_columns,
            indexed=self.stats,
            nan_columns=gaps.nan_columns,
            times=gaps.times,
        )

    def indexed(self) -> set[tuple[str, ...]]:
        """The columns with statistics, in lower case."""
        if self.stats is None:
            return set()
        found = indexed_leaves(self.schema, self.partition_columns, self.stats)
        return {tuple(part.lower() for part in path) for path, _ in found}


def _read_footer(source: Any) -> Any:
    import pyarrow.parquet

    return pyarrow.parquet.ParquetFile(source).metadata


def add_files_at(
    filesystem: FileSystem,
    root: str,
    files: Sequence[tuple[str, Mapping[str, str | None]]],
    schema: StructType,
    partition_columns: Sequence[str] = (),
    *,
    stats: StatsConfig | None = None,
    data_change: bool = True,
    on_footer: Callable[[Any], None] | None = None,
    spell: Callable[[str], str] = encode_path,
) -> list[AddFile]:
    """The actions of Parquet files that are already in a table's folder; files without rows are
    left out.

    Sizes and footers are read by several threads at once, which is what counts on an object
    store; so are the columns whose bounds a footer lacks.

    Args:
        filesystem: where the files lie.
        root: the table's folder, as the file system spells it.
        files: path relative to `root`, not percent-encoded, and serialised partition values.
        schema: the table's schema.
        partition_columns: as the table's metadata has them.
        stats: which columns get statistics; `None` for no statistics at all.
        data_change: the `dataChange` of the actions.
        on_footer: called with each file's footer, from any thread.
        spell: makes the actions' text of a path.

    Raises:
        DataFileMissingError: one of the files does not exist.
    """
    inside = _PhysicalLayout.from_schema(schema, partition_columns, stats)
    indexed = inside.indexed()

    def action(file: tuple[str, Mapping[str, str | None]]) -> AddFile | None:
        path, values = file
        info = filesystem.get_file_info(f"{root}/{path}")
        if not info.is_file:
            raise DataFileMissingError(
                f"{root}/{path} was written but is not there", path=f"{root}/{path}"
            )
        with filesystem.open_input_file(info.path) as source:
            footer = _read_footer(source)
            gaps = read_gaps(source, footer, indexed)
        if footer.num_rows == 0:
            return None
        if on_footer is not None:
            on_footer(footer)
        return AddFile(
            path=spell(path),
            partition_values=dict(values),
            size=info.size,
            modification_time=(info.mtime_ns or 0) // 1_000_000,
            data_change=data_change,
            stats=inside.stats_of(footer, gaps) if stats else None,
        )

    made = at_once(action, files, REQUESTS, "lakelog-footers")
    return [each for each in made if each is not None]


class DataFileWriter:
    """Writes Arrow data to files of a table; the actions come when it is closed.

    As a context manager it deletes what it wrote when the block fails.
    """

    def __init__(
        self,
        plan: WritePlan,
        schema: StructType,
        *,
        stats: StatsConfig | None = None,
        data_change: bool = True,
        checks_later: bool = False,
    ) -> None:
        """Prepare to write; no file is opened yet.

        Args:
            plan: from `write_plan`.
            schema: the table's schema, for the statistics.
            stats: which columns get statistics; `None` for no statistics at all.
            data_change: the `dataChange` of the actions.
            checks_later: whether `check_arrived` is called before the commit, as a transaction does
                that it is given to (`check_before_commit`), and not by `close`.
        """
        self.plan = plan
        self._schema = schema
        self._stats = stats
        self._data_change = data_change
        self._writer = PartitionedWriter(plan, keeps_footers=True, checks_later=checks_later)
        self._actions: list[AddFile] | None = None

    def write(self, data: pa.RecordBatch | pa.Table) -> None:
        """Write rows; columns are found by name and cast to the table's types.

        Raises:
            KeyError: a column is missing.
            pyarrow.ArrowInvalid: a value does not fit its type, or a null is in a required column.
            DeltaAnalysisError: the log can't hold a partition value; also from `close`.
        """
        with partition_errors(self.plan.root):
            for batch in data.to_batches() if isinstance(data, pa.Table) else (data,):
                self._writer.write(batch)

    def close(self) -> list[AddFile]:
        """Close the files and return their actions; closing again returns the same ones.

        Raises:
            OSError: the storage refused a file, or does not have it although it was acknowledged.
        """
        if self._actions is None:
            with partition_errors(self.plan.root):
                results = self._writer.close()
            self._actions = add_files(
                results,
                self._schema,
                self.plan.partition_columns,
                stats=self._stats,
                data_change=self._data_change,
            )
        return self._actions

    def check_arrived(self) -> None:
        """Ask the storage whether it has the files that were closed.

        Raises:
            OSError: it does not have one of them as it was written, or does not say.
        """
        self._writer.check_arrived()

    def abort(self) -> None:
        """Delete what was written. Never call it after a commit that may have landed."""
        self._writer.abort()

    def __enter__(self) -> DataFileWriter:
        """Nothing to do."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close, or abort where the block failed before it closed."""
        if kind is None:
            self.close()
        elif self._actions is None:
            self.abort()
