"""What is not ours goes to Spark as it came; what is ours is read, or refused with its place."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyspark.errors import AnalysisException, ParseException

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.sql_statements import front
from lakelog.spark.sql_statements.commands.dispatch import command_of
from lakelog.spark.sql_statements.forms.parameters import Parameters
from lakelog.spark.sql_statements.queries import named_tables, query_runner
from lakelog.spark.sql_statements.queries.query_runner import QueryRunner
from lakelog.spark.sql_statements.text.options_clause import given_options
from lakelog.spark.sql_statements.text.statement import Statement
from lakelog.spark.sql_statements.text.syntax_errors import SqlSyntaxError
from lakelog.spark.sql_statements.text.tokens import tokenize

PIECES = r"""
SELECT|FROM|JOIN|WHERE|a|b|db.t|(|)|,|;|=|1|'it''s'|`a b`|"x"|:p|?|{d}|-- FROM delta.`/p`~
/* FROM delta.`/p` /* x */ */|'delta.`/p`'|AS|WITH|CREATE|TABLE|VIEW|DROP|SHOW|DESCRIBE|INSERT
INTO|VALUES|UPDATE|SET|DELETE|MERGE|USING|TRUNCATE|ALTER|ADD|CASE|WHEN|END|<=>|EXPLAIN|CACHE|é|''
``|/*+ H */|delta|COLUMNS|IN|ON|VERSION|OF
""".strip()
PIECES_LIST = [each.replace("~", "\n") for each in re.split(r"[|\n]", PIECES)]


DELTA_ALONE = ["OPTIMIZE", "REORG", "VACUUM", "GENERATE", "RESTORE", "CONVERT", "HISTORY", "DETAIL"]
"""Statements that Spark does not have."""


class NoSpark:
    """Stands for a session of which nothing is asked but its conf, and where it is."""

    conf: ClassVar = {"spark.sql.sources.default": "parquet"}
    catalog = SimpleNamespace(
        currentCatalog=lambda: "spark_catalog", currentDatabase=lambda: "default"
    )


@pytest.fixture(autouse=True)
def _an_empty_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_tables, "find", lambda *_: None)
    monkeypatch.setattr(query_runner.QueryRunner, "value", lambda _, text: text)


def _run(sql: str, args: Any = None, **kwargs: Any) -> list[Any]:
    seen: list[Any] = []

    def plain(text: str, args: Any = None, **kwargs: Any) -> Any:
        seen.append((text, args, kwargs))

    front.run(NoSpark(), plain, sql, args, kwargs)  # type: ignore[arg-type]
    return seen


@given(st.lists(st.sampled_from(PIECES_LIST), max_size=14), st.sampled_from([None, {"p": 1}, [1]]))
def test_a_text_without_a_table_of_ours_goes_to_spark_as_it_came(
    pieces: list[str], args: Any
) -> None:
    sql = " ".join(pieces)
    assert _run(sql, args) == [(sql, args, {})]


@given(st.text(max_size=80))
def test_any_text_goes_to_spark_as_it_came(sql: str) -> None:
    assume(not any(word in sql.upper() for word in DELTA_ALONE))
    assert _run(sql, d=1) == [(sql, None, {"d": 1})]


STARTS_LIKE_OURS = [
    "OPTIMIZE db.t",
    "OPTIMIZE INDEX i ON t",
    "VACUUM",
    "VACUUM t KEEP 3 DAYS",
    "RESTORE TABLE t FROM BACKUP b",
    "GENERATE series",
    "GENERATE a FOR TABLE t",
    "REORG TABLE t BY x",
    "DESCRIBE HISTORY t",
    "DESC DETAIL t EXTENDED",
    "UPDATE STATISTICS t",
    "MERGE BRANCH a INTO b",
    "DELETE JAR x",
    "TRUNCATE PARTITIONS t",
    "CREATE TABLE u CLONE t",
    "CONVERT TO ICEBERG t",
]


@pytest.mark.parametrize("sql", STARTS_LIKE_OURS)
def test_a_statement_that_starts_like_ours_goes_to_spark_which_may_have_it(sql: str) -> None:
    assert _run(sql) == [(sql, None, {})]


@pytest.mark.parametrize(
    ("raised", "condition", "message"),
    [
        (ParseException, "PARSE_SYNTAX_ERROR", "DELTA_TABLE_ONLY_OPERATION"),
        (AnalysisException, "TABLE_OR_VIEW_NOT_FOUND", "DELTA_TABLE_ONLY_OPERATION"),
        (AnalysisException, "OF_AN_EXTENSION", "what it said"),
    ],
)
def test_what_spark_can_not_read_either_is_refused_in_its_place(
    monkeypatch: pytest.MonkeyPatch, raised: type[Exception], condition: str, message: str
) -> None:
    monkeypatch.setattr(AnalysisException, "getCondition", lambda _: condition)

    def plain(*_: Any, **__: Any) -> Any:
        raise raised("what it said")

    spark: Any = NoSpark()
    with pytest.raises((SqlSyntaxError, AnalysisException), match=message):
        front.run(spark, plain, "DESCRIBE HISTORY t", None, {})


OURS = """
DELETE FROM delta.`/p`; DELETE FROM delta.`/p` t WHERE t.a = 'WHERE ;';
UPDATE delta.`/p` AS t SET t.a = CASE WHEN b THEN 1 END, `c d`.e = DEFAULT WHERE f(a, b);
TRUNCATE TABLE delta.`/p`;
MERGE INTO delta.`/p` USING s ON a = b WHEN MATCHED THEN DELETE;
WITH s AS (SELECT 1) MERGE WITH SCHEMA EVOLUTION INTO delta.`/p` t USING (SELECT 1) AS s (a)
  ON a = b WHEN MATCHED AND CASE WHEN x THEN y END THEN UPDATE SET *
  WHEN NOT MATCHED BY TARGET THEN INSERT *
  WHEN NOT MATCHED BY SOURCE AND a IN (1, 2) THEN UPDATE SET a = 1;
