"""What a commit will say, for the version that is tried next.

Most of it stays as it was prepared. Row ids, row commit versions, the in-commit timestamp and, with
the preview of type widening, the version of a type change depend on what precedes the commit: each
time a version is lost to another writer they are computed again from what that writer committed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakelog.core.actions import AddFile, DomainMetadata, Metadata, RemoveFile
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.in_commit_timestamps import (
    keep_enablement,
    with_enablement,
)
from lakelog.core.features.numbered_rows import (
    BACKFILL,
    NO_MARK,
    PRESERVED,
    ROW_TRACKING_DOMAIN,
    UNBACKFILL,
    high_water_mark,
    mark_action,
    reassigned_versions,
    with_row_ids,
    with_versions,
)
from lakelog.core.features.type_changes import with_change_versions
from lakelog.core.paths import path_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lakelog.core.actions import Action, CommitInfo
    from lakelog.core.commit.prepare import PreparedCommit
    from lakelog.core.conflicts.checker import PendingCommit
    from lakelog.core.conflicts.winner import WinningCommit
    from lakelog.core.state.snapshot import Snapshot

_REPLACED_WITH_THE_TABLE = frozenset({"delta.clustering"})
"""Domains whose metadata describes the schema that `REPLACE TABLE` replaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The lines of one commit."""

    commit_info: CommitInfo
    """The first line."""
    actions: tuple[Action, ...]
    """The lines after it."""
    row_id_mark: int = NO_MARK
    """The high-water mark of row ids before this commit: it assigned the ids above it."""
    enables_times: bool = False
    """Whether this commit enables in-commit timestamps on an existing table."""

    @property
    def metadata(self) -> Metadata | None:
        """The metadata that it sets."""
        return next((a for a in self.actions if isinstance(a, Metadata)), None)

    def rebased(
        self,
        before: PendingCommit,
        after: PendingCommit,
        winner: WinningCommit,
        landed_at: Callable[[], int],
    ) -> Draft:
        """What the commit says after one more winner, which was checked already.

        The order of the steps is that of delta-spark's `ConflictChecker`.

        Args:
            before: the commit as it met the winner.
            after: the same with the winner's protocol and metadata.
            winner: the commit that took the version.
            landed_at: gives the storage's time of the winner's file, epoch ms; called only where
                the winner does not carry its time.

        Raises:
            DeltaAnalysisError: the winner made row ids necessary, and a file does not say how many
                rows it has; or both change row tracking (see `rebase_unbackfill`).
            CorruptLogError: the winner's high-water mark can't be read.
        """
        # Only a winner that may be ignored comes here, so nothing below decides about a conflict.
        draft = self._without_replaced_domains(winner)
        if self.commit_info.operation == UNBACKFILL:
            draft = replace(draft, actions=rebase_unbackfill(draft.actions, winner, after.table))
        draft = draft._rebased_row_ids(before, after, winner)
        if after.terms.names_type_versions:
            lost = winner.version
            draft = draft._with_metadata(lambda each: with_change_versions(each, lost + 1, lost))
        return draft._rebased_time(after, winner, landed_at)

    def _without_replaced_domains(self, winner: WinningCommit) -> Draft:
        if "REPLACE TABLE" not in (self.commit_info.operation or ""):
            return self
        # We removed the domains that we knew about. One that the winner set since would describe
        # columns that are gone. Those that an earlier winner made us remove are among `mine`.
        mine = {a.domain for a in self.actions if isinstance(a, DomainMetadata)}
        gone = [
            replace(each, removed=True)
            for name, each in winner.commit.domains.items()
            if name in _REPLACED_WITH_THE_TABLE - mine and not each.removed
        ]
        return replace(self, actions=(*self.actions, *gone)) if gone else self

    def _rebased_row_ids(
        self, before: PendingCommit, after: PendingCommit, winner: WinningCommit
    ) -> Draft:
        # `after`: the winner may have added the feature, and then our files need ids as well.
        if not after.terms.assigns_row_ids:
            return self
        draft, kept = self._met_backfill(winner, after.table)
        theirs = high_water_mark(winner.commit.domains, after.table)
        # A winner that assigned no ids set no mark, and the one that we know still holds.
        mark = max(self.row_id_mark, theirs)
        others = [a for a in draft.actions if not _is_mark(a)]
        actions, reached = with_row_ids(
            others, mark, after.table, assigned_above=self.row_id_mark, keep=kept
        )
        actions = reassigned_versions(actions, winner.version, kept)
        info = self.commit_info
        if after.terms.is_row_tracking_enabled and not before.terms.is_row_tracking_enabled:
            # Row tracking was off when these rows were written, so rows that moved to another file
            # did not take their ids along.
            info = replace(info, tags={**(info.tags or {}), PRESERVED: "false"})
        return replace(
            draft,
            commit_info=info,
            actions=(mark_action(reached), *actions),
            row_id_mark=mark,
        )

    def _met_backfill(self, winner: WinningCommit, table: str) -> tuple[Draft, frozenset[str]]:
        """Settle which of two writers gives a file its ids, where one does nothing else.

        Returns:
            The draft, and the paths, as it spells them, of files that take their ids from the
            winner.
        """
        if self.commit_info.operation == BACKFILL:
            # A backfill adds each file again as it read it. After the winner, that would bring back
            # a file that it removed, or undo its deletion vector.
            left = untouched(self.actions, winner, table)
            return replace(self, actions=tuple(left)), frozenset()
        if winner.operation != BACKFILL:
            return self, frozenset()
        # The winner's ids of a file are in the log and may have been read: they stay.
        places = {path_key(table, add.path): add for add in winner.adds}
        mine = (a.path for a in self.actions if isinstance(a, AddFile | RemoveFile))
        given = {path: places[place] for path in mine if (place := path_key(table, path)) in places}
        return (
            replace(self, actions=tuple(_with_ids_of(given, self.actions))),
            frozenset(given),
        )

    def _rebased_time(
        self, after: PendingCommit, winner: WinningCommit, landed_at: Callable[[], int]
    ) -> Draft:
        if not after.terms.commits_carry_time:
            return self
        info = self.commit_info
        # A winner without a time precedes enablement: its file's time is its timestamp then.
        theirs = winner.commit_info.in_commit_timestamp if winner.commit_info else None
        ours = info.timestamp if info.in_commit_timestamp is None else info.in_commit_timestamp
        # Timestamps must grow with the versions. As in Delta, a retry keeps its time where it can
        # instead of taking the current one.
        time = max(ours or 0, (landed_at() if theirs is None else theirs) + 1)
        draft = replace(self, commit_info=replace(info, in_commit_timestamp=time))
        if not self.enables_times:
            return draft
        # The record names the first version that carries a time, which is now a later one.
        version = winner.version + 1
        return draft._with_metadata(lambda each: with_enablement(each, version, time))

    def _with_metadata(self, change: Callable[[Metadata], Metadata]) -> Draft:
        actions = tuple(change(a) if isinstance(a, Metadata) else a for a in self.actions)
        return replace(self, actions=actions)


def first_draft(prepared: PreparedCommit, snapshot: Snapshot | None, table: str) -> Draft:
    """What a commit says in its first attempt, right after the version that it read.

    Args:
        prepared: the commit, checked.
        snapshot: what it read; `None` for a new table.
        table: for messages.

    Raises:
        DeltaAnalysisError: row ids are needed, and a file does not say how many rows it has.
        CorruptLogError: the table's high-water mark, or the time of its version, can't be read.
    """
    # Read once here: the mark belongs to the version that was read, and each winner moves it on.
    domains = snapshot.domain_metadata if snapshot else {}
    mark = high_water_mark(domains, table) if ROW_TRACKING_DOMAIN in domains else NO_MARK
    draft = Draft(
        commit_info=prepared.commit_info, actions=tuple(prepared.actions), row_id_mark=mark
    )
    if prepared.terms.names_type_versions:
        version = 0 if snapshot is None else snapshot.version + 1
        draft = draft._with_metadata(lambda each: with_change_versions(each, version))
    return _with_first_time(_with_first_ids(draft, prepared, snapshot, table), prepared, snapshot)


def _with_first_ids(
    draft: Draft, prepared: PreparedCommit, snapshot: Snapshot | None, table: str
) -> Draft:
    if not prepared.terms.assigns_row_ids:
        return draft
    # Ids above the mark are this commit's only if it is the next version: whoever loses the version
    # draws again, above what the winner drew.
    actions, reached = with_row_ids(draft.actions, draft.row_id_mark, table)
    actions = with_versions(actions, 0 if snapshot is None else snapshot.version + 1)
    # Last in a first attempt and first after a rebase, as delta-spark orders them.
    if reached != draft.row_id_mark:
        actions.append(mark_action(reached))
    return replace(draft, actions=tuple(actions))


def _with_first_time(draft: Draft, prepared: PreparedCommit, snapshot: Snapshot | None) -> Draft:
    if not prepared.terms.commits_carry_time:
        return draft
    time = prepared.commit_info.timestamp or 0
    # A clock that runs behind must not make the new version older than the one before it.
    if snapshot is not None:
        time = max(time, snapshot.timestamp + 1)
    draft = replace(draft, commit_info=replace(draft.commit_info, in_commit_timestamp=time))
    if snapshot is None:
        return draft  # a table that has had times from version 0 on needs no record of when
    # New metadata may lack the record, for example that of REPLACE TABLE; readers would then expect
    # times in versions from before the enablement.
    if snapshot.terms.commits_carry_time:
        return draft._with_metadata(lambda each: keep_enablement(snapshot.metadata, each))
    draft = replace(draft, enables_times=True)
    return draft._with_metadata(lambda each: with_enablement(each, snapshot.version + 1, time))


def _is_mark(action: Action) -> bool:
    return isinstance(action, DomainMetadata) and action.domain == ROW_TRACKING_DOMAIN


def _with_ids_of(given: dict[str, AddFile], actions: Iterable[Action]) -> Iterable[Action]:
    for action in actions:
        found = given.get(action.path) if isinstance(action, AddFile | RemoveFile) else None
        if found is None or not isinstance(action, AddFile | RemoveFile):
            yield action
            continue
        yield replace(
            action,
            base_row_id=found.base_row_id,
            default_row_commit_version=found.default_row_commit_version,
        )


def untouched(actions: Iterable[Action], winner: WinningCommit, table: str) -> Iterator[Action]:
    """The actions of a commit without those that add a file which another commit touched."""
    theirs = (*(add.path for add in winner.adds), *winner.removed_paths)
    # By place: another client may spell the path of one file in another way.
    touched = {path_key(table, path) for path in theirs}
    for action in actions:
        if not (isinstance(action, AddFile) and path_key(table, action.path) in touched):
            yield action


def rebase_unbackfill(
    actions: Iterable[Action], winner: WinningCommit, table: str
) -> tuple[Action, ...]:
    """What a commit that removes row ids says after another one.

    It leaves out the files that the winner touched, and removes the ids of those that the winner
    added, so that none is left when the feature is dropped.

    Raises:
        DeltaAnalysisError: the winner is a backfill: the two would undo each other's work.
    """
    if winner.operation == BACKFILL:
        raise DeltaAnalysisError(
            "[DELTA_ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL] row tracking is "
            f"being enabled on {table} (version {winner.version}) while this transaction removes "
            "it. Nothing was committed. Wait until enabling it has finished, then remove it "
            "again if you still want to.",
            table=table,
            version=winner.version,
        )
    # A file that the winner touched is not added again: it has the winner's state, and an older
    # add after it would bring removed rows back.
    kept = untouched(actions, winner, table)
    numbered = (add for add in winner.adds if add.base_row_id is not None)
    return (
        *kept,
        *(
            replace(add, base_row_id=None, default_row_commit_version=None, data_change=False)
            for add in numbered
        ),
    )
