"""Small files of many partitions are made several at once, and as one after the other would be."""

from __future__ import annotations

import itertools
import os
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet
import pytest

from lakelog.core.portable.hive_writer import PartitionedWriter, WritePlan, write_batches

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 60
pq: Any = pyarrow.parquet
SCHEMA = pa.schema([("p", pa.int64()), ("v", pa.float64())])


def rows(partitions: int, each: int = 2) -> pa.RecordBatch:
    count = partitions * each
    values = [float("nan") if n % 7 == 0 else float(n) for n in range(count)]
    keys = [n % partitions for n in range(count)]
    return pa.RecordBatch.from_pydict({"p": keys, "v": values}, SCHEMA)


class Meddling(pyarrow.fs.FileSystemHandler):  # type: ignore[misc]
    """The local disk, which tells of each file that is opened to be written."""

    def __init__(self, on_open: Any) -> None:
        self._disk, self._on_open = pyarrow.fs.LocalFileSystem(), on_open

    def get_type_name(self) -> str:
        return "meddling"

    def create_dir(self, path: str, recursive: bool) -> None:
        self._disk.create_dir(path, recursive=recursive)

    def delete_file(self, path: str) -> None:
        self._disk.delete_file(path)

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        self._on_open(path)
        return self._disk.open_output_stream(path)

    def get_file_info(self, paths: list[str]) -> Any:
        return self._disk.get_file_info(paths)

    def _unused(self, *_: Any) -> Any:
        raise NotImplementedError

    copy_file = create_file = delete_dir = delete_dir_contents = delete_root_dir_contents = _unused
    get_file_info_selector = move = normalize_path = _unused
    open_append_stream = open_input_file = open_input_stream = _unused


def plan(root: Path, on_open: Any = None, **options: Any) -> WritePlan:
    other = pyarrow.fs.PyFileSystem(Meddling(on_open)) if on_open else None
    return WritePlan(str(root), SCHEMA, ("p",), filesystem=other, **options)


def made(results: list[tuple[Any, ...]]) -> list[Any]:
    """What is reported, without the random part of names, sizes and times."""
    return [(r[0].partition("/")[0], r[0].split(".")[1], *r[2:4], r[5]) for r in results]


def test_what_is_reported_is_what_a_writer_of_one_file_at_a_time_reports(tmp_path: Path) -> None:
    both = [
        write_batches([rows(50)], plan(tmp_path / str(most), max_open_files=most))
        for most in (1, 64)
    ]
    assert made(both[0]) == made(both[1])
    assert [each[0].split(".")[1] for each in both[1]] == [f"c{n:03d}" for n in range(50)]
    for path, size, count, *_ in both[1]:
        assert (tmp_path / "64" / path).stat().st_size == size
        assert pq.read_metadata(tmp_path / "64" / path).num_rows == count == 2


def test_eight_files_are_made_at_once_and_never_more(tmp_path: Path) -> None:
    # The first file is made alone, and eight times eight after it.
    barrier, lock, at_work = threading.Barrier(8), threading.Lock(), set()

    def on_open(path: str) -> None:
        with lock:
            at_work.add(threading.current_thread())
            first = len(at_work) == 1
        if not first:
            barrier.wait(PATIENCE)

    results = write_batches([rows(65)], plan(tmp_path, on_open))
    assert len(results) == 65
    assert len(at_work) == 8, "the caller's thread is one of them"


def test_no_more_files_are_open_than_the_plan_allows(tmp_path: Path) -> None:
    found: list[int] = []
    writers: list[PartitionedWriter] = []
    writer_plan = plan(tmp_path, lambda _: found.append(writers[0]._open_files), max_open_files=3)
    writers.append(writer := PartitionedWriter(writer_plan))
    writer.write(rows(60))
    writer.close()
    assert max(found) < 3, "the file that is about to be opened would be one more"
    assert writer._open_files == 0
    assert writer._buffered == 0


def test_each_file_and_then_each_folder_is_flushed_once(tmp_path: Path, monkeypatch: Any) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    files = [str(tmp_path / each[0]) for each in write_batches([rows(40)], plan(tmp_path))]
    assert sorted(synced[:40]) == sorted(files)
    folders = [str(tmp_path), *(str(tmp_path / f"p={n}") for n in range(40))]
    assert sorted(synced[40:]) == sorted(folders)


def test_a_disk_that_refuses_to_flush_one_file_fails_the_write(
    tmp_path: Path, monkeypatch: Any
) -> None:
    def fsync(handle: int) -> None:
        if "p=40/" in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError("input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="input/output error"):
        write_batches([rows(100)], plan(tmp_path))
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_a_file_that_can_not_be_made_fails_the_write_and_leaves_none(tmp_path: Path) -> None:
    opened: list[str] = []
    numbers = itertools.count()
    failed = threading.Event()

    def on_open(path: str) -> None:
        number = next(numbers)
        opened.append(path)
        if number == 100:
            failed.set()
            raise OSError("no inodes left")
        if number > 100:
            failed.wait(PATIENCE)

    with pytest.raises(OSError, match="no inodes left"):
        write_batches([rows(2000)], plan(tmp_path, on_open))
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []
    assert len(opened) < 1000, "the others go on although the write has failed"
