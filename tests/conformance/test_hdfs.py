"""The HDFS store keeps the contract on a real NameNode and DataNode."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import HDFSLogStore, LogStore, Scope
from support.kit_sizes import SizedConformance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.hdfs import HdfsCluster


class TestHDFSLogStore(
    SizedConformance, large_megabytes=50, race_rounds=6, crash_rounds=2, model_examples=3
):
    """Drafts by WebHDFS. The NameNode lists 100 entries a page."""

    many_files = 110

    @pytest.fixture
    def store(self, hdfs: HdfsCluster) -> Iterator[LogStore]:
        if not hdfs.http:
            pytest.skip("the cluster's HTTP address is not known: set LAKELOG_TEST_HDFS_HTTP")
        store = HDFSLogStore(hdfs.conf)
        yield store
        # Otherwise it would be the other class once more.
        assert store._hdfs.at(hdfs.uri.removeprefix("hdfs://"))[1].is_usable

    @pytest.fixture
    def root(self, hdfs: HdfsCluster) -> str:
        return f"{hdfs.uri}/lakelog-test/{uuid.uuid4()}/a folder with ü and %20"

    def test_it_claims_the_cluster_so_that_processes_are_raced(self, store: LogStore) -> None:
        assert store.capabilities.exclusive_create == Scope.CLUSTER


class TestHDFSLogStoreWithoutWebHdfs(
    SizedConformance,
    many_files=24,
    large_megabytes=3,
    race_rounds=2,
    race_threads=4,
    crash_rounds=1,
    model_examples=1,
):
    """Drafts by hdfs-native, half a second each: fewer of them."""

    @pytest.fixture
    def store(self, hdfs: HdfsCluster) -> LogStore:
        return HDFSLogStore({"spark.hadoop.fs.defaultFS": hdfs.uri})

    @pytest.fixture
    def root(self) -> str:
        return f"hdfs:///lakelog-test/{uuid.uuid4()}"
