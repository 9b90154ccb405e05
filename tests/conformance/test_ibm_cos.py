"""The store for IBM COS keeps the contract, with Stocator's settings, on MinIO."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.contrib.ibm_cos import IBMCOSLogStore
from support.kit_sizes import ContributedConformance, alike_in_other_processes

if TYPE_CHECKING:
    from lakelog.logstores import LogStore
    from support.servers.minio import S3Endpoint


@pytest.fixture(scope="module")
def bucket(minio: S3Endpoint) -> str:
    name = f"lakelog-{uuid.uuid4().hex[:20]}"
    client = minio.client()
    client.create_bucket(Bucket=name)
    client.close()
    return name


@alike_in_other_processes
class TestIBMCOSLogStore(ContributedConformance):
    @pytest.fixture
    def store(self, minio: S3Endpoint) -> LogStore:
        return IBMCOSLogStore(
            {
                "spark.hadoop.fs.cos.lab.endpoint": minio.url,
                "spark.hadoop.fs.cos.lab.access.key": minio.access_key,
                "spark.hadoop.fs.cos.lab.secret.key": minio.secret_key,
                "spark.hadoop.fs.cos.lab.region": minio.region,
                # Of another cloud: it must not get in the way.
                "spark.hadoop.fs.s3a.endpoint": "https://s3.example.com",
                "spark.hadoop.fs.s3a.secret.key": "of-another-cloud",
            }
        )

    @pytest.fixture
    def root(self, bucket: str) -> str:
        return f"cos://{bucket}.lab/{uuid.uuid4().hex}/a table"
