"""Reading the rows of a snapshot: data files to Arrow, exactly in the table's types.

Files are read by a few threads, never more than a window ahead of the consumer. `row_reader` reads
a single file.
"""

from __future__ import annotations

import importlib
import os
from contextlib import closing, suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, overload

import pyarrow as pa

from lakelog.core.arguments import read_arguments, refusal
from lakelog.core.arrays import empty_table
from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.data.ahead import read_ahead, read_while_quick
from lakelog.core.data.file_reader import TableFileReader
from lakelog.core.data.row_reader import BATCH_ROWS, without_columns
from lakelog.core.errors import DeltaAnalysisError, DeltaError
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import columns as columns_of
from lakelog.core.expressions.tree import join_and
from lakelog.core.progress import Progress, check_progress, progress_callback
from lakelog.core.schema import StructField, StructType
from lakelog.core.schema.rules import as_list
from lakelog.core.telemetry.catalogue import SCAN, SCAN_FILES, SCAN_ROWS
from lakelog.core.telemetry.switch import observed
from lakelog.logstores.threads import DECODERS, in_order, readers

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    import duckdb
    import pandas
    import polars
    from pyarrow.dataset import Dataset

    from lakelog.core.data.file_reader import DataFile
    from lakelog.core.data.table_version import TableVersion
    from lakelog.core.expressions.filter import Filter
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.progress import GivenProgress

_LOCATED: Final = 1_000
"""Files that are located at once where the first few most likely have all rows."""
_SMALL: Final = 128 << 10
"""Bytes of a file for which several threads would rather hinder each other."""


