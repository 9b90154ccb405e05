"""The store for IBM COS keeps the contract, with Stocator's settings, on MinIO."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import boto3
import pytest

from lakelog.contrib.ibm_cos import IBMCOSLogStore
from lakelog.logstores.conformance import LogStoreConformance

if TYPE_CHECKING:
    from lakelog.logstores import LogStore
    from support.servers.minio import S3Endpoint


class TestIBMCOSLogStore(LogStoreConformance):
    many_files = 60
    large_megabytes = 6
    race_rounds = 5
    race_processes = 2
    crash_rounds = 1
    model_examples = 4

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
    def root(self, minio: S3Endpoint) -> str:
        bucket = f"lakelog-{uuid.uuid4().hex[:20]}"
        client = boto3.client(
            "s3",
            endpoint_url=minio.url,
            region_name=minio.region,
            aws_access_key_id=minio.access_key,
            aws_secret_access_key=minio.secret_key,
        )
        client.create_bucket(Bucket=bucket)
        client.close()
        return f"cos://{bucket}.lab/a table"
