from __future__ import annotations

import pytest

from lakelog.core.actions import (
    Action,
    AddCDCFile,
    AddFile,
    DomainMetadata,
    RemoveFile,
    SetTransaction,
)
from lakelog.core.commit.prepare import adds_only, changes_rows, resolve_isolation
from lakelog.core.features.isolation import IsolationLevel

S = IsolationLevel.SERIALIZABLE
WS = IsolationLevel.WRITE_SERIALIZABLE
SI = IsolationLevel.SNAPSHOT_ISOLATION


def add(data_change: bool) -> AddFile:
    return AddFile(
        path="a", partition_values={}, size=1, modification_time=1, data_change=data_change
    )


@pytest.mark.parametrize(
    ("level", "actions", "changes", "expected"),
    [
        (S, [add(True)], True, S),
        (S, [add(False), RemoveFile(path="b", data_change=False)], True, SI),
        (S, [], True, SI),
        (S, [add(False), SetTransaction(app_id="a", version=1)], False, S),
        (S, [DomainMetadata(domain="d", configuration="", removed=False)], False, S),
        (
            S,
            [DomainMetadata(domain="delta.rowTracking", configuration="", removed=False)],
            False,
            SI,
        ),
        (WS, [add(True)], True, WS),
        (WS, [add(False)], True, WS),
        (WS, [add(False)], False, SI),
        (SI, [add(True)], True, SI),
    ],
)
def test_only_a_commit_that_changes_no_row_is_checked_at_snapshot_isolation(
    level: IsolationLevel, actions: list[Action], changes: bool, expected: IsolationLevel
) -> None:
    assert resolve_isolation(level, actions, operation_changes_data=changes) is expected


def test_change_data_and_removes_are_no_appends() -> None:
    cdc = AddCDCFile(path="c", partition_values={}, size=1)
    assert adds_only([])
    assert adds_only([add(True), SetTransaction(app_id="a", version=1)])
    assert not adds_only([add(True), cdc])
    assert not adds_only([RemoveFile(path="x")])


def test_data_change_is_true_where_one_file_action_has_it() -> None:
    assert changes_rows([add(False), add(True)])
    assert not changes_rows([add(False), SetTransaction(app_id="a", version=1)])
