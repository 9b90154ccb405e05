"""The store for Google Cloud Storage keeps the contract, on fake-gcs-server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import GCSLogStore, LogStore, Scope
from lakelog.logstores.conformance import LogStoreConformance

if TYPE_CHECKING:
    from support.servers.fake_gcs import GCSEndpoint

NO_PACE = {"spark.lakelog.gcs.minWriteInterval": "0"}


class TestGCSLogStore(LogStoreConformance):
    race_rounds = 15
    model_examples = 12

    @pytest.fixture
    def store(self, fake_gcs: GCSEndpoint) -> LogStore:
        return GCSLogStore({**fake_gcs.conf, **NO_PACE})

    @pytest.fixture
    def root(self, gcs_bucket: str) -> str:
        return f"gs://{gcs_bucket}/a table with ü and %20"

    def test_it_claims_the_cluster_so_that_processes_are_raced(self, store: LogStore) -> None:
        assert store.capabilities.exclusive_create == Scope.CLUSTER


class TestGCSLogStoreWithItsOwnFileSystem(LogStoreConformance):
    """A paying project makes data files go through the file system on google-cloud-storage."""

    race_rounds = 3
    race_processes = 2
    many_files = 30
    large_megabytes = 9
    model_examples = 4

    @pytest.fixture
    def store(self, fake_gcs: GCSEndpoint) -> LogStore:
        paying = {"spark.hadoop.fs.gs.requester.pays.mode": "ENABLED"}
        return GCSLogStore({**fake_gcs.conf, **NO_PACE, **paying})

    @pytest.fixture
    def root(self, gcs_bucket: str) -> str:
        return f"gs://{gcs_bucket}/t"

    def test_the_file_system_is_not_arrows(self, store: LogStore) -> None:
        assert store.filesystem.type_name == "py::gcs"
