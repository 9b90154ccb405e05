"""A text's tokens are found once, whatever is done with it and with its parts."""

from __future__ import annotations

import contextlib
from collections import Counter
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.spark.sql_statements import front, script
from lakelog.spark.sql_statements.commands import (
    context,
    create_table,
    create_view,
    insert,
    new_tables,
    row_changes,
)
from lakelog.spark.sql_statements.queries import named_tables, query_runner
from lakelog.spark.sql_statements.text import statement
from lakelog.spark.sql_statements.text.statement import Statement
from lakelog.spark.sql_statements.text.tokens import tokenize


@given(st.lists(st.sampled_from(["a", "'b c'", "/* ; */", "(", ")", ",", "  ", "`d`", ";", "é"])))
def test_a_part_has_the_tokens_that_its_text_has(pieces: list[str]) -> None:
    whole = Statement(" ".join(pieces))
    count = len(whole.tokens)
    for first in range(count + 1):
        for end in range(first, count + 1):
            part = whole.piece(first, end)
            assert part.tokens == tuple(tokenize(part.text))
            assert part.piece(1, end - first).text == whole.piece(first + 1, end).text
    bare = whole.without_semicolons()
    assert bare.text == whole.text
    assert [each.text for each in bare.tokens] == [*_bare([each.text for each in whole.tokens])]


def _bare(texts: list[str]) -> list[str]:
    return _bare(texts[:-1]) if texts[-1:] == [";"] else texts


def test_other_text_makes_another_statement() -> None:
    whole = Statement("SELECT a FROM t")
    assert whole.replaced([]) is whole
    other = whole.replaced([(7, 8, "b, c"), (14, 15, "u")])
    assert (other.text, whole.text) == ("SELECT b, c FROM u", "SELECT a FROM t")
    assert [each.parts for each in other.references] == [("u",)]
    assert [each.parts for each in whole.references] == [("t",)]


class Session:
    """A session in which every path is a table of one column, and what is done to it is nothing."""

    conf = SimpleNamespace(get=lambda _, otherwise="parquet": otherwise)
    catalog = SimpleNamespace(
        currentCatalog=lambda: "spark_catalog",
        currentDatabase=lambda: "default",
        dropTempView=lambda _: None,
    )
    range = MagicMock()
    createDataFrame = MagicMock()  # noqa: N815

    def sql(self, text: str, *_: Any, **__: Any) -> Any:
        """The answer to anything: a text, where a text is asked for."""
        row = ("DELETE FROM delta.`/p` WHERE a = 1",) if "IMMEDIATE" not in text else None
        return MagicMock(first=lambda: row, columns=["a"])


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    found: Counter[str] = Counter()

    def counting(text: str) -> Any:
        found[text] += 1
        return tokenize(text)

    def frame(_: Any, reference: Any, *__: Any) -> Any:
        return MagicMock(columns=["a"]) if reference.parts[0] == "delta" else None

    snapshot = MagicMock(schema=StructType((StructField("a", PrimitiveType("integer")),)))
    monkeypatch.setattr(statement, "tokenize", counting)
    monkeypatch.setattr(named_tables, "find", lambda *_: None)
    monkeypatch.setattr(query_runner.QueryRunner, "_frame", frame)
    monkeypatch.setattr(query_runner, "with_nulls_of", lambda frame, _: frame)
    monkeypatch.setattr(query_runner, "answer", lambda *_: None)
    monkeypatch.setattr(query_runner, "opened", lambda *_: snapshot)
    monkeypatch.setattr(query_runner, "with_metadata", lambda _: None)
    monkeypatch.setattr(context, "opened", lambda *_: MagicMock(log=MagicMock(snapshot=snapshot)))
    monkeypatch.setattr(insert, "_fitted", lambda frame, *_: frame)
    monkeypatch.setattr(insert, "checked_default", lambda *_: "7")
    monkeypatch.setattr(create_view, "is_watched", lambda _: True)
    monkeypatch.setattr(create_view, "_put", lambda *_: None)
    monkeypatch.setattr(new_tables, "to_delta_schema", lambda _: None)
    monkeypatch.setattr(new_tables, "exists", lambda *_: False)
    monkeypatch.setattr(
        new_tables, "place_for_statement", lambda *_: contextlib.nullcontext(("/n", "create"))
    )
    for module in (insert, new_tables):
        monkeypatch.setattr(module, "save_frame", lambda *_, **__: None)
    monkeypatch.setattr(create_table, "create_empty", lambda *_: None)
    for name in ("delete_rows", "update_rows"):
        monkeypatch.setattr(row_changes, name, lambda *_: 0)
    return found


