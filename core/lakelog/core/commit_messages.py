"""What a commit says of itself to the Python logger `lakelog`, in the words of Delta's own log.

People search their logs for "Committed delta #" or "No conflicts with versions", so the texts,
the prefix and the levels are Delta's.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lakelog.core.actions import AddFile, RemoveFile
from lakelog.core.paths import log_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.actions import Action
    from lakelog.core.clock import Clock
    from lakelog.core.conflicts import PendingCommit
    from lakelog.core.errors import DeltaError

__all__ = ["CommitMessages", "log_prefix", "tell_other_table"]

logger = logging.getLogger("lakelog")
_SHOWN = 8


def tell_other_table(table: str, read_id: str, new_id: str, txn_id: str) -> None:
    """Say that a commit gives a table another id, which makes it another table to its readers."""
    if new_id != read_id:
        logger.warning(
            "%s Change in the table id detected in txn. Table id for txn on table at %s was %s "
            "when the txn was created and is now changed to %s.",
            log_prefix(read_id, txn_id),
            table,
            read_id,
            new_id,
        )


def log_prefix(table_id: str, txn_id: str | None) -> str:
    """`[tableId=41d94454,txnId=c941e4e9]`, as Delta shortens the two."""
    return f"[tableId={table_id[:_SHOWN]},txnId={(txn_id or '')[:_SHOWN]}]"


class CommitMessages:
    """The messages of one commit on its way."""

    def __init__(self, clock: Clock, pending: PendingCommit, txn_id: str | None) -> None:
        """Start to count the time.

        Args:
            clock: measures how long the commit has been at it.
            pending: what is committed.
            txn_id: of the transaction.
        """
        self._clock = clock
        self._began = clock.monotonic()
        self._prefix = log_prefix(pending.metadata.id, txn_id)

    @property
    def milliseconds(self) -> int:
        """Since the start of the commit."""
        return int((self._clock.monotonic() - self._began) * 1000)

    def attempting(self, version: int, pending: PendingCommit, actions: int) -> None:
        """A version is about to be written, with so many lines."""
        logger.info(
            "%s Attempting to commit version %d with %d actions with %s isolation level",
            self._prefix,
            version,
            actions,
            pending.isolation,
        )

    def committed(self, version: int, pending: PendingCommit) -> None:
        """The version is in the log."""
        logger.info("%s Committed delta #%d to %s", self._prefix, version, log_path(pending.table))

    def checking(
        self, attempt: int, version: int, pending: PendingCommit, actions: Sequence[Action]
    ) -> None:
        """The version was lost, and its winner and those behind it will be looked at."""
        if logger.isEnabledFor(logging.INFO):
            logger.info(
                "%s [attempt %d] Checking for conflicts with versions from %d on with current "
                "txn having %s",
                self._prefix,
                attempt,
                version,
                _details(pending, actions),
            )

    def passed(self, attempt: int, version: int) -> None:
        """One winner may be ignored."""
        logger.info(
            "%s [attempt %d] No conflicts in version %d, %d ms since start",
            self._prefix,
            attempt,
            version,
            self.milliseconds,
        )

    def conflict(self, attempt: int, version: int, conflict: DeltaError) -> None:
        """One winner must not be ignored."""
        logger.info(
            "%s [attempt %d] Conflict with version %d: %s, %d ms since start",
            self._prefix,
            attempt,
            version,
            getattr(conflict, "condition", None) or type(conflict).__name__,
            self.milliseconds,
        )

    def passed_all(
        self,
        attempt: int,
        versions: range,
        pending: PendingCommit,
        actions: Sequence[Action],
    ) -> None:
        """Every winner there was may be ignored."""
        if logger.isEnabledFor(logging.INFO):
            logger.info(
                "%s [attempt %d] No conflicts with versions [%d, %d) with current txn having %s, "
                "%d ms since start",
                self._prefix,
                attempt,
                versions.start,
                versions.stop,
                _details(pending, actions),
                self.milliseconds,
            )


def _details(pending: PendingCommit, actions: Sequence[Action]) -> str:
    adds = sum(isinstance(action, AddFile) for action in actions)
    removes = sum(isinstance(action, RemoveFile) for action in actions)
    return (
        f"{adds} adds, {removes} removes, {len(pending.reads.predicates)} read predicates, "
        f"{pending.reads.num_files} read files"
    )
