"""The methods of `DeltaTable` that begin from an older version."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Self

from pyspark.sql.types import LongType, StructType

from lakelog.core import clone, restore
from lakelog.spark.reading.time_travel import millis_of_session
from lakelog.spark.replay.logs import session_log
from lakelog.spark.session.answers import answer
from lakelog.spark.session.argument_checks import check_flag, check_int, check_text, check_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from lakelog.core import DeltaLog

_RESTORED = {
    "table_size_after_restore": "tableSizeAfterRestore",
    "num_of_files_after_restore": "numOfFilesAfterRestore",
    "num_removed_files": "numRemovedFiles",
    "num_restored_files": "numRestoredFiles",
    "removed_files_size": "removedFilesSize",
    "restored_files_size": "restoredFilesSize",
}
"""Column of delta-spark's answer -> metric of the history."""


class OlderVersions:
    """RESTORE and CLONE, as methods of `DeltaTable`."""

    _spark: SparkSession
    _log: DeltaLog

    def restoreToVersion(self, version: int) -> DataFrame:  # noqa: N802  # delta-spark's name
        """Give the table the rows, the schema and the properties of an older version.

        `lakelog.core.restore` says what is restored, and what is kept.

        Args:
            version: which version.

        Returns:
            One row with the sizes and numbers of files, named as in delta-spark; no row where
            `version` is the newest one, for which nothing is committed.

        Raises:
            VersionNotFoundError: no such version, or it can't be rebuilt any more.
            DataFileMissingError: files of the version are gone; names them.
            DeltaAnalysisError: the version is older than `delta.deletedFileRetentionDuration`.
            AppendOnlyError: `delta.appendOnly` is set, and rows would go.
            ConcurrentWriteException: another writer was faster; nothing was committed.
        """
        check_int(version, "version")
        done = restore(self._log, version=operator.index(version))
        return metrics_row(self._spark, _RESTORED, done.metrics)

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:  # noqa: N802  # delta-spark's name
        """Give the table the rows, the schema and the properties that it had at a time.

        Args:
            timestamp: `2026-01-31` or `2026-01-31 12:00:00`, in the session's zone.

        Returns:
            As `restoreToVersion`.

        Raises:
            TimestampOutOfRangeError: before the first commit or after the last.
            DeltaError: as `restoreToVersion`.
        """
        check_text(timestamp, "timestamp")
        millis = millis_of_session(self._spark, timestamp)
        done = restore(self._log, timestamp=millis)
        return metrics_row(self._spark, _RESTORED, done.metrics)

    def clone(
        self,
        target: str,
        isShallow: bool = False,  # noqa: N803  # delta-spark's name
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> Self:
        """Make a table with the schema, the properties and the rows of this one.

        Args:
            target: the folder of the clone.
            isShallow: its log names the files of this table; else they are copied, by the driver,
                which delta-spark, with the same default, does not do.
            replace: whether the target may be a table already, if it has no rows.
            properties: table properties, over those of this table.

        Returns:
            The clone.

        Raises:
            DeltaError: as `lakelog.core.clone`.
        """
        _check_clone(target, isShallow, replace, properties)
        return self._cloned(target, isShallow, replace, properties)

    def cloneAtVersion(  # noqa: N802  # delta-spark's name
        self,
        version: int,
        target: str,
        isShallow: bool = False,  # noqa: N803  # delta-spark's name
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> Self:
        """`clone` of an older version.

        Raises:
            VersionNotFoundError: there is no such version.
            DeltaError: as `lakelog.core.clone`.
        """
        check_int(version, "version")
        _check_clone(target, isShallow, replace, properties)
        which = operator.index(version)
        return self._cloned(target, isShallow, replace, properties, version=which)

    def cloneAtTimestamp(  # noqa: N802  # delta-spark's name
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,  # noqa: N803  # delta-spark's name
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> Self:
        """`clone` of the version at a time, which is text in the session's zone.

        Raises:
            TimestampOutOfRangeError: before the first commit or after the last.
            DeltaError: as `lakelog.core.clone`.
        """
        check_text(timestamp, "timestamp")
        _check_clone(target, isShallow, replace, properties)
        millis = millis_of_session(self._spark, timestamp)
        return self._cloned(target, isShallow, replace, properties, timestamp=millis)

    def _cloned(
        self,
        target: str,
        shallow: bool,
        replace: bool,
        properties: Mapping[str, str] | None,
        **which: int,
    ) -> Self:
        log = session_log(self._spark, target, self._log.conf)
        clone(
            self._log,
            log,
            which.get("version"),
            which.get("timestamp"),
            shallow=shallow,
            replace_target=replace,
            properties=properties,
        )
        made: Any = type(self)
        opened: Self = made(self._spark, log)
        return opened


def _check_clone(target: Any, shallow: Any, replace: Any, properties: Any) -> None:
    check_text(target, "target")
    check_flag(shallow, "isShallow")
    check_flag(replace, "replace")
    if properties is not None:
        check_texts(properties, "properties", "property")


def metrics_row(
    spark: SparkSession, columns: Mapping[str, str], metrics: Mapping[str, int]
) -> DataFrame:
    """The answer of a command: one row, or none where it did nothing.

    Args:
        spark: a session.
        columns: of the answer -> the metric that it shows.
        metrics: of the commit; empty where there was none.
    """
    schema = StructType()
    for name in columns:
        schema.add(name, LongType())
    row = tuple(metrics.get(metric) for metric in columns.values())
    return answer(spark, schema, [row] if metrics else [])
