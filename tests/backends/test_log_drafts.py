"""Log cleanup on real storage takes the drafts of HDFS and DynamoDB along."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.checkpoints.log_cleanup import clean_log
from lakelog.core.hooks.background import wait_for_all
from lakelog.core.log.file_names import commit_name
from lakelog.logstores.hdfs.publish import draft_name
from support.dynamodb_tables import LockedTable
from support.manual_clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.servers.dynamodb import DynamoDBEndpoint
    from support.servers.hdfs import HdfsCluster
    from support.servers.minio import S3Endpoint

ROWS = pa.table({"n": [1]})
IN_TWO_MONTHS = 60 * 86_400_000
LAST, BOUNDARY = 6, 5


def a_table_with_a_checkpoint(table: str, conf: Mapping[str, str]) -> None:
    for _ in range(LAST + 1):
        write_arrow(
            table, ROWS, conf=conf, properties={"delta.checkpointInterval": "100"}, mode="append"
        )
    DeltaLog.for_table(table, conf).checkpoint(BOUNDARY)
    assert wait_for_all()  # checksums, whose drafts are no leftovers


def clean(table: str, conf: Mapping[str, str]) -> None:
    clock = ManualClock(int(time.time() * 1000) + IN_TWO_MONTHS)
    log = DeltaLog.for_table(table, conf, clock)
    clean_log(log.update(), clock)
    assert [commit.version for commit in log.history()] == [LAST, BOUNDARY]


def names(table: str, conf: Mapping[str, str], start: str) -> list[str]:
    log = DeltaLog.for_table(table, conf)
    return [each.name for each in log.store.list_from(f"{table}/_delta_log/{start}")]


@pytest.mark.needs("hdfs")
def test_drafts_of_killed_writers_on_hdfs_go_with_their_versions(hdfs: HdfsCluster) -> None:
    table = f"{hdfs.uri}/lakelog-test/{uuid.uuid4()}/t"
    a_table_with_a_checkpoint(table, hdfs.conf)
    store = DeltaLog.for_table(table, hdfs.conf).store
    drafts = [
        draft_name(store.filesystem_path(f"{table}/_delta_log/{commit_name(version)}"))
        for version in (0, BOUNDARY - 1, BOUNDARY, LAST + 1)
    ]
    for draft in drafts:
        with store.filesystem.open_output_stream(draft) as stream:
            stream.write(b"half a com")
    clean(table, hdfs.conf)
    left = [name for name in names(table, hdfs.conf, ".") if name.endswith(".tmp")]
    assert sorted(left) == sorted(draft.rpartition("/")[2] for draft in drafts[2:])


@pytest.mark.needs("minio", "dynamodb")
def test_drafts_of_the_dynamodb_store_go_with_their_versions(
    minio: S3Endpoint, dynamodb: DynamoDBEndpoint, s3_bucket: str
) -> None:
    locked = LockedTable(minio, dynamodb, s3_bucket, f"table-{uuid.uuid4().hex[:8]}")
    conf = {**locked.conf(), "spark.lakelog.s3dynamodb.createTable": "true"}
    a_table_with_a_checkpoint(locked.uri, conf)
    before = [name[:25] for name in names(locked.uri, conf, ".tmp/")]
    assert before == [commit_name(version) for version in range(LAST + 1)]
    clean(locked.uri, conf)
    after = [name[:25] for name in names(locked.uri, conf, ".tmp/")]
    assert after == [commit_name(version) for version in range(BOUNDARY, LAST + 1)]
