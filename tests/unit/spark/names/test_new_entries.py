"""How an entry is made: without columns, and with them where that can't be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from lakelog.core.errors import DeltaAnalysisError, TableExistsError
from lakelog.core.schema import StructType
from lakelog.spark.names import new_entries
from lakelog.spark.names.catalog_entries import Entry
from lakelog.spark.names.new_entries import create_entry
from lakelog.spark.names.provider import is_for_entry

SCHEMA = StructType.from_json(
    '{"type": "struct", "fields": [{"name": "a", "type": "integer", "nullable": true, '
    '"metadata": {}}]}'
)
SPARK: Any = SimpleNamespace()


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that the catalog was asked to run; each error in `refusing` is raised once."""
    texts: list[str] = []
    entry = Entry(("spark_catalog", "db", "t"), "table", "delta", "/x")
    monkeypatch.setattr(new_entries, "qualified", lambda *_: entry.parts)
    monkeypatch.setattr(new_entries, "find", lambda *_: entry)
    monkeypatch.setattr(new_entries, "accepts_delta", lambda _: True)
    monkeypatch.setattr(new_entries, "run_using_delta", lambda _, text: texts.append(text))
    return texts


NAME = "CREATE TABLE `spark_catalog`.`db`.`t`"


def _refuse_once(monkeypatch: pytest.MonkeyPatch, said: list[str], condition: str) -> None:
    def run(_: Any, text: str) -> None:
        said.append(text)
        if len(said) == 1:
            raise AnalysisException(errorClass=condition, message="no")

    monkeypatch.setattr(AnalysisException, "getCondition", lambda _: condition)
    monkeypatch.setattr(new_entries, "run_using_delta", run)


def test_an_entry_has_no_columns(said: list[str]) -> None:
    create_entry(SPARK, "db.t", SCHEMA, comment="it")
    assert said == [f"{NAME} USING delta COMMENT 'it'"]


def test_it_has_them_where_a_spark_asks_for_them(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _refuse_once(monkeypatch, said, "PYTHON_DATA_SOURCE_ERROR")
    create_entry(SPARK, "db.t", SCHEMA)
    assert said == [f"{NAME} USING delta", f"{NAME} (`a` int) USING delta"]


def test_it_has_them_where_delta_spark_would_make_the_table(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_entries, "accepts_delta", lambda _: False)
    create_entry(SPARK, "db.t", SCHEMA)
    assert said == [f"{NAME} (`a` int) USING delta"]


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("TABLE_OR_VIEW_ALREADY_EXISTS", TableExistsError),
        ("LOCATION_ALREADY_EXISTS", DeltaAnalysisError),
        ("SCHEMA_NOT_FOUND", DeltaAnalysisError),
    ],
)
def test_a_name_that_can_not_be_had_is_asked_for_once(
    said: list[str], monkeypatch: pytest.MonkeyPatch, condition: str, kind: type[Exception]
) -> None:
    _refuse_once(monkeypatch, said, condition)
    with pytest.raises(kind):
        create_entry(SPARK, "db.t", SCHEMA)
    assert len(said) == 1


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"owner": "root", "provider": "delta"}, True),
        ({"owner": "root", "provider": "delta", "path": "/x", "location": "/x"}, True),
        ({"path": "/x"}, False),
        ({}, False),
    ],
)
def test_spark_says_for_whom_the_columns_are(options: dict[str, str], asked: bool) -> None:
    assert is_for_entry(options) is asked
