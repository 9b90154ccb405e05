"""The reader: PySpark's methods, over a snapshot that lakelog planned itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self

from lakelog.core import DeltaConf
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.names.frame_views import FrameSource, note_frame
from lakelog.spark.names.governed import address_of
from lakelog.spark.names.lookup import is_watched
from lakelog.spark.names.resolve import with_location
from lakelog.spark.reading.changes import changes_df
from lakelog.spark.reading.read_files import files_df
from lakelog.spark.reading.read_options import chosen_columns, column_names, wants_changes
from lakelog.spark.reading.spark_scan import readable_schema
from lakelog.spark.reading.stated import with_nulls_of, with_stated_nulls
from lakelog.spark.reading.time_travel import millis_of_session, snapshot_of
from lakelog.spark.replay.logs import session_log
from lakelog.spark.replay.spark_replayer import replayer_for
from lakelog.spark.session.given_options import WithFormat
from lakelog.spark.session.option_names import check_option_names
from lakelog.spark.session.session import session_conf, with_storage
from lakelog.spark.types.path_forms import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lakelog.core import Filter, Snapshot


def snapshot_df(
    spark: SparkSession,
    snapshot: Snapshot,
    where: Filter | None = None,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """The rows of a snapshot; with `where`, of the files that may hold matching rows.

    The rows themselves are not filtered.

    Args:
        spark: a session, classic or Connect.
        snapshot: the version.
        where: the condition for matching rows.
        columns: names as the schema has them; the columns of `where` come after them.

    Raises:
        InvalidPredicateError: `where` can't be parsed or names an unknown column.
        DataFileMissingError: the log names a file that the storage does not have.
    """
    if where is None:
        return files_df(spark, snapshot, snapshot.file_table, columns=columns)
    from lakelog.core.engine.conditions import EvalContext, normalize_filter
    from lakelog.core.engine.conditions import columns as columns_of

    prune = normalize_filter(where, snapshot.schema, EvalContext.of(snapshot.conf))
    if columns is not None and prune is not None:
        needed = {path[0].lower() for path in columns_of(prune)} - {c.lower() for c in columns}
        columns = [*columns, *(n for n in snapshot.schema.names if n.lower() in needed)]
    files = snapshot.file_table_for(prune)
    return files_df(spark, snapshot, files, columns=columns, prune=prune)


class DeltaReader(WithFormat):
    """Reads a Delta table as a DataFrame.

    The file list comes from the log at the moment of `load`: the DataFrame stays at that
    version however often it runs.
    """

    _takes = ("this reader reads", "spark.read.format")

    def __init__(self, spark: SparkSession) -> None:
        """Start without options."""
        super().__init__()
        self._spark = spark
        self._schema: StructType | str | None = None
        self._where: list[str] = []

    def schema(self, schema: StructType | str) -> Self:
        """Set the expected schema; `load` compares it with the table's."""
        self._schema = schema
        return self

    def option(self, key: str, value: Any) -> Self:
        """Set an option; `versionAsOf` and `timestampAsOf` read an older state.

        `fs.…` and `dfs.…` are settings of the storage for this read alone, over the session's.

        `columns` names the columns to read, separated by commas, or as a JSON list where a name has
        a comma (`["a,b", "c"]`): what a `select` of the result
        does, and on storages that Spark's own reader can't open the only way to leave columns out.

        `readChangeFeed` reads the rows that were changed, instead of those that are there, between
        `startingVersion` or `startingTimestamp` and, if one is given, `endingVersion` or
        `endingTimestamp`, both included; see `lakelog.core.table_changes`.

        Names are compared ignoring case; `None` takes an option back. `load` refuses an option that
        is nearly one of these (`versionAsOff`); others do nothing.
        """
        name = key if key.lower().startswith(("fs.", "dfs.")) else key.lower()
        return super().option(name, value)

    def where(self, condition: str) -> Self:
        """Keep the rows for which a condition is true, and skip the files that have none.

        Spark's planner prunes partitions by `DataFrame.where` on its own; by the statistics of
        files (a range of ids, a day) only this method does. Several calls are joined by AND.

        Args:
            condition: SQL, as `DataFrame.where` takes it.
        """
        self._where.append(condition)
        return self

    filter = where

    def load(
        self,
        path: str | os.PathLike[str] | list[str] | None = None,
        format: str | None = None,  # noqa: A002  # PySpark's name
        schema: StructType | str | None = None,
        **options: Any,
    ) -> DataFrame:
        """Plan the read of the table at a path.

        Args:
            path: the table; `…@v7` or `…@20260131235959000` (session time zone) reads an older
                state, where no table of that literal path exists.
            format: `delta` or `lakelog`.
            schema: see `schema`.
            options: see `option`.

        Raises:
            TableNotFoundError: there is no table.
            VersionNotFoundError: the version does not exist; says which do.
            TimestampOutOfRangeError: the log does not reach that time.
            DeltaAnalysisError: a bad option, or another schema than the table's.
            InvalidPredicateError: a condition can't be parsed or names an unknown column.
            DataFileMissingError: the log names a file that the storage does not have.
            UnsupportedFeatureError: the table has a feature that this version can't read.
        """
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        check_option_names(self._options)
        if wants_changes(self._options):
            return self._changes(self._one(path))
        snapshot = self._snapshot(self._one(path))
        self._compare_schema(snapshot)
        condition = " AND ".join(f"({each})" for each in self._where) or None
        columns = chosen_columns(snapshot.schema, self._options.get("columns"), snapshot.table)
        df = self._matching(snapshot_df(self._spark, snapshot, condition, columns))
        if columns is not None and self._where:
            df = df.select(*map(quoted, columns))
        df = with_stated_nulls(df, snapshot.schema, columns)
        if columns is None and condition is None and is_watched(self._spark):
            note_frame(df, self._source(self._one(path), snapshot))
        return df

    def _source(self, path: str, snapshot: Snapshot) -> FrameSource:
        older = not {"versionasof", "timestampasof"}.isdisjoint(self._options) or (
            # Of `t@v1` it may be the version, or the name.
            "@" in path and not snapshot.table.endswith(f"@{path.rstrip('/').rpartition('@')[2]}")
        )
        settings = {k: v for k, v in self._options.items() if k.lower().startswith(("fs.", "dfs."))}
        return FrameSource(address_of(snapshot), older, settings)

    def _matching(self, df: DataFrame) -> DataFrame:
        for each in self._where:
            df = df.where(each)
        return df

    def table(self, tableName: str) -> DataFrame:  # noqa: N803  # PySpark's name
        """Plan the read of a table by its name in Spark's own catalog, or in one of the conf.

        Args:
            tableName: `table`, `database.table`, `spark_catalog.database.table`,
                `catalog.schema.table` or ``delta.`/its/path` ``.

        Raises:
            TableNotFoundError: no such name, or no table where the catalog says that it is.
            DeltaAnalysisError: a view, a table of another format or of another catalog.
            DeltaError: see `load`.
        """
        return with_location(self._spark, tableName, self.load)

    def _one(self, path: str | os.PathLike[str] | list[str] | None) -> str:
        paths = [os.fspath(path)] if isinstance(path, str | os.PathLike) else list(path or ())
        if not paths and "path" in self._options:
            paths = [self._options["path"]]
        if len(paths) != 1:
            raise DeltaAnalysisError(
                f"a Delta table has one path, but {len(paths)} were given: use load(path)",
                paths=paths,
            )
        return paths[0]

    def _changes(self, path: str) -> DataFrame:
        if self._schema is not None:
            raise DeltaAnalysisError(
                "the changes of a table have the table's own schema: leave out schema"
            )
        conf = DeltaConf.from_mapping(with_storage(session_conf(self._spark), self._options))
        all_rows = changes_df(self._spark, path, self._options, conf, self._millis)
        df = self._matching(all_rows) if self._where else all_rows
        chosen = column_names(self._options.get("columns"))
        if chosen:
            df = df.select(*map(quoted, chosen))
        return with_nulls_of(df, all_rows)

    def _snapshot(self, path: str) -> Snapshot:
        conf = DeltaConf.from_mapping(with_storage(session_conf(self._spark), self._options))
        replayer = replayer_for(self._spark, conf)
        return snapshot_of(
            path,
            self._options,
            conf,
            self._millis,
            replayer,
            lambda path: session_log(self._spark, path, conf),
        )

    def _millis(self, text: str) -> int:
        return millis_of_session(self._spark, text)

    def _compare_schema(self, snapshot: Snapshot) -> None:
        given = self._schema
        if given is None:
            return
        if isinstance(given, str):
            given = self._spark.createDataFrame([], given).schema
        table = readable_schema(snapshot.schema)
        if _columns(given.jsonValue()) != _columns(table.jsonValue()):
            raise DeltaAnalysisError(
                "a Delta table has its own schema, and the schema given is not that of "
                f"{snapshot.table} at version {snapshot.version}. Leave out schema(…) and select "
                f"or cast columns after load.\n  given: {given.simpleString()}\n  table: "
                f"{table.simpleString()}",
                table=snapshot.table,
                version=snapshot.version,
            )


def _columns(value: Any) -> Any:
    """A schema's JSON without what a reader may see differently: nullability and metadata."""
    if isinstance(value, list):
        return [_columns(v) for v in value]
    if isinstance(value, dict):
        skipped = {"nullable", "containsNull", "valueContainsNull", "metadata"}
        return {k: _columns(v) for k, v in value.items() if k not in skipped}
    return value


class SkippingReader(DeltaReader):
    """Leaves out files by its condition, but no rows: for a query that has the condition too.

    Such a condition may hold what only the query can say (a subquery, `rand()`, its aliases).
    """

    state: Snapshot | None = None
    """What `load` read; `None` for changes."""

    @property
    def seen(self) -> tuple[str, int] | None:
        """The id of the table and the version that `load` read; `None` for changes."""
        return None if self.state is None else (self.state.metadata.id, self.state.version)

    def _snapshot(self, path: str) -> Snapshot:
        self.state = super()._snapshot(path)
        return self.state

    def snapshot(self, path: str) -> Snapshot:
        """The version of a table that `load` would read, by the options; see there."""
        return self._snapshot(path)

    def _matching(self, df: DataFrame) -> DataFrame:
        return df
