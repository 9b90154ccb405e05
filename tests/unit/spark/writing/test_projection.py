from __future__ import annotations

import pytest

from lakelog.core.schema import ArrayType, MapType, PrimitiveType, StructField, StructType
from lakelog.spark.types.path_forms import text_literal
from lakelog.spark.writing.projection import projection

INT, LONG, STRING = PrimitiveType("integer"), PrimitiveType("long"), PrimitiveType("string")


def struct(**fields):
    return StructType(tuple(StructField(name, kind) for name, kind in fields.items()))


def test_equal_schemas_need_no_projection_whatever_their_nullability():
    table = StructType((StructField("a", INT, nullable=False),))

    assert projection(struct(a=INT), table) is None


def test_columns_are_found_by_name_and_put_in_the_tables_order_and_spelling():
    assert projection(struct(B=INT, a=INT), struct(a=INT, b=INT)) == ["`a` AS `a`", "`B` AS `b`"]


def test_a_narrower_column_is_cast_and_a_missing_one_is_null():
    assert projection(struct(a=INT), struct(a=LONG, b=STRING)) == [
        "CAST(`a` AS bigint) AS `a`",
        "CAST(NULL AS string) AS `b`",
    ]


def test_a_void_column_of_the_data_is_cast_to_the_tables_type():
    assert projection(struct(a=PrimitiveType("void")), struct(a=STRING)) == [
        "CAST(`a` AS string) AS `a`"
    ]


def test_names_with_backticks_and_dots_are_quoted():
    (sql,) = projection(struct(**{"a`.b": INT}), struct(**{"a`.b": LONG})) or []

    assert sql == "CAST(`a``.b` AS bigint) AS `a``.b`"


def test_fields_within_structs_arrays_and_maps_are_matched_by_name():
    inner, wanted = struct(y=INT, x=INT), struct(x=LONG, y=INT, z=STRING)
    built = "named_struct('x', CAST({0}.`x` AS bigint), 'y', {0}.`y`, 'z', CAST(NULL AS string))"

    assert projection(struct(s=inner), struct(s=wanted)) == [
        f"IF(`s` IS NULL, NULL, {built.format('`s`')}) AS `s`"
    ]
    assert projection(struct(s=ArrayType(inner)), struct(s=ArrayType(wanted))) == [
        f"transform(`s`, x0 -> IF(x0 IS NULL, NULL, {built.format('x0')})) AS `s`"
    ]
    assert projection(struct(s=MapType(INT, inner)), struct(s=MapType(LONG, wanted))) == [
        "transform_values(transform_keys(`s`, (x0, v0) -> CAST(x0 AS bigint)), "
        f"(x0, v0) -> IF(v0 IS NULL, NULL, {built.format('v0')})) AS `s`"
    ]


def test_lambdas_within_lambdas_have_variables_of_their_own():
    (sql,) = (
        projection(struct(a=ArrayType(ArrayType(INT))), struct(a=ArrayType(ArrayType(LONG)))) or []
    )

    assert sql == "transform(`a`, x0 -> transform(x0, x1 -> CAST(x1 AS bigint))) AS `a`"


@pytest.mark.parametrize("text", ["it's", 'say "x"', "back\\slash", "line\nend"])
def test_a_text_that_parsers_read_differently_travels_as_digits(text):
    assert text_literal(text) == f"CAST(X'{text.encode().hex()}' AS STRING)"


def test_a_plain_text_stays_readable():
    assert text_literal("größe > 3") == "'größe > 3'"