MERGE INTO delta.`/p` USING delta.`/q` VERSION AS OF 3 AS s ON a = b WHEN NOT MATCHED THEN
  INSERT (a, b.c) VALUES (f(1, 2), DEFAULT);
INSERT INTO delta.`/p` VALUES (1, 'a'); INSERT OVERWRITE TABLE delta.`/p` BY NAME SELECT 1 AS a;
INSERT INTO TABLE delta.`/p` PARTITION (a = 1, b) (c, d) (SELECT 1);
INSERT INTO lakelog.`/p` REPLACE WHERE a = 1 TABLE x;
OPTIMIZE delta.`/p`; OPTIMIZE '/p' FULL; OPTIMIZE delta.`/p` WHERE a = 1 ZORDER BY a, b.c;
REORG TABLE delta.`/p` WHERE a = 1 APPLY (PURGE);
VACUUM delta.`/p`; VACUUM '/p' DRY RUN RETAIN 1 HOURS LITE;
VACUUM delta.`/p` USING INVENTORY t FULL;
GENERATE symlink_format_manifest FOR TABLE delta.`/p`;
RESTORE delta.`/p` VERSION AS OF 3; RESTORE TABLE delta.`/p` TO TIMESTAMP AS OF now();
DESCRIBE HISTORY delta.`/p`; DESC DETAIL '/p'; DESCRIBE EXTENDED delta.`/p`; DESC TABLE delta.`/p`;
CONVERT TO DELTA parquet.`/p` NO STATISTICS PARTITIONED BY (a INT, b STRING);
CREATE TABLE delta.`/p` (a INT, b MAP<STRING, ARRAY<STRUCT<x: INT, y: DECIMAL(3, 2)>>> NOT NULL);
CREATE TABLE IF NOT EXISTS db.t (a INT COMMENT 'x', b DATE GENERATED ALWAYS AS (f(a)), c INT DEFAULT
  1 + 2, d BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH -1 INCREMENT BY 2)) USING delta
  PARTITIONED BY (b) COMMENT 'y' LOCATION '/p' TBLPROPERTIES ('a.b' = 'c', d.e = 1, f = true);
