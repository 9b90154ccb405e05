from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.core.actions.operation import Operation
from lakelog.core.alter.property_changes import set_properties, unset_properties
from lakelog.core.errors import (
    DeltaAnalysisError,
    MetadataChangedException,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from support.commits import info_of
from support.tables import new_table

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.core.delta_log import DeltaLog


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    return new_table(str(tmp_path / "t"), properties={"owner": "me"})


def test_a_property_is_set_and_taken_back_in_delta_s_words(log: DeltaLog) -> None:
    assert set_properties(log.table, {"DELTA.appendonly": "true", "note": "x"}) == 1
    assert log.update().metadata.configuration == {
        "owner": "me",
        "delta.appendOnly": "true",
        "note": "x",
    }
    info = info_of(log, 1)
    assert info.operation == "SET TBLPROPERTIES"
    assert info.operation_parameters == {"properties": '{"delta.appendOnly":"true","note":"x"}'}
    assert unset_properties(log.table, ["Delta.appendOnly", "gone"], if_exists=True) == 2
    assert log.update().metadata.configuration == {"owner": "me", "note": "x"}
    info = info_of(log, 2)
    assert info.operation == "UNSET TBLPROPERTIES"
    assert info.operation_parameters == {
        "properties": '["Delta.appendOnly","gone"]',
        "ifExists": True,
    }


def test_a_feature_is_switched_on_by_its_name_and_by_its_property(log: DeltaLog) -> None:
    assert set_properties(log.table, {"delta.feature.domainMetadata": "supported"}) == 1
    assert log.update().protocol.writer_features == ["appendOnly", "domainMetadata", "invariants"]
    assert log.snapshot.metadata.configuration == {"owner": "me"}
    assert set_properties(log.table, {"delta.checkpointPolicy": "v2"}) == 2
    assert log.update().protocol.reader_features == ["v2Checkpoint"]


def test_a_comment_is_the_description(log: DeltaLog) -> None:
    version = set_properties(log, {"Comment": "rows of all days", "mine": "1"})
    metadata = log.update().metadata
    assert metadata.description == "rows of all days"
    assert (metadata.configuration["mine"], "Comment" in metadata.configuration) == ("1", False)
    assert "rows of all days" in log.history(1)[0].parameters["properties"]
    assert set_properties(log, {"comment": "rows of all days"}) == version


def test_what_changes_nothing_is_not_committed(log: DeltaLog) -> None:
    assert set_properties(log.table, {"owner": "me", "delta.minWriterVersion": "2"}) == 0
    assert unset_properties(log.table, ["nothing"], if_exists=True) == 0
    assert log.update().version == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delta.apendOnly": "true"}, "DELTA_UNKNOWN_CONFIGURATION"),
        ({"delta.appendOnly": "perhaps"}, "true or false"),
        ({"delta.feature.nope": "supported"}, "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"),
        ({"delta.constraints.pos": "id > 0"}, "DELTA_ADD_CONSTRAINTS"),
        ({"delta.dataSkippingStatsColumns": "nope"}, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    ],
)
def test_a_property_that_the_table_can_t_have_is_refused(
    log: DeltaLog, given: dict[str, str], message: str
) -> None:
    with pytest.raises(DeltaAnalysisError, match=message):
        set_properties(log.table, given)
    assert log.update().version == 0


def test_a_feature_that_we_could_not_write_is_refused(log: DeltaLog) -> None:
    with pytest.raises(UnsupportedFeatureError, match="geospatial"):
        set_properties(log.table, {"delta.feature.geospatial": "supported"})


@pytest.mark.parametrize("name", ["delta.feature.domainMetadata", "delta.minReaderVersion"])
def test_what_was_said_to_the_protocol_is_not_taken_back(log: DeltaLog, name: str) -> None:
    with pytest.raises(DeltaAnalysisError, match=r"not stored as a property"):
        unset_properties(log.table, [name], if_exists=True)


def test_a_property_that_is_not_set_is_named(log: DeltaLog) -> None:
    with pytest.raises(DeltaAnalysisError, match=r"UNSET_NON_EXISTENT_PROPERTY.*nope.*owner"):
        unset_properties(log.table, ["nope"])


def test_where_there_is_no_table_there_are_no_properties(tmp_path: Path) -> None:
    for call in (
        lambda: set_properties(tmp_path / "no", {"a": "b"}),
        lambda: unset_properties(tmp_path / "no", ["a"]),
    ):
        with pytest.raises(TableNotFoundError):
            call()


def test_defaults_of_the_session_are_for_new_tables_alone(log: DeltaLog) -> None:
    conf = {"spark.databricks.delta.properties.defaults.appendOnly": "true"}
    set_properties(log.table, {"note": "x"}, conf=conf)
    assert log.update().metadata.configuration == {"owner": "me", "note": "x"}
    other = new_table(log.table + "-new", conf=conf)
    assert other.snapshot.metadata.configuration == {"delta.appendOnly": "true"}


def test_two_changes_at_once_conflict(log: DeltaLog) -> None:
    txn = log.start_transaction()
    set_properties(log.table, {"note": "x"})
    txn.update_metadata(log.snapshot.metadata)
    with pytest.raises(MetadataChangedException):
        txn.commit([], Operation("SET TBLPROPERTIES", {"properties": {}}))
