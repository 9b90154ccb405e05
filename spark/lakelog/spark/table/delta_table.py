"""`DeltaTable`: a table by its path, with the names and argument order of delta-spark's class."""

from __future__ import annotations

import json
import operator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from lakelog.core import DeltaConf, DeltaLog, convert_to_delta
from lakelog.core.engine.shown import History, html_text
from lakelog.core.engine.tables import shown_columns
from lakelog.core.errors import DeltaAnalysisError, DeltaError, TableNotFoundError
from lakelog.spark.dml.delete_update import delete, update
from lakelog.spark.dml.given_frames import GivenFrames
from lakelog.spark.dml.merge_builder import merge_builder
from lakelog.spark.names.frame_views import FrameSource, note_frame
from lakelog.spark.names.governed import address_of
from lakelog.spark.names.identifiers import parse, path_in
from lakelog.spark.names.lookup import entry_elsewhere, is_watched, qualified
from lakelog.spark.names.placing import exists
from lakelog.spark.names.resolve import with_location
from lakelog.spark.reading.reader import snapshot_df
from lakelog.spark.reading.stated import with_stated_nulls
from lakelog.spark.replay.logs import session_log
from lakelog.spark.session.answers import answer
from lakelog.spark.session.argument_checks import (
    check_expression,
    check_expressions_by_name,
    check_int,
    check_session,
    check_text,
    check_texts,
    checked_path,
    refuse_type,
)
from lakelog.spark.session.session import session_conf
from lakelog.spark.table.alteration import TableAlteration
from lakelog.spark.table.convert_arguments import parquet_folder, partition_schema
from lakelog.spark.table.older_versions import OlderVersions
from lakelog.spark.table.optimization import Optimization
from lakelog.spark.table.table_builder import DeltaTableBuilder, builder
from lakelog.spark.table.table_vacuum import Vacuum
from lakelog.spark.types.spark_types import struct_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from lakelog.core import HistoryEntry
    from lakelog.spark.dml.merge_builder import DeltaMergeBuilder

_TEXTS = MapType(StringType(), StringType())


_HISTORY = struct_of(
    version=LongType(),
    timestamp=TimestampType(),
    userId=StringType(),
    userName=StringType(),
    operation=StringType(),
    operationParameters=_TEXTS,
    job=struct_of(
        jobId=StringType(),
        jobName=StringType(),
        jobRunId=StringType(),
        runId=StringType(),
        jobOwnerId=StringType(),
        triggerType=StringType(),
    ),
    notebook=struct_of(notebookId=StringType()),
    clusterId=StringType(),
    readVersion=LongType(),
    isolationLevel=StringType(),
    isBlindAppend=BooleanType(),
    operationMetrics=_TEXTS,
    userMetadata=StringType(),
    engineInfo=StringType(),
)
"""The columns of delta-spark's `DESCRIBE HISTORY`."""

_DETAIL = struct_of(
    format=StringType(),
    id=StringType(),
    name=StringType(),
    description=StringType(),
    location=StringType(),
    createdAt=TimestampType(),
    lastModified=TimestampType(),
    partitionColumns=ArrayType(StringType()),
    clusteringColumns=ArrayType(StringType()),
    numFiles=LongType(),
    sizeInBytes=LongType(),
    properties=_TEXTS,
    minReaderVersion=IntegerType(),
    minWriterVersion=IntegerType(),
    tableFeatures=ArrayType(StringType()),
)
"""The columns of delta-spark's `DESCRIBE DETAIL`."""