class Scan:
    """Rows of one version of a table, not read yet; each method that gives rows reads them again.

        scan = snapshot.scan(["day", "delay"], "month = 1")
        scan.count()
        for batch in scan.to_batches():
            ...

    Whatever takes Arrow streams (`__arrow_c_stream__`) takes a scan: `pyarrow.table(scan)`,
    `polars.DataFrame(scan)`, `write_arrow(uri, scan)`, and DuckDB's SQL by the variable's name.
    The rows of deletion vectors are left out, and every column has the table's type. In memory are
    a few batches of a few files at a time.

    `Snapshot.scan` and `lakelog.core.scan` make one.
    """

    def __init__(
        self,
        snapshot: TableVersion,
        columns: str | Sequence[str] | None = None,
        where: Filter | None = None,
        *,
        limit: int | None = None,
        progress: GivenProgress = None,
    ) -> None:
        """Resolve columns and condition against the schema; nothing is read yet.

        Raises:
            DeltaAnalysisError: a column that does not exist, or is given twice.
            InvalidPredicateError: the condition can't be parsed or names an unknown column.
        """
        check_progress(progress)
        self._progress: GivenProgress = progress
        self._snapshot = snapshot
        self._schema = snapshot.read_schema
        self._limit = limit
        self._expression: Expression | None = None
        needed: set[str] = set()
        if where is not None:
            from lakelog.core.expressions.arrow.given import is_arrow_expression
            from lakelog.core.expressions.filter import normalize_filter

            if is_arrow_expression(where):
                from lakelog.core.expressions.arrow.shown import plain_condition

                # As one of ours it leaves out files and row groups.
                where = plain_condition(where, self._schema) or where
            context = EvalContext.of(snapshot.conf, snapshot.clock.now_ms())
            self._expression = normalize_filter(where, self._schema, context)
            if self._expression is not None:
                needed = {path[0].lower() for path in columns_of(self._expression)}
        chosen = None if columns is None else as_list(columns)
        self._output = _chosen(snapshot, self._schema, chosen)
        shown = {each.name for each in self._output}
        hidden = [f for f in self._schema if f.name.lower() in needed and f.name not in shown]
        self._read = StructType((*self._output, *hidden))
        self._files = TableFileReader(snapshot, self._read, self._expression, looks=True)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of what comes out."""
        return to_arrow_schema(self._output)

    @read_arguments
    def limit(self, count: int) -> Scan:
        """The same rows, but no more than so many of them; nothing is read for the others.

        Args:
            count: how many, at most: the first ones, in the order of the log.

        Raises:
            DeltaAnalysisError: it is not a whole number from 0 on.
        """
        if count < 0:
            raise refusal(count, "count", "0 or more")
        most = count if self._limit is None else min(count, self._limit)
        return Scan(
            self._snapshot,
            self._output.names,
            self._expression,
            limit=most,
            progress=self._progress,
        )

    def to_arrow(self) -> pa.Table:
        """All rows, as a table in memory.

        Raises:
            DataFileMissingError: the log lists a file that the storage does not have.
            DataFileError: a damaged deletion vector, or a file without the ids of its columns.
            InvalidPredicateError: the condition can't be evaluated here.
        """
        tables = list(self._tables() if self._limit is None else self._streamed())
        if not len(self._output):
            return without_columns(sum(table.num_rows for table in tables))
        return pa.concat_tables(tables) if tables else empty_table(self.schema)

    @read_arguments
    def to_batches(
        self, batch_size: int | None = None, *, ordered: bool = True
    ) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch; batches without rows are left out.

        Args:
            batch_size: how many rows a batch has at most; by default some ten thousand, and fewer
                where rows are long.
            ordered: whether rows come in the order of the log; if not, as soon as they are read.

        Raises:
            DeltaAnalysisError: a size that is not a whole number from 1 on.
            DataFileMissingError: as `to_arrow`, while batches are taken.
            DataFileError: likewise.
            InvalidPredicateError: likewise.
        """
        if batch_size is not None and batch_size < 1:
            raise refusal(batch_size, "batch_size", "1 or more")
        return self._batches(batch_size, ordered)

    def _batches(self, batch_size: int | None, ordered: bool) -> Iterator[pa.RecordBatch]:
        with closing(self._streamed(batch_size, ordered=ordered)) as tables:
            for table in tables:
                if not table.num_rows:
                    continue
                if table.num_columns:
                    yield from table.combine_chunks().to_batches()
                else:
                    yield pa.record_batch({"_": pa.nulls(table.num_rows)}).select([])

    @read_arguments
    def to_reader(
        self, batch_size: int | None = None, *, ordered: bool = True
    ) -> pa.RecordBatchReader:
        """The rows as a stream of Arrow; see `to_batches`."""
        return pa.RecordBatchReader.from_batches(
            self.schema, self.to_batches(batch_size, ordered=ordered)
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a stream of the Arrow PyCapsule interface."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The schema, by the same interface."""
        return self.schema.__arrow_c_schema__()

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """All rows, as a DataFrame of pandas.

        Args:
            options: those of `pyarrow.Table.to_pandas`, as `types_mapper=pandas.ArrowDtype`.

        Raises:
            ImportError: pandas is not installed.
        """
        _require("pandas", "to_pandas")
        frame: pandas.DataFrame = self.to_arrow().to_pandas(**options)
        return frame

    def narrowed(self, columns: Sequence[str] | None = None, where: Filter | None = None) -> Scan:
        """A scan of some of these columns, and of some of these rows where that is known.

        Args:
            columns: which of them, in this order; all if `None`.
            where: rows for which it is not true may be left out. Without effect where the scan has
                a limit, or where it can't be evaluated.
        """
        names = self._output.names if columns is None else list(columns)
        condition: Filter | None = self._expression
        if where is not None and self._limit is None:
            with suppress(DeltaError):
                plain = Scan(self._snapshot, names, where)
                plain._shown()
                more = plain._expression
                both = [each for each in (self._expression, more) if each is not None]
                condition = join_and(both) if both else None
        return Scan(self._snapshot, names, condition, limit=self._limit, progress=self._progress)

    @overload
    def to_polars(self, *, lazy: Literal[False] = False) -> polars.DataFrame: ...

    @overload
    def to_polars(self, *, lazy: Literal[True]) -> polars.LazyFrame: ...

    @overload
    def to_polars(self, *, lazy: bool) -> polars.DataFrame | polars.LazyFrame: ...

    @read_arguments
    def to_polars(self, *, lazy: bool = False) -> polars.DataFrame | polars.LazyFrame:
        """All rows, as a DataFrame of Polars.

        Args:
            lazy: whether as a LazyFrame, whose columns, condition and number of rows decide what is
                read, and when. Deletion vectors and column mapping are no obstacle.

        Raises:
            ImportError: Polars is not installed.
        """
        module = _require("polars", "to_polars")
        if lazy:
            from lakelog.core.data.polars_query import lazy_frame

            return lazy_frame(self.schema, self.narrowed, module)
        frame: polars.DataFrame = module.from_arrow(self.to_arrow())
        return frame

    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyRelation:
        """All rows, as a relation of DuckDB whose queries decide what is read, and when.

        DuckDB asks for the columns and the condition of a query. Deletion vectors and column
        mapping are no obstacle.

        Args:
            connection: the connection of DuckDB that asks; its default one if `None`.

        Raises:
            ImportError: DuckDB is not installed.
            DeltaAnalysisError: there are floating-point columns, and this DuckDB is older than 2.0:
                it would leave out rows with NaN.
        """
        from lakelog.core.data.duckdb_query import duckdb_relation

        module = _require("duckdb", "to_duckdb")
        return duckdb_relation(self.schema, self.narrowed, module, connection)

    def to_pyarrow_dataset(self) -> Dataset:
        """The files as a `pyarrow.dataset.Dataset`, which plans and reads them by itself.

        The condition is part of the dataset. It skips files and row groups by itself.

        Raises:
            DeltaAnalysisError: the scan has `columns` or a limit, which a dataset is asked for when
                it is read.
            UnsupportedFeatureError: the table needs what a dataset can't do: deletion vectors,
                column mapping, widened types, files in other storages. The scan reads it.
            InvalidPredicateError: the condition has a part that only lakelog or Spark evaluates.
        """
        from lakelog.core.data.arrow_dataset import arrow_dataset

        if self._limit is not None or self._output.names != self._schema.names:
            raise DeltaAnalysisError(
                "a dataset has all columns and rows: give columns= and the limit to its own "
                "to_table(columns=), head(n) or scanner()"
            )
        return arrow_dataset(self._snapshot, self._expression)

    def count(self) -> int:
        """How many rows there are.

        Answered by the log's statistics, deletion vectors included, for all files whose rows
        certainly match; other files are opened, for what the condition needs of them.

        Raises:
            DataFileMissingError: as `to_arrow`.
            DataFileError: likewise.
            InvalidPredicateError: likewise.
        """
        from lakelog.core.data.answers import counted

        self._shown()
        files = self._snapshot.file_table_for(self._expression)
        known = counted(self._snapshot, files, self._expression)
        rows, unread = known.sum, files.filter(known.unknown)
        if unread.num_rows and (self._limit is None or rows < self._limit):
            bare = Scan(self._snapshot, [], self._expression, progress=self._progress)
            rows += sum(table.num_rows for table in bare._streamed(files=unread))
        return rows if self._limit is None else min(rows, self._limit)

    def min(self, column: str) -> Any:
        """The least value of a column; `None` where there are only nulls, or no rows.

        Answered by the log's statistics where these are exact: for whole numbers, dates and
        partition columns. Other files are opened, if they may have a lesser value.

        Args:
            column: a column of the scan.

        Raises:
            DeltaAnalysisError: there is no such column, or its values have no order.
            DataFileMissingError: as `to_arrow`.
            DataFileError: likewise.
            InvalidPredicateError: likewise.
        """
        return self._extreme(column, "min")

    def max(self, column: str) -> Any:
        """The greatest value of a column, as `min`; NaN is greater than every number."""
        return self._extreme(column, "max")

    def _extreme(self, column: str, which: str) -> Any:
        from lakelog.core.data.answers import better_of, extreme_so_far

        one = Scan(
            self._snapshot, column, self._expression, limit=self._limit, progress=self._progress
        )
        (field,) = one._output
        if self._output.get(field.name) is None:
            _chosen(self._snapshot, self._output, [column])
        one._shown()
        files = self._snapshot.file_table_for(self._expression)
        best, unread = extreme_so_far(
            self._snapshot, files, self._expression, field, which, exact=self._limit is None
        )
        for table in one._streamed(files=files.filter(unread)):
            best = better_of(best, table.column(0), which)
        return None if best is None else best.as_py()

    def __repr__(self) -> str:
        """`Scan(/lake/flights, version 7, columns day, delay, where month = 1)`."""
        shown = f"Scan({self._snapshot.table}, version {self._snapshot.version}"
        if self._output.names != self._schema.names:
            shown += f", columns {', '.join(self._output.names)}"
        if self._expression is not None:
            shown += f", where {to_sql(self._expression)}"
        return shown + (")" if self._limit is None else f", limit {self._limit})")

    def _repr_html_(self) -> str:
        """For notebooks: what will be read, and the columns; nothing is read."""
        from lakelog.core.shown.notebook import html_page, html_table

        rows = [(each.name, each.data_type) for each in self._output]
        return html_page(html_table(repr(self), ("column", "type"), rows))

    @read_arguments
    def head(self, limit: int = 5) -> pa.Table:
        """The first rows, in the order of the log; see `to_arrow`.

        Args:
            limit: how many rows, at most.
        """
        return self.limit(limit).to_arrow()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch; see `to_batches`."""
        return self.to_batches()

    def _streamed(
        self,
        batch_size: int | None = None,
        *,
        ordered: bool = True,
        files: pa.Table | None = None,
    ) -> Generator[pa.Table]:
        """The rows in small tables; of some files only, where they are given."""
        shown = self._shown()
        left = self._limit
        if left == 0:
            return
        chosen = self._snapshot.file_table_for(self._expression) if files is None else files
        if left is not None and left <= BATCH_ROWS:
            # Most likely the first file has them, so that the others need not be located.
            workers, quick = 1, False
            starts = range(0, chosen.num_rows, _LOCATED)
            found: Iterable[DataFile] = chain.from_iterable(
                self._files.find(chosen.slice(start, _LOCATED)) for start in starts
            )
            if self._expression is None:
                batch_size = min(left, batch_size or left)
        else:
            located = self._files.find(chosen)
            workers, quick = self._workers(len(located)), self._are_quick(located)
            found = located
        streams = (partial(self._of_file, each, batch_size, shown) for each in found)
        with closing(self._tables_of(streams, workers, ordered=ordered, quick=quick)) as tables:
            for table in self._watched(tables, chosen):
                if left is None:
                    yield table
                    continue
                # A slice of rows without columns has all of them.
                yield table.slice(0, left) if table.num_columns else _bare(table, left)
                left -= table.num_rows
                if left <= 0:
                    return

    def _tables_of(
        self,
        streams: Iterator[Callable[[], Generator[pa.Table]]],
        workers: int,
        *,
        ordered: bool,
        quick: bool,
    ) -> Generator[pa.Table]:
        if quick:
            yield from read_while_quick(streams)
        yield from read_ahead(streams, workers=workers, ordered=ordered)

    def _workers(self, files: int) -> int:
        cores = os.cpu_count() or 1
        # On an object store threads mostly wait.
        return min(files, min(cores, DECODERS) if self._is_local else 2 * DECODERS)

    @property
    def _is_local(self) -> bool:
        return bool(self._snapshot.store.filesystem.type_name == "local")

    def _are_quick(self, files: Sequence[DataFile]) -> bool:
        """Whether all files are small ones on a disk."""
        return self._is_local and all(each.size <= _SMALL for each in files)

    def _of_file(
        self, file: DataFile, batch_size: int | None, shown: Callable[[pa.Table], pa.Table]
    ) -> Generator[pa.Table]:
        with closing(self._files.batches(file, batch_size)) as tables:
            # Those without rows too, so that whoever watches hears of a search that finds none.
            yield from map(shown, tables)

    def _tables(self) -> Iterator[pa.Table]:
        """A table a file, in the order of the log."""
        shown = self._shown()
        files = self._snapshot.file_table_for(self._expression)

        def rows(file: DataFile) -> pa.Table:
            return shown(self._files.rows(file))

        def one(file: DataFile) -> Generator[pa.Table]:
            yield rows(file)

        def read(found: list[DataFile]) -> Generator[pa.Table]:
            left = iter(found)
            if self._are_quick(found):
                yield from read_while_quick(partial(one, each) for each in left)
            yield from in_order(rows, list(left), readers(), "lakelog-scan")

        yield from self._watched(read(self._files.find(files)), files)

    def _watched(self, tables: Iterable[pa.Table], files: pa.Table) -> Iterator[pa.Table]:
        """The tables that are read of some files; whoever asked hears how many rows came."""
        snapshot, rows = self._snapshot, 0
        # Not the current span: who takes the rows is in no span of ours.
        with observed(snapshot.conf, SCAN, snapshot.table) as seen:
            seen.note(version=snapshot.version, files=files.num_rows)
            try:
                for table in self._reported(tables, files):
                    rows += table.num_rows
                    yield table
            finally:
                seen.note(rows=rows)
                seen.count(SCAN_ROWS, rows)
                seen.count(SCAN_FILES, files.num_rows)

    def _reported(self, tables: Iterable[pa.Table], files: pa.Table) -> Iterator[pa.Table]:
        if self._progress is None:
            yield from tables
            return
        from lakelog.core.data.answers import known_count

        total = None
        if self._limit is None:
            total = known_count(self._snapshot, files, self._expression)
        done = 0
        with progress_callback(self._progress) as report:
            for table in tables:
                done += table.num_rows
                report(Progress(text="reading", done=done, total=total, unit="rows"))
                yield table

    def _shown(self) -> Callable[[pa.Table], pa.Table]:
        """What leaves of rows those that the condition is true for, and the columns asked for.

        What can't be evaluated is refused at once, before any file is opened; also where none is.
        """
        names = [each.name for each in self._output]
        if self._expression is None:
            return lambda table: table.select(names)
        from lakelog.core.expressions.arrow.masks import typed_mask

        mask = typed_mask(self._expression, self._schema)
        mask(empty_table(to_arrow_schema(self._read)))
        return lambda table: table.filter(mask(table)).select(names)


def _chosen(
    snapshot: TableVersion, schema: StructType, columns: Sequence[str] | None
) -> StructType:
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
                f"the column {name!r} is requested twice", table=snapshot.table, column=name
            )
        found[each.name] = each
    return StructType(tuple(found.values()))


def _bare(table: pa.Table, most: int) -> pa.Table:
    return without_columns(min(table.num_rows, most))


def _require(module: str, method: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as exc:
        raise ImportError(
            f"{method}() needs the package {module}: pip install {module}. Without it, to_arrow() "
            "gives the rows as a pyarrow.Table.",
            name=module,
        ) from exc
