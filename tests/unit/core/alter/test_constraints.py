from __future__ import annotations

import json

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.alter.check_constraints import add_constraint, drop_constraint
from lakelog.core.alter.property_changes import set_properties, unset_properties
from lakelog.core.errors import (
    ConcurrentAppendException,
    ConstraintViolationError,
    DeltaAnalysisError,
    TableNotFoundError,
)

ROWS = pa.table({"id": pa.array([1, 2, None], pa.int64()), "name": ["a", "b", "c"]})


@pytest.fixture
def uri(tmp_path):
    uri = str(tmp_path / "t")
    write_arrow(uri, ROWS, mode="append")
    return uri


def snapshot(uri):
    return DeltaLog.for_table(uri).snapshot


def last(uri):
    """The newest entry of the history: name and parameters."""
    entry = DeltaLog.for_table(uri).history(1)[0]
    return entry.operation, entry.parameters


def test_properties_are_set_in_their_own_spelling(uri):
    version = set_properties(uri, {"DELTA.APPENDONLY": "true", "mine": "x"})

    assert version == 1
    assert snapshot(uri).metadata.configuration == {"delta.appendOnly": "true", "mine": "x"}
    name, parameters = last(uri)
    assert name == "SET TBLPROPERTIES"
    assert json.loads(parameters["properties"]) == {"delta.appendOnly": "true", "mine": "x"}


def test_a_property_brings_the_feature_that_it_needs(uri):
    set_properties(uri, {"delta.columnMapping.mode": "name"})

    assert "columnMapping" in (snapshot(uri).protocol.writer_features or ())
    set_properties(uri, {"delta.feature.v2Checkpoint": "supported"})
    assert "v2Checkpoint" in (snapshot(uri).protocol.writer_features or ())
    assert not any("feature" in key for key in snapshot(uri).metadata.configuration)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"delta.nothing": "1"}, "DELTA_UNKNOWN_CONFIGURATION"),
        ({"delta.appendOnly": "perhaps"}, "true or false"),
        ({"delta.constraints.c": "id > 0"}, "DELTA_ADD_CONSTRAINTS"),
        ({"delta.columnMapping.maxColumnId": "9"}, "managed by the table"),
        ({"delta.columnMapping.mode": "id"}, "COLUMN_MAPPING_MODE_CHANGE"),
        ({"delta.feature.clustering": "supported"}, "CLUSTERING_TABLE_FEATURE_NOT_ALLOWED"),
    ],
    ids=range(6),
)
def test_properties_that_cannot_be_set_are_refused(uri, properties, message):
    with pytest.raises(DeltaAnalysisError, match=message):
        set_properties(uri, properties)
    assert snapshot(uri).version == 0


def test_properties_are_taken_away(uri):
    set_properties(uri, {"delta.appendOnly": "true", "mine": "x", "other": "y"})

    unset_properties(uri, ["delta.appendonly", "mine"])

    assert snapshot(uri).metadata.configuration == {"other": "y"}
    assert last(uri)[1] == {"properties": '["delta.appendonly","mine"]', "ifExists": True}
    with pytest.raises(DeltaAnalysisError, match="DELTA_UNSET_NON_EXISTENT_PROPERTY"):
        unset_properties(uri, ["mine"])
    unset_properties(uri, ["mine"], if_exists=True)
    assert snapshot(uri).metadata.configuration == {"other": "y"}


def test_mapping_is_not_taken_away_with_its_property(uri):
    set_properties(uri, {"delta.columnMapping.mode": "name"})
    with pytest.raises(DeltaAnalysisError, match="COLUMN_MAPPING_MODE_CHANGE"):
        unset_properties(uri, ["delta.columnMapping.mode"])
    with pytest.raises(DeltaAnalysisError, match="managed by the table"):
        unset_properties(uri, ["delta.columnMapping.maxColumnId"])


def test_a_constraint_is_added_once_every_row_keeps_it(uri):
    add_constraint(uri, "Named", "name IN ('a', 'b', 'c')")

    assert snapshot(uri).metadata.configuration == {
        "delta.constraints.named": "name IN ('a', 'b', 'c')"
    }
    assert last(uri) == ("ADD CONSTRAINT", {"name": "Named", "expr": "name IN ('a', 'b', 'c')"})
    with pytest.raises(ConstraintViolationError):
        write_arrow(uri, pa.table({"name": ["d"]}), mode="append")
    with pytest.raises(DeltaAnalysisError, match="DELTA_CONSTRAINT_ALREADY_EXISTS"):
        add_constraint(uri, "NAMED", "true")


@pytest.mark.parametrize(
    ("condition", "rows", "shown"),
    [
        ("id > 1", 2, "{'id': 1}"),
        ("id >= 1", 1, "it is null for these rows"),
        ("id > 1 AND name <> 'x'", 2, "'name': 'a'"),
    ],
)
def test_rows_that_break_a_new_constraint_are_reported(uri, condition, rows, shown):
    with pytest.raises(ConstraintViolationError, match=f"{rows} rows in") as caught:
        add_constraint(uri, "c", condition)
    assert "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION" in str(caught.value)
    assert shown in str(caught.value)
    assert snapshot(uri).version == 0


@pytest.mark.parametrize(
    ("name", "condition", "message"),
    [
        ("c", "nothing > 1", "nothing"),
        ("c", "soundex(name) = 1", "without Spark"),
        (" ", "id > 0", "DELTA_INVALID_CONSTRAINT_NAME"),
    ],
)
def test_constraints_that_cannot_be_are_refused(uri, name, condition, message):
    with pytest.raises(DeltaAnalysisError, match=message):
        add_constraint(uri, name, condition)


def test_rows_that_came_in_meanwhile_were_not_checked(uri, monkeypatch):
    from lakelog.core.alter import check_constraints as alter_constraints

    check = alter_constraints._check_every_row

    def slow(*args):
        check(*args)
        write_arrow(uri, pa.table({"name": ["late"]}), mode="append")

    monkeypatch.setattr(alter_constraints, "_check_every_row", slow)
    with pytest.raises(ConcurrentAppendException):
        add_constraint(uri, "c", "name <> 'late'")


def test_a_constraint_is_dropped(uri):
    add_constraint(uri, "c", "name <> 'x'")

    drop_constraint(uri, "C")

    assert snapshot(uri).metadata.configuration == {}
    assert last(uri)[1] == {"name": "C", "expr": "name <> 'x'", "existed": "true"}
    with pytest.raises(DeltaAnalysisError, match="DELTA_CONSTRAINT_DOES_NOT_EXIST"):
        drop_constraint(uri, "c")
    drop_constraint(uri, "c", if_exists=True)
    assert last(uri)[1] == {"name": "c", "existed": "false"}


def test_a_table_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(TableNotFoundError):
        set_properties(str(tmp_path / "none"), {"a": "b"})
