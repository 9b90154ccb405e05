"""Each error of lakelog's is one of PySpark's too, which scripts catch."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark import errors as pyspark_errors
from pyspark.errors import AnalysisException, ParseException, PySparkException

import lakelog.core.errors as core_errors
import lakelog.spark  # noqa: F401  # with which errors are PySpark's too
from lakelog.core.errors import (
    AppendOnlyError,
    ConcurrentAppendException,
    ConstraintViolationError,
    DeltaAnalysisError,
    DeltaError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
    VersionNotFoundError,
)
from lakelog.logstores.errors import LogStoreError
from lakelog.spark.session import error_conditions as conditions
from lakelog.spark.session import raised_as
from lakelog.spark.session.raised_as import own_class
from lakelog.spark.sql_statements.text.syntax_errors import SqlSyntaxError
from lakelog.spark.workers.marked_errors import marked, unwrap_error

ROOTS = [Path(each) for each in ("core", "spark")]
REPOSITORY = Path(__file__).parents[4]
CONDITION = re.compile(r"""["']\[([A-Z][A-Z0-9_]*(?:\.[A-Z][A-Z0-9_]*)*)\] """)
OWN = {
    "DELTA_INVALID_TIME_TRAVEL_SPEC",
    "DELTA_UNSUPPORTED_PARTITION_TRANSFORM",
    "INVALID_STORAGE_LEVEL",
    "NON_PARTITION_COLUMN",
}
"""Conditions that neither delta-spark nor Spark lists."""
CLASSES = [
    each
    for each in vars(core_errors).values()
    if isinstance(each, type) and issubclass(each, DeltaError) and each is own_class(each)
]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda each: each.__name__)
def test_an_error_is_of_both_and_survives_what_errors_go_through(cls: type[DeltaError]) -> None:
    error = cls("what was wrong", table="/t", version=3)
    assert type(error) is not cls
    assert isinstance(error, cls)
    assert isinstance(error, PySparkException)
    assert str(error).startswith("what was wrong")
    assert repr(error) == f"{cls.__name__}('what was wrong')"
    assert error.getMessageParameters() == {"table": "/t", "version": "3"}
    assert error.getQueryContext() == []
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert (again.args, again.fields) == (error.args, error.fields)
    assert f"{cls.__module__}.{cls.__qualname__}: " in traceback.format_exception_only(error)[0]
    with pytest.raises(RuntimeError) as left, marked():
        raise error
    there = unwrap_error(left.value)
    assert type(there) is type(error)
    assert str(there) == str(error)


@pytest.mark.parametrize(
    ("error", "caught_as", "condition", "state"),
    [
        (
            TableNotFoundError("[DELTA_MISSING_DELTA_TABLE] t is none"),
            "AnalysisException",
            "DELTA_MISSING_DELTA_TABLE",
            "42P01",
        ),
        (
            TableExistsError("[DELTA_TABLE_ALREADY_EXISTS] t is there"),
            "AnalysisException",
            "DELTA_TABLE_ALREADY_EXISTS",
            "42P07",
        ),
        (
            VersionNotFoundError("no such version"),
            "AnalysisException",
            "DELTA_VERSION_NOT_FOUND",
            "22003",
        ),
        (TableNotFoundError("none"), "AnalysisException", "DELTA_TABLE_NOT_FOUND", "42P01"),
        (SchemaMismatchError("x"), "AnalysisException", "DELTA_METADATA_MISMATCH", "42KDG"),
        (DeltaAnalysisError("of our own"), "AnalysisException", None, None),
        (
            SqlSyntaxError("[PARSE_SYNTAX_ERROR] near 'x'"),
            "ParseException",
            "PARSE_SYNTAX_ERROR",
            "42601",
        ),
        (SqlSyntaxError("a comma"), "ParseException", "PARSE_SYNTAX_ERROR", "42601"),
        (
            DeltaAnalysisError("[PARSE_SYNTAX_ERROR] a type"),
            "ParseException",
            "PARSE_SYNTAX_ERROR",
            "42601",
        ),
        (
            DeltaAnalysisError("[DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT] too short"),
            "IllegalArgumentException",
            "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
            "22003",
        ),
        (
            AppendOnlyError("[DELTA_CANNOT_MODIFY_APPEND_ONLY] only appends"),
            "UnsupportedOperationException",
            "DELTA_CANNOT_MODIFY_APPEND_ONLY",
            "42809",
        ),
        (
            DeltaAnalysisError("[UNRESOLVED_COLUMN.WITH_SUGGESTION] no x"),
            "AnalysisException",
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            "42703",
        ),
        (
            ConcurrentAppendException("added", sub_condition="WITHOUT_HINT"),
            "PySparkException",
            "DELTA_CONCURRENT_APPEND.WITHOUT_HINT",
            "2D521",
        ),
    ],
    ids=str,
)
def test_the_condition_says_what_it_is_caught_as(
    error: Any, caught_as: str, condition: str | None, state: str | None
) -> None:
    assert isinstance(error, getattr(pyspark_errors, caught_as))
    assert isinstance(error, AnalysisException) == (
        caught_as in ("AnalysisException", "ParseException")
    )
    assert isinstance(error, ParseException) == (caught_as == "ParseException")
    assert error.getCondition() == error.getErrorClass() == condition
    assert error.getSqlState() == state
    assert error.getMessage() == str(error)


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", True),
        ("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", True),
        ("DELTA_EXCEED_CHAR_VARCHAR_LIMIT", True),
        ("DELTA_REPLACE_WHERE_MISMATCH", False),
    ],
)
def test_a_broken_rule_has_the_name_that_scripts_look_for(condition: str, named: bool) -> None:
    error = ConstraintViolationError(f"[{condition}] a row breaks it")
    assert ("DeltaInvariantViolationException" in str(error)) is named
    kinds = [each.__name__ for each in type(error).__mro__]
    assert ("DeltaInvariantViolationException" in kinds) is named
    # As delta-spark's: of the rows, and not of what was asked for.
    assert isinstance(error, AnalysisException) is not named
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


