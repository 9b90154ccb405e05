"""What a transaction reads decides with whom it conflicts."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from lakelog.core.actions import (
    Action,
    AddCDCFile,
    Metadata,
    RemoveFile,
    SetTransaction,
)
from lakelog.core.actions.operation import Operation
from lakelog.core.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    MetadataChangedException,
)
from lakelog.core.transaction.optimistic import undone_on_error
from support.commits import APPEND, DELETE, append, info_of, new_uri, started
from support.tables import add_file, new_table, schema_json


@pytest.fixture
def uri() -> str:
    return new_uri()


def test_a_delete_conflicts_with_files_added_to_what_it_read(uri: str) -> None:
    log = new_table(uri)
    append(log, "a")
    txn, other = started(log)
    (a,) = txn.filter_files()
    append(other, "b")
    with pytest.raises(ConcurrentAppendException) as caught:
        txn.commit([a.remove(1)], DELETE)
    assert caught.value.winning_version == 2
    assert log.update().version == 2


def test_a_blind_append_goes_behind_anything_that_changed_only_files(uri: str) -> None:
    log = new_table(uri)
    append(log, "a")
    txn, other = started(log)
    append(other, "b")
    deletion = other.start_transaction()
    deletion.commit([f.remove(1) for f in deletion.filter_files()], DELETE)
    assert txn.commit([add_file("c")], APPEND) == 4
    assert [f.path for f in log.update().files()] == ["c"]
    assert [(s.outcome.value, s.winners) for s in txn.attempts] == [
        ("conflict-rebased", 2),
        ("committed", 0),
    ]


def test_two_deletes_of_one_file_conflict(uri: str) -> None:
    log = new_table(uri, schema=schema_json(id="long", p="long"), partition_by=["p"])
    append(log, "a", p="1")
    txn, other = started(log)
    rival = other.start_transaction()
    rival.commit([RemoveFile(path="a", data_change=True)], DELETE)
    with pytest.raises(ConcurrentDeleteDeleteException):
        txn.commit([RemoveFile(path="a", data_change=True)], DELETE)


def test_a_read_file_that_was_compacted_away_conflicts(uri: str) -> None:
    log = new_table(uri, schema=schema_json(id="long", p="long"), partition_by=["p"])
    append(log, "a", p="1")
    txn, other = started(log)
    txn.filter_files()
    actions = [RemoveFile(path="a", data_change=False)]
    other.start_transaction().commit(actions, Operation(name="OPTIMIZE"))
    with pytest.raises(ConcurrentDeleteReadException, match="a"):
        txn.commit([add_file("b", p="2")], APPEND)


def test_a_predicate_that_met_no_file_still_counts_as_read(uri: str) -> None:
    log = new_table(uri)
    txn, other = started(log)
    assert txn.filter_files("id > 5") == []
    append(other, "b")
    with pytest.raises(ConcurrentAppendException):
        txn.commit([add_file("c")], APPEND)


def test_a_compaction_lets_appends_by_but_not_the_loss_of_its_input(uri: str) -> None:
    log = new_table(uri)
    append(log, "a")
    txn, other = started(log)
    (a,) = txn.filter_files()
    append(other, "b")
    actions: list[Action] = [a.remove(1, data_change=False), add_file("a2", data_change=False)]
    assert txn.commit(actions, Operation(name="OPTIMIZE")) == 3
    assert info_of(log, 3).isolation_level == "SnapshotIsolation"


def test_dynamic_overwrite_replaces_the_partitions_of_its_files_whatever_their_spelling(
    uri: str,
) -> None:
    log = new_table(uri, schema=schema_json(id="long", p="integer"), partition_by=["p"])
    append(log, "a", p="1")
    append(log, "b", p="01")
    append(log, "c", p="2")
    log.start_transaction().commit([add_file("n", p=None)], APPEND)
    txn, other = started(log)
    new = [add_file("x", p="1"), add_file("y", p=None)]
    replaced = txn.reads.files_in_same_partitions(new)
    assert sorted(f.path for f in replaced) == ["a", "b", "n"]
    append(other, "d", p="2")
    assert txn.commit([*new, *(f.remove(1) for f in replaced)], APPEND) == 6
    again, other = started(log)
    replaced = again.reads.files_in_same_partitions([add_file("z", p="1")])
    append(other, "e", p="001")
    with pytest.raises(ConcurrentAppendException, match="p=001"):
        again.commit([add_file("z", p="1"), *(f.remove(1) for f in replaced)], APPEND)


def test_partition_values_with_odd_characters_stay_apart(uri: str) -> None:
    log = new_table(uri, schema=schema_json(id="long", p="string", q="string"), partition_by="pq")
    odd = ["\\", "\\\\", "\\0", "\x01", "\\1", "a\x01b", ""]
    for number, (p, q) in enumerate(itertools.product(odd, odd)):
        append(log, f"f{number}", p=p, q=q)
    for number, (p, q) in enumerate(itertools.product(odd, odd)):
        txn = log.start_transaction()
        found = txn.reads.files_in_same_partitions([add_file("x", p=p, q=q)])
        assert f"f{number}" in [f.path for f in found]
        assert all(f.partition_values == {"p": p, "q": q} or "" in (p, q) for f in found)


def test_an_application_that_runs_twice_at_once_commits_once(uri: str) -> None:
    log = new_table(uri)
    first, other = started(log)
    second = other.start_transaction()
    for txn in (first, second):
        assert txn.txn_version("etl") == -1
    done = SetTransaction(app_id="etl", version=0)
    first.commit([add_file("a"), done], APPEND)
    with pytest.raises(ConcurrentTransactionException, match="etl"):
        second.commit([add_file("b"), done], APPEND)
    assert log.start_transaction().txn_version("etl") == 0


def test_a_schema_that_changed_meanwhile_stops_a_blind_append(uri: str) -> None:
    log = new_table(uri)
    txn, other = started(log)
    wider = Metadata(id="test", schema_string=schema_json(id="long", more="string"))
    other.start_transaction().commit([wider], Operation(name="ADD COLUMNS"))
    with pytest.raises(MetadataChangedException, match="ADD COLUMNS"):
        txn.commit([add_file("a")], APPEND)


def test_change_data_makes_a_commit_no_blind_append(uri: str) -> None:
    log = new_table(uri)
    cdc = AddCDCFile(path="_change_data/x", partition_values={}, size=1)
    log.start_transaction().commit([add_file("a"), cdc], APPEND)
    assert info_of(log, 1).is_blind_append is False


def test_write_serializable_lets_a_blind_append_slip_in(uri: str) -> None:
    log = new_table(uri, properties={"delta.isolationLevel": "WriteSerializable"})
    append(log, "a")
    txn, other = started(log)
    (a,) = txn.filter_files()
    append(other, "b")
    assert txn.commit([a.remove(1)], DELETE) == 3


def test_a_way_that_is_given_up_leaves_nothing_behind_for_another(uri: str) -> None:
    log = new_table(uri)
    append(log, "a")
    txn, other = started(log)
    asked: list[str] = []

    def tried() -> None:
        with undone_on_error(txn):
            txn.filter_files()
            txn.reads.read_whole_table()
            txn.txn_version("app")
            txn.update_metadata(replace(txn.metadata, description="tried"))
            txn.changes.mark_written()
            txn.changes.check_before_commit(lambda: asked.append("of files that are gone"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tried()
    append(other, "b")  # would conflict with what was read in vain
    txn.update_metadata(replace(txn.metadata, description="done"))
    assert txn.commit([add_file("c")], APPEND) == 3
    assert log.update().metadata.description == "done"
    assert not asked


def test_a_way_that_is_taken_stays_read_and_changed(uri: str) -> None:
    log = new_table(uri)
    append(log, "a")
    txn, other = started(log)
    with undone_on_error(txn):
        txn.filter_files()
    append(other, "b")
    with pytest.raises(ConcurrentAppendException):
        txn.commit([add_file("c")], DELETE)
