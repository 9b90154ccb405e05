"""What a commit may not hold: each check before anything is written."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from lakelog.core.actions import (
    Action,
    AddFile,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from lakelog.core.actions.operation import Operation
from lakelog.core.commit.commit_settings import CommitSettings
from lakelog.core.commit.file_checks import check_files
from lakelog.core.conf import DeltaConf
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import (
    AppendOnlyError,
    DeltaAnalysisError,
    UnsupportedFeatureError,
)
from lakelog.core.features.registry import FEATURES, Support
from lakelog.core.features.terms import TableTerms
from support.commits import APPEND, DELETE, append, kinds_of, new_uri, write_commit
from support.tables import ID_SCHEMA, add_file, new_table, schema_json


@pytest.fixture
def uri() -> str:
    return new_uri()


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
    late.changes.mark_written()
    with pytest.raises(DeltaAnalysisError, match="already written data"):
        late.update_metadata(metadata)


def test_two_protocols_in_one_commit_are_refused(uri: str) -> None:
    protocol = Protocol(min_reader_version=1, min_writer_version=2)
    with pytest.raises(DeltaAnalysisError, match="protocol more than once"):
        new_table(uri).start_transaction().commit([protocol, protocol], APPEND)


def test_an_upgrade_by_metadata_and_a_protocol_beside_it_are_two(uri: str) -> None:
    log = new_table(uri)
    asking = replace(
        log.snapshot.metadata, configuration={"delta.feature.domainMetadata": "supported"}
    )
    protocol = Protocol(min_reader_version=1, min_writer_version=3)
    with pytest.raises(DeltaAnalysisError, match="protocol more than once"):
        log.start_transaction().commit([asking, protocol], APPEND)
    assert log.start_transaction().commit([protocol], APPEND) == 1


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(min_reader_version=0, min_writer_version=2),
        Protocol(min_reader_version=1, min_writer_version=7),
        Protocol(min_reader_version=3, min_writer_version=2, reader_features=[]),
    ],
    ids=str,
)
def test_a_protocol_that_is_none_is_refused(uri: str, protocol: Protocol) -> None:
    log = new_table(uri)
    with pytest.raises(DeltaAnalysisError, match=f"the commit to {log.table} is not valid"):
        log.start_transaction().commit([protocol], APPEND)


def test_a_protocol_that_we_could_not_write_is_refused(uri: str) -> None:
    foreign = Protocol(min_reader_version=1, min_writer_version=7, writer_features=["collations"])
    with pytest.raises(UnsupportedFeatureError, match=r"FEATURES_FOR_WRITE.*collations"):
        new_table(uri).start_transaction().commit([foreign], APPEND)
    future = Protocol(min_reader_version=1, min_writer_version=8, writer_features=[])
    with pytest.raises(UnsupportedFeatureError, match="DELTA_INVALID_PROTOCOL_VERSION"):
        new_table(uri + "-2").start_transaction().commit([future], APPEND)


def test_only_dropping_a_feature_may_take_one_from_the_table(uri: str) -> None:
    log = new_table(uri, properties={"delta.feature.domainMetadata": "supported"})
    without = Protocol(min_reader_version=1, min_writer_version=2)
    with pytest.raises(DeltaAnalysisError, match=r"INVALID_PROTOCOL_DOWNGRADE.*domainMetadata"):
        log.start_transaction().commit([without], APPEND)
    assert log.start_transaction().commit([without], Operation(name="DROP FEATURE")) == 1


def switched_on(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let features be written, whatever this version can: the checks before must hold as well."""
    for name in names:
        monkeypatch.setitem(FEATURES, name, FEATURES[name]._replace(write=Support.YES))


