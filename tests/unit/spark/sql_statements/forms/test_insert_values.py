"""Long lists of values are left to Spark by the name of their table alone, and by nothing less."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.spark.sql_statements import front
from lakelog.spark.sql_statements.forms.identifier_clause import _clauses
from lakelog.spark.sql_statements.forms.insert_values import inserted_values
from lakelog.spark.sql_statements.queries import named_tables
from lakelog.spark.sql_statements.text import statement
from lakelog.spark.sql_statements.text.references import references
from lakelog.spark.sql_statements.text.tokens import tokenize

ROWS = ", ".join(f"({i}, 'name {i}')" for i in range(200))
INSERTS = [
    "INSERT INTO t VALUES",
    "insert into table db.t values",
    "INSERT OVERWRITE `d``b`.t (a, b)\n VALUES",
]
PIECES = [
    "FROM delta.`/p`", "(SELECT 1 FROM t)", "JOIN u", "TABLE u", "'a'", "'it''s'", '"q"', "'from'",
    r"'\'", r"r'\'", "-- ' ", "/* ' */", "\n", "`x'y`", "$$'$$", "(1, 2)", ",", "'", '"',
    "IDENTIFIER('t')", "INSERT INTO u SELECT 1", "|>", "table_changes('t', 1)",
]  # fmt: skip


@pytest.mark.parametrize("insert", INSERTS)
def test_long_values_have_no_tokens_of_interest(insert: str) -> None:
    name = inserted_values(f"{insert} {ROWS}")
    assert name in ("t", "db.t", "`d``b`.t")
    assert inserted_values(f"{insert} {ROWS}, (1, 'out from the table')") == name


@given(st.sampled_from(INSERTS), st.lists(st.sampled_from(PIECES), max_size=8), st.booleans())
def test_no_other_table_is_overlooked(insert: str, pieces: list[str], before: bool) -> None:
    added = " ".join(pieces)
    text = f"{insert} (0) {added} {ROWS}" if before else f"{insert} {ROWS} {added}"
    if inserted_values(text) is None:
        return
    tokens = tokenize(text)
    assert not references(tokens)
    assert not list(_clauses(tokens))


@pytest.mark.parametrize(
    "text",
    [
        f"INSERT INTO IDENTIFIER(:t) VALUES {ROWS}",
        f"INSERT INTO TABLE VALUES {ROWS}",
        f"INSERT INTO {{t}} VALUES {ROWS}",
        f"INSERT INTO t SELECT * FROM VALUES {ROWS}",
        f"INSERT INTO t REPLACE WHERE a = 1 VALUES {ROWS}",
        "INSERT INTO t VALUES (1)",
    ],
)
def test_what_else_there_is_is_read_in_full(text: str) -> None:
    assert inserted_values(text) is None


def test_values_for_another_format_go_to_spark_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(named_tables, "find", lambda _, parts: asked.append(tuple(parts)))
    monkeypatch.setattr(statement, "tokenize", None)
    text, seen = f"INSERT INTO db.t VALUES {ROWS}", []

    def plain(text: str, args: Any = None, **kwargs: Any) -> Any:
        seen.append((text, args, kwargs))

    front.run(SimpleNamespace(), plain, text, [1], {"x": 2})  # type: ignore[arg-type]
    assert (asked, seen) == ([("db", "t")], [(text, [1], {"x": 2})])