CREATE OR REPLACE TABLE delta.`/p` CLUSTER BY (a, b.c) AS SELECT 1 AS a;
REPLACE TABLE delta.`/p` USING DELTA AS WITH x AS (SELECT 1) SELECT * FROM x;
CREATE TABLE delta.`/q` LIKE delta.`/p` TBLPROPERTIES ('a' = 'b');
CREATE TABLE t DEEP CLONE delta.`/p` TIMESTAMP AS OF '2026-01-01' TBLPROPERTIES ('a' = 'b')
  LOCATION '/q';
ALTER TABLE delta.`/p` ADD COLUMN a INT AFTER b;
ALTER TABLE delta.`/p` ADD COLUMNS (s.x INT, s.y INT);
ALTER TABLE delta.`/p` ALTER COLUMN a TYPE BIGINT;
ALTER TABLE delta.`/p` CHANGE a a INT COMMENT 'x';
ALTER TABLE delta.`/p` ALTER COLUMN a DROP NOT NULL; ALTER TABLE delta.`/p` ALTER a SYNC IDENTITY;
ALTER TABLE delta.`/p` RENAME COLUMN a.b TO c;
ALTER TABLE delta.`/p` DROP COLUMNS IF EXISTS (a, b.c);
ALTER TABLE delta.`/p` REPLACE COLUMNS (a INT, b STRING COMMENT 'x');
ALTER TABLE delta.`/p` SET TBLPROPERTIES ('a' = 'b');
ALTER TABLE delta.`/p` UNSET TBLPROPERTIES IF EXISTS (a.b);
ALTER TABLE delta.`/p` ADD CONSTRAINT c CHECK (a > 0 AND b IN (1, 2));
ALTER TABLE delta.`/p` DROP CONSTRAINT IF EXISTS c; ALTER TABLE delta.`/p` CLUSTER BY NONE;
ALTER TABLE delta.`/p` DROP FEATURE deletionVectors TRUNCATE HISTORY;
COMMENT ON COLUMN delta.`/p`.a IS 'x'; COMMENT ON COLUMN delta.`/p`.a.b IS NULL;
SHOW COLUMNS IN delta.`/p`; SHOW TBLPROPERTIES delta.`/p` ('a'); SHOW CREATE TABLE delta.`/p`
"""


def _statements() -> list[str]:
    found, begin = [], 0
    for token in tokenize(OURS):
        if token.text == ";":
            found.append(OURS[begin : token.start].strip())
            begin = token.end
    return [*found, OURS[begin:].strip()]


def _read(sql: str, args: Any = None) -> Any:
    def plain(*_: Any, **__: Any) -> Any:
        raise AssertionError("read, not run")

    spark: Any = NoSpark()
    return command_of(Parameters(spark, Statement(sql), args), {}, QueryRunner(spark, plain))


@pytest.mark.parametrize("sql", _statements())
def test_no_statement_is_passed_by_at_first_sight(sql: str) -> None:
    assert front.may_be_ours(re.sub(r"(delta|lakelog)\.`/.`", "t", sql))


@pytest.mark.parametrize("sql", _statements())
def test_the_statements_of_delta_are_read_to_their_end(sql: str) -> None:
    assert _read(sql) is not None
    assert _read(f"/* x */ {sql} -- y".replace(" ", "\n/* ; */ ", 1)) is not None
    if sql.startswith(("DESCRIBE EXTENDED", "DESC TABLE", "SHOW COLUMNS")):
        assert _read(f"{sql} )") is None  # Spark has more forms of it
        return
    with pytest.raises(DeltaAnalysisError, match=r"PARSE_SYNTAX_ERROR|never closed"):
        _read(f"{sql} )")


@pytest.mark.parametrize(
    ("sql", "said", "line", "column"),
    [
        ("OPTIMIZE delta.`/p`\nZORDER a", "near 'a'; expected BY", 2, 8),
        ("DELETE FROM delta.`/p` WHERE (a = 1", "bracket is never closed", 1, 30),
        ("DELETE FROM delta.`/p` WHERE a = 'x", "string or comment is never closed", 1, 34),
        ("UPDATE delta.`/p` SET a = 1, A = 2", "A is set twice", 1, 30),
        ("UPDATE delta.`/p` a = 1", "expected SET", 1, 21),
        ("MERGE INTO delta.`/p` USING x ON a = b", "MERGE_WITHOUT_WHEN", 1, 39),
        ("VACUUM delta.`/p` RETAIN 3 DAYS", "expected HOURS", 1, 32),
        ("VACUUM delta.`/p` LITE FULL", "FULL is given twice", 1, 24),
        ("OPTIMIZE db.t", "DELTA_TABLE_ONLY_OPERATION", 1, 10),
        ("TRUNCATE TABLE delta.`/p` PARTITION (a = 1)", "DELTA_TRUNCATE_TABLE_PARTITION", 1, 27),
        ("ALTER TABLE delta.`/p` SET LOCATION 'x'", "DELTA_OPERATION_NOT_ALLOWED", 1, 28),
        ("CREATE TABLE delta.`/p` USING delta LOCATION '/q'", "IDENTIFIER_LOCATION", 1, 14),
        ("RESTORE delta.`/p`", "expected VERSION AS OF or TIMESTAMP AS OF", 1, 19),
        (
            "MERGE INTO delta.`/p` USING x ON a = b WHEN NOT MATCHED THEN INSERT (a) VALUES (1, 2)",
            "1 columns are named, but there are 2 values",
            1,
            80,
        ),
    ],
)
def test_what_can_not_be_read_is_shown_in_its_place(
    sql: str, said: str, line: int, column: int
) -> None:
    with pytest.raises(SqlSyntaxError, match=said) as caught:
        _read(sql)
    assert (caught.value.line, caught.value.column) == (line, column)
    shown, marks = str(caught.value).splitlines()[-2:]
    assert shown == sql.splitlines()[line - 1]
    assert marks == "-" * (column - 1) + "^^^"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("'path' '/x y', a.b = 1, `C` \"d\"", {"path": "/x y", "a.b": "1", "c": "d"}),
        ("`path` = '/it\\'s'", {"path": "'/it\\'s'"}),  # which Spark is asked to read
        ("a", {}),
        ("", {}),
    ],
)
def test_options_are_read_with_and_without_equals_signs(text: str, found: dict[str, str]) -> None:
    assert given_options(Statement(text), lambda value: value) == found


def test_parameters_become_literals_and_one_without_a_value_is_shown() -> None:
    sql = "DELETE FROM delta.`/p` WHERE a = :x AND b < CAST(:y AS STRUCT<x: INT>) AND c = ':x'"
    tokens = tokenize(sql)
    spark: Any = NoSpark()
    given = {"x": "it's", "y": -5}
    found = Parameters(spark, Statement(sql), given).text(6, len(tokens))
    assert found == (
        "a = CAST(X'69742773' AS STRING) AND b < CAST((-5) AS STRUCT<x: INT>) AND c = ':x'"
    )
    question = "UPDATE delta.`/p` SET a = ?, b = ?"
    marks = tokenize(question)
    assert Parameters(spark, Statement(question), [None, 2.5]).text(5, len(marks)) == (
        "a = NULL, b = (2.5D)"
    )
    assert Parameters(spark, Statement(question), ["a", "b"]).remaining([(4, 8)]) == ["b"]
    with pytest.raises(SqlSyntaxError, match=r"UNBOUND_SQL_PARAMETER.*number 2"):
        _read(question, [1])
    with pytest.raises(SqlSyntaxError, match=r"UNBOUND_SQL_PARAMETER.*:y"):
        _read(sql, {"x": 1})
