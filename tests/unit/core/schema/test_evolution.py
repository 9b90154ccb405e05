"""What data fits a table, and what the table becomes when its schema may grow."""

from __future__ import annotations

import contextlib
import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.arrow.arrow_casts import cast_table
from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.errors import SchemaMismatchError
from lakelog.core.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from lakelog.core.schema.rules import as_nullable
from lakelog.core.schema.schema_evolution import (
    Difference,
    check_write_compatible,
    differences,
    merge_schemas,
)
from support.growth.measuring import Costs, lines_run

if TYPE_CHECKING:
    from collections.abc import Callable

BYTE, SHORT, INT, LONG = map(PrimitiveType, ["byte", "short", "integer", "long"])
KINDS: list[DataType] = [BYTE, SHORT, INT, LONG, DecimalType(5, 2)]
STRING, DOUBLE, VOID = map(PrimitiveType, ["string", "double", "void"])


def field(
    name: str, data_type: DataType = LONG, nullable: bool = True, **marks: Any
) -> StructField:
    return StructField(
        name, data_type, nullable, {k.replace("__", "."): v for k, v in marks.items()}
    )


def struct(*fields: StructField) -> StructType:
    return StructType(fields)


TABLE = struct(
    field("id", LONG, nullable=False),
    field("Name", STRING),
    field("s", struct(field("X", DOUBLE), field("y", STRING))),
    field("l", ArrayType(struct(field("k", LONG)))),
    field("m", MapType(STRING, INT)),
)


# --- What fits ---


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        as_nullable(TABLE),
        struct(field("id")),
        struct(field("ID", INT), field("NAME", VOID)),
        struct(field("s", struct(field("y", STRING))), field("id", SHORT)),
        struct(field("l", ArrayType(struct(field("K", BYTE)))), field("id")),
    ],
)
def test_data_fits_by_name_with_less_columns_and_narrower_types(data: StructType) -> None:
    check_write_compatible(TABLE, data)


