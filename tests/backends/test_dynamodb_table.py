"""A whole table behind the lock table: what a commit costs, and processes that append at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING

import deltalake
import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.actions import AddFile
from lakelog.logstores import S3DynamoDBLogStore
from support import racing_writers
from support.aws_requests import watching
from support.dynamodb_tables import LockedTable, commit_name
from support.lock_table import CrashError

if TYPE_CHECKING:
    from support.servers.dynamodb import DynamoDBEndpoint
    from support.servers.minio import S3Endpoint

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
LOCK_TABLE = f"table-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def table(minio: S3Endpoint, dynamodb: DynamoDBEndpoint, s3_bucket: str) -> LockedTable:
    table = LockedTable(minio, dynamodb, s3_bucket, LOCK_TABLE)
    made = {**table.conf(), "spark.lakelog.s3dynamodb.createTable": "true"}
    write_arrow(
        table.uri, ROWS, conf=made, properties={"delta.checkpointInterval": "10"}, mode="append"
    )
    return table


def append(log: DeltaLog, name: str) -> int:
    file = AddFile(path=name, partition_values={}, size=1, modification_time=1, data_change=True)
    return log.start_transaction().commit([file], Operation.write("Append"))


def store_of(log: DeltaLog) -> S3DynamoDBLogStore:
    assert isinstance(log.store, S3DynamoDBLogStore)
    return log.store


def test_an_uncontended_commit_of_a_table_costs_two_looks_and_the_seven_of_the_protocol(
    table: LockedTable,
) -> None:
    log = DeltaLog.for_table(table.uri, table.conf())
    log.update()
    append(log, "first")
    with watching(*table.sdks(store_of(log))) as requests:
        append(log, "second")
    # The probe for a newer version reads the next file, and where it misses asks for its row;
    # whether the known version is still the same is looked at meanwhile, and before the commit.
    first = [each for each in requests[:4] if each != "s3 HeadObject"]
    assert first[:3] == ["s3 GetObject", "dynamodb GetItem", "s3 GetObject"]
    assert len(requests) == 10
    assert "s3 ListObjectsV2" not in requests


def test_a_commit_whose_writer_died_is_in_the_next_snapshot_and_before_the_next_commit(
    table: LockedTable,
) -> None:
    log = DeltaLog.for_table(table.uri, table.conf())
    log.update()
    reader = DeltaLog.for_table(table.uri, table.conf())
    reader.update()

    def die(at: int) -> None:
        if table.item(1) is not None:  # decided, and its file not made
            raise CrashError

    with pytest.raises(CrashError), watching(*table.sdks(store_of(log)), before=die):
        append(log, "decided")
    assert table.text(commit_name(1)) is None
    assert "decided" in {file.path for file in reader.update().files()}
    assert append(reader, "next") == 2


def test_processes_that_append_at_once_lose_and_double_nothing(table: LockedTable) -> None:
    writers, each = 5, 6
    answer = subprocess.run(
        [sys.executable, racing_writers.__file__, table.uri, str(writers), str(each)],
        env={**os.environ, "RACING_CONF": json.dumps(table.conf())},
        stdout=subprocess.PIPE,
        check=True,
        timeout=200,
    )
    results = json.loads(answer.stdout)
    assert not [result["error"] for result in results if "error" in result]
    pairs = [pair for result in results for pair in result["done"]]
    total = writers * each
    assert sorted(version for _, version in pairs) == list(range(1, total + 1))
    items = [table.item(version) for version in range(total + 1)]
    assert all(item is not None and item["complete"] == {"S": "true"} for item in items)
    theirs = deltalake.DeltaTable(
        f"s3://{table.bucket}/{table.name}",
        storage_options={
            "AWS_ENDPOINT_URL": table.s3.url,
            "AWS_REGION": table.s3.region,
            "AWS_ACCESS_KEY_ID": table.s3.access_key,
            "AWS_SECRET_ACCESS_KEY": table.s3.secret_key,
            "AWS_ALLOW_HTTP": "true",
        },
    )
    assert theirs.version() == total
    assert len(theirs.file_uris()) == total + 1
