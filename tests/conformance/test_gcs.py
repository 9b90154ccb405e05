"""The store for Google Cloud Storage keeps the contract, on fake-gcs-server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import GCSLogStore, LogStore, Scope
from lakelog.logstores.conformance.checks.basics import BasicChecks
from lakelog.logstores.conformance.checks.listings import ListingChecks
from lakelog.logstores.conformance.http_dialects import GCS
from support.bad_networks import OnABadNetwork
from support.kit_sizes import IN_FULL, SizedConformance, short_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from support.servers.fake_gcs import GCSEndpoint

NO_PACE = {"spark.lakelog.gcs.minWriteInterval": "0"}


class TestGCSLogStore(SizedConformance, race_rounds=15, model_examples=12, crash_rounds=2):
    @pytest.fixture(autouse=True)
    def _short_pages(self, monkeypatch: pytest.MonkeyPatch) -> None:
        if not IN_FULL:
            short_pages(monkeypatch)

    @pytest.fixture
    def store(self, fake_gcs: GCSEndpoint) -> LogStore:
        return GCSLogStore({**fake_gcs.conf, **NO_PACE})

    @pytest.fixture
    def root(self, gcs_bucket: str) -> str:
        return f"gs://{gcs_bucket}/a table with ü and %20"

    def test_it_claims_the_cluster_so_that_processes_are_raced(self, store: LogStore) -> None:
        assert store.capabilities.exclusive_create == Scope.CLUSTER


class TestGCSLogStoreWithItsOwnFileSystem(BasicChecks, ListingChecks):
    """A paying project makes data files go through the file system on google-cloud-storage."""

    many_files = 30
    large_megabytes = 9

    @pytest.fixture
    def store(self, fake_gcs: GCSEndpoint) -> LogStore:
        paying = {"spark.hadoop.fs.gs.requester.pays.mode": "ENABLED"}
        return GCSLogStore({**fake_gcs.conf, **NO_PACE, **paying})

    @pytest.fixture
    def root(self, gcs_bucket: str) -> str:
        return f"gs://{gcs_bucket}/t"

    def test_the_file_system_is_not_arrows(self, store: LogStore) -> None:
        assert store.filesystem.type_name == "py::gcs"


class TestGCSLogStoreOnABadNetwork(OnABadNetwork):
    dialect = GCS

    @pytest.fixture
    def endpoint(self, fake_gcs: GCSEndpoint) -> str:
        return fake_gcs.url

    @pytest.fixture
    def behind(
        self, fake_gcs: GCSEndpoint, impatient: Mapping[str, str]
    ) -> Callable[[str], LogStore]:
        def store(url: str) -> LogStore:
            more = {**NO_PACE, **impatient, "spark.hadoop.fs.gs.storage.root.url": url}
            return GCSLogStore({**fake_gcs.conf, **more})

        return store

    @pytest.fixture
    def root(self, gcs_bucket: str) -> str:
        return f"gs://{gcs_bucket}/t"
