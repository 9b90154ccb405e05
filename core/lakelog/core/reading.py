"""Reading a table as Arrow data, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.arguments import read_arguments
from lakelog.core.delta_log import log_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    import pyarrow as pa

    from lakelog.core.data.table_scan import Scan
    from lakelog.core.delta_log import TableOrLog
    from lakelog.core.expressions.filter import Filter
    from lakelog.core.progress import GivenProgress
    from lakelog.core.state.snapshot import Snapshot


@read_arguments
def read_arrow(
    uri: TableOrLog,
    columns: str | Sequence[str] | None = None,
    where: Filter | None = None,
    *,
    version: int | None = None,
    timestamp: int | str | datetime | None = None,
    conf: Mapping[str, str] | None = None,
    progress: GivenProgress = None,
) -> pa.Table:
    """Read the rows of a table, as it is now or as it was.

        read_arrow("/lake/flights", ["day", "delay"], "month = 1")

    For rows that don't fit in memory there is `scan`; for more than one read of one version, take
    `DeltaLog.for_table(uri).snapshot`.

    Args:
        uri: where the table is, or its `DeltaLog`.
        columns: which, in this order; all if `None`.
        where: only rows for which it is true: SQL text, an `Expression` or pyarrow's tuples.
        version: read this version; the newest where neither this nor `timestamp` is given.
        timestamp: read the newest version that was committed at or before this time: epoch
            milliseconds, a datetime or ISO 8601 text (UTC where they have no zone).
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.
        progress: called now and then with how many rows are read; or `auto` for a bar.

    Raises:
        TableNotFoundError: there is no table.
        VersionNotFoundError: no such version, or it can no longer be rebuilt.
        TimestampOutOfRangeError: the time is before the first commit or after the last.
        InvalidPredicateError: the condition can't be parsed, names an unknown column, or has a
            part that only Spark can evaluate.
        DeltaAnalysisError: a column does not exist, or both version and timestamp are given.
        DataFileMissingError: the log lists a file that the storage does not have.
        DataFileError: a damaged deletion vector, or a file without the ids of its columns.
        UnsupportedFeatureError: reading the table needs a feature that this version lacks.
        CorruptLogError: the log is damaged.
    """
    rows = scan(
        uri, columns, where, version=version, timestamp=timestamp, conf=conf, progress=progress
    )
    return rows.to_arrow()


@read_arguments
def scan(
    uri: TableOrLog,
    columns: str | Sequence[str] | None = None,
    where: Filter | None = None,
    *,
    version: int | None = None,
    timestamp: int | str | datetime | None = None,
    conf: Mapping[str, str] | None = None,
    progress: GivenProgress = None,
) -> Scan:
    """The rows of a table, not read yet: to be counted, limited, or streamed in bounded memory.

        for batch in scan("/lake/flights", where="month = 1").to_batches():
            ...

    Args:
        uri: where the table is, or its `DeltaLog`.
        columns: which, in this order; all if `None`.
        where: only rows for which it is true: SQL text, an `Expression`, a condition of pyarrow or
            its tuples.
        version: read this version; the newest where neither this nor `timestamp` is given.
        timestamp: read the newest version that was committed at or before this time; see
            `read_arrow`.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.
        progress: called now and then with how many rows are read; or `auto` for a bar.

    Returns:
        The scan, of the version that is the right one now, however late its rows are read.

    Raises:
        TableNotFoundError: there is no table.
        VersionNotFoundError: no such version, or it can no longer be rebuilt.
        TimestampOutOfRangeError: the time is before the first commit or after the last.
        InvalidPredicateError: the condition can't be parsed or names an unknown column.
        DeltaAnalysisError: a column does not exist, or both version and timestamp are given.
        UnsupportedFeatureError: reading the table needs a feature that this version lacks.
        CorruptLogError: the log is damaged.
    """
    return _snapshot(uri, version, timestamp, conf).scan(columns, where, progress=progress)


def _snapshot(
    uri: TableOrLog,
    version: int | None,
    timestamp: int | str | datetime | None,
    conf: Mapping[str, str] | None,
) -> Snapshot:
    log = log_of(uri, conf)
    if version is None and timestamp is None:
        return log.update()
    return log.snapshot_at(version, timestamp)
