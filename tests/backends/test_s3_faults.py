"""Lost, late, torn and foreign replies between the store and S3.

Each harm is done twice: where nobody else wrote, the write has to succeed; and where another
writer has stored the very same bytes before, it has to be refused.
"""

from __future__ import annotations

import json
import pickle
import socket
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import (
    CommitOutcomeUnknownError,
    S3ConditionalLogStore,
    S3SingleDriverLogStore,
    UnsafeLogStoreError,
)
from lakelog.logstores.s3.client import S3Client
from lakelog.logstores.s3.upload import PART
from support.bad_networks import brief_last_look
from support.fault_proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.servers.minio import S3Endpoint

LINES = ['{"commitInfo":{}}', "grüße"]
QUICK = {
    "spark.lakelog.store.endpointProbe": "never",
    "spark.lakelog.store.request.timeout": "1",
    "spark.lakelog.store.retry.timeBudget": "20",
}
ALONE = {"spark.lakelog.unsafe.singleWriter": "true"}
LOST = ("drop_reply", "hang_reply", "cut_reply", "tell:500", "tell:503", "tell:504", "tell:408")
NOT_DONE = (
    "reset",
    "drop_request",
    "refuse:409:ConditionalRequestConflict",
    "refuse:409:OperationAborted",
    "refuse:429:TooManyRequests",
    "refuse:503:SlowDown",
    "refuse:400:RequestTimeout",
    "html:502",
)
HARM = [*LOST, *NOT_DONE, "delay:0.2", "twice"]


@pytest.fixture
def proxy(minio: S3Endpoint) -> Iterator[FaultProxy]:
    with FaultProxy(minio.url) as between:
        yield between


@pytest.fixture
def behind(minio: S3Endpoint, proxy: FaultProxy) -> Callable[..., S3ConditionalLogStore]:
    """Makes stores that go through the proxy."""

    def store(
        kind: type[S3ConditionalLogStore] = S3ConditionalLogStore,
        budget: str = "20",
        timeout: str = QUICK["spark.lakelog.store.request.timeout"],
    ) -> S3ConditionalLogStore:
        conf = {**minio.conf, **QUICK, **ALONE, "spark.hadoop.fs.s3a.endpoint": proxy.url}
        conf["spark.lakelog.store.request.timeout"] = timeout
        return kind({**conf, "spark.lakelog.store.retry.timeBudget": budget})

    return store


@pytest.fixture
def direct(minio: S3Endpoint) -> S3ConditionalLogStore:
    return S3ConditionalLogStore({**minio.conf, **QUICK})


@pytest.fixture
def log(s3_bucket: str) -> str:
    return f"s3a://{s3_bucket}/{uuid.uuid4().hex}/_delta_log"


def commit(log: str, version: int = 0) -> str:
    return f"{log}/{version:020d}.json"


@pytest.mark.parametrize("kind", [S3ConditionalLogStore, S3SingleDriverLogStore])
@pytest.mark.parametrize("fault", HARM)
def test_a_harmed_create_still_makes_the_file_once(
    fault: str,
    kind: type[S3ConditionalLogStore],
    proxy: FaultProxy,
    behind: Callable[..., S3ConditionalLogStore],
    direct: S3ConditionalLogStore,
    log: str,
) -> None:
    proxy.arm(fault, b"PUT /")
    behind(kind).write(commit(log), LINES)
    assert proxy.fired == [fault]
    assert list(direct.read(commit(log))) == LINES


@pytest.mark.parametrize("fault", HARM)
def test_the_same_bytes_of_another_writer_are_a_conflict(
    fault: str,
    proxy: FaultProxy,
    behind: Callable[..., S3ConditionalLogStore],
    direct: S3ConditionalLogStore,
    log: str,
) -> None:
    direct.write(commit(log), LINES)
    proxy.arm(fault, b"PUT /")
    with pytest.raises(FileExistsError, match="another writer"):
        behind().write(commit(log), LINES)
    assert proxy.fired == [fault]


