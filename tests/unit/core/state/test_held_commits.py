"""A log that goes on from version to version without anyone asking for its files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.core import DeltaLog, create_table, table_log
from lakelog.core.log.file_names import commit_path
from lakelog.logstores import MemoryLogStore
from support.commits import append, new_uri

if TYPE_CHECKING:
    import pytest

_MOST = 10


def _followed(monkeypatch: pytest.MonkeyPatch, interval: int) -> tuple[DeltaLog, list[int], int]:
    """A log that looked after each of many commits; how many it held each time, and its loads."""
    monkeypatch.setattr(table_log, "_BEARABLE", _MOST)
    writer = DeltaLog.for_table(new_uri())
    create_table(writer, "id long", properties={"delta.checkpointInterval": interval})
    follower = DeltaLog.for_table(writer.table)
    follower.update()
    loads = 0
    load = follower._load

    def counted(*args: Any) -> Any:
        nonlocal loads
        loads += 1
        return load(*args)

    monkeypatch.setattr(follower, "_load", counted)
    held = []
    for number in range(6 * _MOST):
        append(writer, f"file-{number}")
        held.append(follower.update().state.files.held)
    return follower, held, loads


def test_commits_that_a_checkpoint_has_do_not_stay_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, held, loads = _followed(monkeypatch, interval=5)
    assert max(held) < _MOST
    assert loads <= 12
    assert log.snapshot.file_table.num_rows == 6 * _MOST


def test_a_log_without_checkpoints_is_not_read_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, held, loads = _followed(monkeypatch, interval=1000)
    # All of them are needed then.
    assert held[-1] == 6 * _MOST + 1
    assert loads == 0
    assert log.snapshot.file_table.num_rows == 6 * _MOST


def test_what_opening_has_read_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_log, "_BEARABLE", _MOST)
    writer = DeltaLog.for_table(new_uri())
    create_table(writer, "id long", properties={"delta.checkpointInterval": 1000})
    for number in range(3 * _MOST):
        append(writer, f"file-{number}")
    read: list[str] = []
    read_bytes = MemoryLogStore.read_bytes

    def counted(store: MemoryLogStore, path: str) -> bytes:
        read.append(path)
        return read_bytes(store, path)

    monkeypatch.setattr(MemoryLogStore, "read_bytes", counted)
    log = DeltaLog.for_table(writer.table)
    commits = {commit_path(log.table, version) for version in range(3 * _MOST + 1)}
    assert log.snapshot.version == 3 * _MOST
    assert sorted(read) == sorted(commits)
    read.clear()
    assert log.update() is log.snapshot
    assert log.snapshot.file_table.num_rows == 3 * _MOST
    assert log.snapshot.tombstones.num_rows == 0
    # Others may have been committed: that is a look at the next version.
    assert not commits & set(read)


def test_the_files_of_a_table_that_took_the_path_meanwhile_are_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_log, "_BEARABLE", _MOST)
    writer, other = DeltaLog.for_table(new_uri()), DeltaLog.for_table(new_uri())
    for log, name in ((writer, "mine"), (other, "theirs")):
        create_table(log, "id long", properties={"delta.checkpointInterval": 5})
        for number in range(2 * _MOST):
            append(log, f"{name}-{number}")
    follower = DeltaLog.for_table(writer.table)
    monkeypatch.setattr(follower, "_snapshot", writer.snapshot_at(1))
    monkeypatch.setattr(follower, "_load", other._load)
    found = follower.update()
    assert found.version == 2 * _MOST
    assert all(path.startswith("mine") for path in found.file_table["path"].to_pylist())
