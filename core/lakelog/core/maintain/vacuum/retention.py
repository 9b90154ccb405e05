"""How old a file must be before it may go, and by whose clock."""

from __future__ import annotations

import logging
import math
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakelog.core import keys
from lakelog.core.arguments import BEYOND_LONG, read_number, refusal
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.portable.made_files import delete_made
from lakelog.core.transaction.open_transactions import oldest_open

if TYPE_CHECKING:
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.state.snapshot import Snapshot

_log = logging.getLogger("lakelog")

_HOUR_MS: Final = 3_600_000
_MARGIN_MS: Final = 2_000
"""For storage that keeps whole seconds."""


class Retention(NamedTuple):
    """How long files stay after they were taken out of the table."""

    given_ms: int | None
    """As the caller wants it."""
    table_ms: int
    """As `delta.deletedFileRetentionDuration` says."""
    is_checked: bool
    """Whether the first may not be less than the second."""

    @property
    def in_force_ms(self) -> int:
        """The caller's, or the table's."""
        return self.table_ms if self.given_ms is None else self.given_ms


def retention_of(snapshot: Snapshot, hours: Any) -> Retention:
    """Check the retention that a caller asks for.

    Args:
        snapshot: of the table.
        hours: a number, or `None` for the table's own.

    Raises:
        DeltaAnalysisError: not a number, negative, or less than the table's while the conf
            `spark.databricks.delta.retentionDurationCheck.enabled` is not `false`.
    """
    table = snapshot.table
    own = snapshot.properties.deleted_file_retention_ms
    checked = snapshot.conf.read(keys.RETENTION_CHECK)
    if hours is None:
        return Retention(None, own, checked)
    try:
        hours = read_number(hours, "hours")
        if hours * _HOUR_MS >= BEYOND_LONG:
            raise refusal(hours, "hours", "a time of 64 bits")
    except DeltaAnalysisError:
        raise DeltaAnalysisError(
            f"{hours!r} is not a retention for VACUUM of {table}: pass a number of hours, or "
            "nothing for the table's own retention.",
            table=table,
        ) from None
    if hours < 0:
        raise DeltaAnalysisError(
            "[DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE] Retention for Vacuum can't be less than 0, "
            f"but it is {hours:g} hours, for {table}.",
            table=table,
            hours=hours,
        )
    given = math.ceil(hours * _HOUR_MS)
    if checked and given < own:
        least = -(-own // _HOUR_MS)
        raise DeltaAnalysisError(
            f"[DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT] {table}: a retention of {hours:g} hours is "
            f"less than the table's own of {least} hours (delta.deletedFileRetentionDuration). "
            "Writers that are at work may lose the files that they have written and not committed "
            "yet, and readers of older versions those that they still read. Pass at least "
            f"{least} hours, or change the property. If nothing else uses the table now, set "
            f"{keys.RETENTION_CHECK.name}=false.",
            table=table,
            hours=hours,
            key=keys.RETENTION_CHECK.name,
        )
    return Retention(given, own, checked)


def cutoff_of(log: DeltaLog, retention: Retention, *, asks_storage: bool) -> int:
    """The time before which a file must have been written to be old enough.

    By the storage's clock, which has written the times of the files: this machine's may be ahead,
    and then files would seem older than they are. Where it is behind, files seem younger, which
    does no harm. Transactions that are open in this process hold it back.

    Args:
        log: of the table.
        retention: how long files stay.
        asks_storage: whether a file may be written to learn the storage's time; if not, this
            machine's clock is trusted.

    Returns:
        Milliseconds since 1970-01-01 UTC.

    Raises:
        OSError: the file can't be written.
    """
    here = log.clock.now_ms()
    now = min(here, _storage_time(log)) if asks_storage else here
    cutoff = now - retention.in_force_ms
    began = oldest_open(log.table)
    if began is None:
        return cutoff
    # What the storage's clock said when the transaction began.
    began -= max(here - now, 0) + _MARGIN_MS
    if began < cutoff:
        _log.info("%s: files newer than an open transaction of this process stay", log.table)
    return min(cutoff, began)


def _storage_time(log: DeltaLog) -> int:
    # A name that no reader looks at, and that VACUUM leaves alone.
    filesystem, root = log.store.filesystem, log.store.filesystem_path(log.table.rstrip("/"))
    file = f".lakelog-clock-{uuid.uuid4()}"
    name = f"{root}/{file}"
    try:
        with filesystem.open_output_stream(name) as stream:
            stream.write(b"the time")
        modified = filesystem.get_file_info([name])[0].mtime_ns
    finally:
        delete_made(filesystem, root, [file])
    # A storage without times has none for data files either, and nothing of it is old.
    return 0 if modified is None else int(modified) // 1_000_000
