"""Functions take a table by its URI or by its open log, and do the same with either."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog import core
from lakelog.core import DeltaLog, alter, errors
from lakelog.core.errors import DeltaAnalysisError, TableNotFoundError

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.enableChangeDataFeed": "true",
    "delta.constraints.small": "id < 100",
    "mine": "1",
}
ON_A_TABLE: dict[str, tuple[Any, ...]] = {
    "add_columns": ({"extra": "int"},),
    "add_constraint": ("positive", "id > 0"),
    "change_column": ("name",),
    "create_table": ({"id": "bigint"},),
    "delete_rows": ("id = 1",),
    "drop_columns": ("name",),
    "drop_constraint": ("small",),
    "enable_row_tracking": (),
    "read_arrow": (),
    "rename_column": ("name", "title"),
    "set_properties": ({"theirs": "2"},),
    "table_changes": (0,),
    "unset_properties": ("mine",),
    "update_rows": ({"name": core.lit("z")},),
    "vacuum": (),
    "write_arrow": (ROWS,),
}
KEYWORDS: dict[str, dict[str, Any]] = {
    "change_column": {"comment": "what it is called"},
    "create_table": {"mode": "replace", "properties": {"delta.columnMapping.mode": "name"}},
    "write_arrow": {"mode": "append"},
}


@pytest.fixture
def table(tmp_path: Path) -> str:
    uri = str(tmp_path / "table")
    core.write_arrow(uri, ROWS, properties=PROPERTIES)
    return uri


def call(name: str, where: str | DeltaLog, **more: Any) -> Any:
    home = alter if name in alter.__all__ else core
    found = getattr(home, name)(where, *ON_A_TABLE[name], **KEYWORDS.get(name, {}), **more)
    return found.read_all().drop(["_commit_timestamp"]) if name == "table_changes" else found


@pytest.mark.parametrize("name", ON_A_TABLE)
def test_a_log_is_used_as_it_is(name: str, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    twin = f"{table}-twin"
    shutil.copytree(table, twin)
    expected = call(name, twin)
    log, twin_log = DeltaLog.for_table(table), DeltaLog.for_table(twin)

    def opened_again(*_: object) -> DeltaLog:
        raise AssertionError("the log was open")

    with monkeypatch.context() as patch:
        patch.setattr(DeltaLog, "for_table", opened_again)
        found = call(name, log)
    assert getattr(found, "version", found) == getattr(expected, "version", expected)
    assert log.known_version == log.update().version == twin_log.snapshot.version
    assert log.snapshot.metadata.configuration.keys() == (
        twin_log.snapshot.metadata.configuration.keys()
    )
    assert log.snapshot.schema.names == twin_log.snapshot.schema.names
    assert log.snapshot.to_arrow().num_rows == twin_log.snapshot.to_arrow().num_rows


@pytest.mark.parametrize("name", ON_A_TABLE)
def test_a_conf_beside_a_log_is_refused(name: str, table: str) -> None:
    with pytest.raises(DeltaAnalysisError, match="which has its own") as caught:
        call(name, DeltaLog.for_table(table), conf={"spark.lakelog.log.maxBytes": "1"})
    assert caught.value.table == table
    assert DeltaLog.for_table(table).snapshot.version == 0


@pytest.mark.parametrize("conf", [None, {}])
def test_a_folder_is_converted_by_its_log(tmp_path: Path, conf: dict[str, str] | None) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    log = DeltaLog.for_table(tmp_path)
    if conf is not None:
        with pytest.raises(DeltaAnalysisError, match="which has its own"):
            core.convert_to_delta(log, conf=conf)
        return
    assert core.convert_to_delta(log) == 0
    assert log.snapshot.to_arrow().num_rows == 3


def test_a_log_that_lags_behind_sees_what_others_committed(table: str) -> None:
    log = DeltaLog.for_table(table)
    assert log.snapshot.version == 0
    core.write_arrow(table, ROWS, mode="append")
    assert core.read_arrow(log).num_rows == 6
    core.write_arrow(table, ROWS, mode="append")
    assert core.table_changes(log, 0).read_all().num_rows == 9


class TestReadArrow:
    def test_reads_columns_and_rows(self, table: str) -> None:
        assert core.read_arrow(table, "name", "id > 1").to_pydict() == {"name": ["b", "c"]}
        assert core.read_arrow(table, where=[("id", "=", 1)]).num_rows == 1
        assert core.read_arrow(Path(table), ["id", "name"]).column_names == ["id", "name"]

    def test_reads_a_version_and_a_time(self, table: str) -> None:
        core.delete_rows(table, "id = 1")
        assert core.read_arrow(table).num_rows == 2
        assert core.read_arrow(table, version=0).num_rows == 3
        first = DeltaLog.for_table(table).snapshot_at(0).timestamp
        assert core.read_arrow(table, timestamp=first).num_rows in (2, 3)
        with pytest.raises(errors.VersionNotFoundError):
            core.read_arrow(table, version=7)
        with pytest.raises(errors.TimestampOutOfRangeError):
            core.read_arrow(table, timestamp="2001-01-01")
        with pytest.raises(DeltaAnalysisError, match="either version or timestamp"):
            core.read_arrow(table, version=0, timestamp=first)

    def test_says_that_there_is_no_table(self, tmp_path: Path) -> None:
        with pytest.raises(TableNotFoundError):
            core.read_arrow(tmp_path / "none")

    def test_the_conf_holds(self, table: str) -> None:
        with pytest.raises(errors.LogTooLargeError):
            core.read_arrow(table, conf={"spark.lakelog.log.maxBytes": "1"})
