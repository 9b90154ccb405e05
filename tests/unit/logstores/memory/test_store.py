"""The memory store: names, folders, and its file system."""

from __future__ import annotations

import pickle
import uuid
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from lakelog.logstores import MemoryLogStore
from lakelog.logstores.threads import run_together

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def root() -> Iterator[str]:
    name = uuid.uuid4().hex
    yield f"memory://{name}/t"
    MemoryLogStore.forget(name)


def test_instances_share_what_is_under_one_name_and_no_more(root: str) -> None:
    MemoryLogStore().write(f"{root}/0", ["x"])
    assert list(MemoryLogStore().read(f"{root}/0")) == ["x"]
    with pytest.raises(FileNotFoundError):
        list(MemoryLogStore().read(f"memory://{uuid.uuid4().hex}/t/0"))


def test_a_forgotten_name_is_empty() -> None:
    store = MemoryLogStore()
    store.write("memory://forget-me/t/0", ["x"])
    MemoryLogStore.forget("forget-me")
    with pytest.raises(FileNotFoundError):
        list(store.list_from("memory://forget-me/t/"))


def test_errors_name_the_uri(root: str) -> None:
    store = MemoryLogStore()
    store.write(f"{root}/0", ["x"])
    with pytest.raises(FileExistsError, match=f"{root}/0"):
        store.write(f"{root}/0", ["y"])
    with pytest.raises(FileNotFoundError, match=f"{root}/1"):
        list(store.read(f"{root}/1"))


@pytest.mark.parametrize("uri", ["/t", "file:///t", "memory", "memory:t"])
def test_what_is_no_path_in_memory_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="not a path in memory"):
        MemoryLogStore().read_bytes(uri)


def test_a_partitioned_dataset_is_written_and_read(root: str) -> None:
    store = MemoryLogStore()
    table = pa.table({"p": ["a", "a", "b"], "x": [1, 2, 3]})
    where = store.filesystem_path(root)
    ds.write_dataset(
        table,
        where,
        filesystem=store.filesystem,
        format="parquet",
        partitioning=["p"],
        partitioning_flavor="hive",
    )
    back = ds.dataset(where, filesystem=store.filesystem, partitioning="hive").to_table()
    assert sorted(back.to_pylist(), key=lambda row: row["x"]) == [
        {"x": 1, "p": "a"},
        {"x": 2, "p": "a"},
        {"x": 3, "p": "b"},
    ]
    assert [(s.name, s.is_directory) for s in store.list_from(f"{root}/")] == [
        ("p=a", True),
        ("p=b", True),
    ]


def test_a_file_appears_whole_when_its_stream_is_closed(root: str) -> None:
    store = MemoryLogStore()
    path = store.filesystem_path(f"{root}/f")
    with store.filesystem.open_output_stream(path) as stream:
        stream.write(b"part")
        assert store.filesystem.get_file_info(path).type == pafs.FileType.NotFound
    with store.filesystem.open_input_file(path) as file:
        file.seek(2)
        assert file.read() == b"rt"


def test_an_open_file_keeps_its_bytes_when_it_is_replaced(root: str) -> None:
    store = MemoryLogStore()
    store.write(f"{root}/f", ["old"])
    lines = store.read(f"{root}/f")
    store.write(f"{root}/f", ["new"], overwrite=True)
    assert list(lines) == ["old"]


def test_files_are_moved_copied_and_deleted_and_their_folders_with_them(root: str) -> None:
    store = MemoryLogStore()
    fs, base = store.filesystem, store.filesystem_path(root)
    store.write(f"{root}/a/b/f", ["x"])
    fs.move(f"{base}/a/b/f", f"{base}/c/b/f")
    fs.copy_file(f"{base}/c/b/f", f"{base}/h")
    found = {i.path: i.type for i in fs.get_file_info(pafs.FileSelector(base, recursive=True))}
    assert found == {
        f"{base}/c": pafs.FileType.Directory,
        f"{base}/c/b": pafs.FileType.Directory,
        f"{base}/c/b/f": pafs.FileType.File,
        f"{base}/h": pafs.FileType.File,
    }
    fs.delete_dir_contents(f"{base}/c")
    assert [each.name for each in store.list_from(f"{root}/")] == ["h"]
    fs.delete_file(f"{base}/h")
    with pytest.raises(FileNotFoundError):
        list(store.list_from(f"{root}/"))


def test_a_folder_is_there_while_something_is_in_it(root: str) -> None:
    store = MemoryLogStore()
    base = store.filesystem_path(root)
    store.create_folder(f"{root}/no")
    with pytest.raises(FileNotFoundError):
        store.filesystem.get_file_info(pafs.FileSelector(f"{base}/no"))
    there = pafs.FileSelector(f"{base}/no", allow_not_found=True)
    assert store.filesystem.get_file_info(there) == []
    pq.write_table(pa.table({"x": [1]}), f"{base}/no/f", filesystem=store.filesystem)
    assert [each.base_name for each in store.filesystem.get_file_info(there)] == ["f"]


def test_the_root_of_everything_is_never_emptied() -> None:
    with pytest.raises(PermissionError):
        MemoryLogStore().filesystem.delete_dir_contents("/", accept_root_dir=True)


def test_the_file_system_survives_pickling(root: str) -> None:
    store = MemoryLogStore()
    store.write(f"{root}/f", ["x"])
    twin = pickle.loads(pickle.dumps(store.filesystem))
    assert twin == store.filesystem
    assert twin.get_file_info(store.filesystem_path(f"{root}/f")).size == 2


def test_racing_creates_have_one_winner_without_a_lock(root: str) -> None:
    def create(who: int) -> bool:
        try:
            MemoryLogStore().write(f"{root}/0", [str(who)])
        except FileExistsError:
            return False
        return True

    won = run_together([partial(create, who) for who in range(8)])
    assert won.count(True) == 1
    assert list(MemoryLogStore().read(f"{root}/0")) == [str(won.index(True))]
