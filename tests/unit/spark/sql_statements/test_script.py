"""Several statements in one text, names that are computed, and statements that are values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import ParseException

import lakelog.spark as delta
from lakelog.spark.sql_statements import front, script
from lakelog.spark.sql_statements.forms.execute_immediate import Immediate, read_immediate
from lakelog.spark.sql_statements.forms.from_first import inserts_first, target_at
from lakelog.spark.sql_statements.forms.identifier_clause import written_out
from lakelog.spark.sql_statements.forms.parameters import Parameters
from lakelog.spark.sql_statements.queries.query_runner import QueryRunner
from lakelog.spark.sql_statements.text.statement import Statement
from lakelog.spark.sql_statements.text.syntax_errors import SqlSyntaxError


class NoSpark:
    """Stands for a session of which nothing is asked."""

    def sql(self, _: str) -> Any:
        raise AssertionError("a statement that was not to be run")


NO_SPARK: Any = NoSpark()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("; /* ; */ ;-- ;", []),
        ("SELECT 1", ["SELECT 1"]),
        (" SELECT ';' ;\n-- a;\nDELETE FROM t; ", ["SELECT ';'", "-- a;\nDELETE FROM t"]),
        ('SELECT "a;b", `c;d`;SELECT 2', ['SELECT "a;b", `c;d`', "SELECT 2"]),
        ("BEGIN SELECT 1; SELECT 2; END", ["BEGIN SELECT 1; SELECT 2; END"]),
        ("; begin SELECT 1; END;", ["; begin SELECT 1; END;"]),
        ("SELECT begin; SELECT 2", ["SELECT begin", "SELECT 2"]),
    ],
)
def test_a_text_is_cut_at_its_semicolons(text: str, found: list[str]) -> None:
    cut = script.statements(text)
    assert [each.text for each in cut] == found
    for each in cut:
        assert each.tokens == Statement(each.text).tokens


def test_a_script_of_spark_s_own_stands_alone() -> None:
    with pytest.raises(SqlSyntaxError, match="run it alone") as caught:
        script.statements("SELECT 1;\n BEGIN SELECT 2; END")
    assert (caught.value.line, caught.value.column) == (2, 2)


def test_statements_run_in_their_order_until_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Any] = []

    def run(spark: Any, _: Any, statement: Statement, args: Any, __: Any) -> str:
        ran.append((spark, statement.text, args))
        if statement.text == "c":
            raise KeyError(statement.text)
        return f"answer of {statement.text}"

    monkeypatch.setattr(script, "run_statement", run)
    answer: Any = delta.sql_script(NO_SPARK, "a; b", {"x": 1})
    assert answer == "answer of b"
    assert ran == [(NO_SPARK, "a", {"x": 1}), (NO_SPARK, "b", {"x": 1})]
    with pytest.raises(KeyError):
        delta.sql_script(NO_SPARK, "c; d")
    assert len(ran) == 3
    assert delta.sql_script(NO_SPARK, ";") is None


def test_the_magic_runs_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    magics: dict[tuple[str, str], Any] = {}

    def register(function: Any, kind: str, name: str) -> None:
        magics[kind, name] = function

    delta.load_ipython_extension(SimpleNamespace(register_magic_function=register))
    monkeypatch.setattr("pyspark.sql.SparkSession.active", lambda: NO_SPARK)
    monkeypatch.setattr(script, "run_statement", lambda spark, _, text, *__: (spark, text.text))
    assert magics["cell", "lakelog"]("", "SELECT 1;\nSELECT 2;\n") == (NO_SPARK, "SELECT 2")


def _evaluated(text: str) -> str:
    """What Spark would make of one of these expressions."""
    if "nope" in text:
        raise ParseException("no")
    return "db.t 1" if "||" in text else "delta.`/a.b`"


@pytest.mark.parametrize(
    ("sql", "args", "wanted"),
    [
        ("SELECT identifier FROM t", None, None),
        ("SELECT a.identifier(x) FROM t", None, None),
        ("DELETE FROM IDENTIFIER(:t) x", {"t": "db.t"}, "DELETE FROM `db`.`t` x"),
        ("SELECT * FROM identifier ( 'd.t' ) x", None, "SELECT * FROM `d`.`t` x"),
        ("SELECT * FROM IDENTIFIER(lower('X')) x", None, "SELECT * FROM `delta`.`/a.b` x"),
        ("TABLE IDENTIFIER('a' || 'b')", None, None),
        ("TABLE IDENTIFIER(nope)", None, None),
        ("TABLE IDENTIFIER(:missing)", {"t": 1}, None),
        ("TABLE IDENTIFIER('never closed'", None, None),
        ("SELECT IDENTIFIER(:c) FROM IDENTIFIER(:t)", {"c": "x y", "t": "t"}, None),
    ],
)
def test_computed_names_are_written_out(sql: str, args: Any, wanted: str | None) -> None:
    found = written_out(Parameters(NO_SPARK, Statement(sql), args), _evaluated)
    assert found == (None if wanted is None else (Statement(wanted), args))


def test_a_parameter_of_a_computed_name_is_used_up() -> None:
    sql = "UPDATE IDENTIFIER(?) SET a = ? WHERE IDENTIFIER(?) = 1"
    parameters = Parameters(NO_SPARK, Statement(sql), ["t", 5, "b"])
    assert written_out(parameters, _evaluated) == (
        Statement("UPDATE `t` SET a = ? WHERE `b` = 1"),
        [5],
    )


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("FROM q INSERT INTO t SELECT a", "INSERT INTO t  FROM q  SELECT a"),
        (
            "FROM (SELECT 1 a) s INSERT OVERWRITE TABLE d.t PARTITION (p = 1) SELECT a",
            "INSERT OVERWRITE TABLE d.t PARTITION (p = 1)  FROM (SELECT 1 a) s  SELECT a",
        ),
        (
            "FROM (SELECT 1 INSERT) q INSERT INTO t SELECT a WHERE b INSERT INTO TABLE u SELECT c",
            "INSERT INTO t  FROM (SELECT 1 INSERT) q  SELECT a WHERE b |"
            "INSERT INTO TABLE u  FROM (SELECT 1 INSERT) q  SELECT c",
        ),
        (
            "FROM q INSERT WITH SCHEMA EVOLUTION INTO t SELECT a "
            "INSERT WITH SCHEMA EVOLUTION OVERWRITE TABLE u SELECT b",
            "INSERT WITH SCHEMA EVOLUTION INTO t  FROM q  SELECT a |"
            "INSERT WITH SCHEMA EVOLUTION OVERWRITE TABLE u  FROM q  SELECT b",
        ),
        ("FROM q INSERT INTO t INSERT INTO u SELECT b", None),
        ("FROM q SELECT a", None),
        ("FROM q INSERT INTO t", None),
        ("FROM q.insert SELECT a", None),
        ("INSERT INTO t FROM q SELECT a", None),
        ("", None),
    ],
)
def test_an_insert_that_begins_with_its_source_is_turned(sql: str, wanted: str | None) -> None:
    found = inserts_first(Statement(sql))
    assert "|".join(each.text for each in found) == (wanted or "")
    for each in found:
        assert each.tokens[target_at(each.tokens)].text in "tdu"


def _row(*values: Any) -> Any:
    def plain(text: str) -> Any:
        if "nope" in text:
            raise ParseException("no")
        return SimpleNamespace(first=lambda: values)

    return plain


@pytest.mark.parametrize(
    ("sql", "row", "wanted"),
    [
        ("SELECT 1", (), None),
        ("EXECUTE IMMEDIATE 'x'", ("DELETE FROM t;",), Immediate(Statement("DELETE FROM t"), None)),
        ("EXECUTE IMMEDIATE q USING 1, 'b'", ("x", 1, "b"), Immediate(Statement("x"), [1, "b"])),
        ("EXECUTE IMMEDIATE q USING (1 AS a)", ("x", 1), Immediate(Statement("x"), {"a": 1})),
        (
            "EXECUTE IMMEDIATE q INTO k, session.m USING 1",
            ("TABLE t", 1),
            Immediate(Statement("SET VAR (k, session.m) = (TABLE t\n)"), [1]),
        ),
        ("EXECUTE IMMEDIATE q USING 1 AS a, 2", ("x", 1, 2), None),
        ("EXECUTE IMMEDIATE nope", ("x",), None),
        ("EXECUTE IMMEDIATE NULL", (None,), None),
        ("EXECUTE IMMEDIATE", ("x",), None),
        ("EXECUTE IMMEDIATE 'x' INTO", ("x",), None),
    ],
)
def test_a_statement_that_is_a_value_is_read(sql: str, row: Any, wanted: Immediate | None) -> None:
    assert read_immediate(Parameters(NO_SPARK, Statement(sql)), _row(*row)) == wanted


def test_what_names_no_table_of_ours_goes_to_spark_as_it_was_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(QueryRunner, "_frame", lambda *_: None)
    seen: list[Any] = []

    def plain(text: str, args: Any = None, **kwargs: Any) -> Any:
        seen.append((text, args))
        return SimpleNamespace(first=lambda: ("SELECT * FROM IDENTIFIER('q')",))

    front.run(NO_SPARK, plain, "EXECUTE IMMEDIATE /* a */ v", None, {})
    assert seen[-1] == ("EXECUTE IMMEDIATE /* a */ v", None)
    front.run(NO_SPARK, plain, "SELECT * FROM IDENTIFIER(:q)", {"q": "q"}, {})
    assert seen[-1] == ("SELECT * FROM IDENTIFIER(:q)", {"q": "q"})
