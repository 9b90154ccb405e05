"""Lost replies, refusals and settings of the store for Oracle, on the documented server."""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING

import pytest

from lakelog.contrib.oracle_oci import OracleCloudLogStore
from lakelog.logstores import LogStoreConfError, log_store_for
from lakelog.logstores.conformance.http.writes import FOREIGN_ANSWERS
from support.fault_proxy import FaultProxy
from support.oci_server import oci_server
from support.rsa_key import new_pem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.oci_server import OCIServer

PATH = "oci://bucket@ns/t/_delta_log/0.json"
PUT = b"PUT /n/ns/b/bucket/o/"
FAULTS = [
    "drop_reply",
    "hang_reply",
    "cut_reply",
    "tell:500",
    "tell:503",
    "reset",
    "refuse:429:TooManyRequests",
    "refuse:409:ConcurrentObjectUpdate",
    "html:502",
    "delay:0.2",
    "twice",
]


@pytest.fixture
def oci() -> Iterator[OCIServer]:
    with oci_server() as server:
        yield server


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("oci") / "key.pem"
    file.write_text(new_pem())
    return str(file)


def identity(key: str) -> dict[str, str]:
    return {
        "fs.oci.client.auth.tenantId": "ocid1.tenancy.oc1..a",
        "fs.oci.client.auth.userId": "ocid1.user.oc1..a",
        "fs.oci.client.auth.fingerprint": ":".join(["00"] * 16),
        "fs.oci.client.auth.pemfilepath": key,
    }


def store_at(url: str, key: str, timeout: float = 0.5) -> OracleCloudLogStore:
    conf = {
        "spark.hadoop.fs.oci.client.hostname": url,
        "spark.lakelog.store.endpointProbe": "never",
        "spark.lakelog.store.request.timeout": str(timeout),
        "spark.lakelog.store.retry.timeBudget": "10",
    }
    return OracleCloudLogStore({**conf, **identity(key)})


@pytest.mark.parametrize("fault", [*FAULTS, *FOREIGN_ANSWERS])
def test_a_harmed_create_still_makes_the_file_once(fault: str, oci: OCIServer, key: str) -> None:
    with FaultProxy(oci.url) as proxy:
        proxy.arm(fault, PUT)
        store_at(proxy.url, key).write(PATH, ["x"])
        assert proxy.fired == [fault]
    assert list(store_at(oci.url, key).read(PATH)) == ["x"]


@pytest.mark.parametrize("fault", FAULTS)
def test_the_same_bytes_of_another_writer_are_a_conflict(
    fault: str, oci: OCIServer, key: str
) -> None:
    store_at(oci.url, key).write(PATH, ["x"])
    with FaultProxy(oci.url) as proxy:
        proxy.arm(fault, PUT)
        with pytest.raises(FileExistsError, match="another writer"):
            store_at(proxy.url, key).write(PATH, ["x"])
        assert proxy.fired == [fault]


def test_the_sdk_is_all_that_it_needs(
    oci: OCIServer, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK has a requests of its own, and the extra brings no other."""
    monkeypatch.setitem(sys.modules, "requests", None)
    with FaultProxy(oci.url) as proxy:
        proxy.arm("reset", PUT)
        store_at(proxy.url, key).write(PATH, ["x"])
    assert list(store_at(oci.url, key).read(PATH)) == ["x"]


def test_a_commit_is_one_put(oci: OCIServer, key: str) -> None:
    with FaultProxy(oci.url) as proxy:
        store_at(proxy.url, key, timeout=20).write(PATH, ["x"])
        assert [line.split()[0] for line in proxy.requests] == ["PUT"]


@pytest.mark.parametrize("fault", ["drop_reply", "cut_reply", "refuse:503:x", "html:200"])
def test_a_harmed_listing_is_whole(fault: str, oci: OCIServer, key: str) -> None:
    store_at(oci.url, key).write(PATH, ["x"])
    with FaultProxy(oci.url) as proxy:
        proxy.arm(fault, b"GET /n/ns/b/bucket/o?")
        found = list(store_at(proxy.url, key).list_from(PATH))
        assert [each.path for each in found] == [PATH]
        assert proxy.fired == [fault]


@pytest.mark.parametrize(
    ("status", "code", "kind", "message"),
    [
        (401, "NotAuthenticated", PermissionError, "the clock"),
        (403, "NotAllowed", PermissionError, "OBJECT_CREATE"),
        (404, "BucketNotFound", FileNotFoundError, "bucket does not exist"),
        (400, "InvalidParameter", OSError, "InvalidParameter"),
    ],
)
def test_a_refusal_says_what_to_do(
    status: int, code: str, kind: type[OSError], message: str, oci: OCIServer, key: str
) -> None:
    oci.denied = (status, code)
    for work in (
        lambda: store_at(oci.url, key).write(PATH, ["x"]),
        lambda: list(store_at(oci.url, key).read(PATH)),
        lambda: list(store_at(oci.url, key).list_from(PATH)),
    ):
        with pytest.raises(kind, match=message) as caught:
            work()
        assert "PRIVATE KEY" not in str(caught.value)


def test_the_scheme_and_the_java_name_lead_to_it_and_it_can_be_pickled(
    oci: OCIServer, key: str
) -> None:
    java = {"spark.delta.logStore.oci.impl": "io.delta.storage.OracleCloudLogStore"}
    assert type(log_store_for("oci://b@n/t", java)) is OracleCloudLogStore
    store = store_at(oci.url, key)
    store.write(PATH, ["x"])
    assert list(pickle.loads(pickle.dumps(store)).read(PATH)) == ["x"]


def test_missing_and_foreign_settings_are_named(
    tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OCI_CONFIG_FILE", raising=False)
    good = identity(key)
    bad = tmp_path / "bad.pem"
    bad.write_text("top secret")
    for conf, message in (
        ({}, "no credentials for Oracle"),
        ({"fs.oci.client.auth.userId": "u"}, r"missing: .*auth\.tenantId"),
        ({**good, "fs.oci.client.auth.pemfilepath": "/none.pem"}, "is not a file on this host"),
        (
            {**good, "fs.oci.client.auth.pemfilepath": str(bad)},
            "could not be created",
        ),
        ({"fs.oci.client.custom.authenticator": "com.x.Y"}, "Java class"),
    ):
        host = {"fs.oci.client.hostname": "https://objectstorage.eu-frankfurt-1.oraclecloud.com"}
        with pytest.raises(LogStoreConfError, match=message) as caught:
            list(OracleCloudLogStore({**host, **conf}).read(PATH))
        assert "top secret" not in str(caught.value)


@pytest.mark.parametrize("path", ["oci://bucket/t", "oci://@ns/t", "s3://bucket/t", "/t"])
def test_a_path_without_a_namespace_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="not of the form oci://bucket@namespace/key"):
        OracleCloudLogStore().filesystem_path(path)
