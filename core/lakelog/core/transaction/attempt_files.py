"""The files of an attempt to change a table, and the one place that deletes them.

Every command that writes files before it commits hands them over here, and nothing else deletes
one once a commit was tried: the log may name it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol, TypeVar

from lakelog.core.errors import CommitOutcomeUnknownError, PostCommitError
from lakelog.core.log.own_files import OwnFiles
from lakelog.core.paths import data_path, encode_path

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from lakelog.core.actions import AddCDCFile, AddFile
    from lakelog.core.transaction.optimistic import OptimisticTransaction

logger: logging.Logger = logging.getLogger("lakelog")


class _Writer(Protocol):
    def abort(self) -> None:
        """Delete what was written."""


_W = TypeVar("_W", bound=_Writer)


class AttemptFiles:
    """Owns the files that are written for one transaction.

        with AttemptFiles(txn) as files:
            writer = files.own(DataFileWriter(plan, schema))
            writer.write(rows)
            return txn.commit(writer.close(), operation)

    When the block fails, its files are deleted, whatever the exception and wherever it came from,
    unless `OptimisticTransaction.may_be_committed`: then they stay, and `VACUUM` removes them in
    time if no version names them. They are also deleted where the block succeeds without a commit,
    because there was nothing to commit after all.
    """

    def __init__(self, txn: OptimisticTransaction) -> None:
        """Own nothing yet.

        Args:
            txn: commits the files, within the block.
        """
        self._txn = txn
        self._writers: list[_Writer] = []

    def own(self, writer: _W) -> _W:
        """Own whatever a writer makes from now on; returns the writer."""
        self._writers.append(writer)
        return writer

    def add(self, files: Iterable[AddFile | AddCDCFile]) -> None:
        """Own existing files, which something else wrote for this transaction."""
        table = self._txn.delta_log.table
        self._own_paths(data_path(table, each.path) for each in files)

    def at(self, paths: Iterable[str]) -> None:
        """The same for files that the log does not name yet, relative to the table's folder."""
        table = self._txn.delta_log.table
        self._own_paths(data_path(table, encode_path(path)) for path in paths)

    def _own_paths(self, places: Iterable[str]) -> None:
        log = self._txn.delta_log
        self._writers.append(_Made(OwnFiles(log.store, log.table), list(places)))

    def __enter__(self) -> AttemptFiles:
        """Nothing to do."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Delete the files where no version can name them."""
        if self._may_be_named(error):
            return
        for each in self._writers:
            try:
                each.abort()
            except Exception:
                logger.warning(
                    "%s: files that no version refers to could not be deleted; VACUUM will remove "
                    "them",
                    self._txn.delta_log.table,
                    exc_info=True,
                )

    def _may_be_named(self, error: BaseException | None) -> bool:
        # These errors say so even if another transaction committed the files.
        says_so = isinstance(error, PostCommitError | CommitOutcomeUnknownError)
        return self._txn.may_be_committed or says_so


class _Made:
    """Existing files, as something to abort."""

    def __init__(self, own: OwnFiles, places: list[str]) -> None:
        self._own = own
        self._places = places

    def abort(self) -> None:
        for place in self._places:
            try:
                self._own.delete_file(place)
            except OSError:
                logger.debug("%s could not be deleted", place, exc_info=True)
