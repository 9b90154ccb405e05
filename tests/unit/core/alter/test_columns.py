from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, Operation, create_table, write_arrow
from lakelog.core.alter.check_constraints import add_constraint
from lakelog.core.alter.columns import (
    ColumnChange,
    change_column,
    change_columns,
    drop_columns,
    rename_column,
)
from lakelog.core.alter.new_columns import Addition, add_columns, add_columns_at
from lakelog.core.alter.property_changes import set_properties
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import (
    ArrayType,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
    type_from_json_value,
)
from lakelog.core.schema.type_widening import retyped

MAPPED = {"delta.columnMapping.mode": "name"}
WIDENING = {"delta.enableTypeWidening": "true"}
LONG, INT = PrimitiveType("long"), PrimitiveType("integer")
ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "s": [{"x": 1, "y": "a"}, None],
        "l": [[{"e": 1}], None],
        "p": pa.array([7, 8], pa.int32()),
    }
)


@pytest.fixture
def uri(tmp_path):
    return str(tmp_path / "t")


def snapshot(uri):
    return DeltaLog.for_table(uri).snapshot


def rows(uri):
    return snapshot(uri).to_arrow().sort_by("id").to_pylist()


def struct_at(uri, index):
    struct = snapshot(uri).schema.fields[index].data_type
    assert isinstance(struct, StructType)
    return struct


def last(uri):
    entry = DeltaLog.for_table(uri).history(1)[0]
    return entry.operation, entry.parameters


def made(uri, properties=None, **how):
    write_arrow(uri, ROWS, properties=properties or {}, **how)
    return uri


@pytest.mark.parametrize("properties", [{}, MAPPED], ids=["plain", "mapped"])
def test_columns_are_added_at_any_place_and_depth(uri, properties):
    made(uri, properties)

    add_columns(uri, pa.schema([("n", pa.int32()), ("m", pa.string())]), after="ID")
    add_columns(uri, pa.schema([("f", pa.int32())]), first=True)
    add_columns(uri, pa.schema([("z", pa.int64())]), parent="l.element")
    add_columns(uri, pa.schema([("w", pa.int64())]), parent=["s"], after="x")

    assert snapshot(uri).schema.names == ["f", "id", "n", "m", "s", "l", "p"]
    assert rows(uri)[0] == {
        "f": None, "id": 1, "n": None, "m": None, "s": {"x": 1, "w": None, "y": "a"},
        "l": [{"e": 1, "z": None}], "p": 7,
    }  # fmt: skip
    name, parameters = last(uri)
    assert name == "ADD COLUMNS"
    (column,) = json.loads(parameters["columns"])
    assert column == {
        "column": {"name": "s.w", "type": "long", "nullable": True, "metadata": {}},
        "position": "AFTER x",
    }


