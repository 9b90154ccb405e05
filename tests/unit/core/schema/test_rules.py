"""What a schema must be, and the rules that rows must keep."""

from __future__ import annotations

from typing import Any

import pytest

from lakelog.core.actions import Metadata
from lakelog.core.errors import CorruptLogError, DeltaAnalysisError
from lakelog.core.rows.constraints import (
    Constraint,
    required_columns,
    table_constraints,
)
from lakelog.core.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from lakelog.core.schema.rules import (
    as_nullable,
    check_schema,
    partition_schema,
    resolve_columns,
    without_void,
)

LONG, VOID = PrimitiveType("long"), PrimitiveType("void")


def field(
    name: str, data_type: DataType = LONG, nullable: bool = True, **marks: Any
) -> StructField:
    return StructField(
        name, data_type, nullable, {k.replace("__", "."): v for k, v in marks.items()}
    )


def struct(*fields: StructField) -> StructType:
    return StructType(fields)


GOOD = struct(
    field("id"),
    field("größe-№!", DecimalType(38, 38)),
    field("s", struct(field("id"), field("v", VOID))),
    field("m", MapType(LONG, ArrayType(struct(field("id"))))),
)


def test_a_good_schema_passes_with_its_partition_columns() -> None:
    check_schema(GOOD, ["id", "größe-№!"])
    check_schema(struct())


@pytest.mark.parametrize(
    ("schema", "columns", "code"),
    [
        (struct(field("a"), field("A")), ["a", "A"], "DUPLICATE"),
        (
            struct(field("s", ArrayType(struct(field("x"), field("X"))))),
            ["s.element.x", "s.element.X"],
            "DUPLICATE",
        ),
        *[(struct(field(f"a{c}b")), [f"`a{c}b`"], "INVALID_CHARACTERS") for c in " ,;{}()\n\t="],
        (struct(field("m", MapType(LONG, struct(field("a b"))))), ["m.value.`a b`"], "CHARACTERS"),
        (struct(field("a"), field("")), ["``"], "EMPTY_COLUMN_NAME"),
        (struct(field("a", ArrayType(VOID))), ["a"], "CONTAINS_NULL_TYPE"),
        (
            struct(field("s", struct(field("m", MapType(LONG, struct(field("v", VOID))))))),
            ["s.m"],
            "CONTAINS_NULL_TYPE",
        ),
        (struct(field("a", VOID), field("b", VOID)), ["a", "b"], "TABLE_ALL_VOID_COLUMNS"),
        (struct(field("d", DecimalType(39, 0))), ["d"], "UNSUPPORTED_DATA_TYPES"),
        (struct(field("d", ArrayType(DecimalType(3, 5)))), ["d.element"], "UNSUPPORTED_DATA"),
    ],
)
def test_a_schema_that_delta_can_t_store_is_refused_with_every_culprit(
    schema: StructType, columns: list[str], code: str
) -> None:
    with pytest.raises(DeltaAnalysisError, match=code) as caught:
        check_schema(schema)
    assert caught.value.columns == columns
    assert all(column in str(caught.value) for column in columns)


def test_any_character_may_stand_in_a_name_with_column_mapping() -> None:
    check_schema(struct(field("a b;c")), column_mapping=True)


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        (["nope"], "no partition column nope in the schema; it has id,"),
        (["ID"], "ID is spelled id"),
        (["id", "id"], "once"),
        (["s"], "nested columns"),
        (["m"], "nested columns"),
    ],
)
def test_bad_partition_columns_are_refused(columns: list[str], why: str) -> None:
    with pytest.raises(DeltaAnalysisError, match=why):
        check_schema(GOOD, columns)


def test_void_and_variant_do_not_partition_a_table() -> None:
    schema = struct(field("a"), field("v", VOID), field("w", PrimitiveType("variant")))
    for name in ("v", "w"):
        with pytest.raises(DeltaAnalysisError, match="void or variant"):
            check_schema(schema, [name])


def test_one_column_at_least_is_no_partition_column() -> None:
    with pytest.raises(DeltaAnalysisError, match="CANNOT_USE_ALL_COLUMNS"):
        check_schema(struct(field("a"), field("b")), ["b", "a"])