class DeltaTable(OlderVersions, Optimization, TableAlteration, Vacuum):
    """A table, by its path or its name. Every call sees the newest version."""

    def __init__(
        self,
        spark: SparkSession,
        log: DeltaLog,
        alias: str | None = None,
        frames: GivenFrames | None = None,
    ) -> None:
        """Build it from its parts; use `forPath` to get one."""
        self._spark = spark
        self._log = log
        self._alias = alias
        self._name: str | None = None
        self._frames = GivenFrames() if frames is None else frames

    @classmethod
    def forPath(  # noqa: N802  # delta-spark's name
        cls,
        sparkSession: SparkSession,  # noqa: N803  # delta-spark's name
        path: str,
        hadoopConf: Mapping[str, str] | None = None,  # noqa: N803  # delta-spark's name
    ) -> DeltaTable:
        """Open the table at a path.

        Args:
            sparkSession: a session, classic or Connect.
            path: the table's folder.
            hadoopConf: storage settings for this table alone, over the session's:
                `{"fs.s3a.endpoint": …}`.

        Raises:
            TableNotFoundError: there is no table.
            UnsupportedFeatureError: the table has a feature that this version can't read.
        """
        check_session(sparkSession)
        location = checked_path(path, "path")
        if hadoopConf is not None:
            check_texts(hadoopConf, "hadoopConf", "hadoopConf")
        own = {f"spark.hadoop.{key}": value for key, value in (hadoopConf or {}).items()}
        try:
            return cls._opened(sparkSession, location, own)
        except TableNotFoundError as exc:
            raise _missing(exc) from exc

    @classmethod
    def _opened(
        cls, spark: SparkSession, path: str, own: Mapping[str, str] | None = None
    ) -> DeltaTable:
        conf = DeltaConf.from_mapping({**session_conf(spark), **(own or {})})
        log = session_log(spark, path, conf)
        log.update()
        table = cls(spark, log)
        address = address_of(log)
        table._name = None if address == log.table else address
        return table

    @classmethod
    def forName(  # noqa: N802  # delta-spark's name
        cls,
        sparkSession: SparkSession,  # noqa: N803  # delta-spark's name
        tableOrViewName: str,  # noqa: N803  # delta-spark's name
    ) -> DeltaTable:
        """Open a table by its name in Spark's own catalog, or in one of the conf.

        Args:
            sparkSession: a session, classic or Connect.
            tableOrViewName: `table`, `database.table`, `spark_catalog.database.table`,
                `catalog.schema.table` or ``delta.`/its/path` ``.

        Raises:
            TableNotFoundError: no such name, or no table where the catalog says that it is.
            DeltaAnalysisError: a view, a table of another format or of another catalog.
            UnsupportedFeatureError: the table has a feature that this version can't read.
        """
        check_session(sparkSession)
        check_text(tableOrViewName, "tableOrViewName")
        try:
            table = with_location(
                sparkSession, tableOrViewName, lambda path: cls._opened(sparkSession, path)
            )
        except TableNotFoundError as exc:
            raise _missing(exc) from exc
        parts = parse(tableOrViewName)
        if path_in(parts) is None:
            elsewhere = entry_elsewhere(sparkSession, parts)
            whole = qualified(sparkSession, parts) if elsewhere is None else elsewhere.parts
            table._name = ".".join(whole or parts)
        return table

    @classmethod
    def create(
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803  # delta-spark's name
    ) -> DeltaTableBuilder[DeltaTable]:
        """Begin a new table; `execute` refuses where there is one."""
        return builder(sparkSession, "create", cls.forPath, cls.forName)

    @classmethod
    def createIfNotExists(  # noqa: N802  # delta-spark's name
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803  # delta-spark's name
    ) -> DeltaTableBuilder[DeltaTable]:
        """Begin a new table; `execute` leaves one that exists alone."""
        return builder(sparkSession, "create_if_not_exists", cls.forPath, cls.forName)

    @classmethod
    def replace(
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803  # delta-spark's name
    ) -> DeltaTableBuilder[DeltaTable]:
        """Begin the replacement of a table; `execute` refuses where there is none."""
        return builder(sparkSession, "replace", cls.forPath, cls.forName)

    @classmethod
    def createOrReplace(  # noqa: N802  # delta-spark's name
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803  # delta-spark's name
    ) -> DeltaTableBuilder[DeltaTable]:
        """Begin a table that is new or replaces an existing one."""
        return builder(sparkSession, "create_or_replace", cls.forPath, cls.forName)

    @classmethod
    def isDeltaTable(  # noqa: N802  # delta-spark's name
        cls,
        sparkSession: SparkSession,  # noqa: N803  # delta-spark's name
        identifier: str,
    ) -> bool:
        """Whether the folder at a path is a Delta table, readable by this version or not."""
        check_session(sparkSession)
        location = checked_path(identifier, "identifier")
        return exists(sparkSession, location)

    @classmethod
    def convertToDelta(  # noqa: N802  # delta-spark's name
        cls,
        sparkSession: SparkSession,  # noqa: N803  # delta-spark's name
        identifier: str,
        partitionSchema: str | StructType | None = None,  # noqa: N803  # delta-spark's name
    ) -> DeltaTable:
        """Turn a folder of Parquet files into a table; the files stay where they are.

        A folder that is a table already is left as it is. Footers are read by the driver.

        Args:
            sparkSession: a session, classic or Connect.
            identifier: ``parquet.`/path` ``.
            partitionSchema: the columns of the Hive folders, in their order: DDL as
                `"day DATE, n INT"`, or a schema.

        Raises:
            DeltaAnalysisError: no folder of Parquet files, or other partition columns.
            SchemaMismatchError: files whose types have nothing in common.
        """
        check_session(sparkSession)
        check_text(identifier, "identifier")
        if partitionSchema is not None and not isinstance(partitionSchema, str | StructType):
            refuse_type("partitionSchema must be str or StructType.", partitionSchema)
        path = parquet_folder(identifier)
        columns = partition_schema(sparkSession, partitionSchema)
        # As delta-spark spells letters beyond ASCII, since it shares this table.
        conf = session_conf(sparkSession)
        convert_to_delta(path, columns, non_ascii_paths="bare", conf=conf)
        return cls.forPath(sparkSession, path)

    @property
    def log(self) -> DeltaLog:
        """The table's log: transactions, older snapshots, checkpoints."""
        return self._log

    def toDF(self) -> DataFrame:  # noqa: N802  # delta-spark's name
        """The rows of the newest version; the same DataFrame until there is a newer one.

        In a classic session, conditions and values of this table's `delete`, `update` and `merge`
        may name its columns, `df["id"] < 7`, while the table has the same columns.

        Raises:
            DataFileMissingError: the log names a file that the storage does not have.
        """
        snapshot = self._log.update()
        df = self._frames.of(
            snapshot,
            lambda: with_stated_nulls(snapshot_df(self._spark, snapshot), snapshot.schema),
        )
        if is_watched(self._spark):
            note_frame(df, FrameSource(address_of(snapshot)))
        if self._alias is None:
            return df
        return with_stated_nulls(df.alias(self._alias), snapshot.schema)

    def delete(self, condition: str | Column | None = None) -> None:
        """Delete the rows for which a condition is true, in one commit.

        Rows for which it is null stay. A condition on partition columns alone takes out whole
        files. Else a touched file gets a deletion vector where the table has
        `delta.enableDeletionVectors`, and otherwise its other rows go to a new file. Small tables
        are changed without a Spark job, where the condition is text.

        Args:
            condition: SQL or a Column; `None` deletes all rows.

        Raises:
            TypeError: the condition is neither.
            AppendOnlyError: `delta.appendOnly` is set.
            AnalysisException: an unknown column, or a function that is not deterministic.
            DeltaAnalysisError: a subquery.
            DataFileMissingError: the log lists a file that the storage does not have.
            DeltaConcurrentModificationException: another writer was faster; nothing was committed.
            CommitOutcomeUnknownError: the storage never confirmed the commit; the files are kept.
            UnsupportedFeatureError: the table has a feature that this version can't write.
        """
        if condition is not None:
            check_expression(condition, "'condition'")
        delete(self._spark, self._log, condition, self._alias, self._frames)

    def update(
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002  # delta-spark's name
    ) -> None:
        """Give columns new values in the rows for which a condition is true, in one commit.

            table.update("delay > 15", {"late": "true", "place.city": F.lit("Köln")})

        All values are those of the old row. Columns that are generated from changed ones are
        computed again; row ids stay. New rows keep the table's rules.

        Args:
            condition: SQL or a Column; `None` updates all rows.
            set: column, or field of a struct, -> its new value, as SQL or a Column; the word
                `DEFAULT` is the column's default.

        Raises:
            TypeError: an argument of another type.
            ValueError: `set` is missing.
            ConstraintViolationError: a new row breaks a rule of the table. Nothing was committed.
            DeltaAnalysisError: an unknown column or an identity column in `set`, one that is set
                twice, or a value of a type that the column can't hold.
            DeltaError: the others of `delete`.
        """
        check_expressions_by_name(set, "'set'")
        if condition is not None:
            check_expression(condition, "'condition'")
        assert set is not None  # that is checked above
        update(self._spark, self._log, set, condition, self._alias, self._frames)

    def alias(self, aliasName: str) -> DeltaTable:  # noqa: N803  # delta-spark's name
        """The same table under a name, for conditions and values that name its columns.

        Args:
            aliasName: the name; `t` makes a column also known as `t.id`.
        """
        check_text(aliasName, "aliasName")
        return DeltaTable(self._spark, self._log, aliasName, self._frames)

    def merge(self, source: DataFrame, condition: str | Column) -> DeltaMergeBuilder:
        """Begin a MERGE of a source's rows into the table; clauses and `execute` follow.

            (
                table.alias("t")
                .merge(changes.alias("s"), "t.id = s.id")
                .whenMatchedDelete("s.gone")
                .whenMatchedUpdateAll()
                .whenNotMatchedInsertAll()
                .execute()
            )

        Args:
            source: the rows, which are evaluated once.
            condition: when a row of the table and one of the source match.
        """
        return merge_builder(self._spark, self._log, self._alias, source, condition, self._frames)

    def history(self, limit: int | None = None) -> DataFrame:
        """The operations on the table, newest first, in the columns of `DESCRIBE HISTORY`.

        Args:
            limit: the most entries to return.
        """
        if limit is not None:
            check_int(limit, "limit")
            limit = operator.index(limit)
        found = self._log.history(limit)
        rows = [_history_row(entry) for entry in found]
        return answer(self._spark, _HISTORY, rows, History(found)._repr_html_)

    def detail(self) -> DataFrame:
        """One row about the table, in the columns of `DESCRIBE DETAIL`."""
        snapshot = self._log.update()
        metadata, protocol = snapshot.metadata, snapshot.protocol
        row: tuple[Any, ...] = (
            "delta",
            metadata.id,
            self._name or metadata.name,
            metadata.description,
            _location(snapshot.table),
            None if metadata.created_time is None else _time(metadata.created_time),
            _time(snapshot.timestamp),
            list(metadata.partition_columns),
            shown_columns(snapshot),
            snapshot.num_files,
            snapshot.size_in_bytes,
            dict(metadata.configuration),
            protocol.min_reader_version,
            protocol.min_writer_version,
            sorted(snapshot.terms.features),
        )
        return answer(self._spark, _DETAIL, [row])

    def generate(self, mode: str) -> None:
        """Write manifests of the table's data files, for readers that can't read the log.

        Args:
            mode: `symlink_format_manifest`, the only mode.

        Raises:
            DeltaAnalysisError: another mode, or a table with deletion vectors or column mapping.
        """
        check_text(mode, "mode")
        if mode.lower() != "symlink_format_manifest":
            raise DeltaAnalysisError(
                f"[DELTA_MODE_NOT_SUPPORTED] Specified mode {mode!r} is not supported. Supported "
                "modes are: symlink_format_manifest",
                table=self._log.table,
            )
        self._log.generate_symlink_manifest()

    def _repr_html_(self) -> str:
        """For notebooks: the columns, partitioning and properties of the version that is known."""
        try:
            return self._log.snapshot._repr_html_()
        except (DeltaError, OSError) as exc:
            # What a cell shows must not fail in its place: the table may be gone by now.
            return f"<div><b>{html_text(repr(self), 2000)}</b>: {html_text(exc, 2000)}</div>"

    def __repr__(self) -> str:
        """`DeltaTable(/lake/flights)`."""
        return f"DeltaTable({self._log.table})"


