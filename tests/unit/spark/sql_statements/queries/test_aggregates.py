from __future__ import annotations

import pytest

from lakelog.spark.sql_statements.queries.aggregates import Aggregate, wanted
from lakelog.spark.sql_statements.text.references import references
from lakelog.spark.sql_statements.text.tokens import tokenize


def asked(text: str) -> list[Aggregate] | None:
    tokens = tokenize(text)
    (reference,) = references(tokens)
    return wanted(tokens, reference)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("SELECT count(*) FROM t", [("COUNT", None, "count(1)")]),
        ("select Count ( 1 ) n from delta.`/p` as x", [("COUNT", None, "n")]),
        ("SELECT min(a), MAX(`b c`) AS m FROM t@v3", [("MIN", "a", "min(a)"), ("MAX", "b c", "m")]),
        ("SELECT max(a) FROM t VERSION AS OF 3 x WHERE x.b = 1", [("MAX", "a", "max(a)")]),
    ],
)
def test_the_plainest_aggregates_are_found(text: str, items: list[tuple[str, str, str]]) -> None:
    assert asked(text) == [Aggregate(*each) for each in items]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(a) FROM t",
        "SELECT count(DISTINCT a) FROM t",
        "SELECT DISTINCT count(*) FROM t",
        "SELECT count(*) + 1 FROM t",
        "SELECT -count(*) FROM t",
        "SELECT count(*), FROM t",
        "SELECT count(*), a FROM t",
        "SELECT min(a + 1) FROM t",
        "SELECT min(a.b) FROM t",
        "SELECT min(a) FILTER (WHERE b > 1) FROM t",
        "SELECT max(a) OVER () FROM t",
        "SELECT count(*) FROM t GROUP BY a",
        "SELECT count(*) FROM t WHERE a = 1 GROUP BY a",
        "SELECT count(*) FROM t x LIMIT 0",
        "SELECT count(*) FROM t LIMIT 0",
        "SELECT count(*) FROM t TABLESAMPLE (10 PERCENT)",
        "SELECT count(*) FROM t, LATERAL (SELECT 1)",
        "SELECT count(*) FROM t LATERAL VIEW explode(a) x AS y",
        "SELECT count(*) FROM (SELECT * FROM t)",
        "SELECT count(*) FROM t WHERE a = 1 UNION ALL SELECT 1",
        "SELECT sum(a) FROM t",
        "EXPLAIN SELECT count(*) FROM t",
        "WITH u AS (SELECT 1) SELECT count(*) FROM t",
        "SELECT count(*) FROM t |> LIMIT 0",
        "SELECT (SELECT count(*) FROM t)",
        "CREATE TABLE u AS SELECT count(*) FROM t",
    ],
)
def test_whatever_else_is_in_the_text_leaves_it_to_spark(text: str) -> None:
    assert asked(text) is None