def problems(data: StructType, table: StructType = TABLE) -> list[tuple[str, str]]:
    with pytest.raises(SchemaMismatchError) as caught:
        check_write_compatible(table, data)
    found = caught.value.differences
    assert found == differences(table, data)
    return [(each.path, each.problem) for each in found if each.blocks]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (struct(field("Name", STRING)), [("id", "missing in data")]),
        (struct(field("id", VOID)), [("id", "missing in data")]),
        (struct(field("id", STRING)), [("id", "types differ")]),
        (struct(field("id", DOUBLE)), [("id", "types differ")]),
        (struct(field("id"), field("z")), [("z", "not in the table")]),
        (struct(field("id"), field("s", LONG)), [("s", "types differ")]),
        (
            struct(field("id"), field("s", struct(field("x", STRING), field("z z")))),
            [("s.X", "types differ"), ("s.`z z`", "not in the table")],
        ),
        (
            struct(field("id"), field("l", ArrayType(struct(field("k", STRING))))),
            [("l.element.k", "types differ")],
        ),
        (
            struct(field("id"), field("m", MapType(LONG, LONG))),
            [("m.key", "types differ"), ("m.value", "types differ")],
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_is_reported_by_path(
    data: StructType, expected: list[tuple[str, str]]
) -> None:
    assert problems(data) == expected


def test_whether_elements_may_be_null_is_decided_by_values_and_not_by_the_types_of_the_data() -> (
    None
):
    inner = struct(field("x", struct(field("y", nullable=False)), nullable=False))
    table = struct(
        field("a", ArrayType(LONG, contains_null=False)),
        field("b", MapType(STRING, inner, value_contains_null=False)),
    )
    check_write_compatible(table, table)
    check_write_compatible(table, as_nullable(table))
    missing = MapType(STRING, struct(field("x", struct())), value_contains_null=False)
    lacking = struct(field("a", ArrayType(LONG)), field("b", missing))
    assert problems(lacking, table) == [("b.value.x.y", "missing in data")]


def test_the_error_shows_both_sides_aligned_and_names_the_remedy() -> None:
    data = struct(
        field("id", STRING), field("nane", STRING), field("s", struct(field("x", DOUBLE)))
    )
    with pytest.raises(SchemaMismatchError) as caught:
        check_write_compatible(TABLE, data)
    assert str(caught.value).splitlines() == [
        "[DELTA_METADATA_MISMATCH] The data does not fit the table's schema.",
        "",
        "  column  table                    data",
        "  id      bigint not null          string  <- types differ",
        "  Name    string                   -       <- missing in data (null)",
        "  s.y     string                   -       <- missing in data (null)",
        "  l       array<struct<k:bigint>>  -       <- missing in data (null)",
        "  m       map<string,int>          -       <- missing in data (null)",
        "  nane    -                        string  <- not in the table",
        "",
        "New columns are added with schema_mode 'merge' (Spark's option mergeSchema=true); for the "
        "others, change the data: cast it to the table's types and fill in columns that are NOT "
        "NULL. To replace the table's schema, write with mode 'overwrite' and schema_mode "
        "'overwrite' (Spark's option overwriteSchema=true).",
    ]


def test_the_remedy_for_new_columns_alone_is_to_merge() -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        check_write_compatible(
            struct(field("a"), field("b")), struct(field("a"), field("b"), field("c"))
        )
    assert "(2 other columns fit)" in str(caught.value)
    assert (
        "To add the new columns to the table, write with schema_mode 'merge' (Spark's option "
        "mergeSchema=true)." in str(caught.value)
    )
    assert "overwriteSchema=true" in str(caught.value)


def test_the_differences_travel_with_the_error() -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        check_write_compatible(struct(field("a")), struct(field("b")))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.differences == [
        Difference("a", "bigint", None, "missing in data", blocks=False),
        Difference("b", None, "bigint", "not in the table"),
    ]


# --- Growth ---


def test_new_columns_go_to_the_end_at_every_depth_and_may_be_null() -> None:
    data = struct(
        field("new", struct(field("a", nullable=False)), nullable=False, comment="c"),
        field("S", struct(field("z", nullable=False), field("x", DOUBLE))),
        field("L", ArrayType(struct(field("k2", LONG)))),
        field("m", MapType(STRING, INT)),
    )
    assert merge_schemas(TABLE, data) == struct(
        field("id", LONG, nullable=False),
        field("Name", STRING),
        field("s", struct(field("X", DOUBLE), field("y", STRING), field("z"))),
        field("l", ArrayType(struct(field("k", LONG), field("k2")))),
        field("m", MapType(STRING, INT)),
        field("new", struct(field("a")), comment="c"),
    )


def test_rules_of_the_table_that_the_data_came_from_stay_behind() -> None:
    data = struct(
        field("id"),
        field("g", LONG, comment="kept", delta__generationExpression="id + 1", CURRENT_DEFAULT="1"),
    )
    assert merge_schemas(struct(field("id")), data).fields[1].metadata == {"comment": "kept"}


def test_void_columns_change_no_type_and_new_ones_stay_void() -> None:
    data = struct(field("v", VOID), field("id", VOID))
    assert merge_schemas(TABLE, data) == struct(*TABLE, field("v", VOID))
    with pytest.raises(SchemaMismatchError, match=r"v +- +void +<- not in the table"):
        check_write_compatible(TABLE, data)


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        (LONG, INT, LONG),
        (DOUBLE, INT, DOUBLE),
        (DecimalType(20, 2), DecimalType(10, 2), DecimalType(20, 2)),
        (BYTE, INT, INT),
        (SHORT, INT, INT),
        (ArrayType(BYTE), ArrayType(SHORT), ArrayType(SHORT)),
        (VOID, STRING, STRING),
    ],
    ids=str,
)
def test_types_with_one_storage_meet_at_the_wider_one(
    ours: DataType, theirs: DataType, merged: DataType
) -> None:
    assert merge_schemas(struct(field("c", ours)), struct(field("c", theirs))) == struct(
        field("c", merged)
    )


def test_types_with_nothing_in_common_are_refused_together() -> None:
    data = struct(field("id", STRING), field("s", struct(field("x", STRING))), field("new"))
    with pytest.raises(SchemaMismatchError, match="can't be merged") as caught:
        merge_schemas(TABLE, data)
    assert caught.value.differences == [
        Difference("id", "bigint", "string", "types differ"),
        Difference("s.X", "double", "string", "types differ"),
    ]
    assert "overwriteSchema=true" in str(caught.value)


def test_a_wider_type_needs_the_feature_and_leaves_a_record() -> None:
    table = struct(field("a", INT, comment="c"), field("l", ArrayType(MapType(STRING, INT))))
    data = struct(field("a", LONG), field("l", ArrayType(MapType(STRING, LONG))))
    with pytest.raises(SchemaMismatchError):
        merge_schemas(table, data)
    change = {"fromType": "integer", "toType": "long"}
    assert merge_schemas(table, data, allow_type_widening=True) == struct(
        field("a", LONG, comment="c", delta__typeChanges=[change]),
        field(
            "l",
            ArrayType(MapType(STRING, LONG)),
            delta__typeChanges=[{**change, "fieldPath": "element.value"}],
        ),
    )


