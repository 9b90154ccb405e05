"""`lakelog.spark.write(df)`: PySpark's `DataFrameWriter`, planned and committed by lakelog."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

from lakelog.core import DeltaLog
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.session.given_options import WithColumns, without_path
from lakelog.spark.session.session import session_conf, with_storage
from lakelog.spark.writing.by_name import save_as_table
from lakelog.spark.writing.clustered import clustered_table
from lakelog.spark.writing.options import save_mode
from lakelog.spark.writing.save import save_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakelog.core.engine.write import SaveMode


class DeltaWriter(WithColumns):
    """Writes a DataFrame to a Delta table, with the methods of `DataFrameWriter`.

        lakelog.spark.write(df).mode("append").partitionBy("date").save("/lake/flights")

    Executors write the data files; the driver alone commits them, all in one version. A write
    that fails leaves the table as it was.

    Options: `mergeSchema`, `overwriteSchema`, `replaceWhere`, `partitionOverwriteMode`, `txnAppId`
    and `txnVersion`, `userMetadata`, `dataChange`, `maxRecordsPerFile`, `compression`,
    `optimizeWrite` (shuffle the rows first, so that few files come of them),
    `delta.…` for the properties of a new table, `fs.…` and `dfs.…` for settings of the
    storage for this write alone.
    """

    _takes = ("this writer writes", "df.write.format")

    def __init__(self, frame: DataFrame) -> None:
        """Nothing happens before `save`."""
        super().__init__()
        self._frame = frame
        self._mode: SaveMode = "error"

    def mode(self, saveMode: str | None) -> Self:  # noqa: N803  # PySpark's name
        """Set what to do if the table exists.

        `append` adds rows, `overwrite` replaces them, `error` (the default) raises
        `TableExistsError`, `ignore` does nothing.

        Raises:
            DeltaAnalysisError: no such mode.
        """
        if saveMode:
            self._mode = save_mode(saveMode)
        return self

    def replaceWhere(self, predicate: str) -> Self:  # noqa: N802  # like partitionBy
        """Overwrite only the rows that match; every new row must match as well."""
        return self.option("replaceWhere", predicate)

    def save(
        self,
        path: str | os.PathLike[str] | None = None,
        format: str | None = None,  # noqa: A002  # PySpark's name
        mode: str | None = None,
        partitionBy: str | list[str] | None = None,  # noqa: N803  # PySpark's name
        **options: bool | float | int | str | None,
    ) -> int | None:
        """Write the rows and commit them.

        Args:
            path: the table; default: the option `path`.
            format: see `format`.
            mode: see `mode`.
            partitionBy: see `partitionBy`.
            options: see `options`.

        Returns:
            The version of the commit. `None` where there was nothing to do and nothing was
            committed: no rows, mode `ignore` and a table, or a `txnVersion` that the table has.

        Raises:
            TableExistsError: mode `error`, and a table is there.
            SchemaMismatchError: the columns do not fit the table's.
            ConstraintViolationError: a row breaks NOT NULL, CHECK or `replaceWhere`.
            DeltaConcurrentModificationException: another writer was faster with something that
                this write must not ignore. Nothing of it is in the table: read and run again.
            UnsupportedFeatureError: the table needs what this client does not have.
            CommitOutcomeUnknownError: the storage never said whether it took the commit.
            OSError: the storage refused.
        """
        if format is not None:
            self.format(format)
        self.mode(mode).options(**options)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        of_options, given = without_path(self._options)
        target = path or of_options
        if target is None:
            raise DeltaAnalysisError("save() needs the path of the table")
        target, definition = os.fspath(target), None
        if self._cluster_by:
            conf = with_storage(session_conf(self._frame.sparkSession), given)
            log = DeltaLog.for_table(target, conf)
            definition = clustered_table(log, self._cluster_by, given)
        return save_frame(self._frame, target, self._mode, self._partition_by, given, definition)

    def saveAsTable(  # noqa: N802  # PySpark's name
        self,
        name: str,
        format: str | None = None,  # noqa: A002  # PySpark's name
        mode: str | None = None,
        partitionBy: str | list[str] | None = None,  # noqa: N803  # PySpark's name
        **options: bool | float | int | str | None,
    ) -> int | None:
        """Write the rows to a table of Spark's own catalog; a new name is made for a new table.

        The option `path` is the folder of a new table; without it the table is managed: it is in
        the folder of its database, and goes when it is dropped.

        Args:
            name: `table`, `database.table` or `spark_catalog.database.table`.
            format: see `format`.
            mode: see `mode`.
            partitionBy: see `partitionBy`.
            options: see `options`.

        Returns:
            As `save`.

        Raises:
            TableExistsError: mode `error`, and the name has a table.
            DeltaAnalysisError: the name is one of something else, or of a table in another folder
                than `path`; or the folder of a new managed table is not empty.
            DeltaError: see `save`.
        """
        if format is not None:
            self.format(format)
        self.mode(mode).options(**options)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        return save_as_table(
            self._frame, name, self._mode, self._partition_by, self._options, self._cluster_by
        )
