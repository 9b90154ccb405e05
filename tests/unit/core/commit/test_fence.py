"""A table that is dropped, or dropped and made again, during a write: nothing lands anywhere."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import (
    DeltaLog,
    Operation,
    delete_rows,
    merge,
    optimize,
    restore,
    update_rows,
    write_arrow,
)
from lakelog.core.alter import add_columns, set_properties
from lakelog.core.commit.lock import hold_lock
from lakelog.core.errors import ConcurrentWriteException, TableNotFoundError
from lakelog.core.log.file_names import commit_path
from lakelog.core.transaction import committer, large_commit
from lakelog.logstores import Capabilities, LocalLogStore, Scope
from support.manual_clock import ManualClock
from support.tables import add_file
from support.waiting_writers import grouping_log, in_one_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

VERSIONS = 3
ROWS = pa.table({"id": [1, 2], "p": ["a", "b"]})


def _made(table: Path, versions: int = VERSIONS) -> None:
    properties = {"delta.enableDeletionVectors": "true"}
    write_arrow(str(table), ROWS, partition_by=["p"], properties=properties)
    for _ in range(1, versions):
        write_arrow(str(table), ROWS, mode="append")


def _other(table: Path, versions: int) -> None:
    for number in range(versions):
        write_arrow(str(table), {"other": [float(number)]}, mode="append")


def _dropped(table: Path) -> None:
    shutil.rmtree(table)


def _log_dropped(table: Path) -> None:
    shutil.rmtree(table / "_delta_log")


def _emptied(table: Path) -> None:
    for each in (table / "_delta_log").iterdir():
        each.unlink()


def _again(versions: int) -> Callable[[Path], None]:
    def swap(table: Path) -> None:
        _dropped(table)
        _other(table, versions)

    return swap


def _same_again(table: Path) -> None:
    _dropped(table)
    _made(table)


SWAPS: dict[str, tuple[Callable[[Path], None], type[Exception]]] = {
    "dropped": (_dropped, TableNotFoundError),
    "its log dropped": (_log_dropped, TableNotFoundError),
    "emptied": (_emptied, TableNotFoundError),
    "made again, shorter": (_again(1), ConcurrentWriteException),
    "made again, as long": (_again(VERSIONS), ConcurrentWriteException),
    "made again, longer by the version that is tried": (
        _again(VERSIONS + 1),
        ConcurrentWriteException,
    ),
    "made again, far longer": (_again(VERSIONS + 4), ConcurrentWriteException),
    "the same made again": (_same_again, ConcurrentWriteException),
}


def _append(table: str) -> object:
    return write_arrow(table, ROWS, mode="append")


DOORS: dict[str, Callable[[str], object]] = {
    "append": _append,
    "overwrite": lambda table: write_arrow(table, ROWS, mode="overwrite"),
    "replace": lambda table: write_arrow(table, ROWS, mode="overwrite", replace_where="p < 'c'"),
    "merge the schema": lambda table: write_arrow(
        table, {"id": [1], "p": ["c"], "n": [1.5]}, mode="append", schema_mode="merge"
    ),
    "delete": lambda table: delete_rows(table, "id = 1"),
    "update": lambda table: update_rows(table, {"id": "id + 1"}, "id = 1"),
    "merge": lambda table: (
        merge(table, {"id": [1]}, "t.id = s.id", target_alias="t", source_alias="s")
        .when_matched_delete()
        .execute()
    ),
    "optimize": optimize,
    "properties": lambda table: set_properties(table, {"a": "b"}),
    "columns": lambda table: add_columns(table, {"more": "long"}),
    "restore": lambda table: restore(table, version=1),
    "a bare commit": lambda table: (
        DeltaLog.for_table(table)
        .start_transaction()
        .commit([add_file("x", p="a")], Operation("WRITE"))
    ),
}


def _state(table: Path) -> set[str]:
    return {str(each.relative_to(table)) for each in table.rglob("*") if each.is_file()}


PLAYED = sorted(
    {*itertools.product(["append"], SWAPS)}
    | {*itertools.product(DOORS, ["its log dropped", "made again, as long"])}
)


@pytest.mark.parametrize(("door", "swap"), PLAYED)
def test_what_was_read_is_looked_at_before_each_commit(
    door: str, swap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "t"
    _made(table)
    before, left = _state(table), list[set[str]]()
    change, error = SWAPS[swap]

    def hold(*given: Any, **named: Any) -> Any:
        if not left:
            written = _state(table) - before
            left.append(set())
            change(table)
            left[0] = _state(table) - written
        return hold_lock(*given, **named)

    monkeypatch.setattr(committer, "hold_lock", hold)
    monkeypatch.setattr(large_commit, "hold_lock", hold)
    with pytest.raises(error, match="Nothing was committed") as caught:
        DOORS[door](str(table))
    assert str(table) in str(caught.value)
    assert not getattr(caught.value, "__notes__", None), "nothing else is to be said"
    assert _state(table) == left[0], "no commit, and no file of it is left"


@pytest.mark.parametrize("swap", SWAPS)
def test_a_large_commit_looks_when_its_last_action_is_made(swap: str, tmp_path: Path) -> None:
    table = tmp_path / "t"
    _made(table)
    change, error = SWAPS[swap]
    after: set[str] = set()

    def actions() -> Iterator[Any]:
        yield add_file("first", p="a")
        change(table)
        after.update(_state(table))
        yield add_file("last", p="a")

    txn = DeltaLog.for_table(table).start_transaction()
    with pytest.raises((error, FileNotFoundError)):
        txn.commit_large(actions(), Operation("RESTORE"))
    assert not txn.may_be_committed
    assert _state(table) == after


@pytest.mark.parametrize("swap", SWAPS)
def test_who_is_committed_in_a_group_does_not_land_in_another_table(
    swap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "t"
    _made(table, VERSIONS - 1)
    change, error = SWAPS[swap]
    log = grouping_log(DeltaLog.for_table(table))
    txns = [log.start_transaction() for _ in range(3)]
    commits = [
        partial(txn.commit, [add_file(txn._committer.txn_id, p="a")], Operation("WRITE"))
        for txn in txns
    ]
    after: list[set[str]] = []

    def hold(*given: Any, **named: Any) -> Any:
        if (table / "_delta_log" / f"{VERSIONS - 1:020}.json").exists() and not after:
            after.append(set())
            change(table)  # the first one's commit is in the log, and the others' are one
            after[0] = _state(table)
        return hold_lock(*given, **named)

    monkeypatch.setattr(committer, "hold_lock", hold)
    version, *others = in_one_turn(log, commits[0], commits[1:])
    assert (version, [isinstance(each, error) for each in others]) == (VERSIONS - 1, [True] * 2)
    assert not any(txn.may_be_committed for txn in txns[1:])
    assert _state(table) == after[0]


class _Contended(LocalLogStore):
    """Lets something happen before a write, which loses; far away, requests travel together."""

    before: Callable[[], None] | None = None
    seconds = 0.0
    clock = ManualClock()

    @property
    def capabilities(self) -> Capabilities:
        scope = Scope.CLUSTER if self.seconds else Scope.HOST
        return replace(super().capabilities, exclusive_create=scope)

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        self.clock.advance(self.seconds)
        happens, self.before = self.before, None
        if happens is not None:
            happens()
        super().write(path, lines, overwrite=overwrite)


@pytest.mark.parametrize("seconds", [0.0, 0.03])
@pytest.mark.parametrize("versions", [VERSIONS + 1, VERSIONS + 4])
def test_who_lost_to_another_table_does_not_go_on_behind_it(
    versions: int, seconds: float, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    _made(table)
    store, conf = _Contended(), DeltaLog.for_table(table).conf
    log = DeltaLog(str(table), store, conf, store.clock)
    txn = log.start_transaction()
    store.seconds, store.before = seconds, lambda: _again(versions)(table)
    with pytest.raises(ConcurrentWriteException, match="dropped and created again"):
        txn.commit([add_file("mine", p="a")], Operation("WRITE"))
    assert not Path(commit_path(str(table), versions)).exists()


@pytest.mark.parametrize("seconds", [0.0, 0.03])
def test_who_lost_to_the_same_table_goes_on(seconds: float, tmp_path: Path) -> None:
    table = tmp_path / "t"
    _made(table)
    store, conf = _Contended(), DeltaLog.for_table(table).conf
    log = DeltaLog(str(table), store, conf, store.clock)
    txn = log.start_transaction()
    store.seconds, store.before = seconds, lambda: _append(str(table))  # type: ignore[assignment]
    assert txn.commit([add_file("mine", p="a")], Operation("WRITE")) == VERSIONS + 1


class _Shaky(_Contended):
    """A store whose next reads fail, as often as it is told."""

    fails = 0

    def read(self, path: str) -> Iterator[str]:
        if self.fails:
            self.fails -= 1
            raise ConnectionError("reset")
        return super().read(path)


def _shaky(table: Path, seconds: float) -> tuple[_Shaky, Any]:
    _made(table)
    store, conf = _Shaky(), DeltaLog.for_table(table).conf
    store.seconds = seconds
    txn = DeltaLog(str(table), store, conf, store.clock).start_transaction()
    assert txn.reads.version == VERSIONS - 1
    return store, txn


@pytest.mark.parametrize("seconds", [0.0, 0.03])
@pytest.mark.parametrize("checked", [True, False])
def test_a_storage_that_fails_for_a_moment_is_looked_at_again(
    seconds: float, checked: bool, tmp_path: Path
) -> None:
    store, txn = _shaky(tmp_path / "t", seconds)
    if checked:
        txn.changes.check_before_commit(lambda: None)
    store.fails = 2
    assert txn.commit([add_file("mine", p="a")], Operation("WRITE")) == VERSIONS
    assert not store.fails


@pytest.mark.parametrize("lost", [False, True])
def test_a_process_that_ends_commits_without_threads(
    lost: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    _, txn = _shaky(tmp_path / "t", 0.03)
    checked: list[int] = []
    txn.changes.check_before_commit(lambda: checked.append(1))
    if lost:
        _append(str(tmp_path / "t"))
    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor.submit", refused)
    assert txn.commit([add_file("mine", p="a")], Operation("WRITE")) == VERSIONS + lost
    assert checked == [1]


@pytest.mark.parametrize("odd", ["twice", "escaped", "far", "beside"])
def test_a_commit_info_in_an_odd_place_does_not_close_the_table(odd: str, tmp_path: Path) -> None:
    _made(tmp_path, 1)
    write_arrow(str(tmp_path), {"id": [3], "p": ["a"]}, mode="append")
    path = Path(commit_path(str(tmp_path), 1))
    info, *rest = path.read_text().splitlines()
    lines = {
        "twice": ['{"commitInfo":{"timestamp":5,"txnId":"other"}}', info, *rest],
        "escaped": [info.replace("commitInfo", "commit\\u0049nfo", 1), *rest],
        "far": [" " * 80 + info, *rest],
        "beside": [f"{rest[0][:-1]},{info[1:]}", *rest[1:]],
    }
    path.write_text("\n".join(lines[odd]) + "\n")
    for version in (2, 3):
        assert write_arrow(str(tmp_path), ROWS, mode="append") == version
