"""What UPDATE may assign: columns, fields of structs and `DEFAULT`, by MERGE's rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakelog.core import (
    DeltaLog,
    Operation,
    create_table,
    lit,
    merge,
    update_rows,
    write_arrow,
)
from lakelog.core.errors import (
    ConstraintViolationError,
    DeltaAnalysisError,
    DeltaError,
    InvalidPredicateError,
)
from lakelog.core.schema.column_fills import (
    column_with_default,
    generated_column,
    identity_column,
)
from lakelog.core.schema.types import ArrayType, PrimitiveType, StructField, StructType

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.core.schema import DataType

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")
DEFAULTS = {"delta.feature.allowColumnDefaults": "supported"}


def struct(**fields: DataType) -> StructType:
    return StructType(tuple(StructField(name, each) for name, each in fields.items()))


SCHEMA = StructType(
    (
        StructField("id", LONG),
        StructField("s", struct(a=LONG, inner=struct(x=LONG, y=TEXT))),
        column_with_default("d", LONG, "40 + 2"),
        StructField("odd.name", TEXT),
        StructField("l", ArrayType(struct(a=LONG), contains_null=True)),
    )
)
ROWS: list[dict[str, Any]] = [
    {"id": 1, "s": {"a": 1, "inner": {"x": 1, "y": "p"}}, "d": 0, "odd.name": "o", "l": []},
    {"id": 2, "s": {"a": 2, "inner": None}, "d": 0, "odd.name": "o", "l": []},
    {"id": 3, "s": None, "d": 0, "odd.name": "o", "l": []},
]


@pytest.fixture(params=[{}, {"delta.enableDeletionVectors": "true"}], ids=["rewrite", "vectors"])
def uri(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    path = str(tmp_path / "t")
    create_table(path, SCHEMA, properties={**DEFAULTS, **request.param})
    write_arrow(path, ROWS, mode="append")
    return path


def rows(uri: str) -> list[dict[str, Any]]:
    found = DeltaLog.for_table(uri).snapshot.to_arrow().to_pylist()
    return sorted(found, key=lambda row: (row["id"] is None, row["id"]))


def test_fields_of_structs_defaults_and_odd_names(uri: str) -> None:
    values = {"S.inner.X": "id + s.a", "d": " default ", "`odd.name`": lit("DEFAULT")}
    update_rows(uri, values, "id < 3")
    assert rows(uri) == [
        {
            "id": 1,
            "s": {"a": 1, "inner": {"x": 2, "y": "p"}},
            "d": 42,
            "odd.name": "DEFAULT",
            "l": [],
        },
        {
            "id": 2,
            "s": {"a": 2, "inner": {"x": 4, "y": None}},
            "d": 42,
            "odd.name": "DEFAULT",
            "l": [],
        },
        ROWS[2],
    ]


def test_a_bare_name_with_a_dot_is_that_of_a_column_where_no_path_is_meant(uri: str) -> None:
    update_rows(uri, {"odd.name": "NULL", "id": "DEFAULT"}, "id = 3")
    assert rows(uri)[2] == {**ROWS[2], "odd.name": None, "id": None}


def test_a_field_takes_values_and_expressions_of_pyarrow(uri: str) -> None:
    update_rows(uri, {"s.inner.y": pc.field("odd.name"), "s.a": 7}, "id = 3")
    assert rows(uri)[2]["s"] == {"a": 7, "inner": {"x": None, "y": "o"}}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"s": "s", "s.a": "1"}, "DELTA_CONFLICT_SET_COLUMN"),
        ({"s.a": "1", "S.A": "2"}, "DELTA_CONFLICT_SET_COLUMN"),
        ({"l.a": "1"}, "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE"),
        ({"s.b": "1"}, r"UNRESOLVED_COLUMN.*Cannot resolve s\.b in UPDATE"),
        ({"idd": "1"}, "did you mean id"),
        ({"s": "s.inner"}, "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"),
        ({"s.a": "s"}, "DATATYPE_MISMATCH"),
        ({"s.a": 1.5}, r"the column s\.a of type bigint can't be set to 1\.5"),
        ({"s.a": pc.field("odd.name")}, r"the column s\.a of type bigint can't be set to"),
        ({"d": pc.field("no")}, "does not fit the columns"),
        ({"d": pc.field(0)}, "does not fit the columns"),
        ({"d": "id + (SELECT 1)"}, "DELTA_UNSUPPORTED_SUBQUERY"),
        ({"d": "sum(id)"}, "DELTA_AGGREGATION_NOT_SUPPORTED.* of UPDATE"),
        ({}, "must set at least one column"),
    ],
    ids=str,
)
def test_what_can_t_be_assigned_is_refused_before_a_row_is_read(
    uri: str, values: dict[str, Any], message: str
) -> None:
    for where in (None, "id = 99"):
        with pytest.raises(DeltaError, match=message):
            update_rows(uri, values, where)
    assert DeltaLog.for_table(uri).snapshot.version == 1


def test_generated_and_identity_columns(tmp_path: Path) -> None:
    uri = str(tmp_path / "g")
    hashed = generated_column("h", TEXT, "base64(t)")
    schema = StructType(
        (
            identity_column("n"),
            StructField("id", LONG),
            generated_column("g", LONG, "id * 10"),
            StructField("t", TEXT),
        )
    )
    create_table(uri, schema)
    write_arrow(uri, {"id": [1, 2], "t": ["a", "b"]}, mode="append")
    update_rows(uri, {"id": "id + 1", "g": "DEFAULT"}, "id = 2")
    assert [(r["id"], r["g"]) for r in rows(uri)] == [(1, 10), (3, 30)]
    with pytest.raises(ConstraintViolationError):
        update_rows(uri, {"g": 5})
    for value in ("DEFAULT", 5):
        with pytest.raises(DeltaAnalysisError, match="IDENTITY"):
            update_rows(uri, {"N": value})
    # What only Spark computes hinders no one who leaves it and what it depends on alone.
    other = str(tmp_path / "h")
    create_table(other, StructType((StructField("id", LONG), StructField("t", TEXT))))
    write_arrow(other, {"id": [1], "t": ["a"]}, mode="append")
    txn = DeltaLog.for_table(other).start_transaction()
    new = StructType((*DeltaLog.for_table(other).snapshot.schema.fields, hashed))
    txn.commit([replace(txn.metadata, schema_string=new.to_json())], Operation.manual())
    update_rows(other, {"id": 5})
    merge(other, {"id": [5]}, ["id"]).when_matched_update({"id": "6"}).execute()
    assert rows(other) == [{"id": 6, "t": "a", "h": None}]
    with pytest.raises(DeltaAnalysisError, match="without Spark"):
        update_rows(other, {"t": lit("b")})


def test_merge_takes_expressions_of_pyarrow(tmp_path: Path) -> None:
    uri = str(tmp_path / "m")
    write_arrow(uri, {"id": [1, 2, 3], "v": [10, None, 30], "t": ["a", "b", "c"]})
    source = {"id": [1, 2, 3, 4, 5], "w": [5, 6, 7, 8, 9]}
    changed = (
        merge(uri, source, "target.id = source.id")
        .when_matched_delete(pc.field("source.w") == 7)
        .when_matched_update(
            {"v": pc.field("v") + pc.field("source.w"), "t": pc.scalar("new")},
            pc.field("target.v").is_valid(),
        )
        .when_not_matched_insert({"id": pc.field("id"), "v": pc.field("w")}, pc.field("w") > 8)
        .execute()
    )
    assert rows(uri) == [
        {"id": 1, "v": 15, "t": "new"},
        {"id": 2, "v": None, "t": "b"},
        {"id": 5, "v": 9, "t": None},
    ]
    assert changed.metrics["numTargetRowsUpdated"] == 1
    parameters = DeltaLog.for_table(uri).history(1)[0].parameters
    assert parameters is not None
    assert "source.w" in parameters["matchedPredicates"]
    merge(uri, {"id": [7]}, ["id"]).when_not_matched_by_source_delete(pc.field("v") == 9).execute()
    assert [row["id"] for row in rows(uri)] == [1, 2]


@pytest.mark.parametrize(
    "condition", [pc.field("id") == 1, pc.field("source.no") == 1, pc.field("w"), pc.field(0) == 1]
)
def test_an_expression_of_pyarrow_that_means_nothing_is_refused(
    tmp_path: Path, condition: Any
) -> None:
    uri = str(tmp_path / "m")
    write_arrow(uri, {"id": [1]})
    with pytest.raises(DeltaAnalysisError, match="UPDATE condition"):
        merge(uri, {"id": [1], "w": [2]}, ["id"]).when_matched_update_all(condition).execute()
    with pytest.raises(DeltaAnalysisError, match="SQL text, or the names of columns"):
        merge(uri, {"id": [1]}, pc.field("source.id") == pc.field("target.id"))
    with pytest.raises((DeltaAnalysisError, InvalidPredicateError)):
        merge(uri, {"id": [1]}, ["id"]).when_matched_delete(5).execute()  # type: ignore[arg-type]


def test_the_columns_of_an_expression_are_found_whatever_their_names() -> None:
    from lakelog.core.expressions.arrow.given import named_columns

    odd = ["a b", "x.y", "c3 ", "é-ü", "`", "1"]
    columns = pa.schema([(name, pa.int64()) for name in [*(f"c{i}" for i in range(64)), *odd]])
    names, kind = named_columns(pc.field("c3") + pc.field("c60"), columns)
    assert (names, kind) == (["c3", "c60"], pa.int64())
    for name in odd:
        assert named_columns(pc.field(name) + pc.field("c7"), columns)[0] in (
            ["c7", name],
            [name, "c7"],
        )
    assert named_columns(pc.scalar(5), columns) == ([], pa.int64())
