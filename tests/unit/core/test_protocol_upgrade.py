from __future__ import annotations

import json
from typing import Any

import pytest

from lakelog.core import DeltaLog
from lakelog.core.actions import Protocol
from lakelog.core.actions.operation import Operation
from lakelog.core.errors import (
    CorruptLogError,
    DeltaAnalysisError,
    ProtocolChangedException,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from support.raw_log import RawLog
from support.tables import new_table


@pytest.fixture
def log(tmp_path):
    return DeltaLog.for_table(RawLog(tmp_path / "t").create().table)


def shown(log):
    protocol = DeltaLog.for_table(log.table).snapshot.protocol
    return (
        protocol.min_reader_version,
        protocol.min_writer_version,
        protocol.reader_features,
        protocol.writer_features,
    )


@pytest.mark.parametrize(
    ("asked", "got", "words"),
    [
        ({"writer_version": 3}, (1, 3, None, None), {"delta.minWriterVersion": "3"}),
        (
            {"reader_version": 2, "writer_version": 5},
            (2, 5, None, None),
            {"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"},
        ),
        (
            {"features": ["domainMetadata"]},
            (1, 7, None, ["appendOnly", "domainMetadata", "invariants"]),
            {"delta.feature.domainMetadata": "supported"},
        ),
        (
            {"features": ["timestampNtz"]},
            (3, 7, ["timestampNtz"], ["appendOnly", "invariants", "timestampNtz"]),
            {"delta.feature.timestampNtz": "supported"},
        ),
    ],
)
def test_a_protocol_is_raised_to_what_was_asked_for(log, asked, got, words):
    assert log.upgrade_protocol(**asked) == 1
    assert shown(log) == got
    entry = log.history(1)[0]
    assert entry.operation == "SET TBLPROPERTIES"
    assert json.loads(entry.parameters["properties"]) == words


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"reader_version": 1, "writer_version": 1},
        {"reader_version": 3, "writer_version": 7},
    ],
)
def test_a_protocol_that_has_all_that_was_asked_for_is_not_committed_again(log, asked):
    assert log.upgrade_protocol(**asked) == 0
    log.upgrade_protocol(3, 7, features=["domainMetadata"])
    assert log.upgrade_protocol(3, 7, features=["domainMetadata"]) == 1
    assert log.upgrade_protocol(**asked) == 1


@pytest.mark.parametrize(
    "asked", [{"writer_version": 8}, {"reader_version": 0}, {"features": ["domainMetadatas"]}]
)
def test_a_version_or_feature_that_does_not_exist_is_refused(log, asked):
    with pytest.raises(DeltaAnalysisError):
        log.upgrade_protocol(**asked)
    assert shown(log) == (1, 2, None, None)


def test_a_feature_that_we_could_not_write_is_refused(log):
    with pytest.raises(UnsupportedFeatureError, match="geospatial"):
        log.upgrade_protocol(features=["geospatial"])
    assert shown(log) == (1, 2, None, None)


def test_where_there_is_no_table_there_is_no_protocol(tmp_path):
    with pytest.raises(TableNotFoundError):
        DeltaLog.for_table(tmp_path / "none").upgrade_protocol(1, 3)


def test_two_changes_of_the_protocol_at_once_conflict(log):
    txn = log.start_transaction()
    other = DeltaLog.for_table(log.table)
    other.upgrade_protocol(writer_version=3)
    wanted = other.snapshot.protocol
    with pytest.raises(ProtocolChangedException):
        txn.commit([wanted], Operation("UPGRADE PROTOCOL"))


def test_reading_and_writing_are_checked_by_name(tmp_path):
    log = new_table(str(tmp_path / "checked"))
    log.protocol_read()
    log.protocol_write()
    lists: dict[str, Any] = {"min_reader_version": 3, "min_writer_version": 7}
    unread = Protocol(**lists, reader_features=["geospatial"], writer_features=["geospatial"])
    with pytest.raises(UnsupportedFeatureError, match=r"FEATURES_FOR_READ.*geospatial"):
        log.protocol_read(unread)
    unwritten = Protocol(**lists, reader_features=[], writer_features=["collations-preview"])
    log.protocol_read(unwritten)
    with pytest.raises(UnsupportedFeatureError, match=r"FEATURES_FOR_WRITE.*collations-preview"):
        log.protocol_write(unwritten)
    with pytest.raises(CorruptLogError, match="not valid"):
        log.protocol_read(Protocol(min_reader_version=3, min_writer_version=2))
    missing = DeltaLog.for_table(str(tmp_path / "missing"))
    for check in (missing.protocol_read, missing.protocol_write):
        with pytest.raises(TableNotFoundError):
            check()
