"""The file system on google-cloud-storage, which stands in where Arrow's takes no such settings."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSelector, FileType

from lakelog.logstores import GCSLogStore
from support.fault_proxy import FaultProxy

if TYPE_CHECKING:
    from support.servers.fake_gcs import GCSEndpoint


@pytest.fixture
def files(fake_gcs: GCSEndpoint) -> Any:
    paying = {"spark.hadoop.fs.gs.requester.pays.mode": "ENABLED"}
    budget = {"spark.lakelog.store.retry.timeBudget": "2"}
    filesystem = GCSLogStore({**fake_gcs.conf, **paying, **budget}).filesystem
    assert filesystem.type_name == "py::gcs"
    return filesystem


@pytest.fixture
def folder(gcs_bucket: str) -> str:
    return f"{gcs_bucket}/a table"


def put(files: Any, path: str, data: bytes) -> None:
    with files.open_output_stream(path) as stream:
        stream.write(data)


def test_a_dataset_is_written_and_scanned_also_by_a_pickled_one(files: Any, folder: str) -> None:
    table = pa.table({"p": [1, 1, 2], "x": ["a", "b", "ü"]})
    pq.write_to_dataset(table, folder, partition_cols=["p"], filesystem=files)
    twin = pickle.loads(pickle.dumps(files))
    assert twin == files
    found = ds.dataset(folder, filesystem=twin, format="parquet", partitioning="hive").to_table()
    assert sorted(found["x"].to_pylist()) == ["a", "b", "ü"]


def test_a_file_is_read_from_anywhere(files: Any, folder: str) -> None:
    data = bytes(range(256)) * 16_000  # several ranges
    put(files, f"{folder}/x", data)
    with files.open_input_file(f"{folder}/x") as file:
        assert file.size() == len(data)
        assert file.read_at(10, 3_000_000) == data[3_000_000:3_000_010]
        file.seek(-5, 2)
        assert file.read() == data[-5:]
        file.seek(0)
        assert file.read() == data


def test_a_file_that_is_replaced_while_it_is_read_is_an_error_and_no_mixture(
    files: Any, folder: str
) -> None:
    put(files, f"{folder}/x", b"a" * 3_000_000)
    with files.open_input_file(f"{folder}/x") as file:
        assert file.read(1) == b"a"
        put(files, f"{folder}/x", b"b" * 3_000_000)
        with pytest.raises(OSError, match="was replaced while it was read"):
            file.read_at(10, 2_500_000)


def test_what_is_where_is_reported(files: Any, folder: str) -> None:
    put(files, f"{folder}/x", b"12345")
    put(files, f"{folder}/deep/er/y", b"")
    names = [f"{folder}/x", folder, f"{folder}/deep", f"{folder}/none", f"{folder}/dee"]
    kinds = [info.type for info in files.get_file_info(names)]
    assert kinds == [
        FileType.File,
        FileType.Directory,
        FileType.Directory,
        FileType.NotFound,
        FileType.NotFound,
    ]
    info = files.get_file_info(f"{folder}/x")
    assert (info.size, info.mtime is not None) == (5, True)
    flat = {info.base_name for info in files.get_file_info(FileSelector(folder))}
    assert flat == {"x", "deep"}
    below = files.get_file_info(FileSelector(folder, recursive=True))
    assert {info.path.removeprefix(folder) for info in below} == {
        "/x",
        "/deep",
        "/deep/er",
        "/deep/er/y",
    }
    assert files.get_file_info(FileSelector(f"{folder}/none", allow_not_found=True)) == []
    with pytest.raises(FileNotFoundError):
        files.get_file_info(FileSelector(f"{folder}/none"))


def test_files_are_copied_moved_and_removed(files: Any, folder: str) -> None:
    put(files, f"{folder}/x", b"x")
    files.copy_file(f"{folder}/x", f"{folder}/y")
    files.move(f"{folder}/x", f"{folder}/z")
    names = [info.base_name for info in files.get_file_info(FileSelector(folder))]
    assert sorted(names) == ["y", "z"]
    files.delete_file(f"{folder}/y")
    with pytest.raises(FileNotFoundError):
        files.delete_file(f"{folder}/y")
    files.delete_dir(folder)
    assert files.get_file_info(folder).type == FileType.NotFound
    with pytest.raises(FileNotFoundError):
        files.open_input_file(f"{folder}/z")


def test_nothing_removes_a_whole_bucket(files: Any, gcs_bucket: str) -> None:
    put(files, f"{gcs_bucket}/x", b"x")
    with pytest.raises(PermissionError):
        files.delete_dir_contents(gcs_bucket)
    with pytest.raises(PermissionError):
        files.delete_dir_contents("/", accept_root_dir=True)
    with pytest.raises(NotImplementedError):
        files.open_append_stream(f"{gcs_bucket}/x")
    assert files.get_file_info(f"{gcs_bucket}/x").type == FileType.File


def test_a_missing_bucket_is_an_error_for_a_write(files: Any) -> None:
    with pytest.raises(FileNotFoundError, match="gs://no-such-bucket"):
        put(files, "no-such-bucket/x", b"x")


@pytest.mark.parametrize("fault", ["reset", "refuse:503", "drop_reply", "cut_reply", "tear_reply"])
def test_a_harmed_range_is_asked_for_again_at_the_endpoint_of_the_conf(
    fault: str, fake_gcs: GCSEndpoint, files: Any, folder: str
) -> None:
    data = bytes(range(256)) * 8_000  # two ranges
    put(files, f"{folder}/x", data)
    with FaultProxy(fake_gcs.url) as proxy:
        conf = {
            **fake_gcs.conf,
            "spark.hadoop.fs.gs.storage.root.url": proxy.url,
            "spark.hadoop.fs.gs.requester.pays.mode": "ENABLED",
            "spark.lakelog.store.request.timeout": "20",
        }
        proxy.arm(fault, b"alt=media")
        with GCSLogStore(conf).filesystem.open_input_file(f"{folder}/x") as file:
            assert file.read() == data
        assert proxy.fired == [fault]
        # A look, and the ranges: the one that was harmed twice.
        assert len(proxy.requests) == 1 + 2 + 1
