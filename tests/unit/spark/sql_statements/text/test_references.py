"""The tables of a query, against a generator that knows which it wrote."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from lakelog.spark.sql_statements.text.references import after_ctes, references
from lakelog.spark.sql_statements.text.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Written:
    """A query, and the tables in it."""

    draw: Callable[[st.SearchStrategy[str]], str]
    number: int = 0
    tables: list[str] = field(default_factory=list)

    def pick(self, *texts: str) -> str:
        return self.draw(st.sampled_from(texts))

    def name(self) -> str:
        self.number += 1
        return f"n{self.number}"

    def table(self) -> str:
        shown = self.pick("{}", "db.{}", "delta.`/p/{}`", "`odd ``name`.{}").format(self.name())
        self.tables.append(shown)
        return shown

    def query(self, depth: int, ctes: tuple[str, ...]) -> str:
        text = ""
        if depth and self.pick("with", "without") == "with":
            first, second = self.name(), self.name()
            text = f"WITH {first} AS ({self.query(depth - 1, ctes)}), "
            ctes = (*ctes, first)
            text += f"{second}(a, b) AS ({self.query(depth - 1, ctes)}) "
            ctes = (*ctes, second)
        text += self.select(depth, ctes)
        if depth and self.pick("one", "two") == "two":
            text += f" {self.pick('UNION ALL', 'EXCEPT', 'INTERSECT')} {self.select(depth, ctes)}"
        return text

    def select(self, depth: int, ctes: tuple[str, ...]) -> str:
        columns = [
            "a",
            "extract(DAY FROM n1)",
            "trim(BOTH 'x' FROM n1)",
            "trim(FROM n1)",
            "a IS NOT DISTINCT FROM n1",
            "'FROM n1'",
            "count(*) OVER (PARTITION BY a, n1 ORDER BY b, n2)",
            "/* FROM n1 */ a",
            "`from` -- FROM n1, n2\n",
        ]
        shown = self.pick(*columns) + ", " + self.pick(*columns)
        if depth:
            shown += f", ({self.query(depth - 1, ctes)}) AS x"
        text = f"SELECT {shown} FROM {self.relation(depth, ctes)}"
        text += self.pick("", " LATERAL VIEW explode(m) n1 AS k, v")
        text += self.pick("", " WHERE a IN (1, 2) AND n1.b > n2.c", " GROUP BY a, n1")
        if depth and self.pick("where", "") == "where":
            text += f" HAVING EXISTS ({self.query(depth - 1, ctes)})"
        return text + self.pick("", " ORDER BY a, n2 LIMIT 3")

    def relation(self, depth: int, ctes: tuple[str, ...]) -> str:
        one = self.single(depth, ctes)
        kind = self.pick("one", "comma", "join")
        if kind == "comma":
            if depth and self.pick("plain", "lateral") == "lateral":
                return f"{one}, LATERAL ({self.query(depth - 1, ctes)}) AS q"
            return f"{one}, {self.single(depth, ctes)}"
        if kind == "join":
            join = self.pick("JOIN", "LEFT OUTER JOIN", "CROSS JOIN", "NATURAL JOIN")
            on = self.pick("", " ON (n1.a = n2.b)", " USING (n1, n2)")
            return f"{one} {join} {self.single(depth, ctes)}{on}"
        return one

    def single(self, depth: int, ctes: tuple[str, ...]) -> str:
        kind = self.pick("table", "table", "cte", "query", "group", "function")
        if kind == "cte" and ctes:
            return self.pick(*ctes) + self.pick("", " c", " AS c")
        if kind == "query" and depth:
            return f"({self.query(depth - 1, ctes)}) AS q"
        if kind == "group" and depth:
            return f"({self.single(depth - 1, ctes)} JOIN {self.single(depth - 1, ctes)})"
        if kind == "function":
            return "range(1, 2) AS r"
        return self.table() + self.pick("", " t", " AS t", " TABLESAMPLE (5 ROWS) t")


@settings(phases=[phase for phase in Phase if phase is not Phase.shrink])
@given(st.data())
def test_the_tables_of_a_query_are_found_and_nothing_else(data: st.DataObject) -> None:
    written = Written(data.draw)
    sql = data.draw(st.sampled_from(["", "EXPLAIN EXTENDED ", "CREATE TABLE x USING csv AS "]))
    sql += written.query(1, ())
    tokens = tokenize(sql)
    found = [sql[tokens[r.first].start : tokens[r.end - 1].end] for r in references(tokens)]
    assert sorted(found) == sorted(written.tables), sql


def _found(sql: str) -> list[tuple[str, str | None, str]]:
    tokens = tokenize(sql)

    def text(first: int, end: int) -> str:
        return sql[tokens[first].start : tokens[end - 1].end] if first < end else ""

    return [(".".join(r.parts), r.travel, text(*r.when)) for r in references(tokens)]


@pytest.mark.parametrize(
    ("clause", "travel", "when"),
    [
        ("@v12", "version", "v12"),
        ("VERSION AS OF 3", "version", "3"),
        ("FOR SYSTEM_VERSION AS OF :v", "version", ":v"),
        ("TIMESTAMP AS OF '2024-01-01'", "timestamp", "'2024-01-01'"),
        ("FOR SYSTEM_TIME AS OF date_sub(now(), 1)", "timestamp", "date_sub(now(), 1)"),
        (
            "TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY 2 HOURS",
            "timestamp",
            "current_timestamp() - INTERVAL 1 DAY 2 HOURS",
        ),
        ("TIMESTAMP AS OF DATE'2024-01-01'", "timestamp", "DATE'2024-01-01'"),
        ("TIMESTAMP AS OF (x) + INTERVAL '1' DAY", "timestamp", "(x) + INTERVAL '1' DAY"),
    ],
)
@pytest.mark.parametrize("rest", ["", " AS a", " a JOIN t2", " WHERE x = 1", ", t2"])
def test_a_version_or_a_time_ends_where_its_expression_does(
    clause: str, travel: str, when: str, rest: str
) -> None:
    found = _found(f"SELECT * FROM delta.`/p` {clause}{rest}")
    assert found[0] == ("delta./p", travel, when)
    assert len(found) == (2 if "t2" in rest else 1)


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SHOW TABLES FROM db", []),
        ("SHOW COLUMNS FROM t", []),
        ("DESCRIBE t", []),
        ("CACHE TABLE t", []),
        ("DROP TABLE t", []),
        ("TABLE t", ["t"]),
        ("SELECT * FROM f(TABLE t)", ["t"]),
        ("MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE", ["s"]),
        (
            "WITH c AS (TABLE x) MERGE INTO t USING (SELECT * FROM c JOIN y USING (a)) ON b "
            "WHEN NOT MATCHED THEN INSERT *",
            ["x", "y"],
        ),
        ("DESCRIBE QUERY TABLE t", ["t"]),
        ("SELECT * FROM t@v3", ["t"]),
        ("SELECT * FROM t WITH (`path` = 'x') a, u WITH (b = 1)", ["t", "u"]),
        ("SELECT * FROM t WITH (`path` = 'x'", []),
        ("FROM t |> WHERE a > 1 |> SELECT a, b |> JOIN u", ["t", "u"]),
        ("FROM t INSERT INTO x SELECT a INSERT INTO y SELECT b", ["t"]),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT * FROM r", []),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", ["t"]),
        ("SELECT (WITH c AS (SELECT 1) SELECT * FROM c), a FROM c", ["c"]),
        ("SELECT * FROM t PIVOT (sum(x) FOR y IN ('a', 'b')), u", ["t", "u"]),
        ("SELECT * FROM IDENTIFIER('t')", []),
        ("SELECT a FROM t WHERE x = (", ["t"]),
        ("SELECT * FROM", []),
        ("INSERT INTO x WITH c AS (SELECT * FROM t) SELECT * FROM c", ["t"]),
    ],
)
def test_tables_are_where_the_grammar_has_them(sql: str, tables: list[str]) -> None:
    assert [name for name, _, _ in _found(sql)] == tables


@pytest.mark.parametrize(
    ("rest", "where", "alias"),
    [
        ("WHERE a = 1 AND (b OR c IN (SELECT 1))", "a = 1 AND (b OR c IN (SELECT 1))", "/p"),
        ("AS t WHERE t.a > 1 GROUP BY a", "t.a > 1", "t"),
        ("t WHERE a > 1 UNION ALL SELECT 1", "a > 1", "t"),
        ("VERSION AS OF 1 t WHERE a > 1 |> LIMIT 1", "a > 1", "t"),
        ("t, u WHERE a > 1", "", None),
        ("t JOIN u WHERE a > 1", "", None),
        ("TABLESAMPLE (5 ROWS) WHERE a > 1", "", None),
        ("LATERAL VIEW explode(x) e AS a WHERE a > 1", "", None),
        ("PIVOT (sum(x) FOR a IN (1)) WHERE a > 1", "", None),
        ("HAVING a > 1", "", None),
    ],
)
def test_only_the_condition_of_a_table_that_is_alone_is_one_on_all_of_its_rows(
    rest: str, where: str, alias: str | None
) -> None:
    for sql in (f"SELECT * FROM delta.`/p` {rest}", f"SELECT (SELECT 1 FROM delta.`/p` {rest})"):
        tokens = tokenize(sql)
        found = references(tokens)[0]
        low, high = found.where
        text = sql[tokens[low].start : tokens[high - 1].end] if high > low else ""
        assert text == where
        if where:
            assert found.alias == alias
    joined = references(tokenize("SELECT * FROM u JOIN delta.`/p` WHERE a > 1"))
    assert joined[1].where == (0, 0)


@given(st.text(alphabet="( ),.`'fFROMJINWTHSELCAVu;-*/\n", max_size=60))
def test_any_text_is_looked_through(sql: str) -> None:
    tokens = tokenize(sql)
    for each in references(tokens):
        assert 0 <= each.first < each.end <= len(tokens)


def test_the_statement_after_common_table_expressions_is_found() -> None:
    tokens = tokenize("WITH a AS (SELECT 1), b (x) AS (SELECT 2) MERGE INTO t")
    assert tokens[after_ctes(tokens)].text == "MERGE"
    assert after_ctes(tokenize("SELECT 1")) == 0
    assert after_ctes(tokenize("WITH a")) == 0
