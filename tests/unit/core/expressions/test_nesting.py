from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core.actions.file_table import files_from_json
from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.arrow.masks import evaluate_mask
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.expressions.nesting import MAX_LEVELS
from lakelog.core.expressions.parse.sql import referenced_columns
from lakelog.core.expressions.prune import keep_files
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import And, Column, Comparison, Literal, Not, Or
from lakelog.core.expressions.values.evaluate import evaluate_value, value_type
from lakelog.core.schema import PrimitiveType, StructType

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = StructType.from_json(b'{"type":"struct","fields":[{"name":"n","type":"long"}]}')
ROWS = pa.table({"n": [1, 2]})
FILES = files_from_json([{"path": "a", "partitionValues": {}, "stats": "{}"}])
LEAF = Comparison("=", Column(("n",)), Literal(1))


def folded(depth: int, *steps: Callable[[Any], Any]) -> Any:
    found: Any = LEAF
    for each in range(depth):
        found = steps[each % len(steps)](found)
    return found


def nested(depth: int) -> str:
    sql = "n = 1"
    for each in range(depth):
        sql = f"({sql} {('AND', 'OR')[each % 2]} n = 2)"
    return sql


SHAPES: dict[str, Callable[[int], Any]] = {
    "parentheses": lambda n: "(" * n + "n = 1" + ")" * n,
    "parentheses around a column": lambda n: "(" * n + "n" + ")" * n + " = 1",
    "AND and OR": nested,
    "NOT": lambda n: "NOT " * n + "n = 1",
    "minus": lambda n: "n = " + "- " * n + "1",
    "functions": lambda n: "abs(" * n + "n" + ")" * n + " = 1",
    "casts": lambda n: "CAST(" * n + "n" + " AS bigint)" * n + " = 1",
    "sums": lambda n: "n" + " + 0" * n + " = 1",
    "choices": lambda n: "CASE WHEN n = 1 THEN " * n + "TRUE" + " END" * n,
    "a chain": lambda n: "n = 1" + " OR n = 2 AND n = 3" * n,
    "a tree of NOT": lambda n: folded(n, Not),
    "a tree of AND": lambda n: folded(n, lambda e: And((e, LEAF))),
    "a tree of all": lambda n: folded(n, Not, lambda e: And((e, LEAF)), lambda e: Or((LEAF, e))),
}


def use(given: Any) -> None:
    """All that walks a condition."""
    expr = normalize_filter(given, SCHEMA)
    assert expr is not None
    to_sql(expr)
    keep_files(FILES, expr, SCHEMA, [])
    evaluate_mask(expr, ROWS, SCHEMA)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("depth", [1, 20, 85, MAX_LEVELS, 900])
def test_a_deep_condition_works_or_is_refused_with_the_limit(shape: str, depth: int) -> None:
    given = SHAPES[shape](depth)
    doors: list[Callable[[], object]] = [lambda: use(given)]
    if isinstance(given, str):
        doors += [
            lambda: evaluate_value(given, ROWS, SCHEMA, PrimitiveType("boolean")),
            lambda: value_type(given, SCHEMA),
            lambda: referenced_columns(given),
        ]
    for refusal in filter(None, map(refused, doors)):
        if "only Spark" not in str(refusal):
            assert depth > 20
            assert refusal.fields["limit"] > 30
            assert len(str(refusal)) < 500


def refused(door: Callable[[], object]) -> InvalidPredicateError | None:
    try:
        door()
    except InvalidPredicateError as exc:
        return exc
    return None


def test_the_limit_is_reported_with_the_way_out() -> None:
    with pytest.raises(
        InvalidPredicateError, match=r"2000 levels .* limit of \d+ frames"
    ) as caught:
        normalize_filter("(" * 2000 + "n = 1" + ")" * 2000, SCHEMA)
    assert caught.value.fields == {"levels": 2000, "limit": sys.getrecursionlimit() // 25}
    with pytest.raises(InvalidPredicateError, match=f"the limit is {MAX_LEVELS}"):
        normalize_filter(folded(MAX_LEVELS + 1, Not), SCHEMA)
    use(folded(MAX_LEVELS, Not))
