"""Over Connect, PySpark may answer `schema` by what it knows, and ask the server nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import lakelog.spark
from lakelog.spark.session import unlogged

ROOT = Path(lakelog.spark.__path__[0])
# The schema of what is read, for which there is no schema yet.
WANT_THE_PLAN = {"reading/spark_scan.py", "format/stream_reader.py"}


def _schemas_asked_for_nothing(source: str) -> list[int]:
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assign)
        and [ast.unparse(each) for each in node.targets] == ["_"]
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "schema"
    ]


def test_the_rule_sees_what_it_forbids() -> None:
    assert _schemas_asked_for_nothing("x = 1\n_ = rows.where(given).schema\n") == [2]


def test_whatever_asks_spark_about_an_expression_has_it_analysed() -> None:
    places = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if _schemas_asked_for_nothing(path.read_text(encoding="utf-8"))
    }
    ours = Path(unlogged.__file__).relative_to(ROOT).as_posix()
    assert places == {ours, *WANT_THE_PLAN}
