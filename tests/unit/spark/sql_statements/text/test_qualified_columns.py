"""Whole names of tables before columns, in expressions that know the table by its alias."""

from __future__ import annotations

import pytest

from lakelog.spark.sql_statements.text.qualified_columns import Qualifiers
from lakelog.spark.sql_statements.text.statement import Statement


@pytest.fixture
def names() -> Qualifiers:
    found = Qualifiers()
    for parts in (("t",), ("d", "t"), ("spark_catalog", "d", "t")):
        found.add(parts, "t")
    found.add(("delta", "/a b"), "/a b")
    return found


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("d.t.a = 1", "`t`.a = 1"),
        ("D . `T` . a + spark_catalog.d.t.s.x", "`t` . a + `t`.s.x"),
        ("f(d.t.a, t.a, a) AND e.d.t.a", "f(`t`.a, t.a, a) AND e.d.t.a"),
        ("d.t = 1 OR d.t", "d.t = 1 OR d.t"),
        ("'d.t.a' -- d.t.a", "'d.t.a' -- d.t.a"),
        ("delta.`/a b`.x IS NULL", "`/a b`.x IS NULL"),
        ("d.t.*", "d.t.*"),
    ],
)
def test_the_alias_stands_for_the_name(names: Qualifiers, text: str, wanted: str) -> None:
    assert names.shortened(Statement(text)).text == wanted
    assert Qualifiers().shortened(Statement(text)).text == text


def test_columns_that_are_set_keep_the_alias_alone(names: Qualifiers) -> None:
    assert names.path(("D", "T", "s", "x")) == ("t", "s", "x")
    assert names.path(("spark_catalog", "d", "t", "a")) == ("t", "a")
    assert names.path(("d", "t")) == ("d", "t")
    assert names.path(("a",)) == ("a",)
