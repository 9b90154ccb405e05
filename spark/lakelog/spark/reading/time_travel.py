"""Which state of a table to read: by options, a suffix of the path, or simply the newest."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, TypeAlias

from lakelog.core import DeltaLog
from lakelog.core.engine.scan import cast_text
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import PrimitiveType
from lakelog.spark.reading.read_options import wants_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from lakelog.core import Snapshot
    from lakelog.core.engine.log import Replayer

_VERSION_SUFFIX = re.compile(r"(.+)@[vV](\d+)", re.DOTALL)
_TIME_SUFFIX = re.compile(r"(.+)@(\d{17})", re.DOTALL)
_TIMESTAMP = PrimitiveType("timestamp")

State: TypeAlias = tuple[str | None, str | None]
"""The version, or the time, as text."""


def snapshot_of(
    path: str,
    options: Mapping[str, str],
    conf: Mapping[str, str],
    millis: Callable[[str], int],
    replayer: Replayer | None = None,
    newest: Callable[[str], DeltaLog] | None = None,
) -> Snapshot:
    """The state of a table that a read asks for.

    Args:
        path: the table; `…@v7` or `…@20260131235959000` means an older state, where no table of
            that literal path exists.
        options: names in lower case; only `versionasof` and `timestampasof` are used.
        conf: the session's conf; it chooses the store.
        millis: turns the text of a time into epoch milliseconds, by the session's zone.
        replayer: who replays logs that are too large for this process.
        newest: opens a log of which the newest version is read, by the path.

    Raises:
        TableNotFoundError: no table there.
        VersionNotFoundError: the version does not exist; says which do.
        TimestampOutOfRangeError: the log does not reach that time.
        DeltaAnalysisError: options that can't be read, or that exclude each other.
    """
    if wants_changes(options):
        raise DeltaAnalysisError(
            'format("lakelog") does not read the change data feed (readChangeFeed=true); use '
            "lakelog.spark.read(spark) with the same options",
            option="readChangeFeed",
        )
    version, time = options.get("versionasof"), options.get("timestampasof")
    if version is not None and time is not None:
        raise DeltaAnalysisError(
            "versionAsOf and timestampAsOf both say which state to read: give only one of them"
        )
    suffixed = _VERSION_SUFFIX.fullmatch(path) or _TIME_SUFFIX.fullmatch(path)
    if newest is not None and not suffixed and version is None and time is None:
        return newest(path).update()
    log, suffix = _opened(path, conf, replayer)
    if suffix is not None:
        if version is not None or time is not None:
            raise DeltaAnalysisError(
                f"{path!r} and an option both say which state to read: give only one of them",
                path=path,
            )
        version, time = suffix
    if version is not None:
        return log.snapshot_at(version=_whole(version))
    if time is not None:
        return log.snapshot_at(timestamp=millis(time))
    return (log if newest is None else newest(path)).update()


def millis_of_session(spark: SparkSession, text: str) -> int:
    """Epoch milliseconds of a text in the session's time zone, by Spark's own rules.

    Raises:
        DeltaAnalysisError: Spark does not take it for a time.
    """
    sql = "SELECT unix_millis(try_cast(:t AS TIMESTAMP)) AS millis"
    row = spark.sql(sql, args={"t": text}).first()
    if row is None or row.millis is None:
        raise no_timestamp(text)
    return int(row.millis)


def millis_in_zone(text: str, zone: str) -> int:
    """Epoch milliseconds of a text that Spark casts to a timestamp; `zone` where it has none.

    For processes without a session, such as those of a data source in Python: the zone's rules are
    Python's there.

    Raises:
        DeltaAnalysisError: not such a string, or a zone that Python does not know.
    """
    try:
        micros = cast_text(text.strip(), _TIMESTAMP, session_tz=zone)
    except ValueError:
        if not _is_timestamp(text):
            raise no_timestamp(text) from None
        raise DeltaAnalysisError(
            f"the time {text!r} has no zone, and Python does not know the session's zone "
            f"{zone!r}; include the zone: 2026-01-31T12:00:00+02:00",
            value=text,
            zone=zone,
        ) from None
    if micros is None:
        raise no_timestamp(text)
    return int(micros // 1000)


def _is_timestamp(text: str) -> bool:
    try:
        return cast_text(text.strip(), _TIMESTAMP, session_tz="UTC") is not None
    except ValueError:
        return False


def no_timestamp(text: str, option: str = "timestampAsOf") -> DeltaAnalysisError:
    """The error for a string that is not a time."""
    return DeltaAnalysisError(
        f"[DELTA_TIMESTAMP_INVALID] The provided timestamp ('{text}') cannot be converted to a "
        f"valid timestamp: {option} is a date or a time, as 2026-01-31 or 2026-01-31 12:00:00",
        option=option,
        value=text,
    )


def names_older_state(path: str, conf: Mapping[str, str]) -> bool:
    """Whether a path is `…@v7` or `…@20260131235959000` of a table, and no table's own."""
    log, suffix = _opened(path, conf, None)
    return suffix is not None and log.table_exists()


def _opened(
    path: str, conf: Mapping[str, str], replayer: Replayer | None
) -> tuple[DeltaLog, State | None]:
    """The log at a path, and the state that its suffix names, if it has one."""
    log = DeltaLog.for_table(path, conf, replayer=replayer)
    by_version, by_time = _VERSION_SUFFIX.fullmatch(path), _TIME_SUFFIX.fullmatch(path)
    match = by_version or by_time
    # `t@v1` may itself be the name of a table.
    if match is None or log.table_exists():
        return log, None
    text = match[2]
    if by_version:
        return DeltaLog.for_table(match[1], conf, replayer=replayer), (text, None)
    day, clock = f"{text[:4]}-{text[4:6]}-{text[6:8]}", f"{text[8:10]}:{text[10:12]}:{text[12:14]}"
    older = DeltaLog.for_table(match[1], conf, replayer=replayer)
    return older, (None, f"{day} {clock}.{text[14:]}")


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise DeltaAnalysisError(
            f"versionAsOf must be a whole number, not {json.dumps(text)}",
            option="versionAsOf",
            value=text,
        ) from None
