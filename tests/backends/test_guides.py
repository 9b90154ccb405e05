"""The pages about a storage run as pasted, in order, on its server, and show what they print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.pages import STORAGES, Page

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.azurite import AzureEndpoint
    from support.servers.fake_gcs import GCSEndpoint
    from support.servers.hdfs import HdfsCluster
    from support.servers.minio import S3Endpoint


def _page(
    storage: str, stand_ins: dict[str, str], folder: Path, request: pytest.FixtureRequest
) -> None:
    page = Page(next(name for name, server in STORAGES.items() if server == storage))
    text = page.showing(page.outputs(folder, stand_ins=stand_ins))
    if request.config.getoption("--write-pages"):
        page.write(text)
    else:
        assert page.text == text


def test_s3(
    minio: S3Endpoint, s3_bucket: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    stand_ins = {
        "http://minio:9000": minio.url,
        '"writer"': f'"{minio.access_key}"',
        '"its-secret"': f'"{minio.secret_key}"',
        "s3a://lake": f"s3a://{s3_bucket}",
    }
    _page("minio", stand_ins, tmp_path, request)


def test_gcs(
    fake_gcs: GCSEndpoint, gcs_bucket: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not fake_gcs.anonymous:
        pytest.skip("the page is about an emulator")
    stand_ins = {"http://127.0.0.1:4443": fake_gcs.url, "gs://lake": f"gs://{gcs_bucket}"}
    _page("fake_gcs", stand_ins, tmp_path, request)


def test_azure(azurite: AzureEndpoint, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    container = "lakelog-pages"
    service: Any = azurite.client()
    service.create_container(container)
    stand_ins = {
        "http://127.0.0.1:10000/devstoreaccount1": azurite.url,
        '"the emulator\'s well-known key"': f'"{azurite.key}"',
        "az://lake": f"az://{container}",
    }
    try:
        _page("azurite", stand_ins, tmp_path, request)
    finally:
        service.delete_container(container)
        service.close()


def test_hdfs(hdfs: HdfsCluster, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    stand_ins = {"hdfs://namenode:8020": hdfs.uri, "namenode:9870": hdfs.http or ""}
    _page("hdfs", stand_ins, tmp_path, request)
