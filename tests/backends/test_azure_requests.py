"""How many requests each operation on Azure makes: they are what is waited for, and paid for."""

from __future__ import annotations

import itertools
import uuid
from functools import partial
from typing import TYPE_CHECKING

import pytest

from lakelog.core import write_arrow
from lakelog.core.delta_log import DeltaLog
from lakelog.logstores import AzureConditionalLogStore
from lakelog.logstores.azure.client import AzureClient
from support.fault_proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.azurite import AzureEndpoint

PAGE = 4
"""Names in a page, instead of the service's 5,000."""


class SmallPages(AzureConditionalLogStore):
    """Asks for few names a request, as if the folder had many."""

    def _locate(self, path: str) -> tuple[AzureClient, str]:
        client, key = super()._locate(path)
        page = partial(AzureClient.page, client, limit=PAGE)
        client.page = lambda *asked: page(*asked[:3])  # type: ignore[method-assign]
        return client, key


@pytest.fixture
def proxy(azurite: AzureEndpoint) -> Iterator[FaultProxy]:
    with FaultProxy(azurite.url) as between:
        yield between


@pytest.fixture
def conf(azurite: AzureEndpoint, proxy: FaultProxy) -> dict[str, str]:
    return {**azurite.conf_at(proxy.url), "spark.lakelog.store.endpointProbe": "never"}


@pytest.fixture(scope="module")
def container(azurite: AzureEndpoint) -> Iterator[str]:
    name = f"requests-{uuid.uuid4().hex[:12]}"
    with azurite.client() as service:
        service.create_container(name)
        yield name
        service.delete_container(name)


@pytest.fixture
def table(container: str) -> str:
    return f"az://{container}/{uuid.uuid4().hex}"


def test_an_append_of_one_file_is_two_puts_a_probe_and_two_looks(
    proxy: FaultProxy, conf: dict[str, str], table: str
) -> None:
    log = DeltaLog.for_table(table, conf)
    write_arrow(log, {"a": [1, 2]})
    before = len(proxy.requests)
    write_arrow(log, {"a": [3]}, mode="append")
    made = [line.split(" ")[:2] for line in proxy.requests[before:]]
    shown = [f"{method} {target.partition('?')[0].rpartition('.')[2]}" for method, target in made]
    assert shown[:2] + shown[4:] == ["GET json", "PUT parquet", "PUT json"]
    assert sorted(shown[2:4]) == ["GET json", "HEAD parquet"]
    assert log.update().num_files == 2


def test_a_listing_that_ends_early_asks_for_the_pages_that_it_is_read_from(
    proxy: FaultProxy, conf: dict[str, str], table: str
) -> None:
    store = SmallPages(conf)
    names = [f"{version:020d}.json" for version in range(3 * PAGE)]
    for name in names:
        store.write(f"{table}/_delta_log/{name}", [])
    before = len(proxy.requests)
    found = store.list_from(f"{table}/_delta_log/")
    # The last name of a page waits for the next one: a folder's name may begin like it.
    first = PAGE - 1
    assert [status.name for status in itertools.islice(found, first)] == names[:first]
    assert len(proxy.requests) - before == 1
    assert next(found).name == names[first]
    assert len(proxy.requests) - before == 2
    assert [status.name for status in found] == names[PAGE:]
    assert len(proxy.requests) - before == 3


def test_files_and_folders_of_any_names_are_listed_in_order_over_pages(
    conf: dict[str, str], table: str
) -> None:
    store = SmallPages(conf)
    names = {"a", "a-b", "a+", "a!", "A", "_a", "0", "b-", "b", "b0", "{"}
    for at, name in enumerate(sorted(names)):
        inside = "/inside" if at % 2 else ""
        store.write(f"{table}/{name}{inside}", [])
    assert [status.name for status in store.list_from(f"{table}/")] == sorted(names)
    assert [status.name for status in store.list_from(f"{table}/a+")] == sorted(
        name for name in names if name >= "a+"
    )
