"""One name where several may be given is one name, and not its letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, create_table, write_arrow
from lakelog.core.alter import drop_columns, set_properties, unset_properties
from lakelog.core.schema import PrimitiveType, StructField, StructType

if TYPE_CHECKING:
    from pathlib import Path

ROWS = pa.table({"ab": [1], "a": [2], "b": [3]})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def test_a_table_is_partitioned_by_one_column(uri: str) -> None:
    write_arrow(uri, ROWS, partition_by="ab", mode="append")
    assert DeltaLog.for_table(uri).snapshot.partition_columns == ["ab"]
    write_arrow(uri, ROWS, partition_by="ab", mode="append")
    fields = StructType(tuple(StructField(name, PrimitiveType("long")) for name in ("x", "yz")))
    create_table(f"{uri}2", fields, partition_by="yz")
    assert DeltaLog.for_table(f"{uri}2").snapshot.partition_columns == ["yz"]


def test_one_column_is_read(uri: str) -> None:
    write_arrow(uri, ROWS, mode="append")
    snapshot = DeltaLog.for_table(uri).snapshot
    assert snapshot.to_arrow(columns="ab").column_names == ["ab"]
    assert [batch.schema.names for batch in snapshot.to_batches("ab")] == [["ab"]]


def test_one_column_is_dropped_and_others_with_its_letters_stay(uri: str) -> None:
    write_arrow(uri, ROWS, properties={"delta.columnMapping.mode": "name"}, mode="append")
    drop_columns(uri, "ab")
    assert DeltaLog.for_table(uri).snapshot.schema.names == ["a", "b"]


def test_one_property_is_taken_back(uri: str) -> None:
    write_arrow(uri, ROWS, mode="append")
    set_properties(uri, {"delta.appendOnly": "true", "k": "v"})
    unset_properties(uri, "delta.appendOnly")
    assert DeltaLog.for_table(uri).snapshot.metadata.configuration == {"k": "v"}
