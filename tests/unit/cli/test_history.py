"""`lakelog history`: newest first, the telling parts, and no more read than is shown."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.engine.shown import effect_text, parameters_text
from lakelog.logstores import LocalLogStore
from support.raw_log import RawLog, add, metadata
from support.tables import add_file, new_table
from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

T0 = 1_700_000_000_000


@pytest.fixture
def table(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    rows = pa.table({"id": [1, 2, 3], "day": ["a", "a", "b"]})
    write_arrow(uri, rows, partition_by=["day"], mode="append")
    write_arrow(uri, rows, mode="append")
    write_arrow(
        uri,
        rows.slice(0, 1),
        mode="overwrite",
        replace_where="day = 'a'",
        user_metadata="second\ntry",
    )
    return uri


def test_the_newest_version_comes_first_with_what_it_did(table: str) -> None:
    outcome = lakelog("history", table)
    assert (outcome.code, outcome.err) == (0, "")
    title, columns, *rows = outcome.lines
    assert title == f"{table}, version 2"
    assert columns.split()[:2] == ["Version", "Time"]
    assert [row.split()[0] for row in rows] == ["2", "1", "0"]
    assert "mode=Overwrite, predicate=day = 'a'" in rows[0]
    assert "1 row written, 4 rows deleted, 1 file added, 2 files removed" in rows[0]
    assert rows[0].endswith("second try"), "a note is one line"
    assert "Serializable, blind append" in rows[1]
    assert "blind append" not in rows[0]


def test_the_json_has_all_fields(table: str) -> None:
    found = lakelog_json("history", table, "--limit", "1")
    assert (found["table"], found["newest_version"]) == (table, 2)
    [entry] = found["entries"]
    info = DeltaLog.for_table(table).history(1)[0]
    assert entry["version"] == 2
    assert entry["timestamp"].endswith("Z")
    assert entry["operation"] == "WRITE"
    assert entry["parameters"]["predicate"] == "day = 'a'"
    assert entry["metrics"]["numOutputRows"] == 1, "numbers, where the log has texts"
    assert entry["read_version"] == 1
    assert entry["isolation_level"] == "Serializable"
    assert entry["blind_append"] is False
    assert entry["user_metadata"] == "second\ntry"
    assert entry["engine"].startswith("lakelog/")
    assert entry["txn_id"] == info.commit_info["txnId"]


def test_a_limit_says_how_to_see_more_and_all_shows_all(table: str) -> None:
    short = lakelog("history", table, "--limit", "2")
    assert [line.split()[0] for line in short.lines[2:-1]] == ["2", "1"]
    assert "--all" in short.lines[-1]
    assert "--all" not in lakelog("history", table, "--all").out
    assert "--all" not in lakelog("history", table, "--limit", "3").out


def test_times_are_utc_with_milliseconds(tmp_path: Path) -> None:
    log = RawLog(tmp_path).create()
    log.touch(0, T0 + 7)
    assert lakelog_json("history", log.table)["entries"][0]["timestamp"] == (
        "2023-11-14T22:13:20.007Z"
    )


def test_a_long_log_is_not_read_where_it_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_table(str(tmp_path / "t"), properties={"delta.checkpointInterval": "10"})
    for index in range(25):
        log.start_transaction().commit([add_file(f"f{index}")], Operation.write("Append"))
    listed: list[str] = []
    opened: list[str] = []
    list_from, read = LocalLogStore.list_from, LocalLogStore.read

    def watched_list(self: LocalLogStore, path: str) -> Iterator[Any]:
        for status in list_from(self, path):
            listed.append(status.name)
            yield status

    def watched_read(self: LocalLogStore, path: str) -> Any:
        opened.append(path.rpartition("/")[2])
        return read(self, path)

    monkeypatch.setattr(LocalLogStore, "list_from", watched_list)
    monkeypatch.setattr(LocalLogStore, "read", watched_read)
    found = lakelog_json("history", log.table, "--limit", "2")
    assert [entry["version"] for entry in found["entries"]] == [25, 24]
    assert sorted(opened) == [f"{24:020d}.json", f"{25:020d}.json", "_last_checkpoint"]
    assert min(listed).startswith(f"{20:020d}"), "from the checkpoint on, not from the start"


def test_a_table_that_can_not_be_read_still_has_a_history(tmp_path: Path) -> None:
    strange = {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["fromTheFuture"],
            "writerFeatures": ["fromTheFuture"],
        }
    }
    log = RawLog(tmp_path).commit(strange, metadata(), add("a"))
    outcome = lakelog("history", log.table)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.lines[0] == f"{log.table}, version 0"


def test_without_a_table_one_line_says_so(tmp_path: Path) -> None:
    outcome = lakelog("history", str(tmp_path / "none"))
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert outcome.err.startswith("lakelog: no Delta table at ")


def test_a_damaged_commit_is_named(tmp_path: Path) -> None:
    log = RawLog(tmp_path).create().write('{"commitInfo": {"operation"')
    outcome = lakelog("history", log.table)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"{1:020d}.json is not JSON" in outcome.err


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"mode": "Append", "partitionBy": "[]", "predicate": None}, "mode=Append"),
        ({"isManaged": "false", "properties": "{}", "description": ""}, ""),
        (
            {"predicate": '["(id > 3)"]', "zOrderBy": '["a"]'},
            'predicate=["(id > 3)"], zOrderBy=["a"]',
        ),
    ],
)
def test_parameters_that_say_nothing_are_left_out(parameters: dict[str, Any], text: str) -> None:
    assert parameters_text(parameters) == text


@pytest.mark.parametrize(
    ("metrics", "text"),
    [
        (
            {"numFiles": "2", "numOutputRows": "1000", "numOutputBytes": "2048"},
            "1,000 rows written, 2 files added, 2 KiB added",
        ),
        (
            {"num_added_files": 2, "num_removed_files": 4, "num_added_rows": 3},
            "3 rows written, 2 files added, 4 files removed",
        ),
        (
            {
                "numOutputRows": "3",
                "numTargetRowsInserted": "1",
                "numTargetRowsUpdated": "2",
                "numTargetRowsDeleted": "0",
                "numTargetFilesAdded": "1",
                "numTargetFilesRemoved": "3",
            },
            "1 row inserted, 2 rows updated, 1 file added, 3 files removed",
        ),
        ({"numAddedFiles": "1", "numRemovedFiles": "9"}, "1 file added, 9 files removed"),
        ({"executionTimeMs": "12", "numFiles": "odd"}, ""),
    ],
)
def test_the_effect_is_reported_by_the_names_of_each_operation(
    metrics: dict[str, str], text: str
) -> None:
    assert effect_text(metrics) == text


def test_history_starts_without_arrow(table: str) -> None:
    code = (
        "import sys\nfrom lakelog.cli import main\n"
        f"sys.argv = ['lakelog', 'history', {table!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = ('pyarrow', 'pyspark', 'pandas', 'numpy', 'sqlglot')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert f"{table}, version 2" in done.stdout
