"""HDFS with lost, late and refused answers, and writers that die: nothing doubled, nothing half."""

from __future__ import annotations

import gc
import json
import logging
import subprocess
import sys
import threading
import uuid
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from lakelog.logstores import CommitOutcomeUnknownError, HDFSLogStore
from lakelog.logstores.hdfs.client import HdfsClient
from lakelog.logstores.hdfs.publish import publish, write_draft
from lakelog.logstores.hdfs.webhdfs import WebHdfs
from lakelog.logstores.object_store.store import RetryPolicy, TryAgainError
from support.bad_networks import brief_last_look
from support.fault_proxy import FaultProxy
from support.rpc_proxy import RpcProxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.servers.hdfs import HdfsCluster

RENAME = b"rename2"
CONFIRM = b"setPermission"
DELETE = b"\x06delete"
"""With its length before it, as in a call's frame: no path holds that."""
LINES = ["one", "two"]
BODY = b"one\ntwo\n"
HASTY = RetryPolicy(budget=0.5)


@pytest.fixture
def folder(hdfs: HdfsCluster) -> str:
    """A folder's path, without the authority."""
    path = f"/lakelog-test/{uuid.uuid4()}/_delta_log"
    HDFSLogStore(hdfs.conf).create_folder(hdfs.uri + path)
    return path


@pytest.fixture
def proxy(hdfs: HdfsCluster) -> Iterator[RpcProxy]:
    with RpcProxy(hdfs.rpc) as proxy:
        yield proxy


def store_at(
    uri: str, http: str | None = None, budget: str = "20", timeout: str = "2"
) -> HDFSLogStore:
    conf = {
        "spark.hadoop.fs.defaultFS": uri,
        "spark.lakelog.store.retry.timeBudget": budget,
        "spark.lakelog.store.request.timeout": timeout,
    }
    if http:
        conf["spark.hadoop.dfs.namenode.http-address"] = http
    return HDFSLogStore(conf)


def _drafted(proxy: RpcProxy, hdfs: HdfsCluster, folder: str) -> tuple[HdfsClient, str, str]:
    """A patient client, a draft that it wrote, and the draft's target."""
    store = store_at(proxy.uri, hdfs.http, timeout="20")
    client, web = store._hdfs.at(proxy.uri.removeprefix("hdfs://"))
    target = f"{folder}/0.json"
    return client, write_draft(client, web, target, BODY, store._hdfs.policy), target


def seen(hdfs: HdfsCluster, folder: str) -> dict[str, list[str]]:
    """All files of the folder, hidden ones included, by one who is far from any fault."""
    store = HDFSLogStore(hdfs.conf)
    return {
        each.name: list(store.read(each.path)) for each in store.list_from(f"{hdfs.uri}{folder}/")
    }


