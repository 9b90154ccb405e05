"""Which queries of views are all rows of a table, and which columns of it they show."""

from __future__ import annotations

import pytest

from lakelog.spark.sql_statements.queries.written_views import _shown
from lakelog.spark.sql_statements.text.references import references
from lakelog.spark.sql_statements.text.tokens import tokenize

ALL: list[str] = []


def shown(query: str) -> list[str] | None:
    tokens = tokenize(query)
    found = references(tokens)
    return _shown(tokens, found[0].first, found[0].end) if len(found) == 1 else None


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT * FROM t", ALL),
        ("select * from db.t AS x", ALL),
        ("SELECT * FROM delta.`/a b` x", ALL),
        ("TABLE t", ALL),
        ("FROM t", ALL),
        ("(SELECT * FROM t)", ALL),
        ("SELECT * FROM (SELECT * FROM t AS t1) AS t2", ALL),
        ("SELECT * FROM ((SELECT * FROM (TABLE t) x))", ALL),
        ("SELECT a, `b c` FROM t", ["a", "b c"]),
        ("SELECT * FROM (SELECT a, b FROM t)", ["a", "b"]),
        ("SELECT a, b FROM (SELECT A, B FROM t)", ["A", "B"]),
    ],
)
def test_a_query_with_nothing_done_to_the_rows(query: str, columns: list[str]) -> None:
    assert shown(query) == columns


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t WHERE a > 1",
        "SELECT * FROM t LIMIT 1",
        "SELECT * FROM t AS x LIMIT 1",
        "SELECT * FROM t ORDER BY a",
        "SELECT * FROM t TABLESAMPLE (1 ROWS)",
        "SELECT * FROM t AS x (a, b)",
        "SELECT * FROM t UNION ALL SELECT * FROM t",
        "SELECT * FROM t UNION ALL VALUES (1)",
        "SELECT * FROM t, t AS u",
        "SELECT DISTINCT * FROM t",
        "SELECT DISTINCT a, b FROM t",
        "SELECT *, 1 AS c FROM t",
        "SELECT * EXCEPT (b) FROM t",
        "SELECT a AS x, b FROM t",
        "SELECT a + 1, b FROM t",
        "SELECT a x FROM t",
        "SELECT t.* FROM t",
        "SELECT t.a FROM t",
        "SELECT count(*) FROM t",
        "SELECT a, b FROM (SELECT b, a FROM t)",
        "SELECT * FROM (SELECT * FROM t LIMIT 1)",
        "SELECT * FROM (SELECT * FROM t) LIMIT 1",
        "(SELECT * FROM t) LIMIT 1",
        "(SELECT * FROM t) UNION (VALUES (1))",
        "WITH c AS (SELECT 1) SELECT * FROM t",
        "SELECT * FROM t LATERAL VIEW explode(a) x AS b",
        "FROM t |> WHERE a > 1",
        "FROM t SELECT a",
        "TABLE t |> LIMIT 1",
        "SELECT 1",
    ],
)
def test_a_query_that_changes_something(query: str) -> None:
    assert shown(query) is None
