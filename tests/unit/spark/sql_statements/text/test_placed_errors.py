"""Errors of Spark about a rewritten text show their place in the text that the user wrote."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException, QueryContextType

from lakelog.spark.sql_statements.text.placed_errors import (
    PlacedAnalysisException,
    placed,
    placed_by_words,
)

SQL = "SELECT t.a,\n  nope\nFROM delta.`/a/long/path` t JOIN delta.`/p` WHERE nope2 = 1"


def _edits() -> list[tuple[int, int, str]]:
    found = []
    for number, name in enumerate(("delta.`/a/long/path`", "delta.`/p`")):
        at = SQL.index(name)
        found.append((at, at + len(name), f"{{lakelog_{number}}}"))
    at = found[-1][1]
    return [*found, (at, at, " AS `/p`")]


def _as_spark_has_it(view: str) -> str:
    text, at = "", 0
    for start, end, new in _edits():
        text += SQL[at:start] + (view if new.startswith("{") else new)
        at = end
    return text + SQL[at:]


def _error(
    start: int, fragment: str, kind: Any = AnalysisException, of: str = ""
) -> AnalysisException:
    context: Any = SimpleNamespace(
        contextType=lambda: QueryContextType.SQL,
        objectType=lambda: of,
        startIndex=lambda: start,
        fragment=lambda: fragment,
    )
    found: AnalysisException = kind(
        message=f"[UNRESOLVED_COLUMN] {fragment} cannot be resolved; line 1 pos {start};\n'Plan",
        messageParameters={"a": "b"},
        contexts=[context],
    )
    return found


@pytest.mark.parametrize("view", ["_pyspark_" + "a" * 32, "_pyspark_connect_temp_view_" + "b" * 32])
@pytest.mark.parametrize(("word", "line", "pos"), [("nope", 2, 2), ("nope2", 3, 50)])
def test_the_place_is_that_of_the_text_as_written(
    view: str, word: str, line: int, pos: int
) -> None:
    text = _as_spark_has_it(view)
    error = _error(text.index(word, text.index("nope2") if word == "nope2" else 0), word)
    found = placed(error, SQL, _edits())
    assert isinstance(found, PlacedAnalysisException)
    assert f"cannot be resolved; line {line} pos {pos};" in str(found)
    shown, marks = str(found).splitlines()[-2:]
    assert shown == SQL.splitlines()[line - 1]
    assert marks == "-" * pos + "^^^"
    assert found.getMessage() == str(found)
    assert found.getMessageParameters() == {"a": "b"}


def test_an_error_without_a_place_or_with_another_one_stays_as_it_is() -> None:
    for error in (
        _error(3, "somewhere else"),
        _error(0, "SELECT", of="VIEW"),
        _error(0, ""),
        AnalysisException(message="no context"),
    ):
        assert placed(error, SQL, _edits()) is error


def test_an_expression_is_found_in_its_statement_where_it_stands_once() -> None:
    sql = "UPDATE delta.`/vv` SET v = vv + 1, w = 'vvv' WHERE a = 1 AND b = a"
    found = placed_by_words(_error(0, "vv"), sql)
    assert isinstance(found, PlacedAnalysisException)
    assert "line 1 pos 27" in str(found)
    within = placed_by_words(found, f"MERGE INTO t\n {sql}")
    assert isinstance(within, PlacedAnalysisException)
    assert "line 2 pos 28" in str(within)
    assert within.error is found.error
    own = AnalysisException(
        message="[X] Did you mean [`t`.`__lakelog_row`, `v`, `__lakelog_file`]. line 1 pos 0",
        contexts=_error(0, "vv").getQueryContext(),
    )
    assert str(placed_by_words(own, sql)).startswith("[X] Did you mean [`v`]. line 1 pos 27")
    for error in (_error(0, "a"), _error(0, "c"), _error(0, "vv", ParseException)):
        assert placed_by_words(error, sql) is error