class OfAScriptError(DeltaAnalysisError):
    def __init__(self, code: int) -> None:
        super().__init__(f"[DELTA_MISSING_DELTA_TABLE] code {code}", code=code)

    def __str__(self) -> str:
        return f"code {self.code}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code,)


class OfAnImportError(DeltaError, ImportError):
    pass


class WithoutMessageError(DeltaError):
    def __init__(self) -> None:
        pass


def test_subclasses_of_scripts_keep_their_own_ways() -> None:
    error = OfAScriptError(7)
    assert isinstance(error, AnalysisException)
    assert error.getCondition() == "DELTA_MISSING_DELTA_TABLE"
    for each in (error, pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(each) is type(error)
        assert (str(each), each.code) == ("code 7", 7)
    assert str(OfAnImportError("no module")) == "no module"
    assert str(WithoutMessageError()) == ""


def test_an_error_arrives_in_a_process_without_spark() -> None:
    code = (
        "import pickle, sys; error = pickle.load(sys.stdin.buffer); "
        "assert type(error).__mro__[1].__name__ == 'DeltaError', type(error).__mro__; "
        "assert error.path == 'p' and str(error) == 'none'; assert 'pyspark' not in sys.modules"
    )
    sent = pickle.dumps(TableNotFoundError("none", path="p"))
    subprocess.run([sys.executable, "-c", code], input=sent, check=True)


def test_an_error_is_what_delta_sparks_package_has_if_that_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Theirs(PySparkException):
        pass

    module = ModuleType("delta.exceptions")
    monkeypatch.setattr(module, "ConcurrentAppendException", Theirs, raising=False)
    monkeypatch.setitem(sys.modules, "delta.exceptions", module)
    error = ConcurrentAppendException("added")
    assert isinstance(error, Theirs)
    assert str(error) == "added"
    # `lakelog.spark.compat` makes that module of lakelog's own classes.
    monkeypatch.setattr(module, "ConcurrentAppendException", ConcurrentAppendException)
    assert not isinstance(ConcurrentAppendException("added"), Theirs)


def test_every_condition_in_the_code_is_known() -> None:
    found = {
        condition
        for root in ROOTS
        for file in (REPOSITORY / root).rglob("*.py")
        for condition in CONDITION.findall(file.read_text("utf-8"))
    }
    assert len(found) > 150
    unknown = {each for each in found if conditions.sql_state(each) is None} - OWN
    assert not unknown


def test_every_condition_of_a_class_is_known() -> None:
    named = {*raised_as._CONDITIONS.values(), *(getattr(c, "condition", "") for c in CLASSES)}
    assert not {each for each in named - {""} if conditions.sql_state(each) is None}
    names = {each.__name__ for each in (*CLASSES, SqlSyntaxError)}
    assert {*raised_as._CONDITIONS, *raised_as._KINDS} <= names


def test_every_class_that_a_condition_names_is_pysparks() -> None:
    named = {*conditions._KINDS} - {"DeltaInvariantViolationException"}
    assert all(issubclass(getattr(pyspark_errors, each), PySparkException) for each in named)
    assert not issubclass(LogStoreError, DeltaError)


def test_without_spark_errors_are_the_cores_alone() -> None:
    code = (
        "import sys; from lakelog.core.errors import TableNotFoundError as E; "
        "assert type(E('x')) is E; assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
