"""What a transaction leaves in the log, and what it may do once."""

from __future__ import annotations

import pytest

from lakelog.core.actions import (
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
)
from lakelog.core.actions.operation import Operation
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import (
    DeltaAnalysisError,
)
from support.commits import APPEND, DELETE, append, info_of, kinds_of, new_uri
from support.faults import FaultyLogStore
from support.manual_clock import ManualClock
from support.tables import ID_SCHEMA, add_file, new_table, schema_json


@pytest.fixture
def uri() -> str:
    return new_uri()


def test_a_new_table_starts_with_its_protocol_and_metadata(uri: str) -> None:
    log = new_table(uri)
    assert kinds_of(log, 0) == ["commitInfo", "protocol", "metaData"]
    info = info_of(log, 0)
    assert info.read_version is None
    assert info.operation == "CREATE TABLE"


def test_a_new_table_starts_at_read_version_minus_one(uri: str) -> None:
    txn = DeltaLog.for_table(uri).start_transaction()
    assert txn.reads.version == -1
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
    assert txn.delta_log.clock is clock
    assert txn.delta_log is log
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
    assert info.txn_id == txn._committer.txn_id
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
    # another look, and one conditional create.
    assert [operation for operation, _ in store.calls] == ["read", "read", "read", "write"]


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


def test_a_commit_that_says_nothing_is_made_only_by_commit(uri: str) -> None:
    log = new_table(uri)
    assert log.start_transaction().commit_if_needed([], APPEND) is None
    assert log.start_transaction().commit([], APPEND) == 1
    assert log.start_transaction().commit_if_needed([add_file("a")], APPEND) == 2
    keep = {"spark.databricks.delta.skipRecordingEmptyCommits": "false"}
    keeping = DeltaLog.for_table(uri, keep)
    assert keeping.start_transaction().commit_if_needed([], APPEND) == 3


def test_a_new_table_takes_the_protocol_that_comes_with_its_metadata(uri: str) -> None:
    metadata = Metadata(id="t", schema_string=ID_SCHEMA)
    given = Protocol(min_reader_version=1, min_writer_version=3)
    log = DeltaLog.for_table(uri)
    assert log.start_transaction().commit([metadata, given], Operation.manual()) == 0
    assert log.update().protocol == given


def test_a_new_table_takes_no_protocol_that_lacks_what_its_metadata_needs(uri: str) -> None:
    checked = {"delta.constraints.small": "id < 9"}
    metadata = Metadata(id="t", schema_string=ID_SCHEMA, configuration=checked)
    txn = DeltaLog.for_table(uri).start_transaction()
    manual = Operation.manual()
    with pytest.raises(DeltaAnalysisError, match="protocol more than once"):
        txn.commit([metadata, Protocol(min_reader_version=1, min_writer_version=2)], manual)


def test_a_dynamic_overwrite_without_rows_is_no_blind_append(uri: str) -> None:
    log = new_table(uri, schema=schema_json(id="long", p="string"), partition_by=["p"])
    txn = log.start_transaction()
    assert txn.reads.files_in_same_partitions([]) == []
    version = txn.commit([], Operation.write("Overwrite"))
    assert info_of(log, version).is_blind_append is False