def test_the_same_bytes_of_a_program_without_tokens_are_a_conflict(
    proxy: FaultProxy,
    behind: Callable[..., S3ConditionalLogStore],
    minio: S3Endpoint,
    log: str,
) -> None:
    bucket, _, key = commit(log).removeprefix("s3a://").partition("/")
    minio.client().put_object(Bucket=bucket, Key=key, Body="\n".join([*LINES, ""]).encode())
    proxy.arm("drop_reply", b"PUT /")
    with pytest.raises(FileExistsError, match="another writer"):
        behind().write(commit(log), LINES)


def test_a_look_at_the_owner_that_gets_lost_is_repeated(
    proxy: FaultProxy, behind: Callable[..., S3ConditionalLogStore], log: str
) -> None:
    proxy.arm("drop_reply", b"PUT /")
    proxy.arm("drop_reply", b"HEAD /")
    proxy.arm("refuse:503", b"HEAD /")
    behind().write(commit(log), LINES)
    assert proxy.fired == ["drop_reply", "drop_reply", "refuse:503"]


def test_a_service_that_falls_silent_after_the_put_leaves_the_outcome_unknown(
    proxy: FaultProxy,
    behind: Callable[..., S3ConditionalLogStore],
    direct: S3ConditionalLogStore,
    log: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brief_last_look(monkeypatch)
    proxy.arm("die", b"PUT /")
    with pytest.raises(CommitOutcomeUnknownError) as caught:
        behind(budget="1").write(commit(log), LINES)
    assert caught.value.path == commit(log)
    assert list(direct.read(commit(log))) == LINES, "it had landed, and nobody could know"


def test_credentials_that_expire_after_a_lost_reply_leave_the_outcome_unknown(
    proxy: FaultProxy, behind: Callable[..., S3ConditionalLogStore], log: str
) -> None:
    proxy.arm("drop_reply", b"PUT /")
    proxy.arm("refuse:400:ExpiredToken", b"PUT /")
    proxy.arm("refuse:400", b"HEAD /", times=2)
    with pytest.raises(CommitOutcomeUnknownError, match="credentials have expired"):
        behind().write(commit(log), LINES)


def test_a_service_that_slows_us_down_to_the_last_has_written_nothing(
    proxy: FaultProxy,
    behind: Callable[..., S3ConditionalLogStore],
    direct: S3ConditionalLogStore,
    log: str,
) -> None:
    proxy.arm("refuse:503:SlowDown", b"PUT /", times=1000)
    with pytest.raises(OSError, match=r"was not written.*SlowDown.*given up after 1 s"):
        behind(budget="1", timeout="20").write(commit(log), LINES)
    with pytest.raises(FileNotFoundError):
        list(direct.read(commit(log)))


def test_an_endpoint_without_the_header_is_refused_with_the_ways_out_named(
    proxy: FaultProxy, behind: Callable[..., S3ConditionalLogStore], log: str
) -> None:
    proxy.arm("refuse:501:NotImplemented", b"PUT /")
    with pytest.raises(UnsafeLogStoreError, match=r"S3DynamoDBLogStore, or.*singleWriter=true"):
        behind().write(commit(log), LINES)


def test_the_single_driver_store_wants_to_be_told_that_it_is_alone(
    minio: S3Endpoint, log: str
) -> None:
    store = S3SingleDriverLogStore(minio.conf)
    with pytest.raises(UnsafeLogStoreError, match=r"singleWriter=true"):
        store.write(commit(log), LINES)
    store.write(f"{log}/_last_checkpoint", ["{}"], overwrite=True)
    with pytest.raises(FileNotFoundError):
        list(store.read(commit(log)))


@pytest.mark.parametrize("fault", ["cut_reply", "tear_reply", "drop_reply", "hang_reply"])
def test_a_torn_read_is_repeated(
    fault: str,
    proxy: FaultProxy,
    behind: Callable[..., S3ConditionalLogStore],
    direct: S3ConditionalLogStore,
    log: str,
) -> None:
    direct.write(commit(log), ["x" * 100_000])
    proxy.arm(fault, b"GET /")
    assert list(behind().read(commit(log))) == ["x" * 100_000]
    assert proxy.fired == [fault]


def test_a_checkpoint_of_several_parts_survives_lost_parts_and_leaves_no_rest(
    proxy: FaultProxy,
    behind: Callable[..., S3ConditionalLogStore],
    minio: S3Endpoint,
    log: str,
) -> None:
    path = f"{log}/00000000000000000010.checkpoint.parquet"
    body = b"0123456789abcdef" * (PART // 16) + b"the rest"
    proxy.arm("drop_reply", b"partNumber=1")
    proxy.arm("reset", b"partNumber=2")
    # A busy machine may take a second for a request; the upload that is begun again would stay.
    with (
        behind(timeout="10").staged(path) as (filesystem, draft),
        filesystem.open_output_stream(draft) as out,
    ):
        out.write(body)
    assert proxy.fired == ["drop_reply", "reset"]
    bucket, _, key = path.removeprefix("s3a://").partition("/")
    client = minio.client()
    assert client.get_object(Bucket=bucket, Key=key)["Body"].read() == body
    assert "Uploads" not in client.list_multipart_uploads(Bucket=bucket, Prefix=key)


def test_an_upload_that_fails_is_aborted_and_the_old_object_stays(
    proxy: FaultProxy,
    behind: Callable[..., S3ConditionalLogStore],
    direct: S3ConditionalLogStore,
    minio: S3Endpoint,
    log: str,
) -> None:
    path = f"{log}/00000000000000000010.checkpoint.parquet"
    direct.write(path, ["old"], overwrite=True)
    proxy.arm("refuse:403:AccessDenied", b"partNumber=2")
    proxy.arm("reset", b"DELETE /", times=2)

    def upload() -> None:
        store = behind(timeout="10")  # for a part of megabytes on a busy machine
        with store.staged(path) as (files, draft), files.open_output_stream(draft) as out:
            out.write(b"x" * (PART + 1))

    with pytest.raises(PermissionError, match="s3:AbortMultipartUpload"):
        upload()
    assert list(direct.read(path)) == ["old"]
    assert any(line.startswith("DELETE ") for line in proxy.requests)
    bucket, _, key = path.removeprefix("s3a://").partition("/")
    assert "Uploads" not in minio.client().list_multipart_uploads(Bucket=bucket, Prefix=key)


FORKING = """
import json, os, sys
from lakelog.logstores import S3ConditionalLogStore
from lakelog.logstores.s3 import sdk
conf, log = json.loads(sys.argv[1]), sys.argv[2]
store = S3ConditionalLogStore(conf)
store.write(f"{log}/0.json", ["parent"])
if (child := os.fork()) == 0:
    assert not sdk._shelf.wires, "the parent's connections"
    store.write(f"{log}/1.json", list(store.read(f"{log}/0.json")) + ["child"])
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(list(store.read(f"{log}/1.json")))
"""


def test_a_store_is_used_by_a_child_that_was_forked_from_its_user(
    minio: S3Endpoint, log: str
) -> None:
    conf = json.dumps({**minio.conf, **QUICK})
    done = subprocess.run(
        [sys.executable, "-c", FORKING, conf, log],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "['parent', 'child']", done.stderr


def test_prepared_requests_race_as_they_are(minio: S3Endpoint, s3_bucket: str) -> None:
    client = S3Client.from_conf(minio.conf, s3_bucket)
    key = f"{uuid.uuid4().hex}/a key with ü"
    answers = []
    for writer in ("one", "two"):
        request = client.prepared_create(key, writer.encode(), writer)
        assert request is not None
        assert not request.tls
        with socket.create_connection((request.host, request.port), timeout=30) as wire:
            wire.sendall(request.data)
            answers.append(wire.recv(100).split(b" ")[1])
    assert answers == [b"200", b"412"]
    assert client.get(key) == b"one"
    owner = client.owner(key)
    assert owner is not None
    assert owner.token == "one"


def test_a_store_that_was_used_can_be_sent_to_executors(
    direct: S3ConditionalLogStore, log: str
) -> None:
    direct.write(commit(log), LINES)
    again = pickle.loads(pickle.dumps(direct))
    assert list(again.read(commit(log))) == LINES
    files = pickle.loads(pickle.dumps(direct.filesystem))
    assert files.get_file_info(direct.filesystem_path(commit(log))).size > 0
