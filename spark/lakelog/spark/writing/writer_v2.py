"""`lakelog.spark.write_to(df, name)`: PySpark's `DataFrameWriterV2`, by lakelog."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Self

from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from lakelog.core import DeltaConf
from lakelog.core.engine.tables import one_call
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.names.identifiers import parse
from lakelog.spark.names.placing import check_location, place_for
from lakelog.spark.names.resolve import with_location
from lakelog.spark.replay.logs import session_log
from lakelog.spark.session.given_options import WithOptions, check_format, without_path
from lakelog.spark.session.job_errors import MARK_CLOSE, MARK_OPEN
from lakelog.spark.session.session import session_conf, with_storage
from lakelog.spark.types.path_forms import quoted
from lakelog.spark.types.spark_types import to_delta_schema
from lakelog.spark.writing.options import TableDefinition
from lakelog.spark.writing.save import save_frame

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakelog.core.engine.tables import CreateMode
    from lakelog.core.engine.write import SaveMode

_OPERATIONS: dict[CreateMode, str] = {
    "create": "CREATE TABLE AS SELECT",
    "replace": "REPLACE TABLE AS SELECT",
    "create_or_replace": "CREATE OR REPLACE TABLE AS SELECT",
}


class DeltaWriterV2(WithOptions):
    """Writes a DataFrame to a named Delta table, with the methods of `DataFrameWriterV2`.

        lakelog.spark.write_to(df, "db.flights").partitionedBy("month").createOrReplace()
        lakelog.spark.write_to(df, "db.flights").overwrite(F.col("month") == 1)

    Columns are found by their names. Each write is one commit; one that fails leaves the table, and
    the catalog, as they were. Options are those of `DeltaWriter`; `path` is the folder of a new
    table.
    """

    def __init__(self, frame: DataFrame, table: str) -> None:
        """Nothing happens before a verb: `create`, `append`, …

        Args:
            frame: the rows.
            table: a name in Spark's own catalog, or ``delta.`/its/path` ``.
        """
        super().__init__()
        self._frame = frame
        self._table = table
        self._properties: dict[str, str] = {}
        self._partition_by: list[str] = []
        self._cluster_by: list[str] = []

    def using(self, provider: str) -> Self:
        """Accept `delta` or `lakelog`.

        Raises:
            DeltaAnalysisError: another format.
        """
        check_format(provider, "this writer writes", "df.writeTo(…).using")
        return self

    def tableProperty(self, property: str, value: str) -> Self:  # noqa: N802, A002  # PySpark's
        """Set a property of the table that is made, `delta.…` or one of your own."""
        self._properties[property] = value
        return self

    def partitionedBy(self, col: Column | str, *cols: Column | str) -> Self:  # noqa: N802
        """The columns to partition a table by that is made.

        Raises:
            DeltaAnalysisError: an expression, by which no Delta table is partitioned.
        """
        self._partition_by = [self._name(each) for each in (col, *cols)]
        return self

    def clusterBy(self, col: str, *cols: str) -> Self:  # noqa: N802  # PySpark's name
        """The columns that `OPTIMIZE` sorts files by of a table that is made, at most four."""
        self._cluster_by = [col, *cols]
        return self

    def create(self) -> None:
        """Make the table with these rows.

        Raises:
            TableExistsError: there is one, or the name is taken.
            DeltaError: see `DeltaWriter.save`.
        """
        self._make("create")

    def replace(self) -> None:
        """Put these rows, their schema and the properties given in place of the table's.

        Raises:
            TableNotFoundError: there is no table.
            DeltaError: see `DeltaWriter.save`.
        """
        self._make("replace")

    def createOrReplace(self) -> None:  # noqa: N802  # PySpark's name
        """Make the table, or replace it; see `create` and `replace`."""
        self._make("create_or_replace")

    def append(self) -> None:
        """Add the rows.

        Raises:
            TableNotFoundError: there is no table.
            DeltaError: see `DeltaWriter.save`.
        """
        self._save("append")

    def overwrite(self, condition: Column | str) -> None:
        """Replace the rows for which a condition is true; it must also be true for all new rows.

        A condition on partition columns replaces whole files. Others rewrite all files of the
        table: `option("replaceWhere", "…")` of `df.write`, which is text, skips by statistics.

        Args:
            condition: a Column; as in PySpark a string is the name of one.

        Raises:
            TableNotFoundError: there is no table.
            ConstraintViolationError: a new row does not match.
            DeltaError: see `DeltaWriter.save`.
        """
        column = sf.col(condition) if isinstance(condition, str) else condition
        self._save("overwrite", _conforming(self._frame, column), column)

    def overwritePartitions(self) -> None:  # noqa: N802  # PySpark's name
        """Replace the partitions that the rows have; of an unpartitioned table, all rows.

        Raises:
            TableNotFoundError: there is no table.
            DeltaError: see `DeltaWriter.save`.
        """
        self.option("partitionOverwriteMode", "dynamic")
        self._save("overwrite")

    @one_call()
    def _save(
        self, mode: SaveMode, frame: DataFrame | None = None, column: Column | None = None
    ) -> None:
        path, options = without_path(self._options)
        spark, rows = self._frame.sparkSession, self._frame if frame is None else frame
        if mode == "overwrite" and column is not None:
            options["partitionOverwriteMode"] = "static"

        def save(location: str) -> None:
            check_location(spark, self._table, location, path)
            # A table whose name is known, and whose folder is gone, is not made by an append.
            conf = DeltaConf.from_mapping(with_storage(session_conf(spark), options))
            session_log(spark, location, conf).update()
            save_frame(rows, location, mode, None, options, replace_column=column, casts=True)

        with_location(spark, self._table, save)

    @one_call()
    def _make(self, mode: CreateMode) -> None:
        path, options = without_path(self._options)
        spark, schema = self._frame.sparkSession, to_delta_schema(self._frame.schema)
        of_options = {k: v for k, v in options.items() if k.lower().startswith("delta.")}
        with place_for(spark, parse(self._table), schema, mode, path) as place:
            definition = TableDefinition(
                operation=_OPERATIONS[mode],
                properties={**of_options, **self._properties},
                cluster_by=self._cluster_by,
                managed=place.managed,
            )
            save: SaveMode = "error" if mode == "create" else "overwrite"
            save_frame(
                self._frame, place.location, save, self._partition_by or None, options, definition
            )

    def _name(self, column: Column | str) -> str:
        """The column that a Column is, rather than one that it computes."""
        if isinstance(column, str):
            return column
        with suppress(AnalysisException):
            asked = self._frame.select(column)
            for name in self._frame.columns:
                # Plans are compared where that may give a yes: over Connect it is a request.
                if [each.lower() for each in asked.columns] == [name.lower()] and (
                    asked.sameSemantics(self._frame.select(sf.col(quoted(name))))
                ):
                    return name
        with_names = ", ".join(self._frame.columns)
        raise DeltaAnalysisError(
            f"[DELTA_UNSUPPORTED_PARTITION_TRANSFORM] {column} is not one of the columns "
            f"{with_names}: a Delta table is partitioned by columns alone. Make it one, "
            "withColumn(…), and partition by that",
            columns=self._frame.columns,
        )


def _conforming(frame: DataFrame, condition: Column) -> DataFrame:
    """The same rows; computing them fails at the first for which the condition is not true."""
    shown = str(condition)[len("Column<'") : -len("'>")]
    message = (
        f"{MARK_OPEN}[DELTA_REPLACE_WHERE_MISMATCH] Written data does not conform to partial table "
        f"overwrite condition or constraint '{shown}'{MARK_CLOSE}"
    )
    # As in `constraints`: Spark does not push a filter down that is not deterministic.
    return frame.where(
        sf.when(sf.monotonically_increasing_id() < 0, sf.lit(False))
        .when(
            ~sf.coalesce(condition, sf.lit(False)), sf.raise_error(sf.lit(message)).cast("boolean")
        )
        .otherwise(sf.lit(True))
    )
