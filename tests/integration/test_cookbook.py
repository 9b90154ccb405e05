"""The Python blocks of guides that need Spark run as pasted, in order, and do what they say."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.readwriter import DataStreamWriter

import lakelog.spark as delta
from lakelog.core import DeltaLog, read_arrow
from support.to_end import to_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def _to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the pages' queries, all of which end by themselves, have a second try too."""
    start: Any = DataStreamWriter.start
    monkeypatch.setattr(
        DataStreamWriter,
        "start",
        lambda self, *args, **kwargs: to_end(lambda: start(self, *args, **kwargs)),
    )


def run(page: str, spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Run all of a page, and give the names that it leaves."""
    code = "\n".join(BLOCK.findall((DOCS / page).read_text(encoding="utf-8")))
    assert '"/lake/' in code, "the page no longer says where its tables are"
    names: dict[str, Any] = {"spark": spark}
    try:
        exec(compile(code.replace("/lake/", f"{folder}/"), page, "exec"), names)
    finally:
        delta.disable(spark)
    return names


def test_a_script_moves_over(classic_spark: SparkSession, tmp_path: Path) -> None:
    run("from-delta-spark.md", classic_spark, tmp_path)
    moved = read_arrow(str(tmp_path / "moved"))["n"].to_pylist()
    assert sorted(moved) == [1, 2, 3, 14]
    assert sorted(read_arrow(str(tmp_path / "moved_too"))["n"].to_pylist()) == sorted(moved)


def test_the_recipes_do_what_they_say(classic_spark: SparkSession, tmp_path: Path) -> None:
    names = run("cookbook.md", classic_spark, tmp_path)
    delta.enable(classic_spark)
    try:
        names["run_upserts"]()  # nothing new
    finally:
        delta.disable(classic_spark)

    def rows(name: str, *columns: str) -> list[tuple[Any, ...]]:
        found = read_arrow(str(tmp_path / name)).select(columns)
        return sorted(map(tuple, (row.values() for row in found.to_pylist())), key=str)

    assert rows("people", "id", "city") == [(1, "Rome"), (2, "Bern")]
    first, second = datetime.date(2026, 1, 1), datetime.date(2026, 2, 1)
    assert rows("addresses", "city", "valid_from", "valid_to", "is_current") == [
        ("Bonn", first, second, False),
        ("Rome", second, None, True),
    ]
    assert rows("cities", "city", "people") == [("Bonn", 1), ("Oslo", 0), ("Rome", 1)]
    readings = DeltaLog.for_table(str(tmp_path / "readings"))
    assert readings.snapshot.num_files < 6
    assert [entry.operation for entry in readings.history(2)] == ["SET TBLPROPERTIES", "OPTIMIZE"]
    assert rows("loads", "id") == [(8,)]
    loads = [entry.operation for entry in DeltaLog.for_table(str(tmp_path / "loads")).history()]
    # Of two appends by number one is there; the range is replaced twice, no key is new.
    assert loads == ["UPDATE", "WRITE", "WRITE", "WRITE"]
