"""What VACUUM leaves in the log: its start and end in the history, and how far it has come."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

import orjson

from lakelog.core import keys
from lakelog.core.actions.operation import Operation
from lakelog.core.log.file_names import LAST_VACUUM, log_path
from lakelog.core.log.own_files import OwnFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.maintain.vacuum.retention import Retention

_log = logging.getLogger("lakelog")

# Those of which Delta's VACUUM writes to the history by itself.
_RECORDED: Final = frozenset(
    ("wasbs", "wasbss", "abfs", "abfss", "adl", "gs", "file", "hdfs")  # no S3
)
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_FIELD: Final = "latestCommitVersionOutsideOfRetentionWindow"


class History:
    """Writes `VACUUM START` and `VACUUM END`, where the conf or the kind of storage wants it."""

    def __init__(self, log: DeltaLog, retention: Retention) -> None:
        """Write nothing yet."""
        self._log = log
        self._retention = retention
        wanted = log.conf.read(keys.VACUUM_LOGGING)
        scheme = _SCHEME.match(log.table)
        known = (scheme[1].lower() if scheme else "file") in _RECORDED
        self._is_written = known if wanted is None else wanted

    def start(self, count: int, size: int) -> None:
        """Say what is about to be deleted.

        Args:
            count: files and folders.
            size: bytes of the files.
        """
        said = {
            "retentionCheckEnabled": self._retention.is_checked,
            "specifiedRetentionMillis": self._retention.given_ms,
            "defaultRetentionMillis": self._retention.table_ms,
        }
        self._commit("VACUUM START", said, {"numFilesToDelete": count, "sizeOfDataToDelete": size})

    def end(self, count: int, folders: int) -> int | None:
        """Say what was deleted.

        Args:
            count: files and folders.
            folders: that were looked through.

        Returns:
            The version of the commit; `None` where there is none.
        """
        metrics = {"numDeletedFiles": count, "numVacuumedDirectories": folders}
        return self._commit("VACUUM END", {"status": "COMPLETED"}, metrics)

    def failed(self) -> None:
        """Say that it was not finished; a failure to say so is only logged."""
        try:
            self._commit("VACUUM END", {"status": "FAILED"}, {})
        except Exception:
            _log.warning("%s: the failed VACUUM is not in the history", self._log.table)

    def _commit(
        self, name: str, said: Mapping[str, object], metrics: Mapping[str, int]
    ) -> int | None:
        if not self._is_written:
            return None
        return self._log.start_transaction().commit([], Operation(name, said, metrics))


def read_watermark(log: DeltaLog) -> int | None:
    """The version up to which earlier runs have deleted what was taken out; `None` if unknown."""
    try:
        data = log.store.read_bytes(log_path(log.table, LAST_VACUUM))
    except FileNotFoundError:
        return None
    try:
        found = orjson.loads(data).get(_FIELD)
    except (orjson.JSONDecodeError, AttributeError):
        return None
    return found if isinstance(found, int) and found >= 0 else None


def keep_watermark(log: DeltaLog, version: int | None) -> None:
    """Say up to which version everything that was taken out is deleted.

    Best effort: without it the next run in mode LITE reads more of the log.

    Args:
        log: of the table.
        version: `None` for none.
    """
    value = {} if version is None else {_FIELD: version}
    try:
        path = log_path(log.table, LAST_VACUUM)
        OwnFiles(log.store, log.table).replace(path, [orjson.dumps(value).decode()])
    except Exception:
        _log.warning("%s: %s was not written", log.table, LAST_VACUUM, exc_info=True)
