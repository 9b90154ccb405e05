"""A shape of sqlglot's tree that is not known is refused, wherever in an expression it stands."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError
from lakelog.core.expressions.binding import bind
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.filter import parse_filter
from lakelog.core.expressions.parse.long_lists import cut_lists
from lakelog.core.expressions.parse.sql import (
    _plain_dialect,
    _Reader,
    _remembered,
    parse_sql,
    referenced_columns,
)
from lakelog.core.expressions.parse.string_literals import for_sqlglot
from lakelog.core.expressions.parse.tree_shapes import SQLGLOT, check_sqlglot, is_read
from lakelog.core.expressions.tree import Column, Comparison, Literal, is_opaque
from lakelog.core.expressions.values.evaluate import constant_of, evaluate_value, value_type
from lakelog.core.input.given_types import schema_from
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[4]
STRING = PrimitiveType("string")
ROWS = pa.table(
    {
        "n": pa.array([1, 2, None], pa.int64()),
        "x": pa.array([1.5, 2.5, None]),
        "s": pa.array(["a", "b", None]),
        "b": pa.array([True, False, None]),
        "d": pa.array([1, 2, None], pa.date32()),
        "c": pa.array([{"e": {"f": {"g": {"h": 1}}}}] * 3),
    }
)
SCHEMA = from_arrow_schema(ROWS.schema)
# One for every rule of both translations.
CONDITIONS = [
    "n = 1 AND x < 2.5D AND NOT b AND (s IS NULL OR s = 'a' OR n <=> 2)",
    "n NOT BETWEEN 1L AND (2)",
    "n IN (1, -2, CAST('3' AS BIGINT))",
    "s LIKE 'a%' OR s NOT LIKE 'b'",
    "s NOT ILIKE 'A'",
    "startswith(s, 'a')",
    "isnotnull(s)",
    "b IS TRUE",
    "b IS NOT FALSE",
    "b",
    "c.e.f.g.h = 1",
    "d = DATE '1970-01-02'",
    "d + INTERVAL 1 DAY > DATE '1970-01-02'",
    "n = 1.5BD",
    "x > TRY_CAST('1.5' AS DOUBLE)",
    "CAST(n AS DECIMAL(9, 2)) = 1",
    "EXTRACT(YEAR FROM d) = 1970",
    "CASE WHEN b THEN n ELSE 1 END = 1",
    "IF(b, n, 2) = 2",
    "n + 1 - 1 * n > n % 2",
    "x / 2D < 5 AND n DIV 2 = 0",
    "s || 'b' = 'ab'",
    "upper(s) = 'A'",
    "s > NULL",
    "TRUE",
    "n NOT IN (1) AND n != 2 AND n >= 1 AND n > 0 AND n <= 9",
]


def plain(sql: str) -> Any:
    return sqlglot.parse_one(for_sqlglot(sql), dialect=_plain_dialect())


def altered(root: Any) -> Iterator[tuple[str, Any]]:
    """The tree once for each of its nodes, with an argument that nobody knows at that node."""
    for index, node in enumerate(root.walk()):
        changed = root.copy()
        list(changed.walk())[index].set("odd", exp.Literal.number(1))
        yield f"{type(node).__name__} of {root!r}", changed


@pytest.mark.parametrize("sql", CONDITIONS)
def test_an_unknown_argument_of_any_node_is_never_passed_over(sql: str) -> None:
    wanted = PrimitiveType("boolean")
    for where, changed in altered(plain(sql)):
        root = _Reader(sql, cut_lists(sql)).read(changed)
        with pytest.raises(InvalidPredicateError, match="which only Spark evaluates"):
            evaluate_value(sql, ROWS, SCHEMA, wanted, root=root)
        assert value_type(sql, SCHEMA, root=root) is None, where
        assert constant_of(root, EvalContext()) is None, where


@pytest.mark.parametrize("sql", CONDITIONS)
@pytest.mark.parametrize("grammar", ["plain", "spark"])
def test_a_filter_with_an_unknown_argument_is_left_to_an_engine(sql: str, grammar: str) -> None:
    simple = grammar == "spark"
    given = sqlglot.parse_one(for_sqlglot(sql), dialect="spark") if simple else plain(sql)
    for where, changed in altered(given):
        root = _Reader(sql, cut_lists(sql), simple=simple).read(changed)
        assert is_opaque(bind(root, SCHEMA)), where


def test_an_unknown_kind_of_node_is_left_to_an_engine() -> None:
    given = exp.And(this=plain("n = 1"), expression=exp.Glob(this="n", expression="1"))
    assert value_type("", SCHEMA, root=_Reader("", cut_lists("")).read(given)) is None
    assert not is_read(given.expression)
    assert is_opaque(parse_filter("n = 1 AND s GLOB 'a'", SCHEMA))


def test_what_sqlglot_says_of_the_dialect_counts_only_as_it_says_it() -> None:
    root = plain("x / 2D")
    assert is_read(root)
    root.set("typed", True)
    assert not is_read(root)


@pytest.mark.parametrize(
    ("sql", "sought"),
    [
        ("CAST(s AS STRING COLLATE UTF8_LCASE) = 'A'", "COLLATE"),
        ("n BETWEEN SYMMETRIC 2 AND 1", "SYMMETRIC"),
        ("CASE n WHEN 1 THEN b ELSE (SELECT b) END", "SELECT"),
        ("n IN (SELECT 1)", "IN"),
    ],
)
def test_what_changes_the_meaning_of_a_known_form_is_spark_s(sql: str, sought: str) -> None:
    with pytest.raises(InvalidPredicateError, match=f"{sought}.* which only Spark evaluates"):
        evaluate_value(sql, ROWS, SCHEMA, PrimitiveType("boolean"))


def test_a_time_without_zone_is_one_under_its_long_name() -> None:
    long = "CAST('2020-01-01 01:00:00' AS timestamp  without time zone)"
    assert value_type(long, SCHEMA) == PrimitiveType("timestamp_ntz")
    assert referenced_columns(f"{long} = t AND 'timestamp without time zone' = u") == {
        ("t",),
        ("u",),
    }
    text = "s = 'TIMESTAMP WITHOUT TIME ZONE'"
    assert parse_filter(text, SCHEMA) == Comparison(
        "=", Column(("s",), STRING), Literal("TIMESTAMP WITHOUT TIME ZONE", STRING)
    )


@pytest.mark.parametrize(
    "given",
    ["string collate utf8_lcase", "array<string collate unicode>", "bigint unsigned", "int foo"],
)
def test_a_type_with_more_than_is_read_is_none(given: str) -> None:
    with pytest.raises(DeltaAnalysisError, match="can't be of type"):
        schema_from({"a": given})
    with pytest.raises(
        DeltaAnalysisError, match=r"column a of|can't be of type|must be a StructType"
    ):
        schema_from(f"a {given}")


@pytest.mark.parametrize("release", ["26.0.1", "30.16.0", "30.23.9", "31.0.0", "31.0.0.dev1", "x"])
def test_a_release_whose_trees_are_not_known_reads_no_condition(
    release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlglot, "__version__", release)
    check_sqlglot.cache_clear()
    _remembered.cache_clear()
    try:
        with pytest.raises(InvalidPredicateError, match=r"pip install 'sqlglot>=30\.24,<31'"):
            parse_filter("n <= 1.5BD", SCHEMA)
        with pytest.raises(InvalidPredicateError, match=f"sqlglot {release} is installed"):
            parse_sql("n <= 1.5BD")
    finally:
        check_sqlglot.cache_clear()


def test_the_project_asks_for_the_releases_that_are_known() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (first, last) = (".".join(map(str, each)) for each in SQLGLOT)
    assert f"sqlglot>={first},<{last.removesuffix('.0')}" in project["dependencies"]
