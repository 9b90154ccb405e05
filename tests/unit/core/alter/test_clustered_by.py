"""CLUSTER BY, REPLACE COLUMNS and SYNC IDENTITY."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, create_table, read_arrow, write_arrow
from lakelog.core.alter import (
    add_constraint,
    cluster_by,
    rename_column,
    replace_columns,
    sync_identity,
)
from lakelog.core.alter.clustered_by import shown_columns
from lakelog.core.errors import ConcurrentAppendException, DeltaAnalysisError
from lakelog.core.features.protocol import supported_features
from lakelog.core.schema import StructType, identity_column

MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def info(uri: str) -> dict[str, Any]:
    newest = max(Path(uri, "_delta_log").glob("*.json"))
    found: dict[str, Any] = json.loads(newest.read_text().splitlines()[0])["commitInfo"]
    return found


def clustering(uri: str) -> list[str]:
    return shown_columns(DeltaLog.for_table(uri).snapshot)


def test_a_table_is_created_clustered(uri):
    create_table(
        uri, "id bigint, `a.b` struct<x: int>", cluster_by=["ID", ("a.b", "x")], properties=MAPPED
    )
    assert clustering(uri) == ["id", "`a.b`.x"]
    assert info(uri)["operationParameters"]["clusterBy"] == '["id","`a.b`.x"]'
    snapshot = DeltaLog.for_table(uri).snapshot
    assert "clustering" in supported_features(snapshot.protocol)
    assert not [key for key in snapshot.metadata.configuration if "feature" in key]


def test_a_clustered_table_is_not_partitioned(uri):
    with pytest.raises(DeltaAnalysisError, match="CLUSTER_BY_WITH_PARTITIONED_BY"):
        create_table(uri, "id bigint, p int", cluster_by="id", partition_by="p")
    create_table(uri, "id bigint, p int", partition_by="p")
    with pytest.raises(DeltaAnalysisError, match="ON_PARTITIONED_TABLE_NOT_ALLOWED"):
        cluster_by(uri, "id")


def test_other_columns_and_none(uri):
    write_arrow(uri, pa.table({"id": [1], "t": ["x"]}), mode="append", properties=MAPPED)
    cluster_by(uri, ["id", "t"])
    said = info(uri)
    assert said["operation"] == "CLUSTER BY"
    assert said["operationParameters"] == {
        "oldClusteringColumns": "",
        "newClusteringColumns": "id,t",
    }
    rename_column(uri, "t", "u")
    assert clustering(uri) == ["id", "u"]
    cluster_by(uri, "u")
    assert info(uri)["operationParameters"]["oldClusteringColumns"] == "id,u"
    cluster_by(uri)
    assert clustering(uri) == []
    assert "clustering" in supported_features(DeltaLog.for_table(uri).snapshot.protocol)


def test_what_is_replaced_is_clustered_again(uri):
    create_table(uri, "id bigint", cluster_by="id")
    create_table(uri, "other int", cluster_by="other", mode="replace")
    assert clustering(uri) == ["other"]
    create_table(uri, "third int", mode="create_or_replace")
    assert clustering(uri) == []
    assert "delta.clustering" not in DeltaLog.for_table(uri).snapshot.domain_metadata


@pytest.mark.parametrize(
    ("columns", "condition"),
    [
        (["flag"], "DATATYPE_NOT_SUPPORTED"),
        (["s"], "DATATYPE_NOT_SUPPORTED"),
        (["l.element"], "DATATYPE_NOT_SUPPORTED"),
        (["nope"], "COLUMN_NOT_FOUND"),
        (["s.nope"], "COLUMN_NOT_FOUND"),
        (["id", "ID"], "twice"),
        (["id", "s.x", "s.y", "d", "e"], "INVALID_NUM_COLUMNS"),
    ],
)
def test_columns_that_no_table_is_clustered_by(uri, columns, condition):
    create_table(
        uri,
        "id bigint, s struct<x: int, y: string>, flag boolean, l array<int>, d date, "
        "e decimal(5,1)",
    )
    with pytest.raises(DeltaAnalysisError, match=condition):
        cluster_by(uri, columns)
    assert DeltaLog.for_table(uri).snapshot.version == 0


def test_columns_are_replaced(uri):
    rows = pa.table({"id": [1], "s": [{"x": 1, "y": "a"}]})
    write_arrow(uri, rows, mode="append")
    version = replace_columns(
        uri, "s struct<y: string, z: int, x: bigint>, new date, ID bigint COMMENT 'k'"
    )
    s = {"y": "a", "z": None, "x": 1}
    assert read_arrow(uri).to_pylist() == [{"s": s, "new": None, "id": 1}]
    assert info(uri)["operation"] == "REPLACE COLUMNS"
    schema = DeltaLog.for_table(uri).snapshot.schema
    assert schema.fields[2].metadata == {"comment": "k"}
    assert replace_columns(uri, schema) == version


def test_columns_are_dropped_from_a_mapped_table_only(uri):
    write_arrow(uri, pa.table({"id": [1], "t": ["x"]}), mode="append")
    with pytest.raises(DeltaAnalysisError, match=r"dropping column\(s\) t.*mapping first"):
        replace_columns(uri, "id bigint")


def test_mapped_columns_are_dropped_but_not_renamed_by_accident(uri):
    write_arrow(uri, pa.table({"id": [1], "t": ["x"]}), mode="append", properties=MAPPED)
    with pytest.raises(DeltaAnalysisError, match="rename_column"):
        replace_columns(uri, "id bigint, u string")
    replace_columns(uri, "id bigint")
    replace_columns(uri, "t string, id bigint")
    assert read_arrow(uri).to_pylist() == [{"t": None, "id": 1}]
    add_constraint(uri, "c", "id > 0")
    with pytest.raises(DeltaAnalysisError, match="c"):
        replace_columns(uri, "t string")


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ("id int, t string", "type of column id from bigint to int"),
        ("id bigint NOT NULL, t string", "NOT NULL"),
        ("id bigint, t string, n int NOT NULL", "NOT NULL"),
        ("id bigint, t array<string>", "type of column t"),
    ],
)
def test_columns_that_the_rows_do_not_have(uri, columns, why):
    write_arrow(uri, pa.table({"id": [1], "t": ["x"]}), mode="append")
    with pytest.raises(DeltaAnalysisError, match=why):
        replace_columns(uri, columns)
    assert DeltaLog.for_table(uri).snapshot.version == 0


def numbered(uri: str, **kwargs: Any) -> None:
    plain = '{"type":"struct","fields":[{"name":"v","type":"long","nullable":true,"metadata":{}}]}'
    number = identity_column("id", by_default=True, **kwargs)
    create_table(uri, StructType((number, *StructType.from_json(plain))))


@pytest.mark.parametrize(
    ("start", "step", "given", "following"),
    [(1, 1, [10, 22], 23), (0, 10, [25], 30), (-1, -3, [-8, -2], -10), (5, 1, [1, 2], 5)],
)
def test_an_identity_column_goes_on_after_numbers_of_others(uri, start, step, given, following):
    numbered(uri, start=start, step=step)
    write_arrow(uri, pa.table({"id": given, "v": given}), mode="append")
    version = sync_identity(uri, "ID")
    assert sync_identity(uri, "id") == version, "a second time changes nothing"
    write_arrow(uri, pa.table({"v": [99]}), mode="append")
    assert [r["id"] for r in read_arrow(uri).to_pylist() if r["v"] == 99] == [following]


def test_an_empty_table_has_nothing_to_go_on_after(uri):
    numbered(uri)
    assert sync_identity(uri, "id") == 0
    with pytest.raises(DeltaAnalysisError, match=r"ALTER_NON_IDENTITY_COLUMN.*: id"):
        sync_identity(uri, "v")


def test_rows_that_come_meanwhile_are_a_conflict(uri):
    numbered(uri)
    write_arrow(uri, pa.table({"id": [7], "v": [1]}), mode="append")
    slow = DeltaLog.for_table(uri)
    start = slow.start_transaction

    def overtaken():
        txn = start()
        write_arrow(uri, pa.table({"id": [70], "v": [1]}), mode="append")
        return txn

    slow.start_transaction = overtaken  # type: ignore[assignment, method-assign]
    with pytest.raises(ConcurrentAppendException):
        sync_identity(slow, "id")
