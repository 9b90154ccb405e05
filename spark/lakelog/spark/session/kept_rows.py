"""Commands whose rows the executors keep, begun again where an executor is lost with its rows."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, TypeVar

from lakelog.core.errors import CommitOutcomeUnknownError, PostCommitError

if TYPE_CHECKING:
    from collections.abc import Callable

_LOST: Final = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
_MOST: Final = 4
"""As many attempts as delta-spark makes of a MERGE whose source is lost."""
_logger = logging.getLogger("lakelog")
_Result = TypeVar("_Result")


def again_if_rows_are_lost(command: Callable[[], _Result]) -> _Result:
    """Run a command, and once more from its beginning where rows that executors kept are gone.

    `localCheckpoint` keeps each row on one executor, and Spark can't evaluate it again: what
    depends on it fails as soon as that executor is gone.

    Args:
        command: changes nothing before its end.

    Raises:
        Exception: what the command raised, where it was not for lost rows, or for the fourth time.
            Also what speaks of a commit that is, or may be, in the table, whatever its cause.
    """
    for attempt in range(1, _MOST):
        try:
            return command()
        except (CommitOutcomeUnknownError, PostCommitError):
            # A hook's failure quotes what Spark said: a second run would change the rows twice.
            raise
        except Exception as exc:
            if _LOST not in str(exc):
                raise
            _logger.warning(
                "an executor was lost with rows that the command needs; it begins again "
                "(attempt %d of %d)",
                attempt + 1,
                _MOST,
            )
    return command()
