"""Commits on an S3 bucket, against deltalake's and against one bare conditional PUT.

The bucket is that of a MinIO which the benchmark starts itself, on 127.0.0.1: what is measured is
each client's own work and the number of its requests. A cloud's round trips multiply the latter.
"""

from __future__ import annotations

import time
import uuid

import boto3
import deltalake
import pyarrow as pa
from botocore.config import Config
from commits import commit_ours, commit_theirs
from measure import Measurement
from races import measure_at

from lakelog.core import DeltaLog, write_arrow
from support.servers.minio import S3Endpoint, run_minio

BUCKET = "benchmarks"
SCHEMA = pa.schema([pa.field("a", pa.int64())])
BODY = 700
"""Bytes of the bare PUT: what a commit of one action has."""


def client_of(endpoint: S3Endpoint) -> object:
    return boto3.client(
        "s3",
        endpoint_url=endpoint.url,
        region_name=endpoint.region,
        aws_access_key_id=endpoint.access_key,
        aws_secret_access_key=endpoint.secret_key,
        config=Config(
            s3={"addressing_style": "path"},
            retries={"total_max_attempts": 1},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


def options_of(endpoint: S3Endpoint) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": endpoint.url,
        "AWS_REGION": endpoint.region,
        "AWS_ACCESS_KEY_ID": endpoint.access_key,
        "AWS_SECRET_ACCESS_KEY": endpoint.secret_key,
        "AWS_ALLOW_HTTP": "true",
        "AWS_CONDITIONAL_PUT": "etag",
    }


def _latency(endpoint: S3Endpoint, commits: int) -> list[Measurement]:
    """One commit of one action: lakelog, deltalake and the bare PUT in turns."""
    prefix = uuid.uuid4().hex
    properties = {"delta.checkpointInterval": "1000000"}
    ours_path, theirs_path = f"s3a://{BUCKET}/{prefix}/ours", f"s3://{BUCKET}/{prefix}/theirs"
    write_arrow(
        ours_path, SCHEMA.empty_table(), conf=endpoint.conf, properties=properties, mode="append"
    )
    options = options_of(endpoint)
    deltalake.write_deltalake(
        theirs_path, SCHEMA.empty_table(), configuration=properties, storage_options=options
    )
    log = DeltaLog.for_table(ours_path, endpoint.conf)
    log.update()
    table = deltalake.DeltaTable(theirs_path, storage_options=options)
    schema = table.schema()
    client = client_of(endpoint)
    ours, theirs, bare = [], [], []
    for i in range(commits + 20):
        one, other = commit_ours(log, i), commit_theirs(table, schema, i)
        start = time.perf_counter()
        client.put_object(
            Bucket=BUCKET, Key=f"{prefix}/bare/{i:020d}.json", Body=b"x" * BODY, IfNoneMatch="*"
        )
        put = time.perf_counter() - start
        if i >= 20:
            ours.append(one)
            theirs.append(other)
            bare.append(put)
    assert log.update().version == commits + 20
    return [
        Measurement(
            "commit of one action, MinIO",
            f"deltalake {deltalake.__version__}",
            ours,
            theirs,
            0.7,
        ),
        Measurement("the same", "one conditional PUT by boto3", ours, bare, 1.5),
    ]


def measure(commits: int = 100, processes: int = 8, each: int = 50) -> list[Measurement]:
    """Latency of one writer, and the rate of many."""
    with run_minio() as endpoint:
        client_of(endpoint).create_bucket(Bucket=BUCKET)
        found = _latency(endpoint, commits)
        root = uuid.uuid4().hex
        return found + measure_at(
            f"s3a://{BUCKET}/{root}",
            endpoint.conf,
            f"s3://{BUCKET}/{root}",
            options_of(endpoint),
            processes,
            each,
            3,
            target=2.0,
            place=", MinIO",
        )
