"""The log and the data files of a table go through the proxy that the environment names."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.core import DeltaLog, delete_rows, write_arrow
from support.forward_proxy import HOST, ForwardProxy

if TYPE_CHECKING:
    from support.servers.azurite import AzureEndpoint
    from support.servers.fake_gcs import GCSEndpoint
    from support.servers.minio import S3Endpoint

QUICK = {
    "spark.lakelog.store.endpointProbe": "never",
    "spark.lakelog.store.request.timeout": "5",
    "spark.lakelog.store.retry.timeBudget": "1",
}
ADDRESS = "192.0.2.1"
"""Of documentation: nobody has it. Azurite takes the first part of a name for the account."""
NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def at_the_name(url: str) -> str:
    return f"http://{HOST}:{url.rpartition(':')[2]}"


def used(table: str, conf: dict[str, str], proxy: ForwardProxy, patch: pytest.MonkeyPatch) -> None:
    """All that a table does goes through the proxy, and nothing passes by it."""
    conf = {**conf, **QUICK}
    patch.setenv("HTTP_PROXY", proxy.url)
    properties = {"delta.enableDeletionVectors": "true"}
    write_arrow(table, {"id": [1, 2, 3]}, conf=conf, properties=properties)
    delete_rows(table, "id = 2", conf=conf)
    log = DeltaLog.for_table(table, conf)
    log.checkpoint()
    assert log.snapshot.to_arrow().column("id").to_pylist() == [1, 3]
    for kind in (".json", ".parquet", ".bin", "checkpoint"):
        assert any(kind in line for line in proxy.requests), kind
    seen = len(proxy.requests)
    patch.setenv("NO_PROXY", f"{HOST},{ADDRESS}")
    # Connections are kept for the settings that they were made with.
    conf["spark.lakelog.store.request.timeout"] = "2"
    with pytest.raises(OSError):  # each storage's own, of a host that is nowhere
        write_arrow(table, {"id": [4]}, mode="append", conf=conf)
    store = DeltaLog.for_table(table, conf).store
    with pytest.raises(OSError):
        store.filesystem.get_file_info(store.filesystem_path(table))
    assert len(proxy.requests) == seen


def test_s3(minio: S3Endpoint, s3_bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = {**minio.conf, "spark.hadoop.fs.s3a.endpoint": at_the_name(minio.url)}
    with ForwardProxy(minio.url) as proxy:
        used(f"s3a://{s3_bucket}/{uuid.uuid4().hex}", conf, proxy, monkeypatch)


def test_google(fake_gcs: GCSEndpoint, gcs_bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = {**fake_gcs.conf, "spark.hadoop.fs.gs.storage.root.url": at_the_name(fake_gcs.url)}
    with ForwardProxy(fake_gcs.url) as proxy:
        used(f"gs://{gcs_bucket}/{uuid.uuid4().hex}", conf, proxy, monkeypatch)


def test_azure(azurite: AzureEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"proxies-{uuid.uuid4().hex[:12]}"
    with azurite.client() as service, ForwardProxy(azurite.url) as proxy:
        service.create_container(name)
        try:
            conf = azurite.conf_at(azurite.url.replace("127.0.0.1", ADDRESS))
            used(f"az://{name}/t", conf, proxy, monkeypatch)
        finally:
            for each in NAMES:
                monkeypatch.delenv(each, raising=False)
            service.delete_container(name)
