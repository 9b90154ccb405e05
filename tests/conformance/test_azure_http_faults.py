"""Azure's stores keep their promises when the transport fails."""

from __future__ import annotations

import dataclasses
import uuid
from typing import TYPE_CHECKING, ClassVar

import pytest

from lakelog.logstores import (
    AzureConditionalLogStore,
    AzureLeaseLogStore,
    LogStore,
)
from lakelog.logstores.azure.client import AzureClient
from lakelog.logstores.conformance import HttpFaultConformance
from lakelog.logstores.conformance.http_dialects import AZURE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from support.servers.azurite import AzureEndpoint

IMPATIENT: Mapping[str, str] = {
    "spark.lakelog.store.endpointProbe": "never",
    # Azurite saves all that it has every few seconds, and answers nobody meanwhile.
    "spark.lakelog.store.request.timeout": "2",
    "spark.lakelog.store.retry.timeBudget": "5",
}


@pytest.fixture(scope="module")
def container(azurite: AzureEndpoint) -> Iterator[str]:
    name = f"lakelog-{uuid.uuid4().hex[:12]}"
    with azurite.client() as service:
        service.create_container(name)
        yield name
        service.delete_container(name)


class TestAzureConditionalLogStoreOnABadNetwork(HttpFaultConformance):
    # Pages of forty: five thousand blobs take Azurite a minute, and the listing goes the same way.
    dialect = dataclasses.replace(AZURE, page=40)
    store: ClassVar[type[LogStore]] = AzureConditionalLogStore

    @pytest.fixture(autouse=True)
    def _short_pages(self, monkeypatch: pytest.MonkeyPatch) -> None:
        listed, page = AzureClient._listed, self.dialect.page

        def short(
            client: AzureClient,
            prefix: str,
            after: str | None,
            limit: int | None,
            *more: str | None,
        ) -> object:
            return listed(client, prefix, after, limit or page, *more)

        monkeypatch.setattr(AzureClient, "_listed", short)

    @pytest.fixture
    def endpoint(self, azurite: AzureEndpoint) -> str:
        return azurite.url

    @pytest.fixture
    def behind(self, azurite: AzureEndpoint) -> Callable[[str], LogStore]:
        return lambda url: self.store({**azurite.conf_at(url), **IMPATIENT})

    @pytest.fixture
    def root(self, container: str) -> str:
        return f"az://{container}/faults"


class TestAzureLeaseLogStoreOnABadNetwork(TestAzureConditionalLogStoreOnABadNetwork):
    # Five thousand commits, each under a lease, to test a listing that is the other store's.
    two_pages = False
    store = AzureLeaseLogStore
