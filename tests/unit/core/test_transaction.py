from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from lakelog.core.commit_file import Commit, read_commit
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import (
    AppendOnlyError,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    DeltaAnalysisError,
    MetadataChangedException,
    UnsupportedFeatureError,
)
from lakelog.core.operations import Operation
from support.faults import FaultyLogStore
from support.manual_clock import ManualClock
from support.tables import ID_SCHEMA, add_file, new_table, schema_json

if TYPE_CHECKING:
    from lakelog.core.hooks import CommittedTransaction
    from lakelog.core.transaction import OptimisticTransaction

APPEND = Operation.write("Append")
DELETE = Operation(name="DELETE")
_names = itertools.count()


@pytest.fixture
def uri() -> str:
    return f"memory://transactions/{next(_names)}"


def commit_of(log: DeltaLog, version: int) -> Commit:
    return read_commit(log.store, log.table, version)


def info_of(log: DeltaLog, version: int) -> CommitInfo:
    info = commit_of(log, version).info
    assert info is not None
    return info


def kinds_of(log: DeltaLog, version: int) -> list[str]:
    lines = log.store.read(f"{log.table}/_delta_log/{version:020d}.json")
    return [line.split('"')[1] for line in lines]


def append(log: DeltaLog, *names: str, **partition: Any) -> int:
    return log.start_transaction().commit([add_file(n, **partition) for n in names], APPEND)


# What a commit looks like ------------------------------------------------------------------


def test_a_new_table_starts_with_its_protocol_and_metadata(uri: str) -> None:
    log = new_table(uri)
    assert kinds_of(log, 0) == ["commitInfo", "protocol", "metaData"]
    info = info_of(log, 0)
    assert info.read_version is None
    assert info.operation == "CREATE TABLE"


def test_a_new_table_starts_at_read_version_minus_one(uri: str) -> None:
    txn = DeltaLog.for_table(uri).start_transaction()
    assert txn.read_version == -1
    assert txn.snapshot is None
    assert txn.filter_files() == []
    assert txn.txn_version("any") == -1


def test_a_first_commit_without_metadata_is_refused(uri: str) -> None:
    log = DeltaLog.for_table(uri)
    with pytest.raises(DeltaAnalysisError, match="DELTA_METADATA_ABSENT"):
        log.start_transaction().commit([add_file("a")], APPEND)
    assert not log.table_exists()


def test_an_append_records_what_it_was(uri: str) -> None:
    clock = ManualClock()
    log = new_table(uri, clock=clock, conf={"spark.databricks.delta.commitInfo.userMetadata": "n"})
    operation = Operation.write("Append", metrics={"numFiles": 1})
    txn = log.start_transaction()
    assert txn.commit([add_file("a")], operation) == 1
    info = info_of(log, 1)
    assert info.timestamp == clock.now_ms()
    assert info.read_version == 0
    assert info.isolation_level == "Serializable"
    assert info.is_blind_append is True
    assert info.data_change is True
    assert info.operation_parameters == {"mode": "Append", "partitionBy": "[]"}
    assert info.operation_metrics == {"numFiles": "1"}
    assert info.user_metadata == "n"
    assert info.txn_id == txn.txn_id
    assert (info.engine_info or "").startswith("lakelog/")


def test_metadata_comes_before_protocol_in_a_later_commit(uri: str) -> None:
    log = new_table(uri)
    txn = log.start_transaction()
    configuration = {"delta.feature.vacuumProtocolCheck": "supported"}
    txn.update_metadata(Metadata(id="test", schema_string=ID_SCHEMA, configuration=configuration))
    txn.commit([add_file("a")], APPEND)
    assert kinds_of(log, 1) == ["commitInfo", "metaData", "protocol", "add"]
    assert log.update().metadata.configuration == {}
    assert "vacuumProtocolCheck" in (log.snapshot.protocol.writer_features or ())


