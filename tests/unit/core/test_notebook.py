"""How tables look to people: trees of columns, and tables in notebooks."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

from lakelog.core import (
    DeltaLog,
    clone,
    create_table,
    delete_rows,
    optimize,
    restore,
    vacuum,
    write_arrow,
)
from lakelog.core.actions import SetTransaction
from lakelog.core.alter import set_properties
from lakelog.core.errors import CorruptLogError
from lakelog.core.log.commit_history import History, HistoryEntry, read_history
from lakelog.core.maintain.repair.defects import Defect, TableRepaired
from lakelog.core.schema.tree_text import schema_tree
from lakelog.core.shown.notebook import html_table
from lakelog.core.state import snapshot as snapshot_module
from support.raw_log import RawLog


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    uri = str(tmp_path / "t")
    create_table(
        uri,
        "id bigint NOT NULL COMMENT 'the <key>', tags map<string, array<int>>, s struct<a: date>",
        partition_by="id",
        properties={"delta.appendOnly": True},
    )
    return DeltaLog.for_table(uri)


def cells(html: str) -> list[list[str]]:
    """Of all tables; the browser's rules are kept, since XML has the fewest."""
    return [["".join(cell.itertext()) for cell in row] for row in ET.fromstring(html).iter("tr")]


def test_a_schema_is_printed_as_spark_prints_it(
    log: DeltaLog, capsys: pytest.CaptureFixture[str]
) -> None:
    log.snapshot.print_schema()
    assert capsys.readouterr().out == (
        "root\n"
        " |-- id: bigint (nullable = false)\n"
        " |-- tags: map (nullable = true)\n"
        " |    |-- key: string\n"
        " |    |-- value: array (valueContainsNull = true)\n"
        " |    |    |-- element: int (containsNull = true)\n"
        " |-- s: struct (nullable = true)\n"
        " |    |-- a: date (nullable = true)\n"
    )
    assert schema_tree(log.snapshot.schema).startswith("root\n")


def test_a_snapshot_is_shown_without_reading_its_files(log: DeltaLog) -> None:
    snapshot = log.snapshot
    html = snapshot._repr_html_()
    assert html.count("<table>") == 2
    assert "<svg" not in html  # there are no files
    found = cells(html)
    assert found[:2] == [
        ["column", "type", "null", "partition", "comment"],
        ["id", "bigint", "NOT NULL", "1.", "the <key>"],
    ]
    assert found[-1] == ["delta.appendOnly", "true"]
    assert repr(snapshot.properties) == "TableProperties({'delta.appendOnly': 'true'})"


def test_a_history_is_a_list_and_a_table(log: DeltaLog) -> None:
    write_arrow(log, {"id": [1]}, mode="append", user_metadata="<b>nightly</b>")
    history = log.history()
    assert isinstance(history, list)
    assert history == list(history)
    found = cells(history._repr_html_())  # type: ignore[attr-defined]
    assert [row[0] for row in found] == ["version", "1", "0"]
    assert found[1][2] == "WRITE"
    assert found[1][5] == "<b>nightly</b>"
    assert found[1][1] == history[0].time.isoformat(" ", "milliseconds")
    first = history[0]
    assert first.time == dt.datetime.fromtimestamp(first.timestamp / 1000, dt.UTC)


@pytest.mark.parametrize(
    "text", ["9" * 400, "9" * 5000, "--5", "-7", "1e400", "\u00b2"], ids=range(6)
)
def test_a_history_is_shown_whatever_its_numbers_are(tmp_path: Path, text: str) -> None:
    metrics = {"numOutputRows": text, "numDeletedRows": text, "num_added_files": text}
    raw = RawLog(tmp_path / "t").create()
    for moment in (-(10**14), 10**15, 1):
        raw.commit({"commitInfo": {"operationMetrics": metrics, "inCommitTimestamp": moment}})
    history = read_history(DeltaLog.for_table(raw.table).store, raw.table, 3)
    assert [row[0] for row in cells(history._repr_html_())][-4:] == ["3", "2", "1", "0"]
    assert history[0].timestamp == 1


def test_long_values_are_cut_and_none_is_empty() -> None:
    found = cells(html_table("t", ["a", "b"], [["x" * 1000, None]]))
    assert found[0] == ["a", "b"]
    assert found[1] == ["x" * 300 + "…", ""]


def test_times_are_given_as_times_too(log: DeltaLog) -> None:
    snapshot = log.snapshot
    assert round(snapshot.time.timestamp() * 1000) == snapshot.timestamp
    assert snapshot.time.tzinfo is dt.UTC
    moment = SetTransaction(app_id="job", version=1, last_updated=253_402_300_799_999)
    assert moment.last_updated_time == dt.datetime(9999, 12, 31, 23, 59, 59, 999_000, dt.UTC)
    assert SetTransaction(app_id="job", version=1).last_updated_time is None