@pytest.mark.parametrize(
    ("columns", "how", "message"),
    [
        ([("ID", pa.int64())], {}, "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ([pa.field("n", pa.int64(), nullable=False)], {}, "NOT NULL"),
        ([("n", pa.int64())], {"parent": "id"}, "PARENT_NOT_STRUCT"),
        ([("n", pa.int64())], {"parent": "l"}, "PARENT_NOT_STRUCT"),
        ([("n", pa.int64())], {"parent": "nothing"}, "no column nothing"),
        ([("n", pa.int64())], {"after": "nothing"}, "no column nothing"),
        ([("n m", pa.int64())], {}, "INVALID_CHARACTERS"),
    ],
    ids=range(7),
)
def test_columns_that_cannot_be_added_are_refused(uri, columns, how, message):
    made(uri)
    with pytest.raises(DeltaAnalysisError, match=message):
        add_columns(uri, pa.schema(columns), **how)


def test_columns_are_renamed_and_the_files_stay(uri):
    properties = {**MAPPED, "delta.dataSkippingStatsColumns": "s.x,id"}
    made(uri, properties, partition_by=["p"])
    before = {each.path for each in snapshot(uri).files()}

    rename_column(uri, "S", "t t")
    rename_column(uri, ["t t", "x"], "xx")
    rename_column(uri, "l.element.e", "ee")
    rename_column(uri, "p", "part")

    assert {each.path for each in snapshot(uri).files()} == before
    assert rows(uri)[0] == {"id": 1, "t t": {"xx": 1, "y": "a"}, "l": [{"ee": 1}], "part": 7}
    assert snapshot(uri).partition_columns == ["part"]
    found = snapshot(uri).metadata.configuration["delta.dataSkippingStatsColumns"]
    assert found == "`t t`.xx,id"
    assert len(snapshot(uri).files("part = 7")) == 1
    assert last(uri) == ("RENAME COLUMN", {"oldColumnPath": "p", "newColumnPath": "part"})
    write_arrow(uri, snapshot(uri).to_arrow(), mode="append")
    assert len(rows(uri)) == 4


def test_columns_are_dropped_and_their_names_are_free(uri):
    made(uri, {**MAPPED, "delta.dataSkippingStatsColumns": "s.x,s.y,id"})

    drop_columns(uri, ["s.y", "l"])

    assert rows(uri)[0] == {"id": 1, "s": {"x": 1}, "p": 7}
    assert last(uri) == ("DROP COLUMNS", {"columns": '["s.y","l"]'})
    found = snapshot(uri).metadata.configuration["delta.dataSkippingStatsColumns"]
    assert found == "s.x,id"
    add_columns(uri, pa.schema([("l", pa.string())]))
    assert [row["l"] for row in rows(uri)] == [None, None]


@pytest.mark.parametrize(
    "change",
    [lambda uri: rename_column(uri, "id", "i"), lambda uri: drop_columns(uri, ["id"])],
    ids=["rename", "drop"],
)
def test_without_mapping_names_stay(uri, change):
    made(uri)
    with pytest.raises(DeltaAnalysisError, match=r"DELTA_UNSUPPORTED_.*columnMapping.mode=name"):
        change(uri)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("p", "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"),
        ("id", "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
        ("l.element.e", "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA"),
        ("l.element", "FROM_NON_STRUCT_TYPE"),
        ("nothing", "no column nothing"),
    ],
)
def test_columns_that_something_needs_are_not_dropped(uri, path, message):
    made(uri, MAPPED, partition_by=["p"])
    add_constraint(uri, "c", "id > 0")
    with pytest.raises(DeltaAnalysisError, match=message):
        drop_columns(uri, [path])


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["id", "s", "l", "p"], "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA.*of the table"),
        (["s.x", "s.y"], "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA.*of the struct s"),
        (["id", "ID"], "id is named twice"),
        (["s", "s.x"], "s.x is named twice, or is part of a struct"),
    ],
)
def test_what_is_dropped_together_leaves_something(uri, paths, message):
    made(uri, MAPPED)
    before = rows(uri)
    with pytest.raises(DeltaAnalysisError, match=message):
        drop_columns(uri, paths)
    assert rows(uri) == before


def test_fields_of_one_struct_and_of_elements_go_together(uri):
    write_arrow(
        uri, pa.table({"s": [{"x": 1, "y": 2, "z": 3}], "l": [[{"e": 1, "f": 2}]]}), mode="append"
    )
    set_properties(uri, MAPPED)
    drop_columns(uri, ["S.y", "l.ELEMENT.e", "s.x"])
    assert snapshot(uri).to_arrow().to_pylist() == [{"s": {"z": 3}, "l": [{"f": 2}]}]


def test_a_new_name_must_be_free_and_unbound(uri):
    made(uri, MAPPED)
    add_constraint(uri, "c", "id > 0")
    with pytest.raises(DeltaAnalysisError, match="DELTA_DUPLICATE_COLUMNS_FOUND"):
        rename_column(uri, "p", "S")
    with pytest.raises(DeltaAnalysisError, match="DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"):
        rename_column(uri, "id", "number")


