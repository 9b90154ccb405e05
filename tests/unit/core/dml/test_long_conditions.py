"""Conditions and values of any length, wherever a table takes one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog import core
from lakelog.core import alter
from lakelog.core.errors import ConstraintViolationError

if TYPE_CHECKING:
    from pathlib import Path

MANY = 1500


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    core.write_arrow(path, {"id": [1, 2, 9999], "n": [0.0, 0.0, 0.0]})
    return path


def _any_of(column: str) -> str:
    return " OR ".join(f"{column} = {number}" for number in range(1, MANY))


def _rows(path: str) -> list[tuple[int, float]]:
    rows = core.read_arrow(path).sort_by("id").to_pylist()
    return [(row["id"], row["n"]) for row in rows]


def test_in_a_merge(table: str) -> None:
    source = pa.table({"id": pa.array([1, 9999], pa.int64()), "n": [5.0, 5.0]})
    on = f"target.id = source.id AND ({_any_of('source.id')})"
    merge = core.merge(table, source, on)
    merge.when_matched_update({"n": "source.n"}, _any_of("target.id")).execute()
    assert _rows(table) == [(1, 5.0), (2, 0.0), (9999, 0.0)]


def test_in_an_update(table: str) -> None:
    value = f"CASE WHEN {_any_of('id')} THEN 1 ELSE 2 END"
    core.update_rows(table, {"n": value}, f"id > 1 AND ({_any_of('id')} OR id = 9999)")
    assert _rows(table) == [(1, 0.0), (2, 1.0), (9999, 2.0)]


def test_in_a_constraint(table: str) -> None:
    alter.add_constraint(table, "known", f"{_any_of('id')} OR id = 9999")
    core.write_arrow(table, {"id": [3], "n": [0.0]}, mode="append")
    with pytest.raises(ConstraintViolationError, match="known"):
        core.write_arrow(table, {"id": [8888], "n": [0.0]}, mode="append")
    assert [number for number, _ in _rows(table)] == [1, 2, 3, 9999]
