"""The examples that check rows by other tools before they are written: `make recipes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.recipes import EXAMPLES, great_expectations_python, pandera_python, run_recipe

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
