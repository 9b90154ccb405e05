"""The S3 stores keep the contract, on MinIO or on the endpoint that the environment names."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import LogStore, S3ConditionalLogStore, S3SingleDriverLogStore, Scope
from support.bad_networks import OnABadNetwork
from support.kit_sizes import IN_FULL, SizedConformance, alike_in_other_processes, short_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from support.servers.minio import S3Endpoint

SINGLE_WRITER = {"spark.lakelog.unsafe.singleWriter": "true"}


class TestS3ConditionalLogStore(SizedConformance, race_rounds=15, model_examples=10):
    @pytest.fixture(autouse=True)
    def _short_pages(self, monkeypatch: pytest.MonkeyPatch) -> None:
        if not IN_FULL:
            short_pages(monkeypatch)

    @pytest.fixture
    def store(self, minio: S3Endpoint) -> LogStore:
        return S3ConditionalLogStore(minio.conf)

    @pytest.fixture
    def root(self, s3_bucket: str) -> str:
        return f"s3a://{s3_bucket}/{uuid.uuid4().hex}/a folder with ü and %20"

    def test_it_claims_the_cluster_so_that_processes_are_raced(self, store: LogStore) -> None:
        assert store.capabilities.exclusive_create == Scope.CLUSTER


@alike_in_other_processes
class TestS3SingleDriverLogStore(
    SizedConformance, large_megabytes=5, many_files=60, race_rounds=5, model_examples=5
):
    @pytest.fixture
    def store(self, minio: S3Endpoint) -> LogStore:
        return S3SingleDriverLogStore({**minio.conf, **SINGLE_WRITER})

    @pytest.fixture
    def root(self, s3_bucket: str) -> str:
        return f"s3://{s3_bucket}/{uuid.uuid4().hex}"


class TestS3ConditionalLogStoreOnABadNetwork(OnABadNetwork):
    @pytest.fixture
    def endpoint(self, minio: S3Endpoint) -> str:
        return minio.url

    @pytest.fixture
    def behind(self, minio: S3Endpoint, impatient: Mapping[str, str]) -> Callable[[str], LogStore]:
        def store(url: str) -> LogStore:
            return S3ConditionalLogStore(
                {**minio.conf, **impatient, "spark.hadoop.fs.s3a.endpoint": url}
            )

        return store

    @pytest.fixture
    def root(self, s3_bucket: str) -> str:
        return f"s3://{s3_bucket}/{uuid.uuid4().hex}"