def test_a_second_change_of_type_is_recorded_behind_the_first() -> None:
    first = merge_schemas(
        struct(field("a", SHORT)), struct(field("a", INT)), allow_type_widening=True
    )
    second = merge_schemas(first, struct(field("a", LONG)), allow_type_widening=True)
    assert second.fields[0].metadata["delta.typeChanges"] == [
        {"fromType": "short", "toType": "integer"},
        {"fromType": "integer", "toType": "long"},
    ]


# --- Laws ---

NAMES = st.sampled_from(["a", "B", "c d", "É"])
ATOMS: st.SearchStrategy[DataType] = st.sampled_from(
    [BYTE, INT, LONG, DOUBLE, STRING, DecimalType(12, 2)]
)


def structs(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    fields = st.builds(StructField, NAMES, inner, st.booleans())
    return st.lists(fields, min_size=1, max_size=4, unique_by=lambda f: f.name.lower()).map(
        lambda found: StructType(tuple(found))
    )


TYPES: st.SearchStrategy[DataType] = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        structs(inner),
        st.builds(ArrayType, inner, st.booleans()),
        st.builds(MapType, ATOMS, inner, st.booleans()),
    ),
    max_leaves=5,
)


@given(structs(TYPES), structs(TYPES))
def test_what_was_merged_takes_both_and_merging_again_changes_nothing(
    table: StructType, data: StructType
) -> None:
    try:
        merged = merge_schemas(as_nullable(table), as_nullable(data))
    except SchemaMismatchError:
        return
    for source in (table, data):
        check_write_compatible(merged, source)
        assert merge_schemas(merged, as_nullable(source)) == merged


@given(structs(TYPES), structs(TYPES))
def test_the_cast_of_arrow_data_agrees_with_the_check(table: StructType, data: StructType) -> None:
    empty = to_arrow_schema(data).empty_table()
    try:
        check_write_compatible(as_nullable(table), data)
    except SchemaMismatchError:
        with pytest.raises(SchemaMismatchError):
            # One row of nulls, since a column of no rows may lack anything.
            cast_table(_one_row(data), as_nullable(table))
    else:
        assert cast_table(empty, as_nullable(table)).schema == to_arrow_schema(as_nullable(table))


def _one_row(schema: StructType) -> pa.Table:
    arrow = to_arrow_schema(as_nullable(schema))
    return pa.Table.from_arrays([pa.nulls(1, f.type) for f in arrow], schema=arrow)


def tried(work: Callable[[], object]) -> None:
    with contextlib.suppress(SchemaMismatchError):
        work()


@pytest.mark.parametrize(
    "work",
    [check_write_compatible, merge_schemas, differences],
    ids=lambda work: work.__name__,
)
@pytest.mark.parametrize(
    ("prefix", "kind"),
    [("c", LONG), ("C", INT), ("d", LONG), ("c", STRING)],
    ids=["same", "cast", "new", "clash"],
)
@pytest.mark.parametrize("nested", [False, True], ids=["columns", "fields"])
def test_the_work_is_in_proportion_to_the_columns(
    work: Callable[[StructType, StructType], object], prefix: str, kind: DataType, nested: bool
) -> None:
    def lines(n: int) -> int:
        table = StructType(tuple(field(f"c{i}") for i in range(n)))
        data = StructType(tuple(field(f"{prefix}{i}", kind) for i in range(n)))
        if nested:
            table, data = (StructType((field("s", each),)) for each in (table, data))
        return lines_run(lambda: tried(lambda: work(table, data)))

    found = Costs(lines(50), lines(100), lines(200))
    assert not found.grow_too_fast(), str(found)


names = st.lists(st.sampled_from(["a", "A", "b", "é", "É", "aB", "Ab", "ab"]), max_size=5)


@given(names, st.sampled_from(["a", "A", "AB", "ab", "E", "É", "x"]))
def test_a_field_is_found_by_its_spelling_first_else_ignoring_case(
    known: list[str], name: str
) -> None:
    struct = StructType(
        tuple(field(each, type_) for each, type_ in zip(known, KINDS, strict=False))
    )
    exact = [f for f in struct if f.name == name]
    alike = [f for f in struct if f.name.lower() == name.lower()]
    expected = next(iter(exact + alike), None)
    assert struct.get(name) is expected
    again = pickle.loads(pickle.dumps(struct))
    assert again == struct
    assert hash(again) == hash(struct)
    assert again.get(name) == expected
