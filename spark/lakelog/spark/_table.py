"""`DeltaTable`: a table by its path, with the names and argument order of delta-spark's class."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
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

from lakelog.core.alter_constraints import add_checked_constraint
from lakelog.core.conf import DeltaConf
from lakelog.core.convert import convert_to_delta
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark._convert import parquet_folder, partition_schema
from lakelog.spark._missing import missing_method
from lakelog.spark._new_constraint import check_new_constraint
from lakelog.spark._reader import snapshot_df
from lakelog.spark._replay import replayer_for
from lakelog.spark._session import session_conf
from lakelog.spark._table_builder import DeltaTableBuilder, builder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from lakelog.core.history import HistoryEntry

__all__ = ["DeltaTable"]

_TEXTS = MapType(StringType(), StringType())


def _struct(**types: DataType) -> StructType:
    made = StructType()
    for name, each in types.items():
        made.add(name, each)
    return made


_HISTORY = _struct(
    version=LongType(),
    timestamp=TimestampType(),
    userId=StringType(),
    userName=StringType(),
    operation=StringType(),
    operationParameters=_TEXTS,
    job=_struct(
        jobId=StringType(),
        jobName=StringType(),
        jobRunId=StringType(),
        runId=StringType(),
        jobOwnerId=StringType(),
        triggerType=StringType(),
    ),
    notebook=_struct(notebookId=StringType()),
    clusterId=StringType(),
    readVersion=LongType(),
    isolationLevel=StringType(),
    isBlindAppend=BooleanType(),
    operationMetrics=_TEXTS,
    userMetadata=StringType(),
    engineInfo=StringType(),
)
"""The columns of delta-spark's `DESCRIBE HISTORY`."""