def test_names_are_resolved_to_the_schema_s_spelling() -> None:
    schema = struct(field("Year"), field("month"))
    assert resolve_columns(schema, ["YEAR", "Month"]) == ["Year", "month"]
    assert partition_schema(schema, ["month", "year"]).names == ["month", "Year"]
    with pytest.raises(DeltaAnalysisError, match="no column day in the schema; it has Year, month"):
        resolve_columns(schema, ["day"])


STRICT = struct(
    field("a", nullable=False),
    field("s", struct(field("b", nullable=False), field("c d", nullable=False, comment="x"))),
    field("t", struct(field("e", struct(field("f", nullable=False)), False)), False),
    field("l", ArrayType(struct(field("g", nullable=False)), contains_null=False)),
    field("m", MapType(LONG, LONG, value_contains_null=False)),
)


def test_a_dataframe_s_nullability_is_not_the_table_s() -> None:
    loose = as_nullable(STRICT)
    assert required_columns(loose) == []
    assert str(loose) == str(STRICT)
    assert loose.fields[1].data_type == struct(field("b"), field("c d", comment="x"))


def test_void_columns_leave_without_their_siblings() -> None:
    schema = struct(field("a"), field("v", VOID), field("s", struct(field("v", VOID), field("b"))))
    assert without_void(schema) == struct(field("a"), field("s", struct(field("b"))))


def test_nulls_deep_within_are_looked_for_where_the_type_allows_none() -> None:
    pair = struct(field("k", LONG, False), field("l", ArrayType(ArrayType(LONG, False))))
    schema = struct(
        field("plain", ArrayType(MapType(LONG, struct(field("x"))))),
        field("s", struct(field("d", MapType(pair, LONG)))),
    )
    (rule,) = table_constraints(metadata(schema))
    inner = "forall(x1, x2 -> x2 IS NOT NULL)"
    assert rule == Constraint(
        "s.d",
        "`s`.`d` IS NULL OR forall(map_keys(`s`.`d`), x0 -> (x0 IS NULL OR x0.`k` IS NOT NULL AND "
        f"(x0.`l` IS NULL OR forall(x0.`l`, x1 -> (x1 IS NULL OR {inner})))))",
        "not_null",
    )


def test_required_columns_are_those_that_an_expression_of_a_row_can_check() -> None:
    assert required_columns(STRICT) == ["a", "s.b", "s.`c d`", "t", "t.e", "t.e.f"]


def metadata(schema: StructType, **configuration: str) -> Metadata:
    return Metadata(
        id="x",
        schema_string=schema.to_json(),
        configuration={k.replace("__", "."): v for k, v in configuration.items()},
    )


def test_every_rule_of_a_table_is_listed_with_its_sql() -> None:
    invariant = '{"expression":{"expression":"x > 3"}}'
    schema = struct(*STRICT.fields, field("x", delta__invariants=invariant))
    rules = table_constraints(metadata(schema, delta__constraints__pos="a > 0"))
    assert rules == [
        Constraint("a", "`a` IS NOT NULL", "not_null"),
        Constraint("s.b", "`s` IS NULL OR `s`.`b` IS NOT NULL", "not_null"),
        Constraint("s.`c d`", "`s` IS NULL OR `s`.`c d` IS NOT NULL", "not_null"),
        Constraint("t", "`t` IS NOT NULL", "not_null"),
        Constraint("t.e", "`t`.`e` IS NOT NULL", "not_null"),
        Constraint("t.e.f", "`t`.`e`.`f` IS NOT NULL", "not_null"),
        Constraint(
            "l",
            "`l` IS NULL OR forall(`l`, x0 -> x0 IS NOT NULL AND x0.`g` IS NOT NULL)",
            "not_null",
        ),
        Constraint("m", "`m` IS NULL OR forall(map_values(`m`), x0 -> x0 IS NOT NULL)", "not_null"),
        Constraint("x", "x > 3", "invariant"),
        Constraint("pos", "a > 0", "check"),
    ]


def test_a_table_without_rules_has_none() -> None:
    assert table_constraints(metadata(struct(field("a")), owner="me")) == []


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"expression":"x"}', 7])
def test_an_invariant_that_can_t_be_read_is_refused_by_column(text: object) -> None:
    with pytest.raises(CorruptLogError, match="Column x has an invariant that can't be read"):
        table_constraints(metadata(struct(field("x", delta__invariants=text))))
