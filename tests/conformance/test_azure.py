"""The Azure stores keep the contract, on Azurite or on the account that the environment names."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import AzureConditionalLogStore, AzureLeaseLogStore, LogStore, Scope
from lakelog.logstores.conformance import LogStoreConformance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.azurite import AzureEndpoint


@pytest.fixture(scope="module")
def container(azurite: AzureEndpoint) -> Iterator[str]:
    name = f"lakelog-{uuid.uuid4().hex[:12]}"
    with azurite.client() as service:
        service.create_container(name)
        yield name
        service.delete_container(name)


class TestAzureConditionalLogStore(LogStoreConformance):
    large_megabytes = 50
    race_rounds = 15
    model_examples = 10

    @pytest.fixture
    def store(self, azurite: AzureEndpoint) -> LogStore:
        return AzureConditionalLogStore(azurite.conf)

    @pytest.fixture
    def root(self, azurite: AzureEndpoint, container: str) -> str:
        return f"abfss://{container}@{azurite.account}.dfs.core.windows.net/{uuid.uuid4().hex}"

    def test_it_claims_the_cluster_so_that_processes_are_raced(self, store: LogStore) -> None:
        assert store.capabilities.exclusive_create == Scope.CLUSTER


class TestAzureLeaseLogStore(LogStoreConformance):
    large_megabytes = 20
    many_files = 60
    race_rounds = 10
    model_examples = 10

    @pytest.fixture
    def store(self, azurite: AzureEndpoint) -> LogStore:
        return AzureLeaseLogStore(azurite.conf)

    @pytest.fixture
    def root(self, container: str) -> str:
        return f"az://{container}/{uuid.uuid4().hex}/a folder with ü and %20"