def test_an_appended_file_is_in_the_next_snapshot_and_was_not_read_back(uri: str) -> None:
    log = new_table(uri)
    store = FaultyLogStore(log.store)
    log = DeltaLog(log.table, store, log.conf, log.clock)
    log.update()
    store.calls.clear()
    append(log, "a")
    assert [f.path for f in log.snapshot.files()] == ["a"]
    # At the start a probe for a newer version and, on near storage, a look at the known one; then
    # one conditional create.
    assert [operation for operation, _ in store.calls] == ["read", "read", "write"]


def test_a_snapshot_after_every_kind_of_action_equals_what_the_log_says(uri: str) -> None:
    log = new_table(uri, properties={"delta.feature.domainMetadata": "supported"})
    append(log, "a", "b")
    txn = log.start_transaction()
    (a,) = txn.filter_files()[:1]
    domain = DomainMetadata(domain="d", configuration="{}", removed=False)
    app = SetTransaction(app_id="etl", version=3, last_updated=1)
    txn.commit([a.remove(5), domain, app], DELETE)
    fresh = DeltaLog.for_table(uri).snapshot
    known = log.snapshot
    assert known.version == fresh.version == 2
    assert known.file_table.equals(fresh.file_table)
    assert known.tombstones.equals(fresh.tombstones)
    assert dict(known.transactions) == dict(fresh.transactions) == {"etl": 3}
    assert known.domain_metadata == fresh.domain_metadata


# Refusals ----------------------------------------------------------------------------------


def test_a_transaction_commits_once(uri: str) -> None:
    log = new_table(uri)
    txn = log.start_transaction()
    txn.commit([add_file("a")], APPEND)
    with pytest.raises(DeltaAnalysisError, match="already committed"):
        txn.commit([add_file("b")], APPEND)


def test_metadata_changes_at_most_once_and_not_after_data(uri: str) -> None:
    log = new_table(uri)
    metadata = Metadata(id="test", schema_string=ID_SCHEMA)
    txn = log.start_transaction()
    txn.update_metadata(metadata)
    with pytest.raises(DeltaAnalysisError, match="more than once"):
        txn.update_metadata(metadata)
    with pytest.raises(DeltaAnalysisError, match="more than once"):
        txn.commit([metadata], APPEND)
    late = log.start_transaction()
    late.mark_written()
    assert late.has_written
    with pytest.raises(DeltaAnalysisError, match="already written data"):
        late.update_metadata(metadata)


def test_two_protocols_in_one_commit_are_refused(uri: str) -> None:
    protocol = Protocol(min_reader_version=1, min_writer_version=2)
    with pytest.raises(DeltaAnalysisError, match="protocol more than once"):
        new_table(uri).start_transaction().commit([protocol, protocol], APPEND)


def vector(where: str) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor(
        storage_type="i", path_or_inline_dv=where, size_in_bytes=1, cardinality=1
    )


@pytest.mark.parametrize(
    ("actions", "match"),
    [
        ([add_file("a"), add_file("a")], "DELTA_DUPLICATE_ACTIONS_FOUND"),
        ([RemoveFile(path="a"), RemoveFile(path="a")], "DELTA_DUPLICATE_ACTIONS_FOUND"),
        ([add_file("a"), RemoveFile(path="a")], "DELTA_DUPLICATE_ACTIONS_FOUND"),
        ([add_file("a", wrong="1")], "DELTA_INVALID_PARTITIONING_SCHEMA"),
        (
            [SetTransaction(app_id="e", version=1), SetTransaction(app_id="e", version=2)],
            "two versions of the application 'e'",
        ),
    ],
)
def test_actions_that_contradict_each_other_are_refused_before_anything_is_written(
    uri: str, actions: list[Any], match: str
) -> None:
    log = new_table(uri)
    with pytest.raises(DeltaAnalysisError, match=match):
        log.start_transaction().commit(actions, APPEND)
    assert log.update().version == 0


def test_the_same_progress_twice_is_written_once(uri: str) -> None:
    log = new_table(uri)
    same = SetTransaction(app_id="e", version=1)
    log.start_transaction().commit([same, add_file("a"), same], APPEND)
    assert kinds_of(log, 1) == ["commitInfo", "txn", "add"]


