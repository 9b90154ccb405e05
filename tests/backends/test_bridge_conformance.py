"""A store keeps the contract when every call goes by way of a JVM: Java class, service, store."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores.conformance.checks.basics import BasicChecks
from lakelog.logstores.conformance.checks.listings import ListingChecks
from lakelog.logstores.conformance.checks.races import RaceChecks
from lakelog.logstores.service import LogStoreService
from support.bridge_client import BEHIND, ENDPOINT, ServedAzureStore, ServedS3Store, ServedStore
from support.kit_sizes import Sized, SizedConformance

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakelog.logstores import LogStore
    from support.servers.azurite import AzureEndpoint
    from support.servers.bridge_jvm import BridgeJvm
    from support.servers.minio import S3Endpoint


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogStoreService]:
    with LogStoreService(endpoint_file=tmp_path_factory.mktemp("service") / "bridge") as service:
        yield service


@pytest.fixture
def way(bridge_jvm: BridgeJvm, service: LogStoreService) -> dict[str, str]:
    """To the JVM, and from there to the service."""
    return {ENDPOINT: str(bridge_jvm.endpoint_file), BEHIND: str(service.endpoint_file)}


@pytest.fixture(scope="module")
def container(azurite: AzureEndpoint) -> Iterator[str]:
    name = f"bridge-{uuid.uuid4().hex[:12]}"
    with azurite.client() as client:
        client.create_container(name)
        yield name
        client.delete_container(name)


class TestBridge(SizedConformance, race_rounds=4, many_files=300, model_examples=5, crash_rounds=1):
    large_megabytes = int(os.environ.get("LAKELOG_TEST_BRIDGE_MEGABYTES", "10"))

    @pytest.fixture
    def store(self, way: dict[str, str]) -> LogStore:
        return ServedStore(way)

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"{tmp_path}/table/_delta_log"


class OnAServer(Sized, BasicChecks, ListingChecks, RaceChecks):
    """What the bridge adds is the same on each storage, and staged files go past it."""


class TestBridgeOnS3(OnAServer, race_rounds=3, large_megabytes=6):
    @pytest.fixture
    def store(self, way: dict[str, str], minio: S3Endpoint) -> LogStore:
        return ServedS3Store({**minio.conf, **way})

    @pytest.fixture
    def root(self, s3_bucket: str) -> str:
        return f"s3a://{s3_bucket}/{uuid.uuid4().hex}/a folder with ü and %20/_delta_log"


class TestBridgeOnAzure(OnAServer, race_rounds=3, large_megabytes=6):
    @pytest.fixture
    def store(self, way: dict[str, str], azurite: AzureEndpoint) -> LogStore:
        return ServedAzureStore({**azurite.conf, **way})

    @pytest.fixture
    def root(self, azurite: AzureEndpoint, container: str) -> str:
        host = f"{container}@{azurite.account}.dfs.core.windows.net"
        return f"abfss://{host}/{uuid.uuid4().hex}/a table/_delta_log"