NOON = dt.datetime.fromisoformat("2024-02-29T12:00:00")
WIDER = {
    "byte to short": (pa.int8(), 5, "short", 300, 5),
    "short to int": (pa.int16(), 5, "integer", 1 << 30, 5),
    "int to long": (pa.int32(), 5, "long", 1 << 40, 5),
    "byte to double": (pa.int8(), 5, "double", 0.5, 5.0),
    "int to double": (pa.int32(), 5, "double", 0.5, 5.0),
    "float to double": (pa.float32(), 0.5, "double", 0.1, 0.5),
    "date to timestamp_ntz": (
        pa.date32(), dt.date(2024, 2, 29), "timestamp_ntz",
        NOON, NOON.replace(hour=0),
    ),
    "decimal": (pa.decimal128(5, 2), Decimal("1.25"), "decimal(9,4)", Decimal("1.2345"),
                Decimal("1.2500")),
    "int to decimal": (pa.int32(), 5, "decimal(12,2)", Decimal("0.25"), Decimal("5.00")),
    "long to decimal": (pa.int64(), 5, "decimal(22,2)", Decimal("0.25"), Decimal("5.00")),
}  # fmt: skip


@pytest.mark.parametrize("partitioned", [False, True], ids=["column", "partition"])
@pytest.mark.parametrize("case", WIDER)
def test_a_type_gets_wider_and_old_files_are_read(uri, case, partitioned):
    arrow, old, wide, new, shown = WIDER[case]
    data = pa.table({"k": pa.array([1], pa.int64()), "a": pa.array([old], arrow)})
    by = ["a"] if partitioned else []
    properties = {**WIDENING, "delta.feature.timestampNtz": "supported"}
    write_arrow(uri, data, partition_by=by, properties=properties, mode="append")

    change_column(uri, "a", data_type=type_from_json_value(wide))
    target = type_from_json_value(wide)
    fresh = pa.table({"k": pa.array([2], pa.int64()), "a": [new]})
    if isinstance(target, DecimalType):
        kind = pa.decimal128(target.precision, target.scale)
        fresh = fresh.set_column(1, "a", pa.array([new], kind))
    write_arrow(uri, fresh.cast(snapshot(uri).to_arrow().schema), mode="append")

    found = snapshot(uri)
    field = found.schema.fields[1]
    before = {"integer": "integer"}.get(case.split(" to ")[0])
    (change,) = field.metadata["delta.typeChanges"]
    assert change["toType"] == wide
    assert set(change) == {"fromType", "toType"}
    assert before is None or change["fromType"] == before
    assert found.to_arrow().sort_by("k")["a"].to_pylist() == [shown, new]
    assert found.to_arrow(where=[("a", "=", new)])["k"].to_pylist() == [2]
    assert found.to_arrow(where=[("a", "=", shown)])["k"].to_pylist() == [1]
    assert "typeWidening" in (found.protocol.reader_features or ())


def test_parts_of_a_column_get_wider_with_their_path(uri):
    kind = pa.map_(pa.string(), pa.list_(pa.int32()))
    write_arrow(
        uri, pa.table({"m": pa.array([[("k", [1])]], kind)}), properties=WIDENING, mode="append"
    )

    change_column(uri, "m.value.element", data_type=LONG)
    change_column(uri, ["m", "value", "element"], data_type=DecimalType(20, 0))

    field = snapshot(uri).schema.fields[0]
    assert field.metadata["delta.typeChanges"] == [
        {"fromType": "integer", "toType": "long", "fieldPath": "value.element"},
        {"fromType": "long", "toType": "decimal(20,0)", "fieldPath": "value.element"},
    ]
    assert snapshot(uri).to_arrow()["m"].to_pylist() == [[("k", [Decimal(1)])]]


