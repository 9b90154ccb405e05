"""`lakelog checkpoint`: written, read back, and only then told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, Operation
from lakelog.core.actions import SetTransaction
from lakelog.core.delta_log import DeltaLog as Log
from lakelog.core.log.file_names import checkpoint_name, log_path
from support.raw_log import RawLog, add, metadata
from support.tables import add_file, new_table
from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.core.actions import Action


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    made = new_table(str(tmp_path / "t"))
    for index in range(4):
        actions: list[Action] = [
            SetTransaction(app_id="stream", version=index),
            add_file(f"f{index}"),
        ]
        made.start_transaction().commit(actions, Operation.write("Append"))
    return made


def _path(log: DeltaLog, version: int) -> str:
    return log_path(log.table, checkpoint_name(version))


def test_the_newest_version_is_written_and_read_back(log: DeltaLog) -> None:
    found = lakelog_json("checkpoint", log.table)
    assert (found["version"], found["live_files"], found["transactions"]) == (4, 4, 1)
    assert (found["written"], found["verified"], found["hint_version"]) == (True, True, 4)
    assert found["files"] == [f"{4:020d}.checkpoint.parquet"]
    assert found["already_there"] == []
    assert found["bytes"] > 0
    assert pq.read_metadata(_path(log, 4)).num_rows > 4
    opened = DeltaLog.for_table(log.table).snapshot
    assert opened.state.segment.commits == ()
    assert opened.num_files == 4


def test_the_text_says_what_is_there_now(log: DeltaLog) -> None:
    outcome = lakelog("checkpoint", log.table)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.lines[0] == f"{log.table}, version 4"
    assert outcome.lines[-1].startswith(f"Wrote {4:020d}.checkpoint.parquet, ")
    assert outcome.lines[-1].endswith("it gives the same table.")
    assert (
        f"{4:020d}.checkpoint.parquet" in lakelog("checkpoint", log.table).out.partition("Wrote")[0]
    )


def test_a_dry_run_writes_nothing(log: DeltaLog) -> None:
    before = {each.name for each in RawLog(_folder(log)).folder.iterdir()}
    found = lakelog_json("checkpoint", log.table, "--dry-run")
    assert (found["written"], found["verified"], found["files"]) == (False, False, [])
    assert (found["version"], found["live_files"], found["hint_version"]) == (4, 4, None)
    assert {each.name for each in RawLog(_folder(log)).folder.iterdir()} == before
    assert "Nothing was written" in lakelog("checkpoint", log.table, "--dry-run").out


def _folder(log: DeltaLog) -> Path:
    from pathlib import Path

    return Path(log.table)


def test_an_older_version_leaves_the_hint_at_the_newer_one(log: DeltaLog) -> None:
    lakelog_json("checkpoint", log.table)
    found = lakelog_json("checkpoint", log.table, "--version", "2")
    assert (found["version"], found["live_files"], found["hint_version"]) == (2, 2, 4)
    assert DeltaLog.for_table(log.table).snapshot.version == 4
    assert DeltaLog.for_table(log.table).snapshot_at(2).num_files == 2


@pytest.mark.parametrize("damage", ["missing", "torn", "another"])
def test_a_checkpoint_that_does_not_read_back_is_an_error(
    log: DeltaLog, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pathlib import Path

    write = Log.checkpoint

    def damaged(self: DeltaLog, version: int | None = None, **_: object) -> None:
        path = Path(_path(self, 4))
        if damage == "another":
            write(self, 2)
            Path(_path(self, 2)).rename(path)
            (path.parent / "_last_checkpoint").unlink()
        elif damage == "torn":
            write(self, version)
            path.write_bytes(path.read_bytes()[:100])

    monkeypatch.setattr(Log, "checkpoint", damaged)
    outcome = lakelog("checkpoint", log.table)
    assert (outcome.code, outcome.out) == (2, "")
    said = {"missing": "it is not there", "another": "list of files differs", "torn": "00004"}
    assert said[damage] in outcome.err


@pytest.mark.parametrize(
    ("options", "said"),
    [(("--version", "9"), "versions 0 to 4 can be read"), (("--version", "-1"), "-1")],
)
def test_a_version_that_does_not_exist_is_refused(
    log: DeltaLog, options: tuple[str, ...], said: str
) -> None:
    outcome = lakelog("checkpoint", log.table, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_a_table_that_we_may_not_write_is_refused_by_name(tmp_path: Path) -> None:
    strange = {
        "protocol": {
            "minReaderVersion": 1,
            "minWriterVersion": 7,
            "writerFeatures": ["fromTheFuture"],
        }
    }
    raw = RawLog(tmp_path).commit(strange, metadata(), add("a"))
    outcome = lakelog("checkpoint", raw.table)
    assert (outcome.code, outcome.out) == (2, "")
    assert "fromTheFuture" in outcome.err
    assert not list(raw.folder.glob("*.parquet"))


def test_without_a_table_nothing_is_written(tmp_path: Path) -> None:
    outcome = lakelog("checkpoint", str(tmp_path))
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert list(tmp_path.iterdir()) == []


def test_a_v2_checkpoint_is_reported_with_its_sidecars_and_beside_the_older_one(
    tmp_path: Path,
) -> None:
    made = new_table(str(tmp_path / "t"), properties={"delta.checkpointPolicy": "v2"})
    made.start_transaction().commit([add_file("f")], Operation.write("Append"))
    first = lakelog_json("checkpoint", made.table)
    top, sidecar = first["files"]
    folder = RawLog(tmp_path / "t").folder
    assert (folder / top).stat().st_size + (folder / sidecar).stat().st_size == first["bytes"]
    second = lakelog_json("checkpoint", made.table)
    assert second["already_there"] == [top]
    assert not set(second["files"]) & set(first["files"])
