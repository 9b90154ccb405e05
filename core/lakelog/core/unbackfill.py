"""Taking the row ids of files away while others commit (`ROW TRACKING UNBACKFILL`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.actions import AddFile
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.paths import path_key
from lakelog.core.row_tracking import BACKFILL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lakelog.core.actions import Action
    from lakelog.core.winners import WinningCommit

__all__ = ["met_by_unbackfill", "untouched"]


def untouched(actions: Iterable[Action], winner: WinningCommit, table: str) -> Iterator[Action]:
    """The actions of a commit without those that add a file which another commit touched."""
    theirs = (*(add.path for add in winner.adds), *winner.removed_paths)
    touched = {path_key(table, path) for path in theirs}
    for action in actions:
        if not (isinstance(action, AddFile) and path_key(table, action.path) in touched):
            yield action


def met_by_unbackfill(
    actions: Iterable[Action], winner: WinningCommit, table: str
) -> tuple[Action, ...]:
    """What a commit that takes row ids away says behind another.

    It leaves out the files that the winner touched, and takes the ids of those that the winner
    added, so that none is left when the feature goes.

    Raises:
        DeltaAnalysisError: the winner gives ids to files: the two would never come to an end.
    """
    if winner.operation == BACKFILL:
        raise DeltaAnalysisError(
            "[DELTA_ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL] row tracking of "
            f"{table} is being switched on (version {winner.version}) while it is being taken "
            "away. Nothing was committed. Wait for the one, and repeat the other if it is still "
            "wanted.",
            table=table,
            version=winner.version,
        )
    kept = untouched(actions, winner, table)
    numbered = (add for add in winner.adds if add.base_row_id is not None)
    return (
        *kept,
        *(
            replace(add, base_row_id=None, default_row_commit_version=None, data_change=False)
            for add in numbered
        ),
    )