def test_a_deletion_vector_needs_its_feature(uri: str) -> None:
    log = new_table(uri)
    add = AddFile(
        path="a",
        partition_values={},
        size=1,
        modification_time=1,
        data_change=True,
        deletion_vector=vector("x"),
    )
    with pytest.raises(UnsupportedFeatureError, match="deletionVectors"):
        log.start_transaction().commit([add], APPEND)


def test_domain_metadata_needs_its_feature_and_one_action_a_domain(uri: str) -> None:
    domain = DomainMetadata(domain="d", configuration="", removed=False)
    plain = new_table(uri)
    with pytest.raises(UnsupportedFeatureError, match="domainMetadata"):
        plain.start_transaction().commit([domain], APPEND)
    able = new_table(uri + "-able", properties={"delta.feature.domainMetadata": "supported"})
    with pytest.raises(DeltaAnalysisError, match="DUPLICATE_DOMAIN"):
        able.start_transaction().commit([domain, domain], APPEND)
    assert able.start_transaction().commit([domain], APPEND) == 1


def test_an_append_only_table_loses_no_rows_but_may_be_compacted(uri: str) -> None:
    log = new_table(uri, properties={"delta.appendOnly": "true"})
    append(log, "a")
    txn = log.start_transaction()
    with pytest.raises(AppendOnlyError, match=r"delta\.appendOnly"):
        txn.assert_removable()
    with pytest.raises(AppendOnlyError):
        txn.commit([RemoveFile(path="a", data_change=True)], DELETE)
    compaction: list[Action] = [
        RemoveFile(path="a", data_change=False),
        add_file("b", data_change=False),
    ]
    assert log.start_transaction().commit(compaction, Operation(name="OPTIMIZE")) == 2


def test_partition_columns_change_only_with_an_operation_that_may(uri: str) -> None:
    log = new_table(uri, schema=schema_json(a="long", b="long"))
    changed = Metadata(
        id="test", schema_string=schema_json(a="long", b="long"), partition_columns=["b"]
    )
    with pytest.raises(DeltaAnalysisError, match="PARTITION_COLUMN_CHANGE"):
        log.start_transaction().commit([changed], APPEND)
    overwrite = Operation.write("Overwrite", overwrite_schema=True)
    assert log.start_transaction().commit([changed], overwrite) == 1


@pytest.mark.parametrize(
    ("configuration", "schema", "match"),
    [
        ({"delta.appendOnly": "perhaps"}, ID_SCHEMA, "appendOnly"),
        ({"delta.apendOnly": "true"}, ID_SCHEMA, r"Did you mean delta\.appendOnly"),
        ({}, schema_json(a="long", A="long"), "(?i)duplicate"),
        ({}, "{", "schema"),
    ],
)
def test_bad_metadata_is_refused_for_new_and_old_tables(
    uri: str, configuration: dict[str, str], schema: str, match: str
) -> None:
    bad = Metadata(id="test", schema_string=schema, configuration=configuration)
    with pytest.raises(DeltaAnalysisError, match=match):
        DeltaLog.for_table(uri).start_transaction().update_metadata(bad)
    with pytest.raises(DeltaAnalysisError, match=match):
        new_table(uri).start_transaction().update_metadata(bad)


def test_a_foreign_property_of_the_table_does_not_stop_a_change_beside_it(uri: str) -> None:
    lenient = {"spark.databricks.delta.allowArbitraryProperties.enabled": "true"}
    new_table(uri, properties={"delta.fromTheFuture": "1"}, conf=lenient)
    log = DeltaLog.for_table(uri)
    txn = log.start_transaction()
    properties = {**txn.metadata.configuration, "delta.appendOnly": "true"}
    txn.update_metadata(Metadata(id="test", schema_string=ID_SCHEMA, configuration=properties))
    txn.commit([], Operation(name="SET TBLPROPERTIES"))
    assert log.update().metadata.configuration == properties


CHECKS = "spark.databricks.delta.commitValidation.consistentDataChange.mode"


