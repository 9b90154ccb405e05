from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lakelog.core.actions.checked_values import check_operation
from lakelog.core.actions.operation import Operation
from lakelog.core.actions.operation_kinds import KINDS


def test_a_write_records_its_columns_as_json_text_and_only_the_options_that_are_set() -> None:
    operation = Operation.write("Append", ["a", "b"], merge_schema=True)
    assert operation.json_parameters() == {
        "mode": "Append",
        "partitionBy": '["a","b"]',
        "canMergeSchema": True,
    }


def test_metrics_become_text() -> None:
    operation = Operation.write("Append", metrics={"numFiles": 1, "numOutputRows": "20"})
    assert operation.json_metrics() == {"numFiles": "1", "numOutputRows": "20"}


@pytest.mark.parametrize("number", [3, -1, 2**64, 1.5, np.int64(3), np.uint8(3), np.float64(2.5)])
def test_a_metric_may_be_any_number(number: Any) -> None:
    operation = Operation(name="MINE", metrics={"rows": number})
    check_operation(operation)
    assert operation.json_metrics() == {"rows": str(number)}


def test_creating_a_table_is_described_as_delta_does() -> None:
    assert Operation.create_table(["d"], properties={"k": "v"}).json_parameters() == {
        "partitionBy": '["d"]',
        "clusterBy": "[]",
        "description": None,
        "isManaged": "false",
        "properties": '{"k":"v"}',
    }


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Operation.write("Append"), True),
        (Operation(name="CREATE OR REPLACE TABLE AS SELECT"), True),
        (Operation(name="OPTIMIZE"), False),
        (Operation.manual(), False),
    ],
)
def test_the_kinds_that_change_rows_are_known(operation: Operation, expected: bool) -> None:
    assert operation.changes_data is expected


def saved_over(**parameters: bool) -> Operation:
    return Operation("REPLACE TABLE AS SELECT", {"isV1SaveAsTableOverwrite": True, **parameters})


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Operation.write("Overwrite", overwrite_schema=True), True),
        (Operation.write("Overwrite"), False),
        (Operation.write("Append", overwrite_schema=True), False),
        (Operation(name="REPLACE TABLE"), True),
        (saved_over(), False),
        (saved_over(canOverwriteSchema=True), True),
        (Operation(name="RENAME COLUMN"), True),
        (Operation.manual(), True),
        (Operation(name="DELETE"), False),
    ],
)
def test_only_some_operations_may_repartition_a_table(operation: Operation, expected: bool) -> None:
    assert operation.may_change_partitioning is expected


@pytest.mark.parametrize(
    ("operation", "parameters"),
    [
        # As delta-spark 4.4 writes them.
        (Operation("DELETE", {"predicate": ["(id = 1)"]}), {"predicate": '["(id = 1)"]'}),
        (
            Operation("UNSET TBLPROPERTIES", {"properties": ["foo"], "ifExists": True}),
            {"properties": '["foo"]', "ifExists": True},
        ),
        (
            Operation("DROP CONSTRAINT", {"name": "pos", "expr": None, "existed": "true"}),
            {"name": "pos", "existed": "true"},
        ),
        (Operation("SET TBLPROPERTIES", {"properties": '{"k":"v"}'}), {"properties": '{"k":"v"}'}),
        (Operation("My Own", {"columns": ["a"]}), {"columns": ["a"]}),
    ],
    ids=lambda each: each.name if isinstance(each, Operation) else "",
)
def test_what_delta_keeps_as_json_text_becomes_that(
    operation: Operation, parameters: dict[str, object]
) -> None:
    assert operation.json_parameters() == parameters


def test_a_metric_that_delta_s_operation_does_not_have_is_left_out() -> None:
    metrics = {"numRemovedFiles": 2, "numCopiedRows": 3, "ourOwn": 4}
    assert Operation("OPTIMIZE", metrics=metrics).json_metrics() == {"numRemovedFiles": "2"}
    assert Operation("My Own", metrics=metrics).json_metrics()["ourOwn"] == "4"


def test_every_operation_of_delta_is_known_with_its_metrics_each_once() -> None:
    assert len(KINDS) == 43
    for kind in KINDS.values():
        assert len(set(kind.metrics)) == len(kind.metrics)
    assert KINDS["UPDATE"].metrics[-1] == "numUpdatedRows"
    assert {name for name, kind in KINDS.items() if kind.changes_data} == {
        *("CLONE", "CONVERT", "DELETE", "MERGE", "RESTORE", "STREAMING UPDATE", "TRUNCATE"),
        *("UPDATE", "WRITE", "CREATE TABLE AS SELECT", "REPLACE TABLE", "CREATE OR REPLACE TABLE"),
        *("REPLACE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT"),
    }
