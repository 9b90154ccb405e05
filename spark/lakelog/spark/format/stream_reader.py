"""`lakelog.spark.read_stream(spark)`: PySpark's `DataStreamReader` for Delta tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pyspark.errors import PySparkException

from lakelog.core import DeltaConf
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.format.register import register
from lakelog.spark.names.governed import keys_of_name, lasting
from lakelog.spark.names.resolve import location_of
from lakelog.spark.reading.stated import with_known_nulls
from lakelog.spark.replay.logs import session_log
from lakelog.spark.session.given_options import WithFormat, without_path
from lakelog.spark.session.option_names import check_option_names
from lakelog.spark.session.session import is_connect, session_conf, with_storage
from lakelog.spark.workers.marked_errors import lacks_pyarrow, unwrap_error

if TYPE_CHECKING:
    import os

    from pyspark.sql import DataFrame, SparkSession

_PLAIN = "_lakelog_plain"


class DeltaStreamReader(WithFormat):
    """Reads a Delta table as a stream, with the methods of `DataStreamReader`.

        lakelog.spark.read_stream(spark).option("maxFilesPerTrigger", 100).load("/lake/flights")

    A query begins with the rows that the table has, and goes on with what is added. Its offsets
    are Delta's own, so that a query that delta-spark began is continued, and the other way round.

    Options: `maxFilesPerTrigger` (1000), `maxBytesPerTrigger`, `startingVersion` (a version or
    `latest`), `startingTimestamp`, `ignoreDeletes`, `ignoreChanges`, `skipChangeCommits`,
    `excludeRegex`, `failOnDataLoss`, `readChangeFeed`, `columns`, `readOnDriver`, and `fs.…`,
    `dfs.…` for settings of the storage for this query alone.
    """

    _takes = ("this reader reads", "spark.readStream.format")

    def __init__(self, spark: SparkSession) -> None:
        """Nothing happens before `load`."""
        super().__init__()
        self._spark = spark
        self._schema: Any = None

    def schema(self, schema: Any) -> Self:
        """State the columns; they must be the table's."""
        self._schema = schema
        return self

    def load(
        self,
        path: str | os.PathLike[str] | None = None,
        format: str | None = None,  # noqa: A002  # PySpark's name
        schema: Any = None,
        **options: bool | float | int | str | None,
    ) -> DataFrame:
        """Make the streaming DataFrame. Its columns are those that the table has now.

        Args:
            path: the table; default: the option `path`.
            format: see `format`.
            schema: see `schema`.
            options: see `option`.

        Raises:
            TableNotFoundError: there is no table.
            DeltaAnalysisError: no path, an option that is misspelt or can't be, or a Python of
                Spark's without pyarrow.
            DeltaError: the log can't be read.
        """
        if format is not None:
            self.format(format)
        self.options(**options)
        of_options, chosen = without_path(self._options)
        target = path or of_options
        if not target:
            raise DeltaAnalysisError("load() needs the path of the table")
        check_option_names(self._options)
        conf = session_conf(self._spark)
        table = lasting(target, conf)
        register(self._spark, conf_keys=keys_of_name(table, conf))
        reader = self._spark.readStream.format("lakelog")
        reader.__dict__[_PLAIN] = True
        expected = self._schema if schema is None else schema
        if expected is not None:
            reader = reader.schema(expected)
        try:
            found = reader.options(**chosen).load(table)
            if is_connect(self._spark):
                _ = found.schema  # else the errors come with the query's start, as Spark tells them
        except PySparkException as exc:
            raise _source_error(exc, table) from None
        if expected is not None:
            return found
        opened = DeltaConf.from_mapping(with_storage(conf, self._options))
        return with_known_nulls(found, session_log(self._spark, table, opened).update().schema)

    def table(self, tableName: str) -> DataFrame:  # noqa: N803  # PySpark's name
        """Make the streaming DataFrame of a table in Spark's own catalog, or in one of the conf.

        The stream goes on with the table that the name means now.

        Args:
            tableName: `table`, `database.table`, `spark_catalog.database.table` or
                `catalog.schema.table`.

        Raises:
            TableNotFoundError: no such name.
            DeltaAnalysisError: the name is one of something else; and see `load`.
        """
        return self.load(location_of(self._spark, tableName))


def _source_error(exc: PySparkException, table: str) -> Exception:
    """The error that Spark's planner of Python sources met, which Spark shows as a traceback."""
    if lacks_pyarrow(exc):
        return DeltaAnalysisError(
            f"{table} can't be read as a stream: the Python in which Spark runs sources has no "
            "pyarrow that Spark can use. Set PYSPARK_PYTHON to a Python with pyarrow, or install "
            "it there, on the driver and the executors.",
            table=table,
        )
    return unwrap_error(exc) or exc


def is_plain(reader: Any) -> bool:
    """Whether a reader of PySpark's is one that `DeltaStreamReader` uses itself."""
    return bool(reader.__dict__.get(_PLAIN))
