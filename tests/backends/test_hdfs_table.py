"""A Delta table on HDFS, end to end: the log by the store, data files by its file system."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSelector, FileType

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.hooks.background import wait_for_all
from lakelog.logstores import HDFSLogStore

if TYPE_CHECKING:
    from support.servers.hdfs import HdfsCluster

SCHEMA = pa.schema([("writer", pa.int64()), ("n", pa.int64())])


@pytest.fixture
def table(hdfs: HdfsCluster) -> str:
    return f"{hdfs.uri}/lakelog-test/{uuid.uuid4()}/a table"


def test_a_table_lives_on_hdfs(hdfs: HdfsCluster, table: str) -> None:
    write_arrow(table, SCHEMA.empty_table(), conf=hdfs.conf, mode="append")
    writers, appends = 4, 4

    def append(writer: int) -> list[int]:
        rows = [pa.table({"writer": [writer], "n": [n]}, schema=SCHEMA) for n in range(appends)]
        return [write_arrow(table, each, conf=hdfs.conf, mode="append") for each in rows]

    with ThreadPoolExecutor(writers) as pool:
        versions = sorted(v for got in pool.map(append, range(writers)) for v in got)
    assert versions == list(range(1, writers * appends + 1))
    log = DeltaLog.for_table(table, hdfs.conf)
    log.update()
    log.checkpoint()
    assert wait_for_all()  # checksums, whose drafts are no leftovers
    # Without an authority, fs.defaultFS says which cluster.
    table = table.replace(hdfs.uri, "hdfs://")
    fresh = DeltaLog.for_table(table, hdfs.conf)
    snapshot = fresh.update()
    assert snapshot.version == writers * appends
    rows = snapshot.to_arrow().sort_by([("writer", "ascending"), ("n", "ascending")])
    assert rows.to_pydict() == {
        "writer": [w for w in range(writers) for _ in range(appends)],
        "n": list(range(appends)) * writers,
    }
    assert [each.version for each in fresh.history()] == sorted([0, *versions], reverse=True)
    names = [each.name for each in fresh.store.list_from(f"{table}/_delta_log/")]
    assert f"{snapshot.version:020d}.checkpoint.parquet" in names
    assert "_last_checkpoint" in names
    assert not [name for name in names if name.endswith(".tmp")]


def test_the_file_system_does_what_pyarrow_asks(hdfs: HdfsCluster, table: str) -> None:
    store = HDFSLogStore(hdfs.conf)
    filesystem, root = store.filesystem, store.filesystem_path(table)
    filesystem.create_dir(f"{root}/x/y")
    with pytest.raises(FileNotFoundError):
        filesystem.create_dir(f"{root}/no/parent", recursive=False)
    data = pa.table({"n": range(100_000)})
    pq.write_table(data, f"{root}/x/a.parquet", filesystem=filesystem)
    assert pq.read_table(f"{root}/x/a.parquet", filesystem=filesystem) == data
    filesystem.copy_file(f"{root}/x/a.parquet", f"{root}/x/y/b.parquet")
    (info,) = filesystem.get_file_info([f"{root}/x/y/b.parquet"])
    assert (info.type, info.size) == (
        FileType.File,
        filesystem.get_file_info(f"{root}/x/a.parquet").size,
    )
    found = filesystem.get_file_info(FileSelector(root, recursive=True))
    assert sorted(each.path.removeprefix(root) for each in found) == [
        "/x",
        "/x/a.parquet",
        "/x/y",
        "/x/y/b.parquet",
    ]
    filesystem.move(f"{root}/x/a.parquet", f"{root}/x/y/b.parquet")
    assert filesystem.get_file_info(f"{root}/x/a.parquet").type == FileType.NotFound
    with filesystem.open_input_file(f"{root}/x/y/b.parquet") as source:
        assert source.read_at(4, 0) == b"PAR1"
        source.seek(source.size() - 4)
        assert source.read() == b"PAR1"
    with pytest.raises(FileNotFoundError):
        filesystem.move(f"{root}/x/a.parquet", f"{root}/x/c.parquet")
    with pytest.raises(FileNotFoundError):
        filesystem.open_input_file(f"{root}/x/a.parquet")
    with pytest.raises(FileNotFoundError):
        filesystem.delete_file(f"{root}/x/a.parquet")
    with pytest.raises(IsADirectoryError):
        filesystem.delete_file(f"{root}/x/y")
    filesystem.delete_dir_contents(f"{root}/x")
    assert filesystem.get_file_info(FileSelector(f"{root}/x")) == []
    filesystem.delete_dir(f"{root}/x")
    assert filesystem.get_file_info(FileSelector(f"{root}/x", allow_not_found=True)) == []
    with pytest.raises(FileNotFoundError):
        filesystem.get_file_info(FileSelector(f"{root}/x"))
    for refused in ("", f"/{hdfs.uri.removeprefix('hdfs://')}"):
        with pytest.raises(PermissionError, match="never emptied"):
            filesystem.delete_dir_contents(refused, accept_root_dir=True)
