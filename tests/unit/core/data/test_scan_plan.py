"""What an engine is told that reads data files itself."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, delete_rows, write_arrow
from lakelog.core.data.scan_plan import ScanPlan
from lakelog.core.errors import DataFileMissingError

VECTORS = {"delta.enableDeletionVectors": "true"}
DAYS = [date(2024, 1, 1), date(2024, 1, 2)]


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    rows = {"id": range(20), "day": [DAYS[number % 2] for number in range(20)]}
    write_arrow(str(tmp_path), rows, mode="append", partition_by="day", properties=VECTORS)
    log = DeltaLog.for_table(str(tmp_path))
    delete_rows(log, "id IN (4, 7, 10)")
    log.update()
    return log


def planned(log: DeltaLog, where: str | None = None) -> ScanPlan:
    return ScanPlan(log.snapshot, log.snapshot.file_table_for(where))


def read(plan: ScanPlan) -> set[tuple[int, date]]:
    """What an engine makes of a plan that knows of Parquet alone."""
    gone = {(each["file"], each["row"]) for each in plan.deleted.to_pylist()}
    days = plan.partitions["day"].to_pylist()
    return {
        (value, days[file])
        for file, path in enumerate(plan.paths)
        for row, value in enumerate(pq.ParquetFile(path).read()["id"].to_pylist())
        if (file, row) not in gone
    }


def test_an_engine_that_reads_parquet_sees_the_rows_of_the_table(log: DeltaLog) -> None:
    expected = {(row["id"], row["day"]) for row in log.snapshot.to_arrow().to_pylist()}
    assert len(expected) == 17
    assert read(planned(log)) == expected


def test_a_plan_has_the_files_that_it_was_given(log: DeltaLog) -> None:
    plan = planned(log, "day = '2024-01-02'")
    assert len(plan.paths) == plan.partitions.num_rows == 1
    assert plan.partitions["day"].to_pylist() == [DAYS[1]]
    assert plan.deleted.num_rows == 1
    assert {number for number, _ in read(plan)} == set(range(1, 20, 2)) - {7}


def test_a_plan_without_files_has_tables_without_rows(log: DeltaLog) -> None:
    plan = planned(log, "id > 100")
    assert (plan.paths, plan.partitions.num_rows, plan.deleted.num_rows) == ([], 0, 0)
    assert plan.deleted.schema == pa.schema([("file", pa.int64()), ("row", pa.int64())])


def test_a_file_without_statistics_is_asked_how_many_rows_it_has(log: DeltaLog) -> None:
    (commit,) = Path(log.table, "_delta_log").glob("*01.json")
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for each in lines:
        each.get("add", {}).pop("stats", None)
    commit.write_text("".join(json.dumps(each) + "\n" for each in lines))
    again = DeltaLog.for_table(log.table)
    assert any(each.num_records is None for each in again.snapshot.files())
    assert read(planned(again)) == read(planned(log))


def test_a_vector_that_is_gone_is_an_error(log: DeltaLog) -> None:
    plan = planned(log)
    for each in Path(log.table).glob("deletion_vector_*"):
        each.unlink()
    with pytest.raises(DataFileMissingError, match="deletion vector"):
        _ = plan.deleted