@pytest.mark.parametrize(
    ("column", "target", "properties", "message"),
    [
        ("p", LONG, {}, "enableTypeWidening=true first"),
        ("id", INT, WIDENING, "can only be widened"),
        ("p", PrimitiveType("string"), WIDENING, "can only be widened"),
        ("p", PrimitiveType("float"), WIDENING, "can only be widened"),
        ("p", DecimalType(5, 0), WIDENING, "can only be widened"),
        ("s", LONG, WIDENING, "can only be widened"),
        ("l.element", LONG, WIDENING, "can only be widened"),
    ],
    ids=range(7),
)
def test_other_changes_of_type_are_refused_by_name(uri, column, target, properties, message):
    made(uri, properties)
    with pytest.raises(
        DeltaAnalysisError, match=rf"DELTA_ALTER_TABLE_CHANGE_COL_NOT_SUPPORTED.*{message}"
    ):
        change_column(uri, column, data_type=target)


def test_a_rule_binds_the_type_of_its_columns(uri):
    made(uri, WIDENING)
    add_constraint(uri, "c", "p > 0")
    with pytest.raises(DeltaAnalysisError, match="DELTA_CONSTRAINT_DATA_TYPE_MISMATCH"):
        change_column(uri, "p", data_type=LONG)


def test_comments_and_nullability_change(uri):
    data = pa.table({"a": [1]}, schema=pa.schema([pa.field("a", pa.int64(), nullable=False)]))
    write_arrow(uri, data, mode="append")

    change_column(uri, "a", nullable=True, comment="a number")

    field = snapshot(uri).schema.fields[0]
    assert (field.nullable, field.metadata) == (True, {"comment": "a number"})
    name, parameters = last(uri)
    assert (name, json.loads(parameters["column"])["metadata"]) == (
        "CHANGE COLUMN", {"comment": "a number"},
    )  # fmt: skip
    change_column(uri, "a", comment="")
    assert snapshot(uri).schema.fields[0].metadata == {}
    with pytest.raises(DeltaAnalysisError, match="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"):
        change_column(uri, "a", nullable=False)


@pytest.mark.parametrize(
    ("arrow", "merged"),
    [
        (pa.int64(), "long"),
        (pa.int32(), "integer"),
        (pa.int16(), "integer"),
        (pa.float64(), None),
        (pa.decimal128(12, 0), None),
        (pa.string(), None),
    ],
    ids=str,
)
def test_merge_schema_widens_integers_to_integers_alone(uri, arrow, merged):
    """An int column never turns into a double or a decimal unasked, as in Delta."""
    write_arrow(uri, pa.table({"a": pa.array([1], pa.int32())}), properties=WIDENING, mode="append")
    data = pa.table({"a": pa.array([2], pa.int32()).cast(arrow)})
    if merged is None:
        with pytest.raises(DeltaAnalysisError, match="DELTA_METADATA_MISMATCH"):
            write_arrow(uri, data, schema_mode="merge", mode="append")
        return
    write_arrow(uri, data, schema_mode="merge", mode="append")
    assert str(snapshot(uri).schema.fields[0].data_type.json_value()) == merged
    assert sorted(snapshot(uri).to_arrow()["a"].to_pylist()) == [1, 2]


def test_without_the_property_merge_schema_keeps_types(uri):
    write_arrow(uri, pa.table({"a": pa.array([1], pa.int32())}), mode="append")
    with pytest.raises(DeltaAnalysisError, match="DELTA_METADATA_MISMATCH"):
        write_arrow(uri, pa.table({"a": [1]}), schema_mode="merge", mode="append")


def test_records_of_a_preview_table_name_their_version(uri):
    properties = {**WIDENING, "delta.feature.typeWidening-preview": "supported"}
    write_arrow(
        uri, pa.table({"a": pa.array([1], pa.int8())}), properties=properties, mode="append"
    )
    features = snapshot(uri).protocol.writer_features or ()
    assert "typeWidening" not in features

    change_column(uri, "a", data_type=INT)
    log = DeltaLog.for_table(uri)
    txn = log.start_transaction()
    (field,) = log.snapshot.schema
    wide = StructType((retyped(field, (), LONG, "a", widens=True),))
    txn.update_metadata(replace(txn.metadata, schema_string=wide.to_json()))
    write_arrow(uri, pa.table({"a": pa.array([2], pa.int8())}), mode="append")
    assert txn.commit([], Operation("CHANGE COLUMN")) == 3

    changes = snapshot(uri).schema.fields[0].metadata["delta.typeChanges"]
    assert [(each["toType"], each["tableVersion"]) for each in changes] == [
        ("integer", 1),
        ("long", 3),
    ]


