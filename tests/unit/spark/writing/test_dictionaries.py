"""For which columns the table's newest large file shows that a dictionary does not pay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem

from lakelog.core import DeltaLog, Operation, create_table
from lakelog.core.actions import AddFile
from lakelog.spark.writing.dictionaries import columns_without_dictionary

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 120_000
APPEND = Operation.write("Append")


def _table(path: Path) -> DeltaLog:
    create_table(path, pa.schema([("key", pa.int64()), ("few", pa.int64())]))
    return DeltaLog.for_table(path)


def _rows(rows: int = ROWS) -> pa.Table:
    return pa.table({"key": np.arange(rows) * 7919, "few": np.arange(rows) % 10})


def _file(path: str, size: int, time: int) -> AddFile:
    return AddFile(
        path=path, partition_values={}, size=size, modification_time=time, data_change=True
    )


def _commit(log: DeltaLog, *adds: AddFile) -> None:
    log.start_transaction().commit(adds, APPEND)
    log.update()


def _add(log: DeltaLog, name: str, time: int, rows: pa.Table | None = None, **options: Any) -> None:
    """Commit a file as Spark writes it: in the format's older version."""
    path = f"{log.table.removeprefix('file://')}/{name}"
    options = {"version": "1.0", "compression": "none", **options}
    pq.write_table(_rows() if rows is None else rows, path, **options)
    size = LocalFileSystem().get_file_info(path).size
    _commit(log, _file(name, size, time))


def _found(log: DeltaLog) -> list[str]:
    root = log.table.removeprefix("file://")
    return columns_without_dictionary(log, LocalFileSystem(), root)


def test_a_column_whose_dictionary_overflowed_is_reported(tmp_path: Path) -> None:
    log = _table(tmp_path)
    _add(log, "a.parquet", 1, dictionary_pagesize_limit=10_000)
    encodings = pq.read_metadata(tmp_path / "a.parquet").row_group(0).column(0).encodings
    assert {"PLAIN", "PLAIN_DICTIONARY"} <= set(encodings)
    assert _found(log) == ["key"]


@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_a_column_without_a_dictionary_stays_without(tmp_path: Path, version: str) -> None:
    log = _table(tmp_path)
    _add(log, "a.parquet", 1, version=version, use_dictionary=["few"])
    assert _found(log) == ["key"]


def test_the_newest_file_decides_and_small_ones_are_not_asked(tmp_path: Path) -> None:
    log = _table(tmp_path)
    _add(log, "newer.parquet", 5, use_dictionary=["key"])
    _add(log, "older.parquet", 3, use_dictionary=["few"])
    _add(log, "small.parquet", 9, _rows(5), use_dictionary=False)
    assert _found(log) == ["few"]


def test_few_rows_in_a_large_file_tell_nothing(tmp_path: Path) -> None:
    log = _table(tmp_path)
    _add(log, "a.parquet", 1, use_dictionary=False, row_group_size=50_000)
    assert _found(log) == []


def test_every_so_often_all_columns_are_tried_again(tmp_path: Path) -> None:
    log = _table(tmp_path)
    _add(log, "a.parquet", 1, use_dictionary=False)
    seen = []
    for _ in range(16):
        seen.append(bool(_found(log)))
        _commit(log)
    assert seen.count(False) == 1


@pytest.mark.parametrize("damage", ["gone", "torn", "elsewhere"])
def test_a_file_that_cannot_be_read_is_no_reason_to_fail(tmp_path: Path, damage: str) -> None:
    log = _table(tmp_path / "t")
    if damage == "elsewhere":
        pq.write_table(_rows(), tmp_path / "a.parquet", use_dictionary=False)
        _commit(log, _file(f"file://{tmp_path}/a.parquet", 1 << 20, 1))
    else:
        _add(log, "a.parquet", 1, use_dictionary=False)
        file = tmp_path / "t" / "a.parquet"
        file.unlink() if damage == "gone" else file.write_bytes(b"PAR1" * 9)
    assert _found(log) == []


def test_a_table_that_is_not_there_and_a_log_that_was_not_read_tell_nothing(tmp_path: Path) -> None:
    assert _found(DeltaLog.for_table(tmp_path / "none")) == []
    _add(_table(tmp_path), "a.parquet", 1, use_dictionary=False)
    assert _found(DeltaLog.for_table(tmp_path)) == []