def test_mixed_data_change_is_told_refused_or_let_by(
    uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    new_table(uri)
    mixed = [add_file("a"), add_file("b", data_change=False)]
    with pytest.raises(DeltaAnalysisError, match="mixes"):
        DeltaLog.for_table(uri, {CHECKS: "fatal"}).start_transaction().commit(mixed, APPEND)
    with caplog.at_level(logging.WARNING, "lakelog"):
        DeltaLog.for_table(uri, {CHECKS: "off"}).start_transaction().commit(mixed, APPEND)
        assert caplog.text == ""
        other = [add_file("c"), add_file("d", data_change=False)]
        DeltaLog.for_table(uri).start_transaction().commit(other, APPEND)
    assert "mixes" in caplog.text


def test_files_without_bytes_are_told_at_most_twice_or_refused(
    uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = new_table(uri)
    empty = [
        AddFile(path=p, partition_values={}, size=0, modification_time=1, data_change=True)
        for p in "abc"
    ]
    with caplog.at_level(logging.WARNING, "lakelog"):
        log.start_transaction().commit(empty, APPEND)
    assert caplog.text.count("no bytes") == 2
    strict = DeltaLog.for_table(uri, {"spark.databricks.delta.emptyFileCheck.throwEnabled": "true"})
    with pytest.raises(DeltaAnalysisError, match="no bytes"):
        strict.start_transaction().commit(empty, APPEND)


# Reading and conflicting -------------------------------------------------------------------


def started(log: DeltaLog) -> tuple[OptimisticTransaction, DeltaLog]:
    """A transaction, and another writer's log to get ahead of it."""
    return log.start_transaction(), DeltaLog.for_table(log.table)


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
    replaced = txn.files_in_same_partitions(new)
    assert sorted(f.path for f in replaced) == ["a", "b", "n"]
    append(other, "d", p="2")
    assert txn.commit([*new, *(f.remove(1) for f in replaced)], APPEND) == 6
    again, other = started(log)
    replaced = again.files_in_same_partitions([add_file("z", p="1")])
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
        found = txn.files_in_same_partitions([add_file("x", p=p, q=q)])
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


# Empty commits -----------------------------------------------------------------------------


def test_a_commit_that_says_nothing_is_made_only_by_commit(uri: str) -> None:
    log = new_table(uri)
    assert log.start_transaction().commit_if_needed([], APPEND) is None
    assert log.start_transaction().commit([], APPEND) == 1
    assert log.start_transaction().commit_if_needed([add_file("a")], APPEND) == 2
    keep = {"spark.databricks.delta.skipRecordingEmptyCommits": "false"}
    keeping = DeltaLog.for_table(uri, keep)
    assert keeping.start_transaction().commit_if_needed([], APPEND) == 3


# Hooks -------------------------------------------------------------------------------------


def test_hooks_run_in_order_once_each_and_a_failing_one_costs_nothing(
    uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = new_table(uri)
    ran: list[tuple[str, int]] = []

    def first(committed: CommittedTransaction) -> None:
        ran.append(("first", committed.version))
        raise RuntimeError("the hook broke")

    def second(committed: CommittedTransaction) -> None:
        ran.append(("second", committed.version))

    txn = log.start_transaction()
    for hook in (first, second, first):
        txn.register_post_commit_hook(hook)
    with caplog.at_level(logging.WARNING, "lakelog"):
        assert txn.commit([add_file("a")], APPEND) == 1
    assert ran == [("first", 1), ("second", 1)]
    assert "version 1 is committed, but its post-commit hook" in caplog.text


def test_a_checkpoint_is_written_at_multiples_of_the_interval(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int | None] = []
    monkeypatch.setattr(DeltaLog, "checkpoint", lambda _log, version=None: written.append(version))
    log = new_table(uri, properties={"delta.checkpointInterval": "3"})
    for number in range(7):
        append(log, f"f{number}")
    assert written == [3, 6]


def test_a_checkpoint_that_fails_does_not_fail_the_commit(
    uri: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_log: DeltaLog, version: int | None = None) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(DeltaLog, "checkpoint", broken)
    log = new_table(uri, properties={"delta.checkpointInterval": "1"})
    with caplog.at_level(logging.WARNING, "lakelog"):
        assert append(log, "a") == 1
    assert "no space left" in caplog.text
