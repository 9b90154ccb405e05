"""The pages about a storage run as pasted, in order, on its server, and show what they print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.pages import STORAGES, Page, on_minio

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.azurite import AzureEndpoint
    from support.servers.dynamodb import DynamoDBEndpoint
    from support.servers.fake_gcs import GCSEndpoint
    from support.servers.hdfs import HdfsCluster
    from support.servers.minio import S3Endpoint

PAGES = [Page(name) for name in STORAGES]


def _of(storage: str) -> list[Page]:
    return [page for page in PAGES if STORAGES[page.name] == storage and not page.needs_spark]


def _check(
    page: Page, stand_ins: dict[str, str], folder: Path, request: pytest.FixtureRequest
) -> None:
    text = page.showing(page.outputs(folder, stand_ins=stand_ins))
    if request.config.getoption("--write-pages"):
        page.write(text)
    else:
        assert page.text == text


@pytest.mark.one_day_in(3, 1)
@pytest.mark.parametrize("page", _of("minio"), ids=repr)
def test_s3(
    page: Page,
    minio: S3Endpoint,
    s3_bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    _check(page, on_minio(minio, s3_bucket), tmp_path, request)


@pytest.mark.parametrize("page", _of("dynamodb"), ids=repr)
def test_s3_with_dynamodb(
    page: Page,
    minio: S3Endpoint,
    dynamodb: DynamoDBEndpoint,
    s3_bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    stand_ins = on_minio(minio, s3_bucket) | {
        "http://dynamodb:8000": dynamodb.url,
        '"locker"': f'"{dynamodb.access_key}"',
        '"its-own-secret"': f'"{dynamodb.secret_key}"',
    }
    _check(page, stand_ins, tmp_path, request)


@pytest.mark.parametrize("page", _of("fake_gcs"), ids=repr)
def test_gcs(
    page: Page,
    fake_gcs: GCSEndpoint,
    gcs_bucket: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    if not fake_gcs.anonymous:
        pytest.skip("the page is about an emulator")
    stand_ins = {"http://127.0.0.1:4443": fake_gcs.url, "gs://lake": f"gs://{gcs_bucket}"}
    _check(page, stand_ins, tmp_path, request)


@pytest.mark.parametrize("page", _of("azurite"), ids=repr)
def test_azure(
    page: Page, azurite: AzureEndpoint, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    container = "lakelog-pages"
    service: Any = azurite.client()
    service.create_container(container)
    stand_ins = {
        "http://127.0.0.1:10000/devstoreaccount1": azurite.url,
        '"the emulator\'s well-known key"': f'"{azurite.key}"',
        "az://lake": f"az://{container}",
    }
    try:
        _check(page, stand_ins, tmp_path, request)
    finally:
        service.delete_container(container)
        service.close()


@pytest.mark.parametrize("page", _of("hdfs"), ids=repr)
def test_hdfs(
    page: Page, hdfs: HdfsCluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    stand_ins = {"hdfs://namenode:8020": hdfs.uri, "namenode:9870": hdfs.http or ""}
    _check(page, stand_ins, tmp_path, request)
