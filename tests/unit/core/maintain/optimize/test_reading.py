"""Small files are read several at once, and come as few batches, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, delete_rows, write_arrow
from lakelog.core.maintain.optimize import bin_reader as reading
from lakelog.core.maintain.optimize.bin_reader import BinReader
from lakelog.core.rows.moved_row_ids import MovedRowIds

if TYPE_CHECKING:
    from pathlib import Path

FILES, ROWS = 40, 3


def made(path: str, properties: dict[str, str] | None = None) -> DeltaLog:
    for number in range(FILES):
        ids = range(ROWS * number, ROWS * (number + 1))
        data = pa.table({"id": pa.array(ids, pa.int64()), "s": [f"ä{i}" * 9 for i in ids]})
        given: dict[str, Any] = {} if number else {"properties": properties or {}}
        write_arrow(path, data, mode="append", **given)
    return DeltaLog.for_table(path)


def tables_of(log: DeltaLog, workers: int) -> list[pa.Table]:
    snapshot = log.update()
    ids = MovedRowIds.from_snapshot(snapshot)
    reader = BinReader(snapshot, snapshot.read_schema, ids, workers=workers)
    files = sorted(
        snapshot.files(), key=lambda file: int(str(file.stats).split('"id":')[1].split(",")[0])
    )
    return list(reader.tables(files))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("kind", ["plain", "vectors", "row ids"])
def test_small_files_come_joined_and_in_order(tmp_path: Path, kind: str, workers: int) -> None:
    properties = {
        "plain": {},
        "vectors": {"delta.enableDeletionVectors": "true"},
        "row ids": {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"},
    }[kind]
    log = made(str(tmp_path / "t"), properties)
    gone = set()
    if kind != "plain":
        delete_rows(log.table, "id % 7 = 3")
        gone = {i for i in range(FILES * ROWS) if i % 7 == 3}
    tables = tables_of(log, workers)
    assert len(tables) == -(-FILES // 16)
    assert all(column.num_chunks == 1 for each in tables for column in each.columns)
    ids = [i for each in tables for i in each["id"].to_pylist()]
    assert ids == [i for i in range(FILES * ROWS) if i not in gone]
    assert [s for each in tables for s in each["s"].to_pylist()] == [f"ä{i}" * 9 for i in ids]
    if kind == "row ids":
        hidden = tables[0].column_names[2]
        assert [i for each in tables for i in each[hidden].to_pylist()] == ids


def test_rows_that_are_too_many_for_a_batch_stay_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_JOINED_BYTES", 100)
    tables = tables_of(made(str(tmp_path / "t")), 1)
    assert len(tables) == FILES
    assert [i for each in tables for i in each["id"].to_pylist()] == list(range(FILES * ROWS))


def test_a_run_ends_at_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_RUN_BYTES", 1)
    assert len(tables_of(made(str(tmp_path / "t")), 2)) == FILES
