"""What a writer says is on the disk: each file, and each folder after its files, once."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core.portable.hive_writer import WritePlan, write_batches
from lakelog.core.portable.syncing import sync_file, sync_files
from lakelog.logstores.local import file_creation

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were flushed, in order."""
    found: list[str] = []
    lock = threading.Lock()

    def fsync(handle: int) -> None:
        with lock:
            found.append(os.readlink(f"/proc/self/fd/{handle}"))

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def full_sync(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Have a Mac's call that flushes the disk's cache, and let it fail."""

    def fail(_: int, command: int) -> None:
        assert command == 51
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", fail)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fails_is_not_asked_in_a_weaker_way(
    tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    full_sync(monkeypatch, code)
    with pytest.raises(OSError, match=os.strerror(code)):
        sync_file(str(tmp_path))
    with (
        file_creation.Folder(str(tmp_path)) as folder,
        pytest.raises(OSError, match=os.strerror(code)),
    ):
        folder.sync()
    assert synced == []


@pytest.mark.parametrize("code", [errno.ENOTSUP, errno.ENOTTY, errno.EINVAL])
def test_a_mount_without_a_full_flush_is_flushed_as_it_can_be(
    tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    full_sync(monkeypatch, code)
    sync_file(str(tmp_path))
    with file_creation.Folder(str(tmp_path)) as folder:
        folder.sync()
    assert synced == [str(tmp_path)] * 2


def test_each_file_and_each_folder_is_flushed_once(tmp_path: Path, synced: list[str]) -> None:
    paths = ["a=1/b=1/x", "a=1/b=1/y", "a=1/b=2/x", "z"]
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    sync_files(str(tmp_path), paths)
    files = {str(tmp_path / path) for path in paths}
    folders = {str(tmp_path / path) for path in ("a=1", "a=1/b=1", "a=1/b=2")} | {str(tmp_path)}
    assert set(synced[: len(files)]) == files  # an entry on the disk is that of a whole file
    assert set(synced[len(files) :]) == folders
    assert len(synced) == len(files) + len(folders)


def test_without_files_nothing_is_flushed(tmp_path: Path, synced: list[str]) -> None:
    sync_files(str(tmp_path), [])
    assert synced == []


def test_a_partitioned_write_flushes_all_that_it_reports(tmp_path: Path, synced: list[str]) -> None:
    schema = pa.schema([("p", pa.int64()), ("v", pa.int64())])
    batch = pa.RecordBatch.from_pydict({"p": [0, 1, 2] * 4, "v": list(range(12))}, schema)
    plan = WritePlan(str(tmp_path), schema, ("p",), max_rows_per_file=2)
    results = write_batches([batch], plan)
    files = {str(tmp_path / path) for path, *_ in results}
    assert len(files) == 6
    folders = {str(tmp_path / f"p={number}") for number in range(3)} | {str(tmp_path)}
    assert sorted(synced) == sorted(files | folders)


def test_what_the_disk_refuses_to_flush_is_not_reported_and_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    schema = pa.schema([("p", pa.int64()), ("v", pa.int64())])
    batch = pa.RecordBatch.from_pydict({"p": [0, 1], "v": [2, 3]}, schema)
    with pytest.raises(OSError, match="No space left"):
        write_batches([batch], WritePlan(str(tmp_path), schema, ("p",)))
    assert not [each for each in tmp_path.rglob("*") if each.is_file()]


def test_without_fsync_in_the_plan_nothing_is_flushed(tmp_path: Path, synced: list[str]) -> None:
    schema = pa.schema([("v", pa.int64())])
    batch = pa.RecordBatch.from_pydict({"v": [1]}, schema)
    assert write_batches([batch], WritePlan(str(tmp_path), schema, fsync=False))
    assert synced == []