Q = "SELECT a FROM delta.`/p` WHERE p.a = 1"


@pytest.mark.parametrize(
    ("sql", "args", "rewritten"),
    [
        (Q, None, []),
        ("SELECT count(*) FROM delta.`/p` x WHERE x.a = 1", None, []),
        ("SELECT count(*) FROM delta.`/p` x WHERE x.a = :v", {"v": 1}, ["x.a = 1"]),
        ("SELECT * FROM delta.`/p` JOIN (SELECT _metadata FROM delta.`/q`) USING (a);", None, []),
        ("SELECT * FROM u WHERE a IN (SELECT a FROM t)", None, []),
        ("DELETE FROM delta.`/p` WHERE a = 1", None, []),
        ("DELETE FROM of_another_format WHERE a = 1", None, []),
        ("UPDATE delta.`/p` SET a = (SELECT max(a) FROM delta.`/q`) WHERE a < 3", None, []),
        (f"INSERT INTO delta.`/p` {Q}", None, []),
        ("INSERT INTO delta.`/p` VALUES (1), (2)", None, []),
        (
            "INSERT INTO delta.`/p` VALUES (1), (DEFAULT)",
            None,
            ["VALUES (1), (CAST((7\n) AS int))"],
        ),
        (f"INSERT INTO delta.`/p` {Q} OR a = :v", {"v": 2}, [f"{Q} OR a = 2"]),
        (
            "FROM delta.`/p` INSERT INTO delta.`/q` SELECT a",
            None,
            ["INSERT INTO delta.`/q`  FROM delta.`/p`  SELECT a"],
        ),
        (
            "MERGE INTO delta.`/p` t USING (SELECT 1 AS a) s ON t.a = s.a "
            "WHEN MATCHED AND s.a > 0 THEN UPDATE SET a = s.a + (SELECT max(a) FROM delta.`/q`) "
            "WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a)",
            None,
            [" SELECT * FROM (SELECT 1 AS a)"],
        ),
        ("CREATE TABLE delta.`/n` (a INT NOT NULL DEFAULT 1 + 1, b DATE COMMENT 'c')", None, []),
        (f"CREATE TABLE delta.`/n` USING delta AS {Q}", None, []),
        (
            f"WITH w AS ({Q}) INSERT INTO delta.`/p` SELECT * FROM w",
            None,
            [f"WITH w AS ({Q}) SELECT * FROM w"],
        ),
        (f"CREATE OR REPLACE TEMPORARY VIEW v (b COMMENT 'c') AS {Q}", None, []),
        (f"EXPLAIN INSERT INTO delta.`/p` {Q}", None, [f"EXPLAIN   {Q}"]),
        ("EXECUTE IMMEDIATE q", None, ["DELETE FROM delta.`/p` WHERE a = 1"]),
        ("DELETE FROM IDENTIFIER('delta.`/p`')", None, ["DELETE FROM `delta`.`/p`"]),
        ("ALTER TABLE delta.`/p` ADD CONSTRAINT c CHECK (a > 0)", None, []),
    ],
)
def test_each_text_has_its_tokens_found_once(
    counted: Counter[str], sql: str, args: Any, rewritten: list[str]
) -> None:
    session: Any = Session()
    front.run(session, session.sql, sql, args, {})
    assert counted == Counter([sql, *rewritten])


def test_a_script_has_its_tokens_found_once_for_all_its_statements(counted: Counter[str]) -> None:
    text = f"DELETE FROM delta.`/p`; {Q};\n INSERT INTO delta.`/p` {Q};"
    session: Any = Session()
    script.sql_script(session, text)
    assert counted == Counter([text])
