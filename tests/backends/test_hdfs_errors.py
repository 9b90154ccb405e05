"""What goes wrong on HDFS is said in one clear error, in bounded time, with nothing half done."""

from __future__ import annotations

import errno
import os
import socket
import sys
import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import HDFSLogStore, LogStoreConfError, MissingExtraError
from support.servers._service import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.hdfs import HdfsCluster

QUICK = {
    "spark.lakelog.store.retry.timeBudget": "0.3",
    "spark.lakelog.store.request.timeout": "0.5",
}
ANSWERED = {**QUICK, "spark.lakelog.store.request.timeout": "20"}
"""For what is answered at once: the first call of a process imports hdfs-native too."""


@pytest.fixture(params=["webhdfs", "native"])
def store(hdfs: HdfsCluster, request: pytest.FixtureRequest) -> HDFSLogStore:
    """Both ways of writing a draft: each error is the same on both."""
    return HDFSLogStore(hdfs.conf if request.param == "webhdfs" else by_rpc(hdfs.uri))


@pytest.fixture
def folder(hdfs: HdfsCluster) -> str:
    uri = f"{hdfs.uri}/lakelog-test/{uuid.uuid4()}"
    HDFSLogStore(hdfs.conf).create_folder(uri)
    return uri


@pytest.fixture
def safe_mode(hdfs: HdfsCluster, folder: str) -> Iterator[str]:
    hdfs.order("safemode on")
    yield folder
    hdfs.order("safemode off")


def by_rpc(uri: str, **more: str) -> dict[str, str]:
    return {"spark.hadoop.fs.defaultFS": uri, **more}


def names(store: HDFSLogStore, folder: str) -> list[str]:
    return [each.name for each in store.list_from(folder + "/")]


def test_a_missing_folder_is_not_made(store: HDFSLogStore, folder: str) -> None:
    for overwrite in (False, True):
        with pytest.raises(FileNotFoundError):
            store.write(f"{folder}/none/0.json", ["x"], overwrite=overwrite)
    with pytest.raises(FileNotFoundError):
        list(store.list_from(f"{folder}/none/0"))
    assert names(store, folder) == []


def test_a_folder_of_the_name_stays(store: HDFSLogStore, folder: str) -> None:
    store.create_folder(folder + "/0.json")
    for overwrite in (False, True):
        with pytest.raises(IsADirectoryError, match="folder has that name"):
            store.write(f"{folder}/0.json", ["x"], overwrite=overwrite)
    with pytest.raises(IsADirectoryError):
        list(store.read(f"{folder}/0.json"))
    assert names(store, folder) == ["0.json"]


def test_a_file_is_no_folder(store: HDFSLogStore, folder: str) -> None:
    store.write(f"{folder}/file", ["x"])
    for attempt in (
        lambda: store.write(f"{folder}/file/0.json", ["x"]),
        lambda: list(store.list_from(f"{folder}/file/0")),
        lambda: store.create_folder(f"{folder}/file/sub"),
    ):
        with pytest.raises(NotADirectoryError):
            attempt()


def test_a_name_that_hdfs_refuses_is_reported(store: HDFSLogStore, folder: str) -> None:
    with pytest.raises(OSError, match="HDFS does not accept the name"):
        store.write(f"{folder}/a:b.json", ["x"])


def test_safe_mode_is_reported_and_leaves_nothing(store: HDFSLogStore, safe_mode: str) -> None:
    with pytest.raises(
        OSError, match="in safe mode and accepts no writes: nothing was written"
    ) as e:
        store.write(f"{safe_mode}/0.json", ["x"])
    assert e.value.errno == errno.EROFS
    assert names(store, safe_mode) == []


def test_a_used_up_quota_is_reported(hdfs: HdfsCluster, store: HDFSLogStore, folder: str) -> None:
    store.write(f"{folder}/0.json", ["x"])
    hdfs.order(f"quota {folder.removeprefix(hdfs.uri)} 2 -1")
    with pytest.raises(OSError, match="a quota of HDFS is used up") as e:
        store.write(f"{folder}/1.json", ["x"])
    assert e.value.errno == errno.EDQUOT
    assert names(store, folder) == ["0.json"]


