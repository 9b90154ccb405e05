"""The memory that reading one log may take.

Anyone who may write to the table's folder can write its log. A line of a gigabyte, a checkpoint of
a few kilobytes that repeats one megabyte a million times, ten million actions: each ends in an
error that names the file, before it uses up the memory of the process.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from lakelog.core.errors import LogTooLargeError
from lakelog.logstores.errors import FileTooLargeError
from lakelog.logstores.limits import LIMIT_KEY, log_limit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakelog.logstores.contract import FileStatus, LogStore

AS_OBJECTS: Final = 10
"""Bytes of Python objects made from one byte of JSON, or of a column."""


class LogBudget:
    """Counts what is kept of a log, and refuses more than the limit. Threads may share one."""

    def __init__(self, limit: int) -> None:
        """Nothing is taken yet.

        Args:
            limit: bytes.
        """
        self.limit = limit
        self._taken = 0
        self._lock = threading.Lock()

    @classmethod
    def from_store(cls, store: LogStore) -> LogBudget:
        """A budget as large as the conf of a store allows.

        Raises:
            LogStoreConfError: the conf's value is not a number.
        """
        return cls(log_limit(store.conf))

    def take(self, size: int, path: str, *, passing: int = 0) -> None:
        """Count memory before it is used.

        Args:
            size: bytes that are kept.
            path: the file that they come from.
            passing: bytes that are needed in addition for a moment.

        Raises:
            LogTooLargeError: it is more than what is left.
        """
        with self._lock:
            self._taken += size
            needed = self._taken + passing
        if needed > self.limit:
            raise self.refusal(path, needed)

    def check_files(self, files: Iterable[FileStatus]) -> None:
        """Check the lengths of files before any of them is opened.

        Raises:
            LogTooLargeError: one has more bytes than there is memory.
        """
        for each in files:
            if each.length > self.limit:
                raise self.refusal(each.path, each.length)

    def refusal(self, path: str, size: int) -> LogTooLargeError:
        """The error about a file, with which `size` bytes would be needed."""
        return LogTooLargeError(
            f"reading {path} would take {size} bytes of memory or more, together with the part of "
            f"the log read before it, and the limit is {self.limit}. If your own writers made a "
            f"log of that size, raise {LIMIT_KEY}, or open the table on a machine with more "
            "memory. If not, check who else can write to the table's folder.",
            path=path,
            size=size,
            limit=self.limit,
            key=LIMIT_KEY,
        )


def read_log_file(store: LogStore, path: str, budget: LogBudget) -> bytes:
    """The bytes of a file of the log. The caller counts what it makes of them.

    Raises:
        FileNotFoundError: there is no such file.
        LogTooLargeError: it has more bytes than there is memory.
    """
    try:
        data = store.read_bytes(path)
    except FileTooLargeError as exc:
        raise budget.refusal(path, exc.size) from exc
    if len(data) > budget.limit:
        raise budget.refusal(path, len(data))
    return data
