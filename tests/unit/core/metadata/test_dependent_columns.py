from __future__ import annotations

import pytest

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.expressions.parse.sql import referenced_columns
from lakelog.core.features.table_properties import TableProperties
from lakelog.core.metadata.dependent_columns import check_dependent_columns
from lakelog.core.schema import ArrayType, DataType, PrimitiveType, StructField, StructType

LONG, INT = PrimitiveType("long"), PrimitiveType("integer")
GENERATED = {"delta.generationExpression": "CAST(A + 1 AS BIGINT)"}


def table(constraints: dict[str, str] | None = None, **columns: DataType | None):
    """Schema and properties; a column of no type is the generated one."""
    fields = tuple(
        StructField(name, kind) if kind else StructField(name, LONG, metadata=GENERATED)
        for name, kind in columns.items()
    )
    given = {f"delta.constraints.{name}": sql for name, sql in (constraints or {}).items()}
    return StructType(fields), TableProperties(given)


@pytest.mark.parametrize(
    ("sql", "paths"),
    [
        ("a > 0 AND `x y`.z IS NOT NULL", {("a",), ("x y", "z")}),
        ("forall(items, x -> x > lower)", {("items",), ("lower",)}),
        ("extract(year FROM day) = 2024", {("day",)}),
        ("timestampdiff(DAY, a, b) < 3", {("a",), ("b",)}),
        ("m['key'] > 1 AND current_date() > d", {("m",), ("d",)}),
        ("this is (no sql", set()),
    ],
)
def test_the_columns_of_an_expression_are_found(sql: str, paths: set[tuple[str, ...]]) -> None:
    assert referenced_columns(sql) == paths


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        (
            table({"pos": "a > 0"}, a=LONG, b=LONG),
            table({"pos": "a > 0"}, b=LONG),
            "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
            "column a can't be dropped or renamed: the CHECK constraint pos (a > 0)",
        ),
        (
            table({"pos": "S.X > 0"}, s=StructType((StructField("x", LONG),))),
            table({"pos": "S.X > 0"}, s=StructType((StructField("y", LONG),))),
            "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
            "column S.X can't",
        ),
        (
            table({"pos": "a > 0"}, a=INT),
            table({"pos": "a > 0"}, a=LONG),
            "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH",
            "has the type int and can't be changed to bigint",
        ),
        (
            table(a=LONG, g=None),
            table(g=None),
            "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
            "the generated column g (CAST(A + 1 AS BIGINT))",
        ),
        (
            table(a=INT, g=None),
            table(a=LONG, g=None),
            "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH",
            "the generated column g",
        ),
        (
            table(a=LONG),
            table({"pos": "a > 0 AND nope > 1"}, a=LONG),
            "UNRESOLVED_COLUMN",
            "The CHECK constraint pos (a > 0 AND nope > 1) refers to the column nope",
        ),
        (None, table({"pos": "nope > 1"}, a=LONG), "UNRESOLVED_COLUMN", "It has a."),
    ],
)
def test_a_column_that_a_rule_refers_to_stays_as_it_is(old, new, code: str, message: str) -> None:
    with pytest.raises(DeltaAnalysisError) as caught:
        check_dependent_columns(old, new)
    assert str(caught.value).startswith(f"[{code}]")
    assert message in str(caught.value)
    assert caught.value.rule in ("pos", "g")


ITEMS = ArrayType(StructType((StructField("n", LONG),)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The rule goes with its column.
        (table({"pos": "a > 0"}, a=LONG, b=LONG), table(b=LONG)),
        # A struct gets more fields, and a column is spelled anew.
        (
            table({"pos": "s.x > 0"}, s=StructType((StructField("x", LONG),))),
            table(
                {"pos": "s.x > 0"},
                S=StructType((StructField("x", LONG), StructField("y", LONG))),
            ),
        ),
        (None, table({"some": "items[0].n > 0 AND exists(items, i -> i.n > 1)"}, items=ITEMS)),
        # A rule that nobody could check before is no reason to refuse something else.
        (table({"odd": "gone > 0"}, a=LONG), table({"odd": "gone > 0"}, a=LONG, b=LONG)),
        (table({"odd": "(("}, a=LONG), table({"odd": "(("}, b=LONG)),
    ],
)
def test_what_no_rule_refers_to_may_change(old, new) -> None:
    check_dependent_columns(old, new)
