"""Where nobody is, every store says so in seconds: the budget of a busy service is not spent on it.

The budgets are told apart by the error, which names the one that was spent.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import re
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest
import urllib3

from lakelog.contrib.alibaba_oss import OSSLogStore
from lakelog.contrib.ibm_cos import IBMCOSLogStore
from lakelog.contrib.oracle_oci import OracleCloudLogStore
from lakelog.contrib.oss_client import OSSClient
from lakelog.logstores import (
    AzureConditionalLogStore,
    AzureLeaseLogStore,
    CommitOutcomeUnknownError,
    FileTooLargeError,
    GCSLogStore,
    HDFSLogStore,
    S3ConditionalLogStore,
    S3DynamoDBLogStore,
)
from lakelog.logstores.hdfs.errors import raise_translated
from lakelog.logstores.limits import limited
from lakelog.logstores.object_store.client import TryAgainError
from lakelog.logstores.unreachable import is_for_now
from support.rsa_key import new_pem
from support.servers._service import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lakelog.logstores import LogStore

BUDGETS = {
    "spark.lakelog.store.connect.timeBudget": "0.2",
    "spark.lakelog.store.retry.timeBudget": "61",
    "spark.lakelog.store.endpointProbe": "never",
}
HOSTS = {"a refused port": "127.0.0.1", "a name that does not resolve": "no-such-host.invalid"}


def _s3(url: str) -> tuple[LogStore, str]:
    conf = {"endpoint": url, "access.key": "abcdefgh", "secret.key": "abcdefgh"}
    return S3ConditionalLogStore(
        {**BUDGETS, **{f"spark.hadoop.fs.s3a.{name}": value for name, value in conf.items()}}
    ), "s3a://bucket/t"


def _dynamodb(url: str) -> tuple[LogStore, str]:
    store, root = _s3(url)
    own = "spark.io.delta.storage.S3DynamoDBLogStore."
    lock = {
        f"{own}ddb.region": "eu-west-1",
        "spark.lakelog.s3dynamodb.endpoint": url,
        "spark.lakelog.s3dynamodb.access.key": "abcdefgh",
        "spark.lakelog.s3dynamodb.secret.key": "abcdefgh",
    }
    return S3DynamoDBLogStore({**store.conf, **lock}), root


def _cos(url: str) -> tuple[LogStore, str]:
    conf = {"endpoint": url, "access.key": "abcdefgh", "secret.key": "abcdefgh", "region": "x"}
    return IBMCOSLogStore(
        {**BUDGETS, **{f"spark.hadoop.fs.cos.lab.{name}": value for name, value in conf.items()}}
    ), "cos://bucket.lab/t"


def _gcs(url: str) -> tuple[LogStore, str]:
    conf = {"storage.root.url": url, "auth.type": "UNAUTHENTICATED"}
    return GCSLogStore(
        {**BUDGETS, **{f"spark.hadoop.fs.gs.{name}": value for name, value in conf.items()}}
    ), "gs://bucket/t"


def _azure(kind: type[LogStore]) -> Callable[[str], tuple[LogStore, str]]:
    def make(url: str) -> tuple[LogStore, str]:
        conf = {
            "spark.lakelog.azure.endpoint": f"{url}/account",
            "spark.hadoop.fs.azure.account.key": "Zm9vYmFyZm9v",
        }
        return kind({**BUDGETS, **conf}), "az://container/t"

    return make


def _hdfs(url: str) -> tuple[LogStore, str]:
    return HDFSLogStore(BUDGETS), url.replace("http", "hdfs") + "/t"


def _oss(url: str) -> tuple[LogStore, str]:
    conf = {"endpoint": url, "accessKeyId": "abcdefgh", "accessKeySecret": "abcdefgh"}
    return OSSLogStore(
        {**BUDGETS, **{f"spark.hadoop.fs.oss.{name}": value for name, value in conf.items()}}
    ), "oss://bucket/t"


def _oci(url: str, key: str) -> tuple[LogStore, str]:
    conf = {
        "hostname": url,
        "auth.tenantId": "ocid1.tenancy.oc1..a",
        "auth.userId": "ocid1.user.oc1..a",
        "auth.fingerprint": ":".join(["00"] * 16),
        "auth.pemfilepath": key,
    }
    return OracleCloudLogStore(
        {**BUDGETS, **{f"spark.hadoop.fs.oci.client.{key}": value for key, value in conf.items()}}
    ), "oci://bucket@namespace/t"


STORES = {
    "s3": _s3,
    "s3-dynamodb": _dynamodb,
    "cos": _cos,
    "gcs": _gcs,
    "azure": _azure(AzureConditionalLogStore),
    "azure-lease": _azure(AzureLeaseLogStore),
    "hdfs": _hdfs,
    "oss": _oss,
}


def _made(name: str, url: str, tmp_path: Path) -> tuple[LogStore, str]:
    if name != "oci":
        return STORES[name](url)
    key = tmp_path / "key.pem"
    key.write_text(new_pem())
    return _oci(url, str(key))


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", [*STORES, "oci"])
def test_a_store_whose_storage_is_not_there_says_so_at_once(
    name: str, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = socket.getaddrinfo

    def resolved(host: Any, *more: Any, **how: Any) -> Any:
        """What a resolver says that is sure; the one of this machine may have its moments."""
        if isinstance(host, str | bytes) and "no-such-host" in str(host):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve(host, *more, **how)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    store, root = _made(name, f"http://{HOSTS[host]}:{free_port()}", tmp_path)
    path = f"{root}/_delta_log/00000000000000000000.json"
    for work in (
        lambda: store.read_bytes(path),
        lambda: next(iter(store.list_from(path))),
        lambda: store.write(path, ["x"]),
    ):
        with pytest.raises(
            OSError, match=r"given up after 0\.2 s|no such host|can't be resolved"
        ) as caught:
            work()
        assert not isinstance(caught.value, FileNotFoundError)


def _no_resolver(*_: object, **__: object) -> object:
    raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


def _without(code: int) -> Callable[..., None]:
    def connect(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return connect


FOR_NOW: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a resolver that asks to come back": lambda patch: patch.setattr(
        socket, "getaddrinfo", _no_resolver
    ),
    **{
        errno.errorcode[code]: lambda patch, code=code: patch.setattr(  # type: ignore[misc]  # bound
            socket.socket, "connect", _without(code)
        )
        for code in (errno.EMFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS)
    },
}


@pytest.mark.parametrize("trouble", FOR_NOW)
@pytest.mark.parametrize("name", [*[each for each in STORES if each != "hdfs"], "oci"])
def test_what_passes_is_borne_for_the_whole_budget(
    name: str, trouble: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BUDGETS, "spark.lakelog.store.connect.timeBudget", "0.01")
    monkeypatch.setitem(BUDGETS, "spark.lakelog.store.retry.timeBudget", "0.21")
    monkeypatch.setitem(BUDGETS, "spark.lakelog.azure.lease.wait", "0.01")
    store, root = _made(name, f"http://127.0.0.1:{free_port()}", tmp_path)
    FOR_NOW[trouble](monkeypatch)
    path = f"{root}/_delta_log/00000000000000000000.json"
    with pytest.raises(OSError, match=r"given up after 0\.21 s"):
        store.read_bytes(path)
    try:
        raise LookupError
    except LookupError:  # and Python hangs the older error behind, in place of the real one
        with pytest.raises(OSError, match=r"given up after 0\.21 s"):
            store.write(path, ["x"])


@pytest.mark.parametrize(
    ("text", "unreached"),
    [
        ("Temporary failure in name resolution", False),
        ("Too many open files (os error 24)", False),
        ("Cannot assign requested address (os error 99)", False),
        ("Connection refused (os error 111)", True),
    ],
)
def test_so_it_is_on_hdfs(text: str, unreached: bool) -> None:
    with pytest.raises(TryAgainError, match=re.escape(text.rstrip(")"))) as caught:
        raise_translated(OSError(text), "/t", "nn:8020")
    assert (caught.value.unreached, caught.value.may_have_landed) == (unreached, False)


@contextlib.contextmanager
def _proxy_that_answers(status: str) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0), backlog=16) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    taken, _ = server.accept()
                    with taken, contextlib.suppress(OSError):
                        taken.recv(65536)
                        taken.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


@pytest.mark.parametrize(
    ("status", "passes"),
    [
        ("503 Busy", True),
        ("429 Too Many", True),
        ("407 Who are you", False),
        ("403 No", False),
        (None, False),
    ],
)
def test_a_busy_proxy_passes_and_one_that_refuses_or_is_not_there_does_not(
    status: str | None, passes: bool
) -> None:
    def asked(proxy: str) -> Exception:
        try:
            urllib3.ProxyManager(proxy, retries=False).request("GET", "https://storage.example")
        except urllib3.exceptions.HTTPError as error:
            return error
        raise AssertionError("the proxy let it through")

    if status is None:
        assert not is_for_now(asked(f"http://127.0.0.1:{free_port()}"), None)
        return
    with _proxy_that_answers(status) as proxy:
        assert is_for_now(asked(proxy), None) is passes


@contextlib.contextmanager
def _listening_and_silent() -> Iterator[str]:
    """A service that takes each request, and closes without a reply."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    taken, _ = server.accept()
                    with taken, contextlib.suppress(OSError):
                        taken.recv(65536)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