def _location(table: str) -> str:
    return f"file:{table}" if table.startswith("/") else table


def _time(millis: int) -> datetime:
    # From whole seconds: a float loses the last millisecond far from 1970.
    seconds, rest = divmod(millis, 1000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000)


def _history_row(entry: HistoryEntry) -> tuple[Any, ...]:
    info = entry.commit_info
    return (
        entry.version,
        _time(entry.timestamp),
        info.get("userId"),
        info.get("userName"),
        entry.operation,
        _texts(entry.parameters),
        _members(info.get("job"), _HISTORY["job"].dataType),
        _members(info.get("notebook"), _HISTORY["notebook"].dataType),
        info.get("clusterId"),
        entry.read_version,
        entry.isolation_level,
        entry.is_blind_append,
        _texts(entry.metrics),
        entry.user_metadata,
        entry.engine_info,
    )


def _texts(values: Mapping[str, Any] | None) -> dict[str, str | None] | None:
    """Values as the log's clients show them: text as it is, anything else as JSON."""
    if values is None:
        return None
    return {
        k: v if v is None or isinstance(v, str) else json.dumps(v, separators=(",", ":"))
        for k, v in values.items()
    }


def _members(value: Any, kind: DataType) -> tuple[Any, ...] | None:
    if not isinstance(value, dict) or not isinstance(kind, StructType):
        return None
    return tuple(value.get(name) for name in kind.names)


def _missing(exc: TableNotFoundError) -> TableNotFoundError:
    """The same error, by the condition that `forPath` and `forName` of delta-spark have for it."""
    said = str(exc).removeprefix("[DELTA_TABLE_NOT_FOUND] ")
    return TableNotFoundError(f"[DELTA_MISSING_DELTA_TABLE] {said}", **exc.fields)
