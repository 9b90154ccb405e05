from __future__ import annotations

import pytest

from lakelog.core.operations import Operation


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


def test_creating_a_table_is_described_as_delta_does() -> None:
    assert Operation.create_table(["d"], properties={"k": "v"}).json_parameters() == {
        "partitionBy": '["d"]',
        "clusterBy": "[]",
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


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Operation.write("Overwrite", overwrite_schema=True), True),
        (Operation.write("Overwrite"), False),
        (Operation(name="REPLACE TABLE"), True),
        (Operation.manual(), True),
        (Operation(name="DELETE"), False),
    ],
)
def test_only_some_operations_may_repartition_a_table(operation: Operation, expected: bool) -> None:
    assert operation.may_change_partitioning is expected