@pytest.mark.parametrize("name", ["s3", "cos", "gcs", "azure", "azure-lease", "oss", "oci"])
def test_what_the_caller_is_still_handling_does_not_make_a_request_unsent(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python makes the older error the context of each new one."""
    monkeypatch.setattr(OSSClient, "_refuse_versions", lambda _: None)
    with _listening_and_silent() as url:
        store, root = _made(name, url, tmp_path)

        def write() -> None:
            path = f"{root}/_delta_log/00000000000000000000.json"
            limited(lambda: 0.0, lambda: store.write(path, ["x"]))

        with pytest.raises(CommitOutcomeUnknownError):
            write()
        try:
            urllib3.PoolManager(retries=False).request("GET", f"http://127.0.0.1:{free_port()}")
        except urllib3.exceptions.NewConnectionError:  # the service was down a moment ago
            with pytest.raises(CommitOutcomeUnknownError):
                write()


@contextlib.contextmanager
def _serving_a_giant() -> Iterator[tuple[str, list[int]]]:
    """A service whose every object has a terabyte, with the bytes that it got rid of."""
    sent: list[int] = []
    always = (
        'ETag: "e"\r\nx-amz-request-id: r\r\nx-goog-generation: 1\r\nx-ms-request-id: r\r\n'
        "x-ms-version: 2021-12-02\r\nx-ms-blob-type: BlockBlob\r\nopc-request-id: r\r\n"
        "x-oss-request-id: r\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n"
        "Content-Type: application/octet-stream\r\n"
    )
    whole = f"HTTP/1.1 200 OK\r\n{always}Content-Length: {10**12}\r\n\r\n".encode()
    part = (
        f"HTTP/1.1 206 Partial\r\n{always}Content-Length: 1\r\n"
        f"Content-Range: bytes 0-0/{10**12}\r\n\r\nx"
    ).encode()
    open_now: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=16) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    taken, _ = server.accept()
                    open_now[:] = [taken]
                    with taken, contextlib.suppress(OSError):
                        request = taken.recv(65536).lower()
                        taken.sendall(part if b"range: bytes" in request else whole)
                        # More than fits into the buffers of both ends, until nobody wants it.
                        for _ in range(64 if b"range: bytes" not in request else 0):
                            taken.sendall(bytes(1 << 20))
                            sent.append(1 << 20)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", sent
        server.shutdown(socket.SHUT_RDWR)
        for each in open_now:  # a client that keeps its connection would be sent to until the end
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        thread.join(10)


@pytest.mark.parametrize("call", ["read_bytes", "read"])
@pytest.mark.parametrize("name", ["s3", "cos", "gcs", "azure", "azure-lease", "oss", "oci"])
def test_a_giant_of_a_log_file_is_refused_by_its_length(
    name: str, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OSSClient, "_refuse_versions", lambda _: None)
    monkeypatch.setitem(BUDGETS, "spark.lakelog.log.maxBytes", "1000000")
    with _serving_a_giant() as (url, sent):
        store, root = _made(name, url, tmp_path)
        with pytest.raises(FileTooLargeError) as caught:
            getattr(store, call)(f"{root}/_delta_log/00000000000000000000.json")
        assert caught.value.size == 10**12
    assert sum(sent) < 32 << 20, "it was fetched"
    gc.collect()  # a connection that is still open is told here, and not in another test
