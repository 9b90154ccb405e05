"""One structured record for each attempt to commit, and one where a commit gives up.

Records go to the logger `lakelog.commit` at INFO as one line of JSON, and to the file that
`spark.lakelog.commitEvents.path` names. The span of an attempt, in `telemetry`, is of its own.
"""

from __future__ import annotations

import enum
import functools
import logging
import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import orjson

from lakelog.core import keys
from lakelog.logstores import keys as store_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.conf import DeltaConf

__all__ = ["CommitOutcome", "CommitStats", "Writer", "emit", "write_events_to"]


logger: logging.Logger = logging.getLogger("lakelog.commit")


class CommitOutcome(enum.StrEnum):
    """How one attempt ended."""

    COMMITTED = "committed"
    REBASED = "conflict-rebased"
    """Others won this version, nothing of theirs matters; the next attempt follows."""
    CONFLICT = "conflict-failed"
    """Others won this version with something that this transaction must not ignore."""
    UNKNOWN = "unknown"
    """The storage did not say; the same version is tried again or the commit is given up."""
    FAILED = "failed"
    """The storage refused; nothing was committed."""
    GIVEN_UP = "given-up"
    """No attempt, but the end of them: time or attempts ran out, and nothing was committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Whose attempt it was, as far as conf and process can tell."""

    job: str | None
    """A name that stays the same from run to run."""
    app_id: str | None
    """The Spark application: one run of the job."""
    host: str
    pid: int

    @classmethod
    def from_conf(cls, conf: DeltaConf) -> Writer:
        """The writer that this process is under a conf."""
        return cls(
            job=conf.read(store_keys.EVENTS_JOB) or conf.read(keys.APP_NAME),
            app_id=conf.read(keys.APP_ID),
            host=_host(),
            pid=os.getpid(),
        )


@functools.cache
def _host() -> str:
    import platform

    return platform.node()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitStats:
    """One attempt to write one version.

    Fields that Delta's `CommitStats` has as well have its names, in snake_case. What would cost a
    read of the table's state (`numFilesTotal`, `sizeInBytesTotal`, histograms) is left to the
    version's checksum.
    """

    table: str
    version: int
    """The version that the attempt tried to write."""
    attempt: int
    """1 for the first."""
    outcome: CommitOutcome
    operation: str
    txn_id: str
    read_version: int
    committed_version: int | None = None
    """Where the commit is; differs from `version` if an earlier, lost reply had landed."""
    winner_version: int | None = None
    winner_operation: str | None = None
    winner_txn_id: str | None = None
    winners: int = 0
    """How many commits of others this attempt checked."""
    lock: str = "none"
    lock_reason: str = ""
    requests: int = 0
    """Calls of the store that this attempt made."""
    bytes_written: int = 0
    actions: int = 0
    write_ms: float = 0.0
    check_ms: float = 0.0
    """Reading winners and checking for conflicts."""
    lock_wait_ms: float = 0.0
    """Of the first attempt: the lock is held through all of them."""
    backoff_ms: float = 0.0
    """The wait before this attempt."""
    error: str | None = None
    timestamp: int | None = None
    """When the attempt ended: milliseconds since the epoch."""
    job: str | None = None
    app_id: str | None = None
    host: str | None = None
    pid: int | None = None
    isolation: str | None = None
    conflict: str | None = None
    """Delta's error condition, of an attempt that failed by one: `DELTA_CONCURRENT_APPEND`."""
    conflict_partition: Mapping[str, str | None] | None = None
    """The partition that both touched, where the conflict has one."""
    partition_columns: tuple[str, ...] | None = None
    reads_whole_table: bool | None = None
    """Whether the transaction read without a condition, so that no partition keeps it apart."""
    winner_timestamp: int | None = None
    winner_engine: str | None = None
    """`engineInfo` of the winner, who may be no writer of ours and leave no records."""
    txn_duration_ms: float | None = None
    """Of an attempt that committed: since the transaction began."""
    commit_duration_ms: float | None = None
    """Since the first attempt; of one that committed, and where a commit gave up."""
    num_add: int | None = None
    """This and what follows: of an attempt that committed."""
    num_remove: int | None = None
    num_cdc_files: int | None = None
    num_set_transaction: int | None = None
    num_domain_metadatas: int | None = None
    bytes_new: int | None = None
    """Of added files that change data."""
    cdc_bytes_new: int | None = None
    num_absolute_paths_in_add: int | None = None
    num_distinct_partitions_in_add: int | None = None
    num_partition_columns_in_table: int | None = None
    new_metadata: bool | None = None
    new_protocol: bool | None = None

    def to_json(self) -> str:
        """One line of JSON; fields that are `None` are left out."""
        out: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None:
                out[each.name] = round(value, 3) if isinstance(value, float) else value
        return orjson.dumps(out).decode()


def emit(stats: CommitStats, conf: DeltaConf) -> None:
    """Hand a record to everybody who listens. Never raises: a record is not worth a commit."""
    try:
        if logger.isEnabledFor(logging.INFO):
            logger.info("%s", stats.to_json())
        path = conf.read(store_keys.EVENTS_PATH)
        if path:
            _append_line(path, stats.to_json())
    except Exception:
        logging.getLogger("lakelog").warning("a commit event was lost", exc_info=True)


def _append_line(path: str, line: str) -> None:
    # One write(2) on a file opened for appending: lines of several processes do not mix.
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, line.encode() + b"\n")
    finally:
        os.close(fd)


class _EventHandler(logging.Handler):
    """Writes the text of records to a file, one line each."""

    def __init__(self, path: str) -> None:
        super().__init__(logging.INFO)
        self._path = path

    def emit(self, record: logging.LogRecord) -> None:
        try:
            _append_line(self._path, record.getMessage())
        except OSError:
            self.handleError(record)


def write_events_to(path: str | os.PathLike[str]) -> logging.Handler:
    """Start to append every record of this process to a file, as lines of JSON.

    Sets the logger `lakelog.commit` to INFO where it would drop the records.

    Returns:
        The handler; `logging.getLogger("lakelog.commit").removeHandler(handler)` stops it.

    Raises:
        OSError: the file can't be opened for appending.
    """
    text = os.fspath(path)
    os.close(os.open(text, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644))
    handler = _EventHandler(text)
    logger.addHandler(handler)
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
    return handler
