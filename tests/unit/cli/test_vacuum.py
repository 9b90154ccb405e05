"""`lakelog vacuum`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import write_arrow
from support.aged_tables import data_files, put
from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def uri(tmp_path: Path) -> str:
    made = str(tmp_path / "t")
    write_arrow(made, pa.table({"id": [1]}), mode="append")
    for number in range(25):
        put(made, f"old {number:02d}", text="abc")
    return made


def test_a_dry_run_shows_the_first_ones_and_deletes_nothing(uri: str) -> None:
    outcome = lakelog("vacuum", uri, "--dry-run")
    assert outcome.code == 0
    assert f"file:{uri}/old%2000" in outcome.lines
    assert outcome.lines[-2:] == [
        "and 5 more; --json or --save gives all",
        "Nothing was deleted (--dry-run).",
    ]
    assert len(data_files(uri)) == 26


def test_files_go_and_the_text_says_how_many(uri: str) -> None:
    outcome = lakelog("vacuum", uri)
    assert outcome.lines[-1] == "Deleted 25 files and folders."
    assert "25 (75 B)" in outcome.out
    assert len(data_files(uri)) == 1
    assert lakelog("vacuum", uri).lines[-1] == "There was nothing to delete."


def test_what_was_saved_can_be_deleted_later(uri: str, tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.parquet")
    found = lakelog_json("vacuum", uri, "--dry-run", "--save", plan)
    assert (found["files"], found["bytes"], len(found["paths"])) == (25, 75, 25)
    put(uri, "later")
    found = lakelog_json("vacuum", uri, "--inventory", plan)
    assert found["files"] == 25
    assert "later" in data_files(uri)


def test_too_short_a_retention_is_refused_in_one_line(uri: str) -> None:
    outcome = lakelog("vacuum", uri, "--retention-hours", "1")
    assert outcome.code == 2
    assert "spark.databricks.delta.retentionDurationCheck.enabled=false" in outcome.err
    assert len(data_files(uri)) == 26
    allowed = ("--conf", "spark.databricks.delta.retentionDurationCheck.enabled=false")
    found = lakelog_json("vacuum", uri, "--retention-hours", "1", "--mode", "lite", *allowed)
    assert (found["mode"], found["files"]) == ("LITE", 0)


def test_without_a_table_nothing_happens(tmp_path: Path) -> None:
    put(tmp_path, "precious")
    assert lakelog("vacuum", str(tmp_path)).code == 2
    assert data_files(tmp_path) == {"precious"}
