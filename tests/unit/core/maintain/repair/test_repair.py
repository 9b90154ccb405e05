"""A repair mends what can be mended without a guess, names the rest, and can be taken back."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, create_table, delete_rows, repair, undo_repair, write_arrow
from lakelog.core.alter import set_properties
from lakelog.core.errors import DeltaAnalysisError, DeltaError
from lakelog.core.maintain.repair import log_defects
from lakelog.core.maintain.repair import repair_table as command
from lakelog.core.maintain.repair.backup import Backup, read_plan
from lakelog.core.maintain.repair.file_defects import find_file_defects
from lakelog.core.paths import data_path
from lakelog.core.portable.made_files import LinkedFolderError
from support.examples import examples
from support.line_injector import LineInjector

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = {1, 2, 3, 11, 12, 13}
OLD = 1_600_000_000
TORN = '{"commitInfo":{}}\n{"add":{"pa'


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Three commits of two rows each after the first, and a checkpoint."""
    uri = str(tmp_path / "t")
    create_table(uri, "a bigint")
    for number in (1, 2, 3):
        write_arrow(uri, pa.table({"a": [number, number + 10]}), mode="append")
    DeltaLog.for_table(uri).checkpoint()
    return uri


def log_file(table: str, name: str) -> Path:
    return Path(table, "_delta_log", name)


def commit_file(table: str, version: int) -> Path:
    return log_file(table, f"{version:020d}.json")


def rows(table: str) -> set[int]:
    return set(DeltaLog.for_table(table).snapshot.to_arrow()["a"].to_pylist())


def first_file(table: str) -> Path:
    """That of version 1, with the rows 1 and 11."""
    line = json.loads(commit_file(table, 1).read_text().splitlines()[-1])
    return Path(data_path(table, line["add"]["path"]))


def kinds(found: Any) -> list[str]:
    return [each.kind for each in found.defects]


def contents(table: str) -> dict[str, bytes]:
    return {
        str(each.relative_to(table)): each.read_bytes()
        for each in sorted(Path(table).rglob("*"))
        if each.is_file() and "_repair" not in each.parts
    }


def tear(table: str) -> None:
    commit_file(table, 4).write_text(TORN)
    os.utime(commit_file(table, 4), (OLD, OLD))


def lose(table: str) -> None:
    first_file(table).unlink()


def add_of(table: str, **changed: Any) -> None:
    """Change the add of version 1 in the log: of a writer that wrote it wrongly."""
    lines = [json.loads(each) for each in commit_file(table, 1).read_text().splitlines()]
    lines[-1]["add"] |= changed
    commit_file(table, 1).write_text("".join(json.dumps(each) + "\n" for each in lines))
    for each in log_file(table, "").glob("*3.*"):
        if each.suffix != ".json":
            each.unlink()
    log_file(table, "_last_checkpoint").unlink()


def leave(table: str) -> None:
    name = f".{2:020d}.json.80a083e8-7026-4e79-81be-64bd76c43a11.tmp"
    log_file(table, name).write_text("x")
    os.utime(log_file(table, name), (OLD, OLD))


CHECKPOINT = f"{3:020d}.checkpoint.parquet"
DEFECTS: dict[str, tuple[Callable[[str], Any], set[int]]] = {
    "torn commit": (tear, ROWS),
    "checkpoint": (lambda t: log_file(t, CHECKPOINT).write_bytes(b"<html>"), ROWS),
    "hint": (lambda t: log_file(t, "_last_checkpoint").write_text('{"version":9}'), ROWS),
    "checksum": (
        lambda t: log_file(t, f"{3:020d}.crc").write_text('{"tableSizeBytes":1,"numFiles":7}'),
        ROWS,
    ),
    "missing file": (lose, ROWS - {1, 11}),
    "wrong size": (lambda t: add_of(t, size=7), ROWS),
    "statistics": (lambda t: add_of(t, stats=None), ROWS),
    "leftover": (leave, ROWS),
}


def test_of_a_sound_table_nothing_is_found(table: str) -> None:
    before = contents(table)
    for dry_run in (True, False):
        done = repair(table, dry_run=dry_run)
        assert (done.defects, done.version, done.backup) == ((), None, None)
    assert contents(table) == before


@pytest.mark.parametrize("kind", DEFECTS)
def test_each_is_found_and_mended_and_comes_back(table: str, kind: str) -> None:
    harm, expected = DEFECTS[kind]
    harm(table)
    harmed = contents(table)
    seen = repair(table)
    assert kinds(seen) == [kind]
    assert seen.left == seen.defects
    assert contents(table) == harmed
    done = repair(table, dry_run=False)
    assert kinds(done) == [kind]
    assert done.left == ()
    assert rows(table) == expected
    assert repair(table).defects == ()
    assert (done.version is not None) == (kind in ("missing file", "wrong size", "statistics"))
    if done.version is not None:
        assert DeltaLog.for_table(table).history(1)[0].operation == "FSCK"
    assert done.backup is not None
    undo_repair(table, done.backup)
    if kind in ("missing file", "wrong size", "statistics"):
        assert kinds(repair(table)) == [kind]
    elif kind == "checkpoint":
        # A good one has its name by now.
        assert Path(done.backup, CHECKPOINT).read_bytes() == b"<html>"
    elif kind != "leftover":
        now = contents(table)
        # A commit comes back as stores write one, with an end of its last line.
        assert {name: now[name].rstrip(b"\n") for name in harmed} == {
            name: data.rstrip(b"\n") for name, data in harmed.items()
        }