def test_arrays_may_be_named_as_types(uri):
    schema = StructType((StructField("a", ArrayType(LONG)),))
    made(uri)
    add_columns(uri, schema)
    assert json.loads(last(uri)[1]["columns"])[0]["column"]["type"] == "array"
    set_properties(uri, {"delta.appendOnly": "true"})


@pytest.mark.parametrize(
    "nothing",
    [
        pytest.param(lambda uri: add_columns(uri, pa.schema([])), id="add"),
        pytest.param(lambda uri: drop_columns(uri, []), id="drop"),
        pytest.param(lambda uri: rename_column(uri, "name", "name"), id="rename"),
        pytest.param(lambda uri: change_column(uri, "name"), id="change"),
        pytest.param(lambda uri: change_column(uri, "name", nullable=True), id="nullable"),
    ],
)
def test_where_nothing_changes_nothing_is_committed(tmp_path, nothing) -> None:
    uri = str(tmp_path / "t")
    create_table(uri, "id bigint, name string", properties=MAPPED)
    first = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    (metadata,) = (line["metaData"] for line in lines if "metaData" in line)
    # Another client may write the same schema in other words.
    metadata["schemaString"] = json.dumps(json.loads(metadata["schemaString"]), indent=1)
    first.write_text("\n".join(map(json.dumps, lines)))
    assert "\n" in DeltaLog.for_table(uri).snapshot.metadata.schema_string
    assert nothing(uri) == 0
    assert DeltaLog.for_table(uri).snapshot.version == 0
    assert change_column(uri, "name", comment="said") == 1


def test_a_column_moves_among_its_siblings(uri):
    write_arrow(uri, ROWS, partition_by=["p"], mode="append")

    change_column(uri, "P", first=True)
    assert last(uri)[1]["position"] == "FIRST"
    change_column(uri, "id", comment="a key", after="L")
    assert last(uri)[1]["position"] == "AFTER l"
    change_column(uri, "s.x", after="y")

    found = snapshot(uri)
    assert found.schema.names == ["p", "s", "l", "id"]
    struct = found.schema.fields[1].data_type
    assert isinstance(struct, StructType)
    assert struct.names == ["y", "x"]
    assert found.schema.fields[3].metadata == {"comment": "a key"}
    assert rows(uri) == [
        {"p": 7, "s": {"y": "a", "x": 1}, "l": [{"e": 1}], "id": 1},
        {"p": 8, "s": None, "l": None, "id": 2},
    ]
    version = found.version
    assert change_column(uri, "id", after="id") == version  # it is where it is
    for column, after in [("id", "nothing"), ("s.x", "id")]:
        with pytest.raises(DeltaAnalysisError, match="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"):
            change_column(uri, column, after=after)
    with pytest.raises(DeltaAnalysisError, match="only the type can be changed"):
        change_column(uri, "l.element", first=True)
    assert snapshot(uri).version == version


