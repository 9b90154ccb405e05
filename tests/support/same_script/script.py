"""How a step of the script is run, by delta-spark's classes and by lakelog's.

It runs in delta-spark's own environment, too, and so imports nothing of the project's. A step is
text. What it answers is written down in a form that depends on neither the moment nor the folder.
"""

from __future__ import annotations

import ast
import datetime
import decimal
import importlib
import json
import math
import re
import sys
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

__all__ = ["plain", "run", "theirs"]

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_UNKNOWN_THERE = re.compile(r"Cannot find main error class '(\w+)'")
_OF_ALL = (Exception, BaseException, object)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_OF_THE_MOMENT = re.compile(r"(?i)bytes|size|time|ms$|^(min|max|avg)$")
"""Names of what depends on the clock, or on how a writer encodes a file."""


def theirs(spark: Any, packages: str, jobs: str) -> list[Any]:
    """Run steps by delta-spark: of each what `run` says.

    Args:
        spark: its session.
        packages: the folder of its Python package.
        jobs: as JSON, the folder and the text of each.
    """
    if packages not in sys.path:
        sys.path.insert(0, packages)
    tables = importlib.import_module("delta.tables")
    return [run(spark, tables, *each) for each in json.loads(jobs)]


def run(spark: Any, tables: Any, folder: str, text: str) -> dict[str, Any]:
    """Run a step on the table `t` of a folder.

    Args:
        spark: the session.
        tables: has `DeltaTable` and `IdentityGenerator`.
        folder: the table's is in it; new tables go there, too.
        text: Python; what its last line is worth is the answer.

    Returns:
        The answer, or the condition of the error, its class if it has none, the classes that it can
        be caught as, and its SQLSTATE.
    """
    steps = ast.parse(text.strip())
    last = steps.body.pop()
    assert isinstance(last, ast.Expr), text
    first = compile(steps, "step", "exec")
    then = compile(ast.Expression(last.value), "step", "eval")
    path = f"{folder}/t"

    def sql(statement: str) -> Any:
        return spark.sql(statement.replace("{t}", f"delta.`{path}`").replace("{at}", folder))

    names: dict[str, Any] = {
        "spark": spark,
        "sql": sql,
        "path": path,
        "at": folder,
        "sf": sf,
        "DeltaTable": tables.DeltaTable,
        "IdentityGenerator": tables.IdentityGenerator,
    }
    asked = {*first.co_names, *then.co_names}
    try:
        if asked & {"t", "merge"}:
            names["t"] = t = tables.DeltaTable.forPath(spark, path)
            if asked & {"merge", "s"}:
                names["s"] = s = _source(spark)
                names["merge"] = lambda on="t.id = s.id", rows=s: t.alias("t").merge(rows, on)
        exec(first, names)
        return {"answer": _answer(eval(then, names), folder)}
    except Exception as exc:
        found = _UNKNOWN_THERE.search(str(exc)) or _CONDITION.search(str(exc))
        said = {"error": found[1] if found else type(exc).__name__, "is": _caught_as(exc)}
        if isinstance(exc, PySparkException) and (state := exc.getSqlState()):
            said["state"] = state
        return said


def _caught_as(error: Exception) -> list[str]:
    """The classes by which a script can catch an error: those of Python and of PySpark."""
    return sorted(
        each.__name__
        for each in type(error).__mro__
        if each.__module__ in {"builtins", PySparkException.__module__} and each not in _OF_ALL
    )


def _source(spark: Any) -> Any:
    rows = [(2, "two", 20, 0.5), (5, None, 50, None), (40, "x", 4, 1.0), (41, "y", None, 2.0)]
    return spark.createDataFrame(rows, "id int, name string, n bigint, x double").alias("s")


def _answer(value: Any, folder: str) -> Any:
    if isinstance(value, DataFrame):
        columns = [f"{each.name}: {each.dataType.simpleString()}" for each in value.schema]
        rows = [plain(row.asDict(recursive=True), folder) for row in value.collect()]
        return {"columns": columns, "rows": sorted(map(json.dumps, rows))}
    if value is None or isinstance(value, bool | int | str):
        return plain(value, folder)
    return type(value).__name__


def plain(value: Any, folder: str) -> Any:
    """A value as JSON has it, without the folder, ids drawn by chance, times and sizes."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, list | tuple):
        return [plain(each, folder) for each in value]
    if isinstance(value, dict):
        return {str(k): _named(str(k), value[k], folder) for k in sorted(value)}
    if isinstance(value, str):
        value = re.sub(rf"(file:)?/*{re.escape(folder.lstrip('/'))}", "<at>", value)
        return _UUID.sub("<uuid>", value)
    if isinstance(value, datetime.date | decimal.Decimal | bytearray):
        return str(value)
    return value


def _named(name: str, value: Any, folder: str) -> Any:
    if _OF_THE_MOMENT.search(name) and re.match(r"[\d.-]+", str(value)):
        return "*"
    return plain(value, folder)
