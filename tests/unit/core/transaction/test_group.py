"""Appends of several threads become one version, and each has its own outcome."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import DeltaLog, Operation, OptimisticTransaction, write_arrow
from lakelog.core.actions import AddFile, SetTransaction
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    ConcurrentTransactionException,
    DeltaAnalysisError,
    MetadataChangedException,
    PostCommitError,
)
from lakelog.core.events import CommitOutcome
from lakelog.core.transaction.group import CommitGroups
from support.faults import Crash, Fault, FaultyLogStore
from support.tables import add_file, new_table
from support.waiting_writers import GROUP, grouping_log, in_one_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from lakelog.core.actions import Action

_names = itertools.count()


def _table(properties: Mapping[str, str] | None = None) -> DeltaLog:
    return new_table(f"memory://groups/{next(_names)}/t", properties=properties)


class Writer:
    """A transaction that has read the table, and will append one file."""

    def __init__(
        self, log: DeltaLog, name: str, *more: Action, operation: Operation | None = None
    ) -> None:
        self.txn = log.start_transaction()
        self.actions = [add_file(name), *more]
        self.operation = operation or Operation.write(
            "Append", metrics={"numFiles": 1, "numOutputRows": 2, "numOutputBytes": 3}
        )

    def __call__(self) -> int:
        return self.txn.commit(self.actions, self.operation)


def _writers(log: DeltaLog, count: int) -> list[Writer]:
    return [Writer(log, f"f{number}") for number in range(count)]


def _paths(log: DeltaLog) -> list[str]:
    return sorted(file.path for file in DeltaLog.for_table(log.table).snapshot.files())


def test_those_who_wait_are_committed_as_one_version() -> None:
    table = _table()
    log = grouping_log(table)
    first, *others = _writers(log, 5)
    assert in_one_turn(log, first, others) == [1, 2, 2, 2, 2]
    assert _paths(table) == ["f0", "f1", "f2", "f3", "f4"]
    assert log.snapshot.version == 2
    assert [each.num_add for txn in others for each in txn.txn.attempts] == [4, 4, 4, 4]
    assert all(each.txn.may_be_committed for each in others)
    info = DeltaLog.for_table(table.table).snapshot.commit_info
    assert info is not None
    assert info.operation == "WRITE"
    assert (info.operation_parameters or {})["mode"] == "Append"
    assert info.operation_metrics == {
        "numFiles": "4",
        "numOutputRows": "8",
        "numOutputBytes": "12",
    }
    assert info.tags == {
        "lakelog.groupTxnIds": ",".join(each.txn._committer.txn_id for each in others)
    }
    assert info.is_blind_append


def test_who_waited_alone_does_not_lose_to_whom_it_waited_for() -> None:
    table = _table()
    log = grouping_log(table)
    first, other = _writers(log, 2)
    assert in_one_turn(log, first, [other]) == [1, 2]
    assert [each.outcome for each in other.txn.attempts] == [CommitOutcome.COMMITTED]
    assert _paths(table) == ["f0", "f1"]


def test_who_waited_alone_still_minds_what_it_must() -> None:
    table = _table()
    log = grouping_log(table)
    first, other = _writers(log, 2)
    for version, each in enumerate((first, other)):
        assert each.txn.txn_version("app") == -1
        each.actions.append(SetTransaction(app_id="app", version=version))
    found = in_one_turn(log, first, [other])
    assert found[0] == 1
    assert isinstance(found[1], ConcurrentTransactionException)
    assert _paths(table) == ["f0"]


def test_without_the_conf_each_is_a_version_of_its_own() -> None:
    log = _table()
    writers = _writers(log, 3)
    assert [each() for each in writers] == [1, 2, 3]


def test_a_transaction_of_a_group_commits_once() -> None:
    log = grouping_log(_table())
    first, *others = _writers(log, 3)
    in_one_turn(log, first, others)
    for each in others:
        with pytest.raises(DeltaAnalysisError, match="already committed"):
            each()
        each.txn.run_post_commit_hooks()


def test_each_application_records_its_own_version() -> None:
    table = _table()
    log = grouping_log(table)
    first, *others = _writers(log, 4)
    for number, each in enumerate(others):
        each.txn.txn_version(f"app {number}")
        each.actions.append(SetTransaction(app_id=f"app {number}", version=7 + number))
    assert in_one_turn(log, first, others) == [1, 2, 2, 2]
    snapshot = DeltaLog.for_table(table.table).snapshot
    assert [snapshot.txn_version(f"app {number}") for number in range(3)] == [7, 8, 9]


def test_two_batches_of_one_application_are_no_group_and_the_second_conflicts() -> None:
    table = _table()
    log = grouping_log(table)
    first, one, two, other = _writers(log, 4)
    for version, each in enumerate((one, two)):
        assert each.txn.txn_version("app") == -1
        each.actions.append(SetTransaction(app_id="app", version=version))
    found = in_one_turn(log, first, [one, two, other])
    assert [found[0], found[1], found[3]] == [1, 2, 2]
    assert isinstance(found[2], ConcurrentTransactionException)
    assert not two.txn.may_be_committed
    assert _paths(table) == ["f0", "f1", "f3"]


def test_what_is_wrong_with_one_is_no_failure_of_the_others() -> None:
    table = _table()
    log = grouping_log(table)
    first, *others = _writers(log, 4)
    # Only together are they wrong: one commit can't add a file twice.
    others[1].actions = [add_file("f1")]
    found = in_one_turn(log, first, others)
    assert sorted(found) == [1, 2, 3, 4]
    assert _paths(table) == ["f0", "f1", "f3"]


def test_a_group_that_the_storage_refuses_is_dissolved() -> None:
    table = _table()
    log = grouping_log(table)
    first, *others = _writers(log, 4)
    assert isinstance(log.store, FaultyLogStore)
    log.store.writes.extend([Fault.NONE, Fault.OSERROR])
    found = in_one_turn(log, first, others)
    assert sorted(found) == [1, 2, 3, 4]
    assert _paths(table) == ["f0", "f1", "f2", "f3"]
    assert {each.txn.attempts[0].outcome for each in others} == {CommitOutcome.FAILED}
    assert len({id(each.txn.attempts) for each in others}) == 3


def test_a_change_of_the_table_is_a_conflict_of_each() -> None:
    table = _table()
    log = grouping_log(table)
    first, *others = _writers(log, 3)

    def change() -> None:
        txn = table.start_transaction()
        txn.commit([_other_metadata(txn)], Operation("SET TBLPROPERTIES"))

    found = in_one_turn(log, first, others, meanwhile=change)
    assert [isinstance(each, MetadataChangedException) for each in found] == [True] * 3
    assert _paths(table) == []
    assert not any(each.txn.may_be_committed for each in (first, *others))


def test_who_read_the_table_before_it_changed_is_left_to_itself() -> None:
    table = _table()
    log = grouping_log(table)
    early = Writer(log, "early")
    txn = log.start_transaction()
    txn.commit([_other_metadata(txn)], Operation("SET TBLPROPERTIES"))
    first, *others = _writers(log, 3)
    found = in_one_turn(log, first, [early, *others])
    assert isinstance(found[1], MetadataChangedException)
    assert [found[0], *found[2:]] == [2, 3, 3]


def _other_metadata(txn: OptimisticTransaction) -> Any:
    from dataclasses import replace

    return replace(txn.metadata, configuration={"delta.appendOnly": "true"})


@pytest.mark.parametrize("fault", [Fault.CRASH, Fault.LANDS_CRASH])
def test_an_interrupted_group_is_in_doubt_for_every_member(fault: Fault) -> None:
    table = _table()
    log = grouping_log(table)
    first, *others = _writers(log, 3)
    assert isinstance(log.store, FaultyLogStore)
    log.store.writes.extend([Fault.NONE, fault])
    found = in_one_turn(log, first, others)
    assert found[0] == 1
    assert isinstance(found[1], Crash)
    assert isinstance(found[2], CommitOutcomeUnknownError)
    assert found[2].path.endswith("00000000000000000002.json")
    assert all(each.txn.may_be_committed for each in others)
    # Nobody has the turn any more, and the next one gets it.
    assert Writer(log, "later")() == (3 if fault is Fault.LANDS_CRASH else 2)


def test_a_failing_hook_fails_no_commit_of_the_group() -> None:
    table = _table({"delta.checkpointInterval": "2"})
    conf = {**GROUP, "spark.databricks.delta.postCommitHook.throwOnError": "true"}
    log = grouping_log(table, conf)
    first, *others = _writers(log, 3)

    def no_checkpoint(_version: int) -> None:
        raise OSError("injected: no checkpoint")

    log.checkpoint = no_checkpoint  # type: ignore[method-assign,assignment]
    found = in_one_turn(log, first, others)
    assert found[0] == 1
    assert all(isinstance(each, PostCommitError) for each in found[1:])
    assert _paths(table) == ["f0", "f1", "f2"]


def _reads(writer: Writer) -> None:
    writer.txn.reads.read_whole_table()


def _hooks(writer: Writer) -> None:
    writer.txn.register_post_commit_hook(lambda _committed: None)


def _sets_metadata(writer: Writer) -> None:
    writer.actions.append(_other_metadata(writer.txn))


def _removes(writer: Writer) -> None:
    added = writer.actions[0]
    assert isinstance(added, AddFile)
    writer.actions = [added.remove(1)]


@pytest.mark.parametrize("change", [_reads, _hooks, _sets_metadata, _removes])
def test_only_appends_that_read_nothing_wait_for_each_other(
    change: Callable[[Writer], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = grouping_log(_table())
    Writer(log, "f0")()
    writer = Writer(log, "f0" if change is _removes else "f1")
    change(writer)

    def enter(_self: object, _member: object) -> None:
        raise AssertionError("it must not wait for others")

    monkeypatch.setattr(CommitGroups, "enter", enter)
    assert writer() == 2


def test_one_operation_is_not_told_as_another() -> None:
    table = _table()
    log = grouping_log(table)
    first, *others = _writers(log, 4)
    others[1].operation = Operation("STREAMING UPDATE")
    assert in_one_turn(log, first, others) == [1, 2, 3, 2]
    assert [each.operation for each in table.history(2)] == ["STREAMING UPDATE", "WRITE"]


def test_row_ids_of_a_group_are_distinct() -> None:
    table = _table({"delta.enableRowTracking": "true"})
    log = grouping_log(table)
    first, *others = _writers(log, 4)
    assert in_one_turn(log, first, others) == [1, 2, 2, 2]
    files = DeltaLog.for_table(table.table).snapshot.files()
    assert sorted(each.base_row_id or 0 for each in files) == [0, 1, 2, 3]
    assert sorted(each.default_row_commit_version or 0 for each in files) == [1, 2, 2, 2]


def test_a_large_append_is_left_to_itself() -> None:
    table = _table()
    log = grouping_log(table)
    first, *others = _writers(log, 3)
    others[0].actions = [add_file(f"l{number}") for number in range(600)]
    others[1].actions = [add_file(f"m{number}") for number in range(600)]
    assert in_one_turn(log, first, others) == [1, 2, 3]
    assert len(_paths(table)) == 1201


def test_appends_of_rows_are_grouped_too(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, {"id": [0]}, mode="append")
    log = DeltaLog.for_table(uri, GROUP)

    def append(number: int) -> None:
        write_arrow(log, {"id": [number]}, mode="append")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(1, 25)))
    assert sorted(DeltaLog.for_table(uri).snapshot.to_arrow()["id"].to_pylist()) == list(range(25))


def test_threads_that_ask_at_the_same_time_share_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table()
    log = grouping_log(table)
    log.update()
    Writer(table, "news")()
    looks: list[None] = []
    look = type(log)._look

    def counted(self: DeltaLog) -> Any:
        looks.append(None)
        return look(self)

    monkeypatch.setattr(type(log), "_look", counted)

    class Lock:
        """Lets another thread look and finish between a caller's question and its turn."""

        taken = False

        def __enter__(self) -> None:
            if not self.taken:
                self.taken = True
                log.update()

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(log, "_lock", Lock())
    assert log.update().version == 1
    assert len(looks) == 1


def test_a_look_that_failed_serves_no_one() -> None:
    table = _table()
    log = grouping_log(table)
    log.update()
    assert isinstance(log.store, FaultyLogStore)
    log.store.failing_reads = 100
    with pytest.raises(OSError, match="injected"):
        log.update()
    log.store.failing_reads = 0
    Writer(table, "f")()
    assert log.update().version == 1
