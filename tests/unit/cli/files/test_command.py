"""`lakelog files`: what a read would open, and what is too small."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.cli.files.file_list import shown_rows, stats_column
from lakelog.core import DeltaLog, write_arrow
from lakelog.core.engine.shown import bytes_text
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.state.replay import load_state
from lakelog.core.state.snapshot import Snapshot
from support.raw_log import PROTOCOL, RawLog, add, metadata
from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


@pytest.fixture
def table(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    write_arrow(
        uri,
        pa.table({"id": [1, 2, 7], "day": ["a", "a", "b"]}),
        partition_by=["day"],
        mode="append",
    )
    write_arrow(
        uri,
        pa.table(
            {"id": [50, None], "day": ["a", None]},
            pa.schema([("id", pa.int64()), ("day", pa.string())]),
        ),
        mode="append",
    )
    return uri


def test_every_live_file_is_listed_by_path(table: str) -> None:
    found = lakelog_json("files", table)
    live = DeltaLog.for_table(table).snapshot.files()
    assert [each["path"] for each in found["list"]] == sorted(file.path for file in live)
    assert (found["version"], found["live_files"], found["files"], found["rows"]) == (1, 4, 4, 5)
    assert found["bytes"] == sum(file.size for file in live)
    by_day = {(e["partition_values"]["day"], e["rows"]) for e in found["list"]}
    assert by_day == {("a", 2), ("b", 1), ("a", 1), (None, 1)}
    assert all("stats" not in each for each in found["list"])


def test_the_text_has_a_line_a_file(table: str) -> None:
    outcome = lakelog("files", table)
    assert (outcome.code, outcome.err) == (0, "")
    title, sums, columns, *rows = outcome.lines
    assert title == f"{table}, version 1"
    assert sums.startswith("4 files, ")
    assert sums.endswith(", 5 rows")
    assert columns.split() == ["day", "Size", "Rows", "Modified", "(UTC)", "Path"]
    assert len(rows) == 4
    assert {row.split()[0] for row in rows} == {"a", "b", "null"}
    assert all(row.endswith(".parquet") for row in rows)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("day = 'a'", [1, 2]),
        ("day is null", [1]),
        ("id > 5", [1, 1]),
        ("day = 'a' and id > 5", [1]),
        ("id > 1000", []),
    ],
)
def test_a_condition_prunes_by_partition_and_statistics(
    table: str, condition: str, rows: list[int]
) -> None:
    found = lakelog_json("files", table, "--where", condition)
    assert sorted(each["rows"] for each in found["list"]) == rows
    assert (found["files"], found["live_files"]) == (len(rows), 4)
    kept = DeltaLog.for_table(table).snapshot.files(condition)
    assert {each["path"] for each in found["list"]} == {file.path for file in kept}
    assert (
        f"{len(rows)} file{'' if len(rows) == 1 else 's'} of 4"
        in lakelog("files", table, "--where", condition).out
    )


def test_statistics_are_shown_on_demand(table: str) -> None:
    found = lakelog_json("files", table, "--stats", "ID", "--where", "day = 'b' or day is null")
    by_rows = {each["partition_values"]["day"]: each["stats"] for each in found["list"]}
    assert by_rows["b"] == {"id": {"min": 7, "max": 7, "nulls": 0}}
    assert by_rows[None]["id"]["nulls"] == 1
    assert by_rows[None]["id"]["min"] is None
    text = lakelog("files", table, "--stats", "id", "--where", "day = 'b'")
    assert "min(id)  max(id)  nulls(id)" in text.lines[2]
    assert "  7        7        0          day=b/" in text.lines[3]


def test_statistics_of_nested_columns_go_by_their_path(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_arrow(
        uri, pa.table({"s": [{"x": 3, "odd.name": 1}, {"x": 5, "odd.name": 2}]}), mode="append"
    )
    [file] = lakelog_json("files", uri, "--stats", "s.x", "--stats", "s.`odd.name`")["list"]
    assert file["stats"] == {
        "s.x": {"min": 3, "max": 5, "nulls": 0},
        "s.`odd.name`": {"min": 1, "max": 2, "nulls": 0},
    }


def test_a_limit_says_how_many_more_there_are(table: str) -> None:
    assert len(lakelog_json("files", table, "--limit", "3")["list"]) == 3
    assert lakelog("files", table, "--limit", "3").lines[-1].startswith("1 more file: ")
    assert "more file" not in lakelog("files", table, "--limit", "3", "--all").out


def test_older_versions_have_their_own_files(table: str) -> None:
    assert lakelog_json("files", table, "--version", "0")["files"] == 2


def test_the_summary_counts_sizes_and_partitions(tmp_path: Path) -> None:
    sizes = {"a": [1, MIB - 1, MIB, 600 * MIB], "b": [16 * MIB, 64 * MIB, 127 * MIB]}
    log = RawLog(tmp_path).commit(PROTOCOL, metadata(partition_columns=("p",)))
    for name, each in sizes.items():
        log.commit(
            *(
                add(
                    f"{name}{size}",
                    size=size,
                    partitionValues={"p": name},
                    stats='{"numRecords":2}',
                )
                for size in each
            )
        )
    log.commit(add("c", size=5, partitionValues={"p": None}))
    found = lakelog_json("files", log.table, "--summary")
    assert "list" not in found
    assert (found["files"], found["rows"], found["files_without_row_count"]) == (8, 14, 1)
    assert [(each["below"], each["files"]) for each in found["sizes"]] == [
        (MIB, 3),
        (16 * MIB, 1),
        (64 * MIB, 1),
        (128 * MIB, 2),
        (512 * MIB, 0),
        (None, 1),
    ]
    assert found["sizes"][0]["bytes"] == 1 + MIB - 1 + 5
    assert [
        (p["partition_values"]["p"], p["files"], p["bytes"], p["rows"], p["small_files"])
        for p in found["partitions"]
    ] == [
        ("a", 4, 602 * MIB, 8, 3),
        ("b", 3, 207 * MIB, 6, 0),
        (None, 1, 5, None, 1),
    ]
    text = lakelog("files", log.table, "--summary", "--limit", "2")
    said = [" ".join(line.split()) for line in text.lines]
    assert "below 1 MiB 3 1 MiB" in said
    assert "512 MiB or more 1 600 MiB" in said
    assert "3 partitions" in said
    assert "b 3 207 MiB 6 0" in said
    assert said[-1].startswith("1 smaller partition: ")


def test_the_summary_of_an_unpartitioned_table_has_no_partitions(tmp_path: Path) -> None:
    log = RawLog(tmp_path).create(add("a"))
    found = lakelog_json("files", log.table, "--summary")
    assert "partitions" not in found
    assert "partition" not in lakelog("files", log.table, "--summary").out


def test_an_empty_table_has_no_files(tmp_path: Path) -> None:
    log = RawLog(tmp_path).commit(PROTOCOL, metadata(partition_columns=("p",)))
    found = lakelog_json("files", log.table, "--summary")
    assert (found["files"], found["bytes"], found["rows"], found["partitions"]) == (0, 0, 0, [])
    assert lakelog_json("files", log.table)["list"] == []
    assert lakelog("files", log.table, "--summary").code == 0


def test_deleted_rows_are_reported_and_do_not_count(tmp_path: Path) -> None:
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 4, "cardinality": 3}
    log = RawLog(tmp_path).create(add("a", stats='{"numRecords": 10}', deletionVector=vector))
    opened = DeltaLog.for_table(log.table)
    snapshot = Snapshot(
        log.table, opened.store, opened.conf, opened.clock, load_state(opened.store, log.table)
    )
    [row] = shown_rows(snapshot, snapshot.file_table, [], None)
    assert (row["rows"], row["deleted_rows"]) == (7, 3)
    assert "Deleted" not in lakelog("files", RawLog(tmp_path / "u").create(add("a")).table).out


def test_a_mapped_column_is_looked_up_by_its_name_in_the_files() -> None:
    physical = {"delta.columnMapping.physicalName": "col-1"}
    schema = StructType((StructField("id", PrimitiveType("long"), metadata=physical),))
    assert stats_column("id", schema, mapped=True) == ("id", ("col-1",))
    assert stats_column("id", schema, mapped=False) == ("id", ("id",))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--where", "nix = 1"), "unknown column nix"),
        (("--where", "id ="), "can't parse the filter"),
        (("--stats", "idd"), "Did you mean id?"),
        (("--stats", "id.x"), "no column 'x'"),
        (("--stats", "a..b"), "not a column path"),
        (("--version", "7"), "versions 0 to 1 can be read"),
        (("--summary", "--stats", "id"), "not both"),
    ],
)
def test_bad_input_is_one_error_and_no_output(
    table: str, options: tuple[str, ...], said: str
) -> None:
    outcome = lakelog("files", table, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err
    assert "Traceback" not in outcome.err


def test_a_folder_that_is_no_table_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").touch()
    outcome = lakelog("files", str(tmp_path))
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert "1 of them Parquet files, but no _delta_log" in outcome.err


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1024 * 1024 - 1, "1 MiB"),
        (5 << 60, "5120 PiB"),
    ],
)
def test_bytes_are_reported_in_binary_units(count: int, text: str) -> None:
    assert bytes_text(count) == text
