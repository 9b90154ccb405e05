"""A store keeps the contract when every call goes by way of a JVM: Java class, service, store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores.conformance import LogStoreConformance
from lakelog.logstores.service import LogStoreService
from support.bridge_client import BEHIND, ENDPOINT, ServedStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakelog.logstores import LogStore
    from support.servers.bridge_jvm import BridgeJvm


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogStoreService]:
    with LogStoreService(endpoint_file=tmp_path_factory.mktemp("service") / "bridge") as service:
        yield service


class TestBridge(LogStoreConformance):
    race_rounds = 4
    large_megabytes = int(os.environ.get("LAKELOG_TEST_BRIDGE_MEGABYTES", "10"))
    many_files = 300
    model_examples = 5
    crash_rounds = 1

    @pytest.fixture
    def store(self, bridge_jvm: BridgeJvm, service: LogStoreService) -> LogStore:
        return ServedStore(
            {ENDPOINT: str(bridge_jvm.endpoint_file), BEHIND: str(service.endpoint_file)}
        )

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"{tmp_path}/table/_delta_log"