def test_everything_at_once(table: str) -> None:
    for kind in ("torn commit", "checkpoint", "hint", "missing file", "leftover"):
        DEFECTS[kind][0](table)
    assert kinds(repair(table)) == ["torn commit", "checkpoint", "hint", "missing file"]
    done = repair(table, dry_run=False)
    assert done.version == 4
    assert rows(table) == ROWS - {1, 11}
    write_arrow(table, pa.table({"a": [4]}), mode="append")
    # The draft goes once a checkpoint has its version.
    assert kinds(repair(table, dry_run=False)) == ["leftover"]
    assert repair(table).defects == ()
    assert done.backup is not None
    undo_repair(table, done.backup)
    assert [kind for kind in kinds(repair(table)) if kind != "checkpoint"] == [
        "hint",
        "missing file",
    ]
    assert json.loads(Path(done.backup, f"{4:020d}.json").read_text().splitlines()[0])


def damage(table: str) -> None:
    pq.write_table(pa.table({"a": [5]}), first_file(table))


def forget_vector(table: str) -> None:
    set_properties(table, {"delta.enableDeletionVectors": "true"})
    delete_rows(table, "a = 1")
    [vector] = Path(table).glob("*.bin")
    vector.unlink()


def gap(table: str) -> None:
    commit_file(table, 2).unlink()
    log_file(table, CHECKPOINT).unlink()
    log_file(table, "_last_checkpoint").unlink()


def damaged_below(table: str) -> None:
    log_file(table, CHECKPOINT).unlink()
    log_file(table, "_last_checkpoint").unlink()
    commit_file(table, 2).write_text(TORN)


HOPELESS: dict[str, Callable[[str], Any]] = {
    "gap": gap,
    "commit": damaged_below,
    "damaged file": damage,
    "deletion vector": forget_vector,
    "torn commit": lambda t: commit_file(t, 4).write_text(TORN),
}


@pytest.mark.parametrize("kind", HOPELESS)
def test_what_would_be_a_guess_is_named_and_left(table: str, kind: str) -> None:
    HOPELESS[kind](table)
    before = contents(table)
    done = repair(table, dry_run=False)
    assert kinds(done) == [kind]
    assert done.left == done.defects
    assert done.backup is None
    assert contents(table) == before


