"""VACUUM of a table on S3: few requests, odd keys, and nothing that is needed."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import boto3
import pyarrow as pa

from lakelog.core import DeltaLog, delete_rows, vacuum, write_arrow
from lakelog.core.maintain.vacuum import retention
from support.aged_tables import UNCHECKED
from support.fault_proxy import FaultProxy

if TYPE_CHECKING:
    import pytest

    from support.servers.minio import S3Endpoint

ROWS = pa.table({"id": list(range(8)), "p": ["a b%", "é+&"] * 4})
ODD = [
    *("left over", "p=x/left+over 100%.parquet", "p=é/a&b=c;d.parquet", "deep/er/f", "'\"<>.p"),
    *("_change_data/old", "folder/"),
]


def test_leftovers_go_by_one_request_for_all(
    minio: S3Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=minio.url,
        region_name=minio.region,
        aws_access_key_id=minio.access_key,
        aws_secret_access_key=minio.secret_key,
    )
    bucket = f"vacuum-{uuid.uuid4().hex[:12]}"
    client.create_bucket(Bucket=bucket)
    uri = f"s3a://{bucket}/lake/t"
    conf = {**minio.conf, **UNCHECKED, "spark.lakelog.store.endpointProbe": "never"}
    write_arrow(uri, ROWS, partition_by=["p"], conf=conf, mode="append")
    delete_rows(uri, "p = 'é+&'", conf=conf)
    for name in (*ODD, "_hidden/f", "_delta_log/old.json", "p=x/.hidden"):
        client.put_object(Bucket=bucket, Key=f"lake/t/{name}", Body=b"x")
    client.put_object(Bucket=bucket, Key="lake/t2/neighbour", Body=b"x")

    def keys() -> set[str]:
        found = client.list_objects_v2(Bucket=bucket)["Contents"]
        return {each["Key"].removeprefix("lake/t/") for each in found}

    def log_files(found: set[str]) -> set[str]:
        return {key for key in found if key.startswith("_delta_log/")}

    before = keys()
    # The service tells the time in whole seconds, and what is as old as this second stays.
    assert not vacuum(uri, 1, conf=conf).num_files
    monkeypatch.setattr(retention, "_storage_time", lambda _: time.time_ns() // 1_000_000)
    with FaultProxy(minio.url) as proxy:
        through = {**conf, "spark.hadoop.fs.s3a.endpoint": proxy.url}
        done = vacuum(DeltaLog.for_table(uri, through), 0)
        deletions = [line for line in proxy.requests if "delete" in line or "DELETE" in line]

    gone = before - keys()
    assert {key for key in gone if "part-" not in key} == set(ODD) - {"folder/"}
    assert done.num_files == len(gone) == len(ODD)
    assert len(deletions) == 1
    assert log_files(before) <= log_files(keys())
    assert "lake/t2/neighbour" in keys()
    assert DeltaLog.for_table(uri, conf).snapshot.to_arrow().num_rows == 4
    assert "VACUUM END" not in [
        entry.operation for entry in DeltaLog.for_table(uri, conf).history()
    ]
