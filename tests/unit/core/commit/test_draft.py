"""What a rebased commit says, where a table can't easily be brought to show it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakelog.core.actions import Action, CommitInfo, DomainMetadata, Metadata, Protocol
from lakelog.core.commit.draft import Draft
from lakelog.core.conflicts.checker import PendingCommit
from lakelog.core.conflicts.read_set import ReadSet
from lakelog.core.conflicts.winner import WinningCommit
from lakelog.core.features.isolation import IsolationLevel
from lakelog.core.features.numbered_rows import mark_action
from lakelog.core.log.commit_file import Commit
from lakelog.core.schema import StructType
from support.tables import ID_SCHEMA, add_file

CLUSTERING = DomainMetadata(domain="delta.clustering", configuration="{}", removed=False)
OTHER = replace(CLUSTERING, domain="mine")


def pending(*features: str, **configuration: str) -> PendingCommit:
    properties = {f"delta.{key}": value for key, value in configuration.items()}
    return PendingCommit(
        table="/t",
        read_version=4,
        partition_schema=StructType(),
        metadata=Metadata(id="t", schema_string=ID_SCHEMA, configuration=properties),
        protocol=Protocol(
            min_reader_version=1, min_writer_version=7, writer_features=list(features)
        ),
        reads=ReadSet(),
        isolation=IsolationLevel.SERIALIZABLE,
        is_blind_append=True,
        changes_metadata=False,
        changes_protocol=False,
        removed_paths={},
        domains=frozenset(),
    )


def draft(
    *actions: Action, operation: str = "WRITE", timestamp: int = 100, mark: int = -1
) -> Draft:
    info = CommitInfo(operation=operation, timestamp=timestamp)
    return Draft(commit_info=info, actions=actions, row_id_mark=mark)


def winner(*domains: DomainMetadata, time: int | None = None) -> WinningCommit:
    commit = Commit(5, "/t/5.json", info=CommitInfo(operation="WRITE", in_commit_timestamp=time))
    commit.domains = {each.domain: each for each in domains}
    return WinningCommit(commit)


def never() -> int:
    raise AssertionError("nobody needs the storage's time")


def rebased(what: Draft, state: PendingCommit, by: WinningCommit, landed_at: int = 0) -> Draft:
    return what.rebased(state, state, by, (lambda: landed_at) if landed_at else never)


@pytest.mark.parametrize(
    ("operation", "removed"), [("CREATE OR REPLACE TABLE AS SELECT", True), ("WRITE", False)]
)
def test_a_replaced_table_loses_the_clustering_that_a_winner_gave_it(
    operation: str, removed: bool
) -> None:
    found = rebased(
        draft(operation=operation), pending("domainMetadata"), winner(CLUSTERING, OTHER)
    )
    assert found.actions == ((replace(CLUSTERING, removed=True),) if removed else ())


def test_a_replacement_that_has_a_clustering_of_its_own_keeps_it() -> None:
    mine = draft(CLUSTERING, operation="REPLACE TABLE")
    assert rebased(mine, pending("domainMetadata"), winner(CLUSTERING)).actions == (CLUSTERING,)


def test_without_features_nothing_changes() -> None:
    mine = draft(add_file("a"))
    assert rebased(mine, pending(), winner(mark_action(7), time=500)) == mine


def test_the_time_of_the_storage_stands_in_for_one_that_a_winner_lacks() -> None:
    on = pending("inCommitTimestamp", enableInCommitTimestamps="true")
    assert rebased(draft(), on, winner(), 300).commit_info.in_commit_timestamp == 301
    assert rebased(draft(timestamp=900), on, winner(), 300).commit_info.in_commit_timestamp == 900
    assert rebased(draft(), on, winner(time=500)).commit_info.in_commit_timestamp == 501


def test_suspension_stops_the_assigning_after_a_race_as_well() -> None:
    state = pending("rowTracking", "domainMetadata", rowTrackingSuspended="true")
    mine = draft(add_file("a"))
    assert rebased(mine, state, winner(mark_action(7))) == mine


def test_ids_go_on_behind_each_winner_and_one_mark_is_set() -> None:
    state = pending("rowTracking", "domainMetadata")
    mine = draft(replace(add_file("a"), base_row_id=4), mark_action(4), mark=3)
    for theirs, expected in ((9, 10), (12, 13)):
        mine = rebased(mine, state, winner(mark_action(theirs)))
        assert mine.actions[0] == mark_action(expected)
        assert [getattr(a, "base_row_id", None) for a in mine.actions[1:]] == [expected]
        assert mine.row_id_mark == theirs