def test_a_folder_of_somebody_else_is_reported(
    hdfs: HdfsCluster, store: HDFSLogStore, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    theirs = HDFSLogStore(store.conf)
    with pytest.raises(PermissionError, match="Permission denied: user=stranger"):
        theirs.write(f"{folder}/0.json", ["x"])
    monkeypatch.setenv("HADOOP_USER_NAME", hdfs.user)
    assert names(HDFSLogStore(hdfs.conf), folder) == []


def test_files_belong_to_the_user_of_the_environment(
    hdfs: HdfsCluster, store: HDFSLogStore, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hdfs.order(f"open {folder.removeprefix(hdfs.uri)}")
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    theirs = HDFSLogStore(store.conf)
    theirs.write(f"{folder}/0.json", ["x"])
    client, _ = theirs._hdfs.at(hdfs.uri.removeprefix("hdfs://"))
    status = client.status(folder.removeprefix(hdfs.uri) + "/0.json")
    assert status is not None
    assert status.owner == "stranger"


def test_a_namenode_that_is_down_is_given_up_in_time() -> None:
    uri = f"hdfs://127.0.0.1:{free_port()}"
    store = HDFSLogStore(by_rpc(uri, **ANSWERED))
    for attempt in (
        lambda: store.write(uri + "/t/0.json", ["x"]),
        lambda: list(store.read(uri + "/t/0.json")),
        lambda: list(store.list_from(uri + "/t/0")),
    ):
        with pytest.raises(OSError, match=rf"{uri[7:]}: Connection refused.*given up after 0.3 s"):
            attempt()


def test_a_namenode_that_never_answers_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"hdfs://127.0.0.1:{silent.getsockname()[1]}"
        store = HDFSLogStore(by_rpc(uri, **QUICK))
        with pytest.raises(OSError, match=r"no answer in 0\.5 s; given up after 0\.3 s"):
            store.write(uri + "/t/0.json", ["x"])


def test_the_web_port_is_no_rpc_port(hdfs: HdfsCluster) -> None:
    uri = f"hdfs://{hdfs.http}"
    with pytest.raises(OSError, match=f"NameNode {hdfs.http}: .*given up"):
        list(HDFSLogStore(by_rpc(uri, **QUICK)).read(uri + "/t/0.json"))


def test_a_name_service_that_no_one_knows_is_reported() -> None:
    store = HDFSLogStore(ANSWERED)
    with pytest.raises(OSError, match=r"the host name in .*wrong-service.invalid.*HADOOP"):
        store.write("hdfs://wrong-service.invalid/t/0.json", ["x"])


def test_a_uri_without_a_namenode_needs_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    with pytest.raises(LogStoreConfError, match=r"fs\.defaultFS is not set"):
        HDFSLogStore().write("hdfs:///t/0.json", ["x"])


def test_other_schemes_are_refused() -> None:
    with pytest.raises(ValueError, match="viewfs is not supported"):
        HDFSLogStore().write("viewfs://mounts/t/0.json", ["x"])
    with pytest.raises(ValueError, match="is not a path of HDFS"):
        HDFSLogStore().write("s3://bucket/t/0.json", ["x"])


def test_the_second_namenode_takes_over(hdfs: HdfsCluster, folder: str) -> None:
    """The first of two is gone, for calls and on the web; URIs name the service."""
    store = HDFSLogStore(
        {
            "spark.hadoop.fs.defaultFS": "hdfs://pair",
            "spark.hadoop.dfs.nameservices": "pair",
            "spark.hadoop.dfs.ha.namenodes.pair": "nn1, nn2",
            "spark.hadoop.dfs.namenode.rpc-address.pair.nn1": f"127.0.0.1:{free_port()}",
            "spark.hadoop.dfs.namenode.rpc-address.pair.nn2": hdfs.uri.removeprefix("hdfs://"),
            "spark.hadoop.dfs.namenode.http-address.pair.nn1": f"127.0.0.1:{free_port()}",
            "spark.hadoop.dfs.namenode.http-address.pair.nn2": str(hdfs.http),
        }
    )
    for root in ("hdfs://pair", "hdfs://"):
        path = folder.replace(hdfs.uri, root)
        store.write(f"{path}/0.json", ["x"], overwrite=True)
        assert [each.path for each in store.list_from(path + "/0")] == [f"{path}/0.json"]
        assert list(store.read(f"{path}/0.json")) == ["x"]
    assert store._hdfs.at("pair")[1].is_usable


def test_the_extra_is_named(hdfs: HdfsCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(MissingExtraError, match=r"'\.\[hdfs\]'"):
        list(HDFSLogStore(hdfs.conf).read(hdfs.uri + "/0.json"))


def test_settings_tell_where_it_goes(hdfs: HdfsCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    shown = HDFSLogStore(hdfs.conf).settings()
    assert shown["NameNodes"] == hdfs.uri.removeprefix("hdfs://")
    assert shown["WebHDFS"] == hdfs.http
    assert shown["user"] == os.environ.get("HADOOP_USER_NAME", hdfs.user)
    assert shown["Hadoop conf folder"].startswith("none")
