"""Finding tables below a folder: which count, in which order, and where it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.cli.ui import walk as module
from lakelog.cli.ui.walk import Walk
from lakelog.core import create_table

if TYPE_CHECKING:
    from pathlib import Path


def walk(place: str) -> Walk:
    return Walk(place, {}, lambda _: None)


def made(folder: Path, *names: str) -> None:
    for name in names:
        create_table(str(folder / name), "a bigint")


def test_tables_are_found_nearer_ones_first_and_nothing_below_them(tmp_path: Path) -> None:
    made(tmp_path, "z", "a/b/c", "a/d", "z/inner", "_hidden/t", ".git/t", "day=1/t", "m")
    (tmp_path / "plain").mkdir()
    (tmp_path / "file").write_text("x")
    found = [each.removeprefix(f"{tmp_path}/") for each in walk(str(tmp_path)).tables()]
    assert found == ["m", "z", "a/d", "a/b/c", "day=1/t"]


def test_a_table_is_found_by_its_own_uri(tmp_path: Path) -> None:
    made(tmp_path, "t")
    assert list(walk(str(tmp_path / "t")).tables()) == [str(tmp_path / "t")]
    assert list(walk((tmp_path / "t").as_uri()).tables()) == [str(tmp_path / "t")]


def test_a_store_of_objects_is_searched_alike() -> None:
    for name in ("walked/a/t", "walked/u"):
        create_table(f"memory://lake/{name}", "a bigint")
    found = list(walk("memory://lake/walked").tables())
    assert found == ["memory://lake/walked/u", "memory://lake/walked/a/t"]


def test_a_place_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="none"):
        walk(str(tmp_path / "none")).require()
    walk(str(tmp_path)).require()


@pytest.mark.parametrize(("bound", "value"), [("MOST_TABLES", 3), ("_MOST_FOLDERS", 4)])
def test_it_ends_at_its_bounds_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    made(tmp_path, *(f"t{number}" for number in range(10)))
    monkeypatch.setattr(module, bound, value)
    walked = walk(str(tmp_path))
    assert len(list(walked.tables())) == 3
    assert "the search ended" in walked.left_out[0]


def test_folders_that_lead_in_circles_end(tmp_path: Path) -> None:
    made(tmp_path, "a/t")
    (tmp_path / "a" / "circle").symlink_to(tmp_path)
    found = list(walk(str(tmp_path)).tables())
    assert f"{tmp_path}/a/t" in found
    assert len(found) < 20
