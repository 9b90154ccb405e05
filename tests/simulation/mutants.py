"""The core with one thing wrong, once for each thing that the simulated histories watch over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakelog.core.checkpoints import write_checkpoint as checkpoints
from lakelog.core.commit import fence as commit_fence
from lakelog.core.commit import loop as commit_loop
from lakelog.core.commit import prepare
from lakelog.core.commit.draft import Draft
from lakelog.core.commit.loop import CommitLoop
from lakelog.core.commit.version_writer import CommitWriter, Written
from lakelog.core.conflicts import checker as conflicts
from lakelog.core.conflicts.read_set import ReadSet
from lakelog.core.features.isolation import IsolationLevel
from lakelog.core.log import news
from lakelog.core.state.snapshot import Snapshot
from lakelog.core.table_log import TableLog
from simulation.histories import BEHIND, DOUBTS, FENCES, RACES, TROUBLES
from support.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.core.clock import Clock
    from lakelog.core.commit.attempt import Attempt
    from lakelog.core.conflicts.checker import PendingCommit
    from lakelog.core.conflicts.winner import WinningCommit
    from lakelog.core.log.last_checkpoint import LastCheckpoint
    from lakelog.logstores import CommitOutcomeUnknownError
    from simulation.world import Step

_check_conflicts = conflicts.check_conflicts
_check_added_files = conflicts._check_added_files
_check_removed_and_read = conflicts._check_removed_and_read
_first_read = conflicts._first_read
_write_checkpoint = checkpoints.write_checkpoint


@dataclass(frozen=True)
class CoreMutant(Mutant):
    """One thing wrong with the core, and the histories that must show it."""

    steps: Sequence[Step | tuple[Step, ...]] | None = None
    """What the histories that show it are made of; `None` where duels do."""
    exists: bool = True
    again: bool = False


def _nothing(*_: Any) -> None:
    """Check nothing, record nothing."""


def _unchanged(current: PendingCommit, *_: Any) -> PendingCommit:
    return current


def _draft_unchanged(draft: Draft, *_: Any) -> Draft:
    return draft


def _no(*_: Any) -> bool:
    return False


def _yes(*_: Any, **__: Any) -> bool:
    return True


def _blind_appends_never_matter(current: PendingCommit, winner: WinningCommit) -> None:
    if not winner.is_blind_append:
        _check_added_files(current, winner)


def _any_blind_append_may_come_later(current: PendingCommit, winner: WinningCommit) -> None:
    _check_added_files(replace(current, changes_metadata=False), winner)


def _no_append_may_come_later(current: PendingCommit, winner: WinningCommit) -> None:
    _check_added_files(replace(current, changes_metadata=True), winner)


def _only_read_files_count(current: PendingCommit, winner: WinningCommit) -> None:
    if current.reads.find_file(current.table, winner.removed_paths) is not None:
        _check_removed_and_read(current, winner)


def _only_predicates_count(current: PendingCommit, adds: list[Any]) -> Any:
    unlimited = current.reads.is_unlimited or current.reads.partitions
    if len(current.partition_schema) or unlimited or current.reads.predicates:
        return _first_read(current, adds)
    return None


def _only_the_first_winner(current: PendingCommit, winner: WinningCommit) -> PendingCommit:
    if winner.version > current.read_version + 1:
        return current
    return _check_conflicts(current, winner)


def _snapshot_isolation(*_: Any, **__: Any) -> IsolationLevel:
    return IsolationLevel.SNAPSHOT_ISOLATION


def _unknown_is_failed(_: CommitWriter, __: Attempt, unknown: CommitOutcomeUnknownError) -> Any:
    raise OSError(str(unknown))


def _unknown_is_done(*_: Any) -> Any:
    return Written.OURS


def _failed_is_failed(_: CommitWriter, __: Attempt, ___: str, failure: OSError) -> Any:
    raise failure


def _without_progress(snapshot: Snapshot, clock: Clock, _: object) -> LastCheckpoint:
    poorer = replace(snapshot.state, transactions={})
    return _write_checkpoint(
        Snapshot(snapshot.table, snapshot.store, snapshot.conf, clock, poorer), clock
    )


def _made_at_some_time(log: TableLog, version: int) -> bool:
    return log._made[0] == version


def _no_news(*_: Any) -> Any:
    raise FileNotFoundError


_never_in_doubt: property = property(_nothing, _nothing)


def _conflict(name: str, attribute: str, instead: Callable[..., Any]) -> CoreMutant:
    return CoreMutant(name, conflicts, attribute, instead)


def _write(name: str, attribute: str, instead: Any, steps: Sequence[Any] = TROUBLES) -> CoreMutant:
    return CoreMutant(name, CommitWriter, attribute, instead, steps)


MUTANTS = [
    _conflict("appends never conflict", "_check_added_files", _nothing),
    _conflict("blind appends never conflict", "_check_added_files", _blind_appends_never_matter),
    _conflict(
        "blind appends may precede a change of the metadata",
        "_check_added_files",
        _any_blind_append_may_come_later,
    ),
    _conflict("blind appends always conflict", "_check_added_files", _no_append_may_come_later),
    _conflict("unpartitioned tables need a predicate", "_first_read", _only_predicates_count),
    _conflict("delete/read is not checked", "_check_removed_and_read", _nothing),
    _conflict(
        "delete/read of the whole table is not checked",
        "_check_removed_and_read",
        _only_read_files_count,
    ),
    _conflict("delete/delete is not checked", "_check_removed_twice", _nothing),
    _conflict("changes of the metadata are not checked", "_check_metadata", _unchanged),
    _conflict("changes of the protocol are not checked", "_check_protocol", _unchanged),
    _conflict("progress of applications is not checked", "_check_transactions", _nothing),
    _conflict("domains are not checked", "_check_domains", _nothing),
    CoreMutant("nothing is checked", commit_loop, "check_conflicts", _unchanged),
    CoreMutant(
        "only the first is checked", commit_loop, "check_conflicts", _only_the_first_winner, RACES
    ),
    CoreMutant("every level is the lowest", prepare, "resolve_isolation", _snapshot_isolation),
    CoreMutant("read files are forgotten", ReadSet, "add_files", _nothing),
    CoreMutant("predicates are forgotten", ReadSet, "add_predicate", _nothing),
    CoreMutant("replaced partitions are forgotten", ReadSet, "add_partitions", _nothing),
    CoreMutant(
        "two creators are not told apart", conflicts, "_check_protocol", _unchanged, RACES, False
    ),
    CoreMutant("news is not looked for", news, "read_commit", _no_news, RACES),
    _write("a commit is not known again", "is_ours", _no),
    _write("what exists is taken for ours", "is_ours", _yes),
    _write("unknown is taken for failed", "_settle", _unknown_is_failed),
    _write("unknown is taken for done", "_settle", _unknown_is_done),
    _write("a failed write is not looked at", "_settle_failure", _failed_is_failed),
    _write("doubt is forgotten", "in_doubt", _never_in_doubt, DOUBTS),
    CoreMutant("there is no fence", CommitLoop, "_fence", _nothing, FENCES),
    CoreMutant(
        "there is no fence before version 0",
        commit_fence,
        "has_lost_its_start",
        _no,
        FENCES,
        exists=False,
    ),
    CoreMutant("a version that is gone is built on", news, "still_there", _yes, FENCES),
    CoreMutant(
        "what was made is taken to be there for ever",
        TableLog,
        "was_just_made",
        _made_at_some_time,
        BEHIND,
        again=True,
    ),
    CoreMutant("row ids are not made anew", Draft, "_rebased_row_ids", _draft_unchanged),
    CoreMutant("commit times are not made anew", Draft, "_rebased_time", _draft_unchanged),
    _conflict("every change of the metadata conflicts", "harmless_change", _no),
    CoreMutant(
        "checkpoints lack progress", checkpoints, "write_checkpoint", _without_progress, FENCES
    ),
]
