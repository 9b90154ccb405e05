"""The examples that check rows by other tools: `make recipes`."""

from __future__ import annotations

import datetime as dt
import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import write_arrow
from support.recipes import (
    EXAMPLES,
    great_expectations_python,
    pandera_python,
    run_recipe,
    sqlmesh_python,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.nightly
CHECKS = EXAMPLES / "checks"


@pytest.mark.needs("pandera")
def test_pandera_parts_rows_that_are_right_from_those_that_are_not(tmp_path: Path) -> None:
    counts, orders, refused = run_recipe(pandera_python(), "in_pandera", CHECKS, tmp_path, {})
    assert counts == [[1, 2], [1, 0], "SchemaErrors"]
    right = {"id": 1, "country": "DE", "amount": 1.5}
    assert orders == [right, right]
    assert refused == [
        {"id": 2, "country": "XX", "amount": 2.0},
        {"id": -3, "country": "FR", "amount": None},
    ]


@pytest.mark.needs("great_expectations")
def test_great_expectations_refuses_a_batch_and_checks_a_version(tmp_path: Path) -> None:
    python = great_expectations_python()
    written, first, refused, second = run_recipe(
        python, "in_great_expectations", CHECKS, tmp_path, {}
    )
    assert (written, first) == (0, [0, []])
    assert refused == "nothing was written: expect_column_values_to_be_in_set"
    assert second == [1, ["expect_column_values_to_be_unique"]]


@pytest.mark.needs("sqlmesh")
def test_models_of_sqlmesh_follow_a_table_and_their_audits_stop_a_plan(tmp_path: Path) -> None:
    project = shutil.copytree(EXAMPLES / "sqlmesh", tmp_path / "project")
    variables = {
        "HOME": str(tmp_path),
        "MARTS": str(tmp_path / "marts.db"),
        "PROJECT": str(project),
        "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true",
    }

    def planned(rows: list[tuple[int, str, float]], again: str) -> list[object]:
        orders = [
            {"day": dt.date(2026, 11, day), "country": country, "amount": amount}
            for day, country, amount in rows
        ]
        write_arrow(str(tmp_path / "lake/orders"), pa.Table.from_pylist(orders), mode="append")
        settings = {**variables, "RESTATE": again}
        ended, found = run_recipe(sqlmesh_python(), "in_sqlmesh", project, tmp_path, settings)
        return [ended, *found]

    first = ["2026-11-01", "DE", 1, 1.5]
    rows = [(1, "DE", 1.5), (2, "FR", 2.0), (2, "FR", 3.0)]
    assert planned(rows, "") == ["well", first, ["2026-11-02", "FR", 2, 5.0]]
    assert planned([(2, "FR", 1.0)], "") == ["well", first, ["2026-11-02", "FR", 2, 5.0]]
    assert planned([(3, "DE", 1.0)], "sales.daily") == [
        "well",
        first,
        ["2026-11-02", "FR", 3, 6.0],
        ["2026-11-03", "DE", 1, 1.0],
    ]
    assert planned([(4, "DE", -1.0)], "sales.daily")[0] == "PlanError"
