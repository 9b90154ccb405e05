"""What a commit will say, for the version that is tried next.

Most of it stays as it was prepared. Row ids, row commit versions, the in-commit timestamp and, with
the preview of type widening, the version of a change of type depend on what lies before the
commit: each time that a version is lost to another writer they are made anew, from what that one
wrote.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakelog.core import type_widening
from lakelog.core.actions import AddFile, DomainMetadata, Metadata, RemoveFile
from lakelog.core.in_commit_time import commits_carry_time, keep_enablement, with_enablement
from lakelog.core.isolation import ROW_TRACKING_DOMAIN
from lakelog.core.paths import path_key
from lakelog.core.row_tracking import (
    BACKFILL,
    NO_MARK,
    PRESERVED,
    UNBACKFILL,
    assigns_row_ids,
    high_water_mark,
    is_row_tracking_enabled,
    mark_action,
    reassigned_versions,
    with_row_ids,
    with_versions,
)
from lakelog.core.unbackfill import met_by_unbackfill, untouched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lakelog.core.actions import Action, CommitInfo
    from lakelog.core.conflicts import PendingCommit
    from lakelog.core.prepare import PreparedCommit
    from lakelog.core.snapshot import Snapshot
    from lakelog.core.winners import WinningCommit

__all__ = ["Draft", "first_draft"]

_REPLACED_WITH_THE_TABLE = frozenset({"delta.clustering"})
"""Domains whose metadata describes the schema that `REPLACE TABLE` takes away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The lines of one commit."""

    commit_info: CommitInfo
    """The first line."""
    actions: tuple[Action, ...]
    """The lines after it."""
    row_id_mark: int = NO_MARK
    """The high-water mark of row ids below which none was handed out by this commit."""
    enables_times: bool = False
    """Whether this commit switches in-commit timestamps on in a table that exists."""

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
        """What the commit says behind one more winner, which was checked already.

        Args:
            before: the commit as it met the winner.
            after: the same with the winner's protocol and metadata.
            winner: who took the version.
            landed_at: the storage's time of the winner's file, epoch ms; asked only where the
                winner does not carry its time.

        Raises:
            DeltaAnalysisError: the winner asks for row ids, and a file does not say how many rows
                it has.
            CorruptLogError: the winner's high-water mark can't be read.
        """
        draft = self._without_replaced_domains(winner)
        if self.commit_info.operation == UNBACKFILL:
            draft = replace(draft, actions=met_by_unbackfill(draft.actions, winner, after.table))
        draft = draft._rebased_row_ids(before, after, winner)
        if type_widening.names_versions(after.protocol):
            lost = winner.version
            draft = draft._with_metadata(lambda each: type_widening.stamped(each, lost + 1, lost))
        return draft._rebased_time(after, winner, landed_at)

    def _without_replaced_domains(self, winner: WinningCommit) -> Draft:
        if "REPLACE TABLE" not in (self.commit_info.operation or ""):
            return self
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
        if not assigns_row_ids(after.protocol, after.metadata):
            return self
        draft, kept = self._met_backfill(winner, after.table)
        theirs = high_water_mark(winner.commit.domains, after.table)
        mark = max(self.row_id_mark, theirs)
        others = [a for a in draft.actions if not _is_mark(a)]
        actions, reached = with_row_ids(
            others, mark, after.table, assigned_above=self.row_id_mark, keep=kept
        )
        actions = reassigned_versions(actions, winner.version, kept)
        info = self.commit_info
        if is_row_tracking_enabled(after.protocol, after.metadata) and not is_row_tracking_enabled(
            before.protocol, before.metadata
        ):
            # Nobody knew, when the rows were written, that they had ids to keep.
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
            left = untouched(self.actions, winner, table)
            return replace(self, actions=tuple(left)), frozenset()
        if winner.operation != BACKFILL:
            return self, frozenset()
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
        if not commits_carry_time(after.protocol, after.metadata):
            return self
        info = self.commit_info
        theirs = winner.commit_info.in_commit_timestamp if winner.commit_info else None
        ours = info.timestamp if info.in_commit_timestamp is None else info.in_commit_timestamp
        time = max(ours or 0, (landed_at() if theirs is None else theirs) + 1)
        draft = replace(self, commit_info=replace(info, in_commit_timestamp=time))
        if not self.enables_times:
            return draft
        version = winner.version + 1
        return draft._with_metadata(lambda each: with_enablement(each, version, time))

    def _with_metadata(self, change: Callable[[Metadata], Metadata]) -> Draft:
        actions = tuple(change(a) if isinstance(a, Metadata) else a for a in self.actions)
        return replace(self, actions=actions)


def first_draft(prepared: PreparedCommit, snapshot: Snapshot | None, table: str) -> Draft:
    """What a commit says in its first attempt, right behind the version that it read.

    Args:
        prepared: the commit, checked.
        snapshot: what it read; `None` for a new table.
        table: for messages.

    Raises:
        DeltaAnalysisError: row ids are asked for, and a file does not say how many rows it has.
        CorruptLogError: the table's high-water mark, or the time of its version, can't be read.
    """
    mark = high_water_mark(snapshot.domain_metadata, table) if snapshot else NO_MARK
    draft = Draft(
        commit_info=prepared.commit_info, actions=tuple(prepared.actions), row_id_mark=mark
    )
    if type_widening.names_versions(prepared.protocol):
        version = 0 if snapshot is None else snapshot.version + 1
        draft = draft._with_metadata(lambda each: type_widening.stamped(each, version))
    return _with_first_time(_with_first_ids(draft, prepared, snapshot, table), prepared, snapshot)


def _with_first_ids(
    draft: Draft, prepared: PreparedCommit, snapshot: Snapshot | None, table: str
) -> Draft:
    if not assigns_row_ids(prepared.protocol, prepared.metadata):
        return draft
    actions, reached = with_row_ids(draft.actions, draft.row_id_mark, table)
    actions = with_versions(actions, 0 if snapshot is None else snapshot.version + 1)
    if reached != draft.row_id_mark:
        actions.append(mark_action(reached))
    return replace(draft, actions=tuple(actions))


def _with_first_time(draft: Draft, prepared: PreparedCommit, snapshot: Snapshot | None) -> Draft:
    if not commits_carry_time(prepared.protocol, prepared.metadata):
        return draft
    time = prepared.commit_info.timestamp or 0
    if snapshot is not None:
        time = max(time, snapshot.timestamp + 1)
    draft = replace(draft, commit_info=replace(draft.commit_info, in_commit_timestamp=time))
    if snapshot is None:
        return draft
    if commits_carry_time(snapshot.protocol, snapshot.metadata):
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