def test_a_default_is_for_rows_to_come(uri):
    write_arrow(uri, ROWS, mode="append")
    with pytest.raises(DeltaAnalysisError, match="DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"):
        change_column(uri, "p", default="5")
    set_properties(uri, {"delta.feature.allowColumnDefaults": "supported"})

    change_column(uri, "p", default="2 + 3")
    write_arrow(uri, ROWS.select(["id"]).slice(0, 1), mode="append")
    change_column(uri, "p", default="")
    write_arrow(uri, ROWS.select(["id"]).slice(0, 1), mode="append")

    assert sorted(rows(uri), key=lambda row: (row["id"], row["p"] or 0)) == [
        {"id": 1, "s": None, "l": None, "p": None},
        {"id": 1, "s": None, "l": None, "p": 5},
        {"id": 1, "s": {"x": 1, "y": "a"}, "l": [{"e": 1}], "p": 7},
        {"id": 2, "s": None, "l": None, "p": 8},
    ]
    assert snapshot(uri).schema.fields[3].metadata == {}
    for default, message in [
        ("'abc'", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        ("id", "INVALID_DEFAULT_VALUE.NOT_CONSTANT"),
        ("(SELECT 1)", "INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION"),
        ("1 + (SELECT 1)", "INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION"),
    ]:
        with pytest.raises(DeltaAnalysisError, match=message):
            change_column(uri, "p", default=default)


def test_a_default_within_a_struct_is_kept_and_fills_nothing(uri):
    write_arrow(uri, ROWS, mode="append")
    with pytest.raises(DeltaAnalysisError, match="FEATURE_NOT_ENABLED"):
        change_column(uri, "s.x", default="1 + 2")
    set_properties(uri, {"delta.feature.allowColumnDefaults": "supported"})
    with pytest.raises(DeltaAnalysisError, match=r"INVALID_DEFAULT_VALUE\.NOT_CONSTANT"):
        change_column(uri, "s.x", default="id")
    change_column(uri, "s.x", default="1 + 2")
    assert struct_at(uri, 1).fields[0].metadata == {"CURRENT_DEFAULT": "1 + 2"}
    write_arrow(uri, ROWS.select(["id"]).slice(0, 1), mode="append")
    write_arrow(uri, pa.table({"id": [9], "s": [{"y": "b"}]}), mode="append")
    assert [row["s"] for row in rows(uri) if row["id"] == 9] == [{"x": None, "y": "b"}]
    assert [row["s"] for row in rows(uri)].count(None) == len(rows(uri)) - 2
    change_column(uri, "s.x", default="")
    assert struct_at(uri, 1).fields[0].metadata == {}


def test_columns_are_added_at_several_places_in_one_commit(uri):
    write_arrow(uri, ROWS, mode="append")
    additions = [
        Addition("a INT", first=True),
        Addition("b INT", after="A"),
        Addition("z STRING", parent="s", first=True),
        Addition("c INT"),
    ]
    assert add_columns_at(uri, additions) == 1
    name, parameters = last(uri)
    assert name == "ADD COLUMNS"
    assert [
        (each["column"]["name"], each.get("position")) for each in json.loads(parameters["columns"])
    ] == [("a", "FIRST"), ("b", "AFTER A"), ("s.z", "FIRST"), ("c", None)]
    schema = snapshot(uri).schema
    assert schema.names == ["a", "b", "id", "s", "l", "p", "c"]
    assert struct_at(uri, 3).names == ["z", "x", "y"]
    for wrong in (Addition("d INT", after="nothing"), Addition("e INT", parent="n")):
        with pytest.raises(DeltaAnalysisError, match="NOT_FOUND"):
            add_columns_at(uri, [Addition("n STRUCT<x: INT>"), wrong])
    assert snapshot(uri).version == 1


def test_several_columns_change_in_one_commit(uri):
    write_arrow(uri, ROWS, mode="append")
    changes = [ColumnChange("id", comment="a key"), ColumnChange("p", first=True)]
    assert change_columns(uri, changes) == 1
    name, parameters = last(uri)
    assert name == "CHANGE COLUMNS"
    assert json.loads(parameters["columns"]) == [
        {"name": "id", "type": "long", "nullable": True, "metadata": {"comment": "a key"}},
        {"name": "p", "type": "integer", "nullable": True, "metadata": {}, "position": "FIRST"},
    ]
    assert snapshot(uri).schema.names == ["p", "id", "s", "l"]
    for wrong in ("ID", "nothing"):
        with pytest.raises(DeltaAnalysisError, match=r"changed twice|NOT_FOUND"):
            change_columns(uri, [ColumnChange("id", comment="x"), ColumnChange(wrong, first=True)])
    assert snapshot(uri).version == 1
