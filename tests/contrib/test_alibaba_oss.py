"""Lost replies, refusals and settings of the store for Alibaba OSS, on the documented server."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from lakelog.contrib.alibaba_oss import OSSLogStore
from lakelog.contrib.oss_client import OSSClient
from lakelog.logstores import LogStoreConfError, UnsafeLogStoreError, log_store_for
from lakelog.logstores.conformance.http.writes import FOREIGN_ANSWERS
from lakelog.logstores.object_store.store import TryAgainError
from support.fault_proxy import FaultProxy
from support.oss_server import oss_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.oss_server import OSSServer

PATH = "oss://bucket/t/_delta_log/0.json"
SECRET = "top-secret"
FAULTS = [
    "drop_reply",
    "hang_reply",
    "cut_reply",
    "tell:500",
    "tell:503",
    "reset",
    "refuse:503:ServiceUnavailable",
    "html:502",
    "delay:0.2",
    "twice",
]


@pytest.fixture
def oss() -> Iterator[OSSServer]:
    with oss_server() as server:
        yield server


def store_at(url: str, timeout: float = 0.5, **more: str) -> OSSLogStore:
    conf = {
        "spark.hadoop.fs.oss.endpoint": url,
        "fs.oss.accessKeyId": "id",
        "fs.oss.accessKeySecret": SECRET,
        "fs.oss.region": "cn-hangzhou",
        "spark.lakelog.store.endpointProbe": "never",
        "spark.lakelog.store.request.timeout": str(timeout),
        "spark.lakelog.store.retry.timeBudget": "10",
    }
    return OSSLogStore({**conf, **{f"fs.oss.{name}": value for name, value in more.items()}})


@pytest.mark.parametrize("fault", [*FAULTS, *FOREIGN_ANSWERS])
def test_a_harmed_create_still_makes_the_file_once(fault: str, oss: OSSServer) -> None:
    with FaultProxy(oss.url) as proxy:
        proxy.arm(fault, b"PUT /bucket/t/")
        store_at(proxy.url).write(PATH, ["x"])
        assert proxy.fired == [fault]
    assert list(store_at(oss.url).read(PATH)) == ["x"]


@pytest.mark.parametrize("fault", FAULTS)
def test_the_same_bytes_of_another_writer_are_a_conflict(fault: str, oss: OSSServer) -> None:
    store_at(oss.url).write(PATH, ["x"])
    with FaultProxy(oss.url) as proxy:
        proxy.arm(fault, b"PUT /bucket/t/")
        with pytest.raises(FileExistsError, match="another writer"):
            store_at(proxy.url).write(PATH, ["x"])
        assert proxy.fired == [fault]


def test_a_commit_is_one_put_after_one_look_at_the_bucket(oss: OSSServer) -> None:
    with FaultProxy(oss.url) as proxy:
        store = store_at(proxy.url, timeout=20)
        for number in range(3):
            store.write(f"oss://bucket/t/{number}.json", ["x"])
        assert [line.split()[0] for line in proxy.requests] == ["GET", "PUT", "PUT", "PUT"]
        assert "versioning" in proxy.requests[0]


@pytest.mark.parametrize("versioning", ["Enabled", "Suspended"])
def test_a_bucket_with_versions_is_refused_since_oss_ignores_the_header_there(
    versioning: str, oss: OSSServer
) -> None:
    oss.versioning = versioning
    with pytest.raises(UnsafeLogStoreError, match=f"versioning {versioning.lower()}"):
        store_at(oss.url).write(PATH, ["x"])
    assert oss.objects == {}


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("AccessDenied", "oss:PutObject"),
        ("RequestTimeTooSkewed", "correct this host's clock"),
        ("InvalidAccessKeyId", "access key is wrong"),
        ("SignatureDoesNotMatch", "access key is wrong"),
    ],
)
def test_a_refusal_says_what_to_do(code: str, message: str, oss: OSSServer) -> None:
    oss.denied = code
    for work in (
        lambda: store_at(oss.url).write(PATH, ["x"]),
        lambda: list(store_at(oss.url).read(PATH)),
        lambda: list(store_at(oss.url).list_from(PATH)),
    ):
        with pytest.raises(PermissionError, match=message) as caught:
            work()
        assert code in str(caught.value)
        assert SECRET not in str(caught.value)


def test_the_scheme_leads_to_it_and_it_can_be_pickled(oss: OSSServer) -> None:
    assert type(log_store_for("oss://bucket/t", {})) is OSSLogStore
    store = store_at(oss.url)
    store.write(PATH, ["x"])
    assert list(pickle.loads(pickle.dumps(store)).read(PATH)) == ["x"]


def test_missing_and_foreign_settings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OSS_ACCESS_KEY_ID", "OSS_ACCESS_KEY_SECRET"):
        monkeypatch.delenv(name, raising=False)
    endpoint = {"fs.oss.endpoint": "oss-cn-hangzhou.aliyuncs.com"}
    for conf, message in (
        ({}, r"fs\.oss\.endpoint is missing"),
        (endpoint, "no credentials for OSS"),
        ({**endpoint, "fs.oss.accessKeyId": "id"}, "go together"),
        ({**endpoint, "fs.oss.credentials.provider": "com.x.Y"}, "Java class"),
    ):
        with pytest.raises(LogStoreConfError, match=message):
            list(OSSLogStore(conf).read(PATH))


@pytest.mark.parametrize("path", ["oss:///t", "s3://bucket/t", "/t"])
def test_a_path_of_another_storage_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="not of the form oss://bucket/key"):
        OSSLogStore().filesystem_path(path)


def test_a_page_that_promises_more_without_saying_where_is_no_end_of_the_log() -> None:
    page = SimpleNamespace(
        contents=[], common_prefixes=[], is_truncated=True, next_continuation_token=None
    )
    sdk = SimpleNamespace(list_objects_v2=lambda _: page)
    with pytest.raises(TryAgainError, match="has no continuation token"):
        OSSClient(sdk, "https://oss.test", "bucket").page("t/_delta_log/", "", None, None)