def test_names_of_columns_and_files_do_not_change_together_under_a_feed(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    switched_on(monkeypatch, "columnMapping", "changeDataFeed")
    log = new_table(uri, properties={"delta.enableChangeDataFeed": "true"})
    properties = {**log.snapshot.metadata.configuration, "delta.columnMapping.mode": "name"}
    mapped = replace(log.snapshot.metadata, configuration=properties)
    with pytest.raises(DeltaAnalysisError, match="BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION"):
        log.start_transaction().commit([mapped, add_file("a")], APPEND)
    assert log.start_transaction().commit([mapped], Operation(name="SET TBLPROPERTIES")) == 1


def test_a_table_that_moved_takes_no_commit(uri: str) -> None:
    name = "delta.redirectWriterOnly-preview"
    log = new_table(uri)
    text = '{"type":"PathBasedRedirect","state":"ENABLE-REDIRECT-IN-PROGRESS","spec":{}}'
    moved = replace(log.snapshot.metadata, configuration={name: text})
    write_commit(log, 1, moved)
    with pytest.raises(DeltaAnalysisError, match="COMMIT_INTERMEDIATE_REDIRECT_STATE"):
        DeltaLog.for_table(uri).start_transaction().commit([add_file("a")], APPEND)


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
            "two versions for the application 'e'",
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
        txn.changes.assert_removable()
    with pytest.raises(AppendOnlyError):
        txn.commit([RemoveFile(path="a", data_change=True)], DELETE)
    compaction: list[Action] = [
        RemoveFile(path="a", data_change=False),
        add_file("b", data_change=False),
    ]
    assert log.start_transaction().commit(compaction, Operation(name="OPTIMIZE")) == 2


PARTITIONED = schema_json(a="long", b="long")


@pytest.mark.parametrize(
    ("mode", "warned", "refused"),
    [("true", False, True), ("log-only", True, False), ("false", False, False)],
)
def test_a_change_of_partition_columns_is_refused_told_or_let_by(
    uri: str, mode: str, warned: bool, refused: bool, caplog: pytest.LogCaptureFixture
) -> None:
    new_table(uri, schema=PARTITIONED)
    log = DeltaLog.for_table(uri, {"spark.databricks.delta.partitionColumnChangeCheck": mode})
    changed = replace(log.snapshot.metadata, partition_columns=["b"])
    txn = log.start_transaction()
    with caplog.at_level(logging.WARNING, "lakelog"):
        if refused:
            with pytest.raises(DeltaAnalysisError, match="PARTITION_COLUMN_CHANGE"):
                txn.commit([changed], APPEND)
        else:
            assert txn.commit([changed], APPEND) == 1
    assert ("PARTITION_COLUMN_CHANGE" in caplog.text) is warned


@pytest.mark.parametrize(
    "key", ["partitionColumnChangeCheck", "commitValidation.consistentDataChange.mode"]
)
def test_a_mode_that_there_is_not_is_refused_with_its_key(uri: str, key: str) -> None:
    new_table(uri, schema=PARTITIONED)
    log = DeltaLog.for_table(uri, {f"spark.databricks.delta.{key}": "perhaps"})
    changed = replace(log.snapshot.metadata, partition_columns=["b"])
    actions: list[Action] = [add_file("x", b="1")]
    if key.startswith("partition"):
        actions.append(changed)
    else:
        actions = [add_file("x")]
    with pytest.raises(DeltaAnalysisError, match=f"spark.databricks.delta.{key} must be"):
        log.start_transaction().commit(actions, APPEND)


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


def test_mixed_data_change_is_reported_refused_or_let_by(
    uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    new_table(uri)
    mixed = [add_file("a"), add_file("b", data_change=False)]
    with pytest.raises(DeltaAnalysisError, match="mixes"):
        DeltaLog.for_table(uri, {CHECKS: "fatal"}).start_transaction().commit(mixed, APPEND)
    with caplog.at_level(logging.WARNING, "lakelog"):
        DeltaLog.for_table(uri, {CHECKS: "off"}).start_transaction().commit(mixed, APPEND)
        assert "mixes" not in caplog.text
        other = [add_file("c"), add_file("d", data_change=False)]
        DeltaLog.for_table(uri).start_transaction().commit(other, APPEND)
    assert "mixes" in caplog.text


def test_files_without_bytes_are_reported_at_most_twice_or_refused(
    uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = new_table(uri)
    empty = [
        AddFile(path=p, partition_values={}, size=0, modification_time=1, data_change=True)
        for p in "abc"
    ]
    with caplog.at_level(logging.WARNING, "lakelog"):
        log.start_transaction().commit(empty, APPEND)
    assert caplog.text.count("is empty") == 2
    strict = DeltaLog.for_table(uri, {"spark.databricks.delta.emptyFileCheck.throwEnabled": "true"})
    with pytest.raises(DeltaAnalysisError, match="is empty"):
        strict.start_transaction().commit(empty, APPEND)


def test_null_in_a_partition_column_that_takes_none_is_reported_or_refused(
    uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    schema = schema_json(id="long", day="date").replace(
        '"type": "date", "nullable": true', '"type": "date", "nullable": false'
    )
    log = new_table(uri, schema=schema, partition_by=["day"])
    nulls = [add_file(name, day=None) for name in "abc"]
    with caplog.at_level(logging.WARNING, "lakelog"):
        log.start_transaction().commit(nulls, APPEND)
    assert caplog.text.count("null for the NOT NULL column day") == 2
    key = "spark.databricks.delta.nullPartitionCheck.throwEnabled"
    strict = DeltaLog.for_table(uri, {key: "true"})
    with pytest.raises(DeltaAnalysisError, match="file d has a null for the NOT NULL column day"):
        strict.start_transaction().commit([add_file("d", day=None)], APPEND)


@pytest.mark.parametrize(
    ("key", "actions", "code"),
    [
        ("duplicateActionCheck", [add_file("a"), add_file("a")], "DUPLICATE_ACTIONS"),
        ("commitValidation", [add_file("a", p="1")], "INVALID_PARTITIONING_SCHEMA"),
    ],
)
def test_a_check_may_be_switched_off(uri: str, key: str, actions: list[Any], code: str) -> None:
    new_table(uri)
    with pytest.raises(DeltaAnalysisError, match=code):
        DeltaLog.for_table(uri).start_transaction().commit(actions, APPEND)
    off = DeltaLog.for_table(uri, {f"spark.databricks.delta.{key}.enabled": "false"})
    assert off.start_transaction().commit(actions, APPEND) == 1


def test_a_file_may_replace_itself_with_another_deletion_vector_and_not_with_the_same() -> None:
    metadata = Metadata(id="t", schema_string=ID_SCHEMA)
    terms = TableTerms(metadata, Protocol(min_reader_version=1, min_writer_version=2))
    settings = CommitSettings(DeltaConf())
    old = RemoveFile(path="a", deletion_vector=vector("x"))
    check_files([add_file("a"), old], terms, settings, "/t", operation=APPEND)
    same = RemoveFile(path="a", deletion_vector=None)
    with pytest.raises(DeltaAnalysisError, match="conflicts with 'AddFile'"):
        check_files([add_file("a"), same], terms, settings, "/t", operation=APPEND)
