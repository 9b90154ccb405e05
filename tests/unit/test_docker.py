"""docker/compose.yaml brings up what the tests would install, and nothing that floats."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.servers import azurite, dynamodb, fake_gcs, hdfs, minio, redis_server

REPOSITORY = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((REPOSITORY / "docker" / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
IMAGE = (REPOSITORY / "docker" / "lakelog.Dockerfile").read_text()
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
PAGE = (REPOSITORY / "docs" / "testing.md").read_text()


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_pinned_checked_and_on_loopback_only(name: str) -> None:
    service = SERVICES[name]
    tag = service["image"].rpartition(":")[2]
    assert re.search(r"\d+\.\d+|\d{8}", tag), f"{service['image']} floats"
    assert service["healthcheck"]["test"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


@pytest.mark.parametrize(
    ("name", "version"),
    [("minio", minio.VERSION), ("azurite", azurite.VERSION), ("fake-gcs", fake_gcs.VERSION)],
)
def test_what_is_built_is_what_the_tests_install(name: str, version: str) -> None:
    build = SERVICES[name]["build"]
    assert build["args"]["VERSION"] == version
    assert (REPOSITORY / "docker" / build["dockerfile"]).is_file()


def test_dynamodb_has_the_version_that_the_tests_install() -> None:
    assert SERVICES["dynamodb"]["image"].endswith(f":{dynamodb.VERSION}")


def test_minio_has_the_tests_credentials() -> None:
    environment = SERVICES["minio"]["environment"]
    assert environment["MINIO_ROOT_USER"] == minio.USER
    assert environment["MINIO_ROOT_PASSWORD"] == minio.PASSWORD


@pytest.mark.parametrize(
    ("variable", "port"),
    [
        (minio.ENDPOINT_VARIABLE, 9000),
        (azurite.ENDPOINT_VARIABLE, 10000),
        (fake_gcs.ENDPOINT_VARIABLE, 4443),
        (dynamodb.ENDPOINT_VARIABLE, 8000),
        (hdfs.URI_VARIABLE, 9820),
        (hdfs.HTTP_VARIABLE, 9870),
        (redis_server.ENDPOINT_VARIABLE, 6379),
    ],
)
def test_the_page_leads_each_fixture_to_its_service(variable: str, port: int) -> None:
    assert re.search(rf"export {variable}=\S*127\.0\.0\.1:{port}\b", PAGE), variable
    assert f":{port}" in (REPOSITORY / "docker" / "compose.yaml").read_text()


def test_the_image_of_the_command_has_every_storage_and_runs_as_no_one_special() -> None:
    (asked,) = re.findall(r"\[([\w,]+)\]\"", IMAGE)
    without = {"spark", "notebook", "all"}
    assert set(asked.split(",")) == PROJECT["optional-dependencies"].keys() - without
    assert re.search(r"^USER [1-9]\d*$", IMAGE, re.MULTILINE)
    assert 'ENTRYPOINT ["lakelog"]' in IMAGE