def test_the_first_commit_is_never_taken_away(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_text(TORN)
    os.utime(log / f"{0:020d}.json", (OLD, OLD))
    done = repair(str(tmp_path), dry_run=False)
    assert [each.mend for each in done.defects] == [None]
    assert (log / f"{0:020d}.json").read_text() == TORN


class Killed(BaseException):
    """Nobody catches it, as nobody catches the end of a process."""


FOLDER = str(Path(command.__file__).parent)


@pytest.mark.parametrize("undoes", [False, True], ids=["repair", "undo"])
def test_an_end_at_any_line_loses_nothing(
    tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch, undoes: bool
) -> None:
    harmed = contents(_harmed(table))
    monkeypatch.setattr("secrets.token_hex", lambda _: "0")
    lines = None
    while lines is None or lines:
        _restore_to(table, harmed)
        done = repair(table, dry_run=False).backup if undoes else None
        injector = LineInjector((FOLDER,), lines.pop() if lines else None, Killed())
        with contextlib.suppress(Killed):
            injector.arm()
            try:
                undo_repair(table, done) if done else repair(table, dry_run=False)
            finally:
                injector.disarm()
        assert injector.hit == (lines is not None)
        if lines is None:
            # A loop's second round ends as its first does.
            lines = [each for each in dict.fromkeys(injector.seen) if each.time == 0][
                :: 1 if examples(1) > 1 else 6
            ]
        for claim in Path(table).rglob("*.claim"):
            claim.unlink()
        again = repair(table, dry_run=False)
        assert again.left == (), injector.at
        assert repair(table).defects == (), injector.at
        assert rows(table) == ROWS - {1, 11}, injector.at
        write_arrow(table, pa.table({"a": [99]}), mode="append")


def _harmed(table: str) -> str:
    for kind in ("torn commit", "checkpoint", "hint", "missing file"):
        DEFECTS[kind][0](table)
    return table


def _restore_to(table: str, files: dict[str, bytes]) -> None:
    for each in Path(table).rglob("*"):
        if each.is_file():
            each.unlink()
    for name, data in files.items():
        Path(table, name).parent.mkdir(parents=True, exist_ok=True)
        Path(table, name).write_bytes(data)
        os.utime(Path(table, name), (OLD, OLD))


def test_a_writer_that_is_faster_is_looked_at_again(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose(table)
    begin = Backup.begin

    def faster(*args: Any) -> None:
        begin(*args)
        write_arrow(table, pa.table({"a": [7]}), mode="append")
        monkeypatch.setattr(Backup, "begin", begin)

    monkeypatch.setattr(Backup, "begin", faster)
    find, calls = find_file_defects, []

    def slow(*args: Any) -> Any:
        found = find(*args)
        calls.append(1)
        if len(calls) == 2:
            # After the look that the commit goes by: the commit must not go through.
            write_arrow(table, pa.table({"a": [8]}), mode="append")
        return found

    monkeypatch.setattr(command, "find_file_defects", slow)
    repair(table, dry_run=False)
    assert rows(table) == ROWS - {1, 11} | {7, 8}


def test_a_file_that_came_back_stays(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, place = first_file(table).read_bytes(), first_file(table)
    place.unlink()
    begin = Backup.begin

    def back(*args: Any) -> None:
        begin(*args)
        place.write_bytes(data)

    monkeypatch.setattr(Backup, "begin", back)
    assert repair(table, dry_run=False).version is None
    assert rows(table) == ROWS


def test_two_repairs_never_both_move_a_commit(table: str) -> None:
    tear(table)
    folder = log_file(table, "_repair")
    folder.mkdir()
    claim = folder / f"{4:020d}.json.claim"
    claim.write_text("x")
    with pytest.raises(DeltaAnalysisError, match=r"another repair.*delete") as caught:
        repair(table, dry_run=False)
    assert caught.value.path == str(claim)
    assert commit_file(table, 4).read_text() == TORN
    claim.unlink()
    repair(table, dry_run=False)
    assert rows(table) == ROWS


def test_a_commit_that_a_lock_table_has_stays(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tear(table)
    monkeypatch.setattr(log_defects, "as_dynamodb_store", lambda store: store)
    (defect,) = repair(table, dry_run=False).defects
    assert (defect.mend, "lock table" in defect.problem) == (None, True)
    assert commit_file(table, 4).read_text() == TORN


def test_a_folder_that_is_no_backup_is_refused(table: str, tmp_path: Path) -> None:
    for folder in (str(tmp_path), f"{table}/_delta_log/_repair/none", f"{table}/_delta_log"):
        with pytest.raises(DeltaError, match="no backup"):
            undo_repair(table, folder)


def test_a_commit_that_is_only_malformed_stays(table: str) -> None:
    for line in ('{"add":{"path":"a","size":true}}', '{"txn":{"appId":1,"version":NaN}}'):
        commit_file(table, 4).write_text(f"{line}\n")
        os.utime(commit_file(table, 4), (OLD, OLD))
        before = contents(table)
        (defect,) = repair(table, dry_run=False).defects
        assert (defect.kind, defect.mend) == ("commit", None)
        assert contents(table) == before


@pytest.mark.parametrize("linked", ["_delta_log", "_delta_log/_repair"])
def test_nothing_is_moved_through_a_link(table: str, tmp_path: Path, linked: str) -> None:
    tear(table)
    place, elsewhere = Path(table, linked), tmp_path / "elsewhere"
    place.mkdir(exist_ok=True)
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    with pytest.raises(LinkedFolderError):
        repair(table, dry_run=False)
    assert sorted(elsewhere.rglob("*")) == before
    assert commit_file(table, 4).read_text() == TORN


def overwrite(table: str) -> None:
    write_arrow(table, pa.table({"a": [5]}), mode="overwrite")


@pytest.mark.parametrize("change", [overwrite, lambda t: delete_rows(t, "a = 2")])
def test_rows_that_went_since_do_not_come_back(table: str, change: Callable[[str], Any]) -> None:
    lose(table)
    done = repair(table, dry_run=False)
    assert done.backup is not None
    change(table)
    left = rows(table)
    with pytest.raises(DeltaAnalysisError, match="deleted or replaced rows since the repair"):
        undo_repair(table, done.backup)
    assert rows(table) == left


def test_a_torn_commit_never_comes_back_over_another(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tear(table)
    done = repair(table, dry_run=False)
    assert done.backup is not None

    def late(*args: Any) -> Any:
        found = read_plan(*args)
        monkeypatch.setattr(command, "_is_there", lambda *_: False)  # as a look before it sees it
        write_arrow(table, pa.table({"a": [4]}), mode="append")
        return found

    monkeypatch.setattr(command, "read_plan", late)
    undo_repair(table, done.backup)
    assert rows(table) == ROWS | {4}


def test_after_a_cleanup_of_the_log_the_backup_is_named(table: str) -> None:
    first_file(table).unlink()
    done = repair(table, dry_run=False)
    assert done.backup is not None
    DeltaLog.for_table(table).checkpoint()
    for each in Path(table, "_delta_log").glob("*.json"):
        each.unlink()
    before = contents(table)
    with pytest.raises(
        DeltaAnalysisError, match=r"nothing was put back .* is no longer in the log"
    ):
        undo_repair(table, done.backup)
    assert contents(table) == before
