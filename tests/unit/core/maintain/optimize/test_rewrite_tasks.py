"""An engine rewrites the bins of an OPTIMIZE: the same files as by threads of this process."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, delete_rows, write_arrow
from lakelog.core.errors import ConcurrentDeleteReadException, DataFileMissingError
from lakelog.core.maintain.optimize.optimize_table import optimize
from lakelog.core.rows.moved_row_ids import MovedRowIds
from lakelog.core.schema import StructType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.actions import AddFile
    from lakelog.core.maintain.optimize.rewrite_tasks import BinTask

VECTORS = {"delta.enableDeletionVectors": "true"}
KINDS: dict[str, tuple[dict[str, str], list[str], dict[str, Any]]] = {
    "plain": ({}, [], {}),
    "partitioned": ({}, ["p"], {}),
    "vectors, mapped": ({**VECTORS, "delta.columnMapping.mode": "name"}, ["p"], {}),
    "row ids": ({**VECTORS, "delta.enableRowTracking": "true"}, [], {}),
    "z-order": (VECTORS, ["p"], {"z_order_by": ["x", "id"]}),
    "row ids in z-order": ({"delta.enableRowTracking": "true"}, [], {"z_order_by": ["x"]}),
}


def made(path: str, kind: str) -> DeltaLog:
    properties, columns, _ = KINDS[kind]
    for first in range(0, 80, 20):
        ids = range(first, first + 20)
        data = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "p": [None if i % 5 == 0 else f"ä/{i % 2}" for i in ids],
                "x": [i * 7 % 60 / 2 for i in ids],
            }
        )
        given: dict[str, Any] = {}
        if first == 0:
            given = {"properties": properties, "partition_by": columns}
        write_arrow(path, data, mode="append", **given)
        if first == 40:
            delete_rows(path, "id % 7 = 3")
    return DeltaLog.for_table(path)


Make = Callable[[], "Sequence[BinTask]"]


def elsewhere(size: int, make: Make) -> list[list[tuple[Any, ...]]]:
    """As an engine runs them."""
    tasks = make()
    assert size == sum(each.size for each in tasks)
    return [pickle.loads(pickle.dumps(each)).run() for each in tasks]


def rows_with_ids(log: DeltaLog) -> list[Any]:
    from lakelog.core.maintain.optimize.bin_reader import BinReader

    snapshot = log.update()
    ids = MovedRowIds.from_snapshot(snapshot)
    reader = BinReader(snapshot, snapshot.read_schema, ids, workers=1)
    tables = reader.tables(snapshot.files())
    hidden = [] if ids is None else ids.add_id_columns(StructType()).names
    found = [row for each in tables for row in each.to_pylist()]
    return sorted([(row["id"], row["p"], row["x"], *(row[h] for h in hidden)) for row in found])


def _said(file: AddFile) -> list[Any]:
    # A cube's id is drawn.
    tags = {k: v for k, v in (file.tags or {}).items() if not k.endswith("_ID")}
    return [file.stats, file.partition_values, tags, file.num_records, file.data_change]


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_make_what_threads_make(tmp_path: Path, kind: str) -> None:
    how = KINDS[kind][2]
    paths = [str(tmp_path / name) for name in ("tasks", "threads")]
    made(paths[0], kind)
    shutil.copytree(paths[0], paths[1])
    logs = [DeltaLog.for_table(path) for path in paths]
    before = rows_with_ids(logs[0])
    runs: list[int] = []

    def run(size: int, make: Make) -> list[list[tuple[Any, ...]]]:
        found = elsewhere(size, make)
        runs.append(len(found))
        return found

    logs[0].run_bins, logs[1].run_bins = run, lambda *_: None
    done, same = (optimize(log, **how) for log in logs)

    assert runs == [same.metrics.num_bins]
    assert rows_with_ids(logs[0]) == rows_with_ids(logs[1]) == before
    assert done.metrics.files_added.total_files == same.metrics.files_added.total_files
    mine, other = (
        sorted(log.update().files(), key=lambda f: str(f.partition_values)) for log in logs
    )
    assert [_said(each) for each in mine] == [_said(each) for each in other]
    ids = [log.update().to_arrow()["id"].to_pylist() for log in logs]
    assert sorted(ids[0]) == sorted(ids[1])
    assert len(mine) > 1 or ids[0] == ids[1]
    assert not optimize(logs[0]).versions


def test_nothing_is_left_of_a_commit_that_was_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    log = made(path, "plain")

    def meanwhile(size: int, make: Make) -> list[list[tuple[Any, ...]]]:
        found = elsewhere(size, make)
        delete_rows(path, "id = 1")
        return found

    log.run_bins = meanwhile
    with pytest.raises(ConcurrentDeleteReadException):
        optimize(log)
    named = {f.path for v in range(log.update().version + 1) for f in log.snapshot_at(v).files()}
    assert {each.name for each in Path(path).glob("*.parquet")} == named


def test_a_file_that_is_gone_is_named_and_nothing_stays(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    log = made(path, "plain")
    lost = log.update().files()[1].path
    (Path(path) / lost).unlink()
    there = set(Path(path).glob("*.parquet"))
    log.run_bins = elsewhere
    with pytest.raises(DataFileMissingError, match=lost):
        optimize(log)
    assert set(Path(path).glob("*.parquet")) == there
