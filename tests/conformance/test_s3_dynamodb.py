"""The DynamoDB store keeps the contract, on MinIO and DynamoDB Local or what is named instead."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import LogStore, S3DynamoDBLogStore, Scope
from lakelog.logstores.conformance.checks.races import RaceChecks
from support.in_a_log import InALogStore
from support.kit_sizes import (
    IN_FULL,
    Sized,
    SizedConformance,
    alike_in_other_processes,
    short_pages,
)

if TYPE_CHECKING:
    from support.servers.dynamodb import DynamoDBEndpoint
    from support.servers.minio import S3Endpoint

CREATE = {"spark.lakelog.s3dynamodb.createTable": "true"}


@pytest.fixture(scope="module")
def conf(minio: S3Endpoint, dynamodb: DynamoDBEndpoint) -> dict[str, str]:
    return {**minio.conf, **dynamodb.conf(f"conformance-{uuid.uuid4().hex[:8]}"), **CREATE}


@alike_in_other_processes
class TestS3DynamoDBLogStore(
    SizedConformance,
    large_megabytes=5,
    many_files=1010,
    race_rounds=4,
    crash_rounds=1,
    model_examples=5,
):
    """Everything that is no commit of a log: files that the table has no rows for."""

    @pytest.fixture(autouse=True)
    def _short_pages(self, monkeypatch: pytest.MonkeyPatch) -> None:
        if not IN_FULL:
            short_pages(monkeypatch)

    @pytest.fixture
    def store(self, conf: dict[str, str]) -> LogStore:
        return S3DynamoDBLogStore(conf)

    @pytest.fixture
    def root(self, s3_bucket: str) -> str:
        return f"s3a://{s3_bucket}/{uuid.uuid4().hex}/a folder with ü and %20"

    def test_it_claims_the_cluster_so_that_processes_are_raced(self, store: LogStore) -> None:
        assert store.capabilities.exclusive_create == Scope.CLUSTER


class TestCommitsByWayOfTheTable(Sized, RaceChecks):
    """Commits: every name that the races write is that of a version in a `_delta_log`."""

    @pytest.fixture
    def store(self, conf: dict[str, str]) -> LogStore:
        return InALogStore(conf)

    @pytest.fixture
    def root(self, s3_bucket: str) -> str:
        return f"s3a://{s3_bucket}/{uuid.uuid4().hex}"
