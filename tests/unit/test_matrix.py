"""`make check-matrix` and `make nightly`: which cells, which floors, and that failures are seen."""

from __future__ import annotations

import importlib
import itertools
import re
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def _scripts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPOSITORY / "scripts")
        yield


@pytest.fixture(scope="module")
def matrix() -> Any:
    return importlib.import_module("check_matrix")


def test_the_unit_tests_meet_each_python_and_in_two_days_each_pyarrow(matrix: Any) -> None:
    pythons = importlib.import_module("interpreters").minors()
    days = [matrix.unit_cells(pythons, day) for day in (20_000, 20_001)]
    assert all(sorted(python for python, *_ in day) == sorted(pythons) for day in days)
    assert all({arrow for *_, arrow in day} == set(matrix.ARROWS) for day in days)
    cells = matrix.unit_cells(pythons, 20_000, both=True)
    assert cells == days[0] | days[1]
    assert sorted((python, arrow) for python, _, arrow in cells) == sorted(
        itertools.product(pythons, matrix.ARROWS)
    )
    assert {spark for _, spark, _ in cells} == set(matrix.SPARKS)
    assert (REPOSITORY / matrix.SMOKE).is_file()


@pytest.mark.parametrize(
    ("python", "asked", "floor"),
    [("3.11", "15.0.0", "17"), ("3.11", "18.0.0", "18.0.0"), ("3.13", "15.0.0", "18.0")],
)
def test_the_floor_is_what_lakelog_python_and_pyspark_all_take(
    matrix: Any, tmp_path: Path, python: str, asked: str, floor: str
) -> None:
    wheel = tmp_path / "pyspark-4.9.9-py2.py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("pyspark/sql/pandas/utils.py", f'    minimum_pyarrow_version = "{asked}"\n')
    assert matrix.arrow_floor(python, wheel) == floor


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def test_it(): pass", r"1 passed, \d+ s"),
        ("def test_it(): assert not 1", "failed: 1 failed"),
        ("import nothing_of_that_name", "failed: 1 error"),
        ("", "failed: no tests ran"),
    ],
)
def test_a_cell_says_how_its_tests_ended(
    matrix: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    monkeypatch.setattr(matrix, "CACHE", tmp_path)
    monkeypatch.setattr(matrix, "REPOSITORY", tmp_path)
    (tmp_path / "test_one.py").write_text(code)
    found = matrix._tests(Path(sys.executable), "cell", "test_one.py")
    assert re.match(said, found), found
    assert (tmp_path / "matrix" / "cell.log").is_file()


def test_a_night_goes_on_after_a_failure_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nightly = importlib.import_module("nightly")
    monkeypatch.setattr(nightly, "CACHE", tmp_path)
    program = [sys.executable, "-c"]
    bad = nightly.run("bad", [*program, "print('3 | 4'); raise SystemExit(3)"])
    good = nightly.run("good", [*program, "print('one'); print('== all is well ==')"])
    assert (bad[1], bad[3]) == ("failed (3)", "3 / 4")
    assert (good[1], good[3]) == ("well", "all is well")
    assert "good.log" in capsys.readouterr().out


def test_every_run_of_a_night_is_a_target_of_make() -> None:
    nightly = importlib.import_module("nightly")
    makefile = (REPOSITORY / "Makefile").read_text()
    assert all(f"\n{target}:" in makefile for target, *_ in nightly.RUNS.values())
