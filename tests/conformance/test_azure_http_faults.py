"""Azure's stores keep their promises when the transport fails."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, ClassVar

import pytest

from lakelog.logstores import (
    AzureConditionalLogStore,
    AzureLeaseLogStore,
    LogStore,
)
from lakelog.logstores.conformance.http_dialects import AZURE
from support.bad_networks import OnABadNetwork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from support.servers.azurite import AzureEndpoint


@pytest.fixture(scope="module")
def container(azurite: AzureEndpoint) -> Iterator[str]:
    name = f"lakelog-{uuid.uuid4().hex[:12]}"
    with azurite.client() as service:
        service.create_container(name)
        yield name
        service.delete_container(name)


class TestAzureConditionalLogStoreOnABadNetwork(OnABadNetwork):
    dialect = AZURE
    store: ClassVar[type[LogStore]] = AzureConditionalLogStore

    @pytest.fixture
    def endpoint(self, azurite: AzureEndpoint) -> str:
        return azurite.url

    @pytest.fixture
    def behind(
        self, azurite: AzureEndpoint, impatient: Mapping[str, str]
    ) -> Callable[[str], LogStore]:
        return lambda url: self.store({**azurite.conf_at(url), **impatient})

    @pytest.fixture
    def root(self, container: str) -> str:
        return f"az://{container}/faults"


class TestAzureLeaseLogStoreOnABadNetwork(TestAzureConditionalLogStoreOnABadNetwork):
    # Seventy commits, each under a lease, to test a listing that is the other store's.
    two_pages = False
    store = AzureLeaseLogStore