def test_what_commands_did_is_shown_as_tables(log: DeltaLog) -> None:
    table = log.table
    unset = {"delta.appendOnly": "false"}
    set_properties(table, unset)
    for number in range(3):
        write_arrow(table, pa.table({"id": [number]}), mode="append")
    changed = delete_rows(table, "id = 1")
    done = [
        (changed, {"version": str(changed.version), "metrics.numDeletedRows": "1"}),
        (optimize(table), {"metrics.num_bins": "0", "versions": ""}),
        (vacuum(table, dry_run=True), {"mode": "FULL", "num_files": "0"}),
        (restore(table, 2), {"restored_version": "2"}),
        (clone(table, f"{table} <clone>"), {"source_version": "6"}),
    ]
    for result, wanted in done:
        found = {row[0]: row[1] for row in cells(result._repr_html_()) if len(row) == 2}
        assert wanted.items() <= found.items(), found
        assert not [value for value in found.values() if "(" in value or "object at" in value]


def test_the_defects_of_a_repair_are_a_table_of_their_own() -> None:
    defect = Defect(kind="checksum", path="/t/<x>", problem="wrong & old", mend=None)
    html = TableRepaired(table="/t", dry_run=True, defects=(defect,))._repr_html_()
    found = cells(html)
    assert [row[0] for row in found[:4]] == ["table", "dry_run", "version", "backup"]
    assert found[5][:3] == ["checksum", "/t/<x>", "wrong & old"]


def test_a_schema_and_a_scan_are_shown_without_reading(log: DeltaLog) -> None:
    found = cells(log.snapshot.schema._repr_html_())
    assert found[1] == ["id", "bigint", "NOT NULL", "the <key>"]
    scan = log.snapshot.scan(["id"], "id < 3")
    html = scan._repr_html_()
    assert cells(html) == [["column", "type"], ["id", "bigint"]]
    assert "where id &lt; 3" in html


def picture(html: str) -> list[str]:
    """What its bars say."""
    titles = ET.fromstring(html).iter("title")
    return ["".join(each.itertext()) for each in titles]


def test_a_history_has_a_picture_of_its_rows(log: DeltaLog) -> None:
    set_properties(log, {"delta.appendOnly": "false"})
    for count in (3, 1):
        write_arrow(log, {"id": list(range(count))}, mode="append")
    delete_rows(log, "id = 0")
    html = log.history()._repr_html_()  # type: ignore[attr-defined]
    assert picture(html) == ["2, rows written: 3", "3, rows written: 1", "4, rows deleted: 2"]
    assert "<svg" not in log.history(2)._repr_html_()  # type: ignore[attr-defined]
    assert cells(log.history()[0]._repr_html_())[1][:1] == ["4"]


def test_a_long_history_costs_as_much_as_a_short_one() -> None:
    metrics = {"numOutputRows": "2"}
    entries = [
        HistoryEntry(version=n, timestamp=n, operation="WRITE", metrics=metrics)
        for n in reversed(range(10_000))
    ]
    html = History(entries)._repr_html_()
    found = cells(html)
    assert [row[0] for row in found[1:3]] == ["9999", "9998"]
    assert found[41] == ["… 9,950 more …"]
    assert [row[0] for row in found[-2:]] == ["1", "0"]
    assert len(html) < 30_000
    shown = picture(html)
    assert shown[0] == "0–166, rows written: 334"
    assert sum(int(each.rpartition(" ")[2]) for each in shown) == 20_000


def test_sizes_of_files_are_a_picture_where_the_log_is_short(
    log: DeltaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        write_arrow(log, {"id": [number]}, mode="append")
    fresh = DeltaLog.for_table(log.table)
    monkeypatch.setattr(snapshot_module, "_SHOWN_LOG", 100)
    assert picture(fresh.snapshot._repr_html_()) == []
    assert fresh.snapshot._file_table is None
    monkeypatch.undo()
    for file in Path(log.table).glob("id=*/*.parquet"):
        file.unlink()  # data files are not read
    assert picture(fresh.snapshot._repr_html_()) == ["below 1 MiB, files: 3"]
    for commit in Path(log.table, "_delta_log").glob("*.json"):
        commit.write_text("{")
    monkeypatch.setattr(type(fresh.snapshot), "file_table", property(broken))
    assert picture(fresh.snapshot._repr_html_()) == []


def broken(_: object) -> None:
    raise CorruptLogError("torn")


def test_what_vacuum_would_delete_is_listed_in_short(log: DeltaLog) -> None:
    folder = Path(log.table)
    for number in range(80):
        path = folder / f"left <{number:02}>.parquet"
        path.write_bytes(b"x")
        os.utime(path, (1, 1))
    found = cells(vacuum(log, dry_run=True)._repr_html_())
    (head,) = [at for at, row in enumerate(found) if row[0] == "path"]
    assert found[head] == ["path", "length", "isDir", "modificationTime"]
    assert found[head + 1][1:] == ["1 B", "false", "1970-01-01T00:00:01.000Z"]
    assert found[head + 41] == ["… 30 more …"]
    assert len(found) == head + 1 + 51