@pytest.mark.parametrize("fault", ["drop_reply", "hang_reply", "reset"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_rename_without_an_answer_is_settled(
    hdfs: HdfsCluster, proxy: RpcProxy, folder: str, fault: str, overwrite: bool
) -> None:
    store = store_at(proxy.uri, hdfs.http)
    proxy.arm(fault, RENAME)
    store.write(f"{proxy.uri}{folder}/0.json", LINES, overwrite=overwrite)
    assert proxy.fired == [fault]
    assert seen(hdfs, folder) == {"0.json": LINES}


def test_two_lost_answers_in_a_row_are_settled(
    hdfs: HdfsCluster, proxy: RpcProxy, folder: str
) -> None:
    store = store_at(proxy.uri, hdfs.http)
    proxy.arm("drop_reply", RENAME, times=2)
    proxy.arm("drop_reply", CONFIRM)
    store.write(f"{proxy.uri}{folder}/0.json", LINES)
    assert proxy.fired == ["drop_reply"] * 3
    assert seen(hdfs, folder) == {"0.json": LINES}


def test_a_lost_refusal_is_a_conflict(hdfs: HdfsCluster, proxy: RpcProxy, folder: str) -> None:
    """Even where the other writer wrote the same bytes: ours is still there as a draft."""
    store = store_at(proxy.uri, hdfs.http)
    client, web = store._hdfs.at(proxy.uri.removeprefix("hdfs://"))
    target, body = f"{folder}/0.json", b"one\ntwo\n"
    draft = write_draft(client, web, target, body, store._hdfs.policy)
    HDFSLogStore(hdfs.conf).write(hdfs.uri + target, LINES)
    proxy.arm("drop_reply", RENAME)
    with pytest.raises(FileExistsError):
        publish(client, draft, target, body, store._hdfs.policy, overwrite=False)
    assert proxy.fired == ["drop_reply"]


def test_a_rename_that_arrives_late_does_nothing(
    hdfs: HdfsCluster, proxy: RpcProxy, folder: str
) -> None:
    store = store_at(proxy.uri, hdfs.http)
    proxy.arm("hold", RENAME)
    store.write(f"{proxy.uri}{folder}/0.json", LINES)
    other = HDFSLogStore(hdfs.conf)
    other.write(f"{hdfs.uri}{folder}/0.json", ["of another"], overwrite=True)
    proxy.release()
    assert proxy.fired == ["hold"]
    assert seen(hdfs, folder) == {"0.json": ["of another"]}


@pytest.mark.parametrize("landed", [True, False])
def test_renames_that_never_get_an_answer_are_settled_by_the_draft(
    hdfs: HdfsCluster, proxy: RpcProxy, folder: str, landed: bool
) -> None:
    """At the end the draft is deleted: it was there (nothing happened), or it was not."""
    store = store_at(proxy.uri, hdfs.http, budget="1" if landed else "0.5", timeout="20")
    if landed:
        proxy.arm("drop_reply", RENAME)
    proxy.arm("reset", RENAME, times=1000)
    if landed:
        store.write(f"{proxy.uri}{folder}/0.json", LINES)
    else:
        with pytest.raises(OSError, match="was not written"):
            store.write(f"{proxy.uri}{folder}/0.json", LINES)
    assert proxy.fired[-1] == "reset"
    assert seen(hdfs, folder) == ({"0.json": LINES} if landed else {})


@pytest.mark.parametrize("landed", [True, False])
def test_the_last_look_at_the_draft_is_repeated(
    hdfs: HdfsCluster, proxy: RpcProxy, folder: str, landed: bool
) -> None:
    """What spoilt the renames may spoil that look too: no outcome is unknown for this alone."""
    client, draft, target = _drafted(proxy, hdfs, folder)
    proxy.arm("drop_reply" if landed else "reset", RENAME)
    proxy.arm("reset", RENAME, times=1000)
    fault = "drop_reply" if landed else "reset"
    proxy.arm(fault, draft.encode() if landed else DELETE, times=2)
    if landed:
        publish(client, draft, target, BODY, HASTY, overwrite=False)
    else:
        with pytest.raises(OSError, match="was not written"):
            publish(client, draft, target, BODY, HASTY, overwrite=False)
    assert proxy.fired[-2:] == [fault] * 2
    assert seen(hdfs, folder) == ({"0.json": LINES} if landed else {})


def test_a_lost_deletion_where_no_rename_arrived_is_no_commit(
    hdfs: HdfsCluster, proxy: RpcProxy, folder: str
) -> None:
    client, draft, target = _drafted(proxy, hdfs, folder)
    proxy.arm("reset", RENAME, times=1000)
    proxy.arm("drop_reply", DELETE)
    with pytest.raises(OSError, match="was not written"):
        publish(client, draft, target, BODY, HASTY, overwrite=False)
    assert proxy.fired[-1] == "drop_reply"
    assert seen(hdfs, folder) == {}


def test_a_lost_answer_to_a_deletion_is_no_missing_file(
    hdfs: HdfsCluster, proxy: RpcProxy, folder: str
) -> None:
    store = store_at(proxy.uri, hdfs.http)
    store.create_folder(f"{proxy.uri}{folder}/x")
    store.write(f"{proxy.uri}{folder}/x/0.json", LINES)
    where = store.filesystem_path(f"{proxy.uri}{folder}/x")
    proxy.arm("drop_reply", DELETE)
    store.filesystem.delete_file(f"{where}/0.json")
    proxy.arm("drop_reply", DELETE)
    store.filesystem.delete_dir(where)
    assert proxy.fired == ["drop_reply"] * 2
    assert seen(hdfs, folder) == {}
    with pytest.raises(FileNotFoundError):
        store.filesystem.delete_dir(where)


@pytest.mark.parametrize("landed", [True, False])
def test_a_namenode_that_dies_over_a_rename_leaves_the_outcome_unknown(
    hdfs: HdfsCluster,
    proxy: RpcProxy,
    folder: str,
    landed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brief_last_look(monkeypatch)
    store = store_at(proxy.uri, hdfs.http, budget="0.5")
    proxy.arm("die" if landed else "die_before", RENAME)
    with pytest.raises(CommitOutcomeUnknownError, match=r"0\.json is unknown: the rename of"):
        store.write(f"{proxy.uri}{folder}/0.json", LINES)
    files = seen(hdfs, folder)
    assert [name for name in files if not name.startswith(".")] == (["0.json"] if landed else [])
    # What may be needed to settle it is not deleted.
    assert list(files.values()) == [LINES]


def test_a_namenode_that_comes_back_in_time_is_waited_for(
    hdfs: HdfsCluster, proxy: RpcProxy, folder: str
) -> None:
    store = store_at(proxy.uri, hdfs.http)
    proxy.arm("die", RENAME)

    def come_back() -> None:
        while not proxy.is_down:
            threading.Event().wait(0.01)
        threading.Event().wait(1.0)
        proxy.come_back()

    back = threading.Thread(target=come_back, daemon=True)
    back.start()
    store.write(f"{proxy.uri}{folder}/0.json", LINES)
    back.join()
    assert seen(hdfs, folder) == {"0.json": LINES}


def test_a_lost_create_and_a_lost_close_write_another_draft(
    hdfs: HdfsCluster, proxy: RpcProxy, folder: str
) -> None:
    store = store_at(proxy.uri)
    for number, call in enumerate([b"\x06create", b"addBlock", b"complete"]):
        proxy.arm("drop_reply", call)
        store.write(f"{proxy.uri}{folder}/{number}.json", LINES)
    assert proxy.fired == ["drop_reply"] * 3
    assert seen(hdfs, folder) == {f"{number}.json": LINES for number in range(3)}


def test_a_writer_that_no_one_closed_asks_nothing_when_it_is_freed(
    proxy: RpcProxy, folder: str
) -> None:
    """Python's streams close themselves: that would be a call in whichever thread frees it."""
    client, where = store_at(proxy.uri)._client(f"{proxy.uri}{folder}/0.json")
    writer = client.writer(where, overwrite=True, create_parent=False)
    client.call(where, partial(writer.write, b"x"))
    proxy.arm("drop_reply", b"complete")
    del writer
    gc.collect()
    assert proxy.fired == []
    writer = client.writer(where, overwrite=True, create_parent=False)
    with pytest.raises(TryAgainError):
        client.call(where, writer.close)
    assert proxy.fired == ["drop_reply"]


def test_a_lost_answer_to_a_move_is_settled(
    hdfs: HdfsCluster, proxy: RpcProxy, folder: str
) -> None:
    store = store_at(proxy.uri, hdfs.http)
    path = f"{proxy.uri}{folder}/0.checkpoint.parquet"
    store.write(path, ["old"], overwrite=True)
    proxy.arm("drop_reply", RENAME)
    with store.staged(path) as (filesystem, draft), filesystem.open_output_stream(draft) as sink:
        sink.write(b"new\n")
    assert proxy.fired == ["drop_reply"]
    assert seen(hdfs, folder) == {"0.checkpoint.parquet": ["new"]}


def _stage_half(store: HDFSLogStore, path: str) -> None:
    with store.staged(path) as (filesystem, draft), filesystem.open_output_stream(draft) as sink:
        sink.write(b"half")
        raise ZeroDivisionError


def test_a_staged_file_that_fails_leaves_what_was_there(hdfs: HdfsCluster, folder: str) -> None:
    store = HDFSLogStore(hdfs.conf)
    path = f"{hdfs.uri}{folder}/0.checkpoint.parquet"
    store.write(path, ["old"])
    with pytest.raises(ZeroDivisionError):
        _stage_half(store, path)
    assert seen(hdfs, folder) == {"0.checkpoint.parquet": ["old"]}


@pytest.mark.parametrize(
    "fault",
    ["drop_reply", "hang_reply", "cut_reply", "reset", "html:502", "refuse:403", "tell:503"],
)
def test_a_namenode_whose_web_server_fails_is_written_to_natively(
    hdfs: HdfsCluster, folder: str, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    with FaultProxy(f"http://{hdfs.http}") as web, caplog.at_level(logging.WARNING):
        store = store_at(hdfs.uri, urlsplit(web.url).netloc)
        web.arm(fault, b"op=CREATE", times=2)
        for number in range(2):
            store.write(f"{hdfs.uri}{folder}/{number}.json", LINES)
        # The second commit did not try it again, and did not say it again.
        assert web.fired == [fault]
    assert sum("don't use WebHDFS" in each.getMessage() for each in caplog.records) == 1
    assert seen(hdfs, folder) == {"0.json": LINES, "1.json": LINES}


@pytest.mark.parametrize("fault", ["drop_reply", "hang_reply", "cut_reply", "reset", "html:200"])
def test_a_datanode_that_fails_leaves_no_draft(
    hdfs: HdfsCluster, folder: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_at(hdfs.uri, hdfs.http)
    _, web = store._hdfs.at(hdfs.uri.removeprefix("hdfs://"))
    datanode = urlsplit(web._datanode(str(hdfs.http), f"{folder}/x")).netloc
    with FaultProxy(f"http://{datanode}") as proxy:
        real, there = WebHdfs._datanode, urlsplit(proxy.url).netloc
        monkeypatch.setattr(WebHdfs, "_datanode", lambda *of: real(*of).replace(datanode, there))
        proxy.arm(fault, b"op=CREATE")
        store.write(f"{hdfs.uri}{folder}/0.json", LINES)
        assert proxy.fired == [fault]
    assert seen(hdfs, folder) == {"0.json": LINES}


@pytest.mark.parametrize(
    "name", ["ü ä 日本 😀", "%20%2F", "a?b#c&d=e+f", 'quote\'s "x"', "back\\slash;", "*{a}[b]"]
)
def test_webhdfs_writes_under_any_name(hdfs: HdfsCluster, folder: str, name: str) -> None:
    store = HDFSLogStore(hdfs.conf)
    store.create_folder(f"{hdfs.uri}{folder}/{name}")
    store.write(f"{hdfs.uri}{folder}/{name}/{name}.json", LINES)
    assert store._hdfs.at(hdfs.uri.removeprefix("hdfs://"))[1].is_usable
    assert seen(hdfs, f"{folder}/{name}") == {f"{name}.json": LINES}


class _OtherCluster(BaseHTTPRequestHandler):
    """A WebHDFS that takes everything, for a cluster that is not the one asked for."""

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        host = self.headers["Host"]
        reply = json.dumps({"Location": f"http://{host}/webhdfs/v1/x?data"}).encode()
        self.send_response(201 if self.path.endswith("?data") else 200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name there
        """Keep quiet."""


def test_the_web_server_of_another_cluster_is_found_out(hdfs: HdfsCluster, folder: str) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _OtherCluster) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        store = store_at(hdfs.uri, f"127.0.0.1:{server.server_port}")
        store.write(f"{hdfs.uri}{folder}/0.json", LINES)
        server.shutdown()
    assert seen(hdfs, folder) == {"0.json": LINES}


def test_a_writer_that_fails_takes_its_draft_away(
    hdfs: HdfsCluster, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = HDFSLogStore(hdfs.conf)
    store.write(f"{hdfs.uri}{folder}/0.json", ["first"])
    with monkeypatch.context() as patch:
        real = HdfsClient.status
        patch.setattr(  # the rival came between the look and the rename
            HdfsClient, "status", lambda s, p: None if p.endswith("/0.json") else real(s, p)
        )
        with pytest.raises(FileExistsError):
            store.write(f"{hdfs.uri}{folder}/0.json", LINES)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(HdfsClient, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.write(f"{hdfs.uri}{folder}/1.json", LINES)
    assert seen(hdfs, folder) == {"0.json": ["first"]}


_DYING = """
import json, os, sys
sys.path[:] = json.loads(sys.argv[1])
from lakelog.logstores import HDFSLogStore
from lakelog.logstores.hdfs import client, webhdfs
conf, path, step = json.loads(sys.argv[2]), sys.argv[3], sys.argv[4]
die = lambda *a, **k: os._exit(9)
rename = client.HdfsClient.rename
def after(*a, **k):
    rename(*a, **k)
    os._exit(9)
if step == "before the draft":
    webhdfs.WebHdfs.create = die
elif step == "in the draft":
    webhdfs.WebHdfs._send = die
elif step == "before the rename":
    client.HdfsClient.rename = die
else:
    client.HdfsClient.rename = after
HDFSLogStore(conf).write(path, ["one", "two"])
"""


@pytest.mark.parametrize(
    "step", ["before the draft", "in the draft", "before the rename", "after the rename"]
)
def test_a_writer_that_dies_leaves_all_or_nothing(
    hdfs: HdfsCluster, folder: str, step: str, tmp_path: Path
) -> None:
    path = f"{hdfs.uri}{folder}/0.json"
    argv = [sys.executable, "-c", _DYING, json.dumps(sys.path), json.dumps(hdfs.conf), path, step]
    done = subprocess.run(argv, check=False, timeout=120, cwd=tmp_path, capture_output=True)
    assert done.returncode == 9, done.stderr.decode()
    store = HDFSLogStore(hdfs.conf)
    names = [each.name for each in store.list_from(f"{hdfs.uri}{folder}/0")]
    if step == "after the rename":
        assert names == ["0.json"]
        assert list(store.read(path)) == LINES
        with pytest.raises(FileExistsError):
            store.write(path, ["next"])
    else:
        assert names == []
        store.write(path, ["next"])
        assert list(store.read(path)) == ["next"]
