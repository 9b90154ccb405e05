"""How tables look to people: trees of columns, and tables in notebooks."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING
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
from lakelog.core.maintain.repair.defects import Defect, TableRepaired
from lakelog.core.notebook import html_table
from lakelog.core.schema.tree_text import schema_tree

if TYPE_CHECKING:
    from pathlib import Path


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
    found = cells(f"<div>{html}</div>")
    assert found[:2] == [
        ["column", "type", "null", "partition", "comment"],
        ["id", "bigint", "NOT NULL", "1.", "the <key>"],
    ]
    assert found[-1] == ["delta.appendOnly", "true"]
    assert repr(snapshot.properties) == "TableProperties({'delta.appendOnly': 'true'})"
    assert snapshot._file_table is None


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


def test_long_values_are_cut_and_none_is_empty() -> None:
    found = cells(html_table("t", ["a", "b"], [["x" * 1000, None]]))
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
    whole, defects = (cells(f"{part}</div>") for part in html.split("</div>")[:2])
    assert [row[0] for row in whole[1:]] == ["table", "dry_run", "version", "backup"]
    assert defects[1][:3] == ["checksum", "/t/<x>", "wrong & old"]


def test_a_schema_and_a_scan_are_shown_without_reading(log: DeltaLog) -> None:
    found = cells(log.snapshot.schema._repr_html_())
    assert found[1] == ["id", "bigint", "NOT NULL", "the <key>"]
    scan = log.snapshot.scan(["id"], "id < 3")
    html = scan._repr_html_()
    assert cells(html) == [["column", "type"], ["id", "bigint"]]
    assert "where id &lt; 3" in html