_DETAIL = _struct(
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


class DeltaTable:
    """A table at a path. Every call sees the newest version."""

    def __init__(self, spark: SparkSession, log: DeltaLog) -> None:
        """Put the parts together; `forPath` is the way to get one."""
        self._spark = spark
        self._log = log

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
            TableNotFoundError: no table there.
            UnsupportedFeatureError: the table has a feature that this version can't read.
        """
        own = {f"spark.hadoop.{key}": value for key, value in (hadoopConf or {}).items()}
        conf = DeltaConf.of({**session_conf(sparkSession), **own})
        log = DeltaLog.for_table(path, conf, replayer=replayer_for(sparkSession, conf))
        log.update()
        return cls(sparkSession, log)

    @classmethod
    def forName(  # noqa: N802  # delta-spark's name
        cls,
        sparkSession: SparkSession,  # noqa: N803, ARG003  # delta-spark's name
        tableOrViewName: str,  # noqa: N803  # delta-spark's name
    ) -> DeltaTable:
        """Refuse: names of tables live in a catalog, which this version does not ask.

        Raises:
            DeltaAnalysisError: always; says to use `forPath`.
        """
        raise DeltaAnalysisError(
            f"{tableOrViewName!r} is a name in a catalog, and lakelog opens tables by path: "
            "DeltaTable.forPath(spark, path)",
            table=tableOrViewName,
        )

    @classmethod
    def create(
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803  # delta-spark's name
    ) -> DeltaTableBuilder:
        """Begin a new table; `execute` refuses where there is one."""
        return builder(sparkSession, "create")

    @classmethod
    def createIfNotExists(  # noqa: N802  # delta-spark's name
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803  # delta-spark's name
    ) -> DeltaTableBuilder:
        """Begin a new table; `execute` leaves one that exists alone."""
        return builder(sparkSession, "create_if_not_exists")

    @classmethod
    def replace(
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803  # delta-spark's name
    ) -> DeltaTableBuilder:
        """Begin what takes the place of a table; `execute` refuses where there is none."""
        return builder(sparkSession, "replace")

    @classmethod
    def createOrReplace(  # noqa: N802  # delta-spark's name
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803  # delta-spark's name
    ) -> DeltaTableBuilder:
        """Begin a table that is new, or takes the place of one."""
        return builder(sparkSession, "create_or_replace")

    @classmethod
    def isDeltaTable(  # noqa: N802  # delta-spark's name
        cls,
        sparkSession: SparkSession,  # noqa: N803  # delta-spark's name
        identifier: str,
    ) -> bool:
        """Whether the folder at a path is a Delta table, readable by this version or not."""
        return DeltaLog.for_table(identifier, session_conf(sparkSession)).table_exists()

    @classmethod
    def convertToDelta(  # noqa: N802  # delta-spark's name
        cls,
        sparkSession: SparkSession,  # noqa: N803  # delta-spark's name
        identifier: str,
        partitionSchema: str | StructType | None = None,  # noqa: N803  # delta-spark's name
    ) -> DeltaTable:
        """Make a table of a folder of Parquet files, which stay where they are.

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
        path = parquet_folder(identifier)
        columns = partition_schema(sparkSession, partitionSchema)
        convert_to_delta(path, columns, conf=session_conf(sparkSession))
        return cls.forPath(sparkSession, path)

    @property
    def log(self) -> DeltaLog:
        """The table's log: transactions, older snapshots, checkpoints."""
        return self._log

    def toDF(self) -> DataFrame:  # noqa: N802  # delta-spark's name
        """The rows of the newest version.

        Raises:
            DataFileMissingError: the log names a file that the storage does not have.
        """
        return snapshot_df(self._spark, self._log.update())

    def history(self, limit: int | None = None) -> DataFrame:
        """What was done to the table, newest first, in the columns of `DESCRIBE HISTORY`.

        Args:
            limit: no more entries than this.
        """
        rows = [_history_row(entry) for entry in self._log.history(limit)]
        return self._spark.createDataFrame(rows, _HISTORY)

    def detail(self) -> DataFrame:
        """One row about the table, in the columns of `DESCRIBE DETAIL`."""
        snapshot = self._log.update()
        metadata, protocol = snapshot.metadata, snapshot.protocol
        features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
        row: tuple[Any, ...] = (
            "delta",
            metadata.id,
            metadata.name,
            metadata.description,
            _location(snapshot.table),
            None if metadata.created_time is None else _time(metadata.created_time),
            _time(snapshot.timestamp),
            list(metadata.partition_columns),
            [],
            snapshot.num_files,
            snapshot.size_in_bytes,
            dict(metadata.configuration),
            protocol.min_reader_version,
            protocol.min_writer_version,
            sorted(features),
        )
        return self._spark.createDataFrame([row], _DETAIL)

    def generate(self, mode: str) -> None:
        """Write manifests of the table's data files, for readers that know no log.

        Args:
            mode: `symlink_format_manifest`, the only one that there is.

        Raises:
            DeltaAnalysisError: another mode, or a table with deletion vectors or column mapping.
        """
        if mode.lower() != "symlink_format_manifest":
            raise DeltaAnalysisError(
                f"[DELTA_MODE_NOT_SUPPORTED] Specified mode {mode!r} is not supported. Supported "
                "modes are: symlink_format_manifest",
                table=self._log.table,
            )
        self._log.generate_symlink_manifest()

    def addConstraint(self, name: str, condition: str) -> int:  # noqa: N802  # as its neighbours
        """Add a CHECK constraint, after Spark has looked at every row of the newest version.

        `lakelog.core.add_constraint` does so without Spark, for conditions that it can evaluate.

        Args:
            name: of the constraint; kept in lower case.
            condition: SQL that must be true for every row, now and later.

        Returns:
            The version of the commit.

        Raises:
            ConstraintViolationError: rows of the table break it.
            DeltaAnalysisError: the name is taken, or the condition is none.
            ConcurrentAppendException: rows came in meanwhile that nobody has checked.
        """
        check = partial(check_new_constraint, self._spark)
        return add_checked_constraint(self._log.table, name, condition, check, conf=self._log.conf)

    def __getattr__(self, name: str) -> Any:
        """Say what does instead of a method of delta-spark's that there is not.

        Raises:
            AttributeError: always; Python asks here for what it has not found.
        """
        raise AttributeError(missing_method(name), name=name, obj=self)

    def __repr__(self) -> str:
        """`DeltaTable(/lake/flights)`."""
        return f"DeltaTable({self._log.table})"


def _location(table: str) -> str:
    return f"file:{table}" if table.startswith("/") else table


def _time(millis: int) -> datetime:
    # From whole seconds: a float of milliseconds loses the last one far from 1970.
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
