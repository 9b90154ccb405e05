"""Row ids are taken away from all files, those of other writers included."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakelog.core.actions import Action, CommitInfo
from lakelog.core.commit.draft import rebase_unbackfill
from lakelog.core.conflicts.winner import WinningCommit
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.log.commit_file import parse_commit
from support.tables import add_file


def won(operation: str, *actions: Action) -> WinningCommit:
    info = CommitInfo(timestamp=0, operation=operation, txn_id="theirs")
    lines = "".join(f"{each.to_json()}\n" for each in (info, *actions))
    return WinningCommit(parse_commit(lines.encode(), 5, "/t/_delta_log/5.json"))


def numbered(path: str) -> Action:
    return replace(add_file(path), base_row_id=7, default_row_commit_version=5)


def test_what_another_added_loses_its_ids_too() -> None:
    mine = add_file("a", data_change=False)
    after = rebase_unbackfill([mine], won("WRITE", numbered("b"), add_file("c")), "/t")
    assert after == (mine, add_file("b", data_change=False))


def test_what_another_touched_is_left_out() -> None:
    mine = [add_file(path, data_change=False) for path in ("a", "b", "c")]
    winner = won("DELETE", mine[0].remove(1), add_file("b"))
    assert rebase_unbackfill(mine, winner, "/t") == (mine[2],)


def test_it_gives_way_to_one_that_gives_ids() -> None:
    with pytest.raises(DeltaAnalysisError, match="BACKFILL_RUNNING_CONCURRENTLY") as caught:
        rebase_unbackfill([], won("ROW TRACKING BACKFILL", numbered("a")), "/t")
    assert caught.value.version == 5
