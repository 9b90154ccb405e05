"""The Azure stores keep the contract, on Azurite or on the account that the environment names."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import AzureConditionalLogStore, AzureLeaseLogStore, LogStore, Scope
from support.kit_sizes import SizedConformance, short_pages

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


class TestAzureConditionalLogStore(SizedConformance, race_rounds=15, model_examples=10):
    @pytest.fixture(autouse=True)
    def _short_pages(self, monkeypatch: pytest.MonkeyPatch) -> None:
        short_pages(monkeypatch)  # Azure's own have five thousand entries

    @pytest.fixture
    def store(self, azurite: AzureEndpoint) -> LogStore:
        return AzureConditionalLogStore(azurite.conf)

    @pytest.fixture
    def root(self, azurite: AzureEndpoint, container: str) -> str:
        return f"abfss://{container}@{azurite.account}.dfs.core.windows.net/{uuid.uuid4().hex}"

    def test_it_claims_the_cluster_so_that_processes_are_raced(self, store: LogStore) -> None:
        assert store.capabilities.exclusive_create == Scope.CLUSTER


class TestAzureLeaseLogStore(
    SizedConformance, large_megabytes=20, many_files=60, race_rounds=10, model_examples=10
):
    @pytest.fixture
    def store(self, azurite: AzureEndpoint) -> LogStore:
        return AzureLeaseLogStore(azurite.conf)

    @pytest.fixture
    def root(self, container: str) -> str:
        return f"az://{container}/{uuid.uuid4().hex}/a folder with ü and %20"
