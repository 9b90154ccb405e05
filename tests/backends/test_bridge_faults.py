"""The way between the service and a storage fails; commits of a JVM are settled all the same."""

from __future__ import annotations

import random
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import AzureConditionalLogStore, LogStore, S3ConditionalLogStore
from lakelog.logstores.conformance.http.writes import HttpWriteChecks
from lakelog.logstores.conformance.http_dialects import AZURE
from lakelog.logstores.service import LogStoreService
from support.bad_networks import Impatient
from support.bridge_client import BEHIND, ENDPOINT, ServedAzureStore, ServedS3Store, ServedStore
from support.fault_proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from support.servers.azurite import AzureEndpoint
    from support.servers.bridge_jvm import BridgeJvm
    from support.servers.minio import S3Endpoint

PATIENT: Mapping[str, str] = {
    "spark.lakelog.store.endpointProbe": "never",
    "spark.lakelog.store.request.timeout": "1",
    "spark.lakelog.store.retry.timeBudget": "60",
}
HARM = ("drop_reply", "cut_reply", "tell:503", "refuse:503", "reset", "drop_request", "twice")
WRITERS, COMMITS = 4, 8


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogStoreService]:
    with LogStoreService(endpoint_file=tmp_path_factory.mktemp("service") / "bridge") as service:
        yield service


@pytest.fixture
def way(bridge_jvm: BridgeJvm, service: LogStoreService) -> dict[str, str]:
    """To the JVM, and from there to the service."""
    return {
        ENDPOINT: str(bridge_jvm.endpoint_file),
        BEHIND: str(service.endpoint_file),
        "lakelog.bridge.settle.seconds": "2",
    }


@pytest.fixture(scope="module")
def container(azurite: AzureEndpoint) -> Iterator[str]:
    name = f"bridge-{uuid.uuid4().hex[:12]}"
    with azurite.client() as client:
        client.create_container(name)
        yield name
        client.delete_container(name)


class TestBridgeToS3OnABadNetwork(Impatient, HttpWriteChecks):
    @pytest.fixture
    def endpoint(self, minio: S3Endpoint) -> str:
        return minio.url

    @pytest.fixture
    def behind(
        self, minio: S3Endpoint, way: dict[str, str], impatient: Mapping[str, str]
    ) -> Callable[[str], LogStore]:
        conf = {**minio.conf, **impatient, **way}
        return lambda url: ServedS3Store({**conf, "spark.hadoop.fs.s3a.endpoint": url})

    @pytest.fixture
    def root(self, s3_bucket: str) -> str:
        return f"s3a://{s3_bucket}/{uuid.uuid4().hex}/_delta_log"


@pytest.mark.nightly  # what the bridge adds is the same on each storage
class TestBridgeToAzureOnABadNetwork(Impatient, HttpWriteChecks):
    dialect = AZURE

    @pytest.fixture
    def endpoint(self, azurite: AzureEndpoint) -> str:
        return azurite.url

    @pytest.fixture
    def behind(
        self, azurite: AzureEndpoint, way: dict[str, str], impatient: Mapping[str, str]
    ) -> Callable[[str], LogStore]:
        return lambda url: ServedAzureStore({**azurite.conf_at(url), **impatient, **way})

    @pytest.fixture
    def root(self, container: str) -> str:
        return f"az://{container}/{uuid.uuid4().hex}/_delta_log"


def _append_all(store: ServedStore, log: str, who: int) -> list[int]:
    """The versions that one writer was told to have made."""
    made: list[int] = []
    version = 0
    while len(made) < COMMITS:
        try:
            store.write(f"{log}/{version:020d}.json", [f"{who} {len(made)}"])
        except FileExistsError:
            pass
        else:
            made.append(version)
        version += 1
    return made


def _race(
    proxy: FaultProxy, create: bytes, make: Callable[[], ServedStore], direct: LogStore, log: str
) -> None:
    """Writers of one log, while every third create of a file goes wrong in some way."""
    chance = random.Random()
    for _ in range(WRITERS * COMMITS // 3):
        proxy.arm(chance.choice(HARM), create)
    with ThreadPoolExecutor(WRITERS) as pool:
        made = list(pool.map(lambda who: _append_all(make(), log, who), range(WRITERS)))
    assert len(proxy.fired) == WRITERS * COMMITS // 3
    assert sorted(v for each in made for v in each) == list(range(WRITERS * COMMITS))
    for who, versions in enumerate(made):
        found = [list(direct.read(f"{log}/{version:020d}.json")) for version in versions]
        assert found == [[f"{who} {n}"] for n in range(COMMITS)]
    names = [each.name for each in direct.list_from(f"{log}/")]
    assert names == [f"{version:020d}.json" for version in range(WRITERS * COMMITS)]


def test_of_commits_on_s3_beside_faults_none_is_lost_or_doubled(
    minio: S3Endpoint, s3_bucket: str, way: dict[str, str]
) -> None:
    log = f"s3a://{s3_bucket}/{uuid.uuid4().hex}/_delta_log"
    with FaultProxy(minio.url) as proxy:
        conf = {**minio.conf, **PATIENT, **way, "spark.hadoop.fs.s3a.endpoint": proxy.url}
        direct = S3ConditionalLogStore(minio.conf)
        _race(proxy, b"PUT /", lambda: ServedS3Store(conf), direct, log)


def test_of_commits_on_azure_beside_faults_none_is_lost_or_doubled(
    azurite: AzureEndpoint, container: str, way: dict[str, str]
) -> None:
    log = f"az://{container}/{uuid.uuid4().hex}/_delta_log"
    with FaultProxy(azurite.url) as proxy:
        conf = {**azurite.conf_at(proxy.url), **PATIENT, **way}
        direct = AzureConditionalLogStore(azurite.conf)
        _race(proxy, b"PUT /", lambda: ServedAzureStore(conf), direct, log)
