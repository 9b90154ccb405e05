"""Running a job again where another writer was faster."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from lakelog.core.arguments import read_arguments, require
from lakelog.core.clock import SystemClock
from lakelog.core.commit.backoff import Backoff
from lakelog.core.errors import DeltaConcurrentModificationException

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.clock import Clock

_logger = logging.getLogger("lakelog")

# The commits of a job already wait for each other; this keeps two jobs from meeting again at once.
_SHORTEST_WAIT = 0.2

T = TypeVar("T")


@read_arguments
def retry_on_conflict(
    work: Callable[[], T],
    *,
    attempts: int = 10,
    max_wait: float = 5.0,
    on_conflict: Callable[[DeltaConcurrentModificationException, int], object] | None = None,
    clock: Clock | None = None,
) -> T:
    """Run a job, and run it again where another writer's commit made it fail.

        retry_on_conflict(lambda: delete_rows("/lake/flights", "day < '2020-01-01'"))

    Only a `DeltaConcurrentModificationException` is a reason to run again: nothing of the failed
    commit is in the table then. All else leaves at once, above all `CommitOutcomeUnknownError`,
    after which a second run could write the rows twice, and `PostCommitError`, after which the
    commit is in the table.

    Args:
        work: the whole job: it reads the table and decides again in each run, so a transaction
            must begin within. Where it makes several commits, a run repeats those that went well;
            give each its `app_id` and `app_version`, or retry them one by one.
        attempts: how often it is run at most, the first run included.
        max_wait: the longest wait between two runs, in seconds. Waits are random, and grow.
        on_conflict: called with each error after which the job is run again, and with the number
            of the run that failed, before the wait.
        clock: the machine's if `None`.

    Returns:
        What `work` returned.

    Raises:
        DeltaConcurrentModificationException: the last run's, of the same class and with the same
            fields, and with `attempts`.
        DeltaAnalysisError: `attempts` is not a whole number from 1 on.
    """
    require(attempts, lambda each: each >= 1, "attempts", "1 or more")
    backoff = Backoff(clock or SystemClock(), max_wait)
    run = 1
    while True:
        try:
            return work()
        except DeltaConcurrentModificationException as conflict:
            if run == attempts:
                raise _given_up(conflict, attempts) from conflict
            _logger.info("conflict in run %d of %d, running again: %s", run, attempts, conflict)
            if on_conflict is not None:
                on_conflict(conflict, run)
        # Not within the handler: the next run's errors are not a consequence of this one's.
        backoff.wait(_SHORTEST_WAIT, at_most=max_wait)
        run += 1


def _given_up(
    conflict: DeltaConcurrentModificationException, attempts: int
) -> DeltaConcurrentModificationException:
    times = "once" if attempts == 1 else f"{attempts} times, and met a conflict each time"
    return type(conflict)(
        f"{conflict} The job was run {times}.", **{**conflict.fields, "attempts": attempts}
    )
