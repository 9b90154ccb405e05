"""The commands about one table, on MinIO by conf alone: with all rights, and with few."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.events import CommitOutcome, CommitStats
from support.s3_sessions import restricted
from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from support.servers.minio import S3Endpoint

READ = ["s3:GetObject", "s3:ListBucket"]


@pytest.fixture
def uri(minio: S3Endpoint, s3_bucket: str) -> str:
    table = f"s3a://{s3_bucket}/cli-{uuid.uuid4().hex[:8]}"
    rows = pa.table({"id": [1, 2, 3], "day": ["a", "a", "b"]})
    write_arrow(table, rows, conf=minio.conf, partition_by=["day"], mode="append")
    write_arrow(table, rows.slice(2), conf=minio.conf, mode="append")
    return table


def test_history_describe_and_files_need_to_read_only(minio: S3Endpoint, uri: str) -> None:
    conf = restricted(minio, READ)
    history = lakelog_json("history", uri, conf=conf)
    assert [entry["version"] for entry in history["entries"]] == [1, 0]
    found = lakelog_json("describe", uri, conf=conf)
    assert (found["version"], found["files"], found["rows"]) == (1, 3, 4)
    assert found["store"]["class"] == "lakelog.logstores.S3ConditionalLogStore"
    assert found["store"]["commit_lock"] == "none"
    files = lakelog_json("files", uri, "--where", "day = 'b'", conf=conf)
    assert [each["partition_values"] for each in files["list"]] == [{"day": "b"}, {"day": "b"}]


def test_schema_sample_diff_and_properties_need_to_read_only(minio: S3Endpoint, uri: str) -> None:
    conf = restricted(minio, READ)
    assert lakelog_json("schema", uri, conf=conf)["partition_columns"] == ["day"]
    rows = lakelog_json("sample", uri, "--where", "day = 'b'", conf=conf)["rows"]
    assert rows == [{"id": 3, "day": "b"}] * 2
    assert lakelog_json("diff", uri, "0", conf=conf)["files"]["added"]["rows"] == 1
    assert lakelog_json("properties", uri, conf=conf)["properties"] == {}


def test_rows_and_properties_are_changed_with_the_right_to_write_alone(
    minio: S3Endpoint, uri: str
) -> None:
    delete = ("delete", uri, "--where", "id = 1")
    update = ("update", uri, "--set", "id=30", "--where", "id = 3")
    properties = ("properties", uri, "--set", "team=sea")
    readers = restricted(minio, READ)
    for command in (delete, update, properties):
        planned = lakelog_json(*command, "--dry-run", conf=readers)
        assert planned["version"] is None
        outcome = lakelog(*command, conf=readers)
        assert (outcome.code, outcome.out) == (2, "")
        assert "Traceback" not in outcome.err
    assert DeltaLog.for_table(uri, minio.conf).snapshot.version == 1
    found = [lakelog_json(*command, conf=minio.conf) for command in (delete, update, properties)]
    assert [each["version"] for each in found] == [2, 3, 4]
    rows = lakelog_json("sample", uri, conf=minio.conf)["rows"]
    assert sorted(row["id"] for row in rows) == [2, 30, 30]


def test_a_checkpoint_is_written_and_read_back(minio: S3Endpoint, uri: str) -> None:
    found = lakelog_json("checkpoint", uri, conf=minio.conf)
    assert (found["version"], found["live_files"], found["verified"]) == (1, 3, True)
    snapshot = DeltaLog.for_table(uri, minio.conf).snapshot
    assert snapshot.state.segment.commits == ()
    assert snapshot.num_files == 3


def test_a_checkpoint_without_the_right_to_write_is_one_error(minio: S3Endpoint, uri: str) -> None:
    outcome = lakelog("checkpoint", uri, conf=restricted(minio, READ))
    assert (outcome.code, outcome.out) == (2, "")
    assert uri.removeprefix("s3a") in outcome.err
    assert "Traceback" not in outcome.err
    assert DeltaLog.for_table(uri, minio.conf).snapshot.state.segment.checkpoint is None


@pytest.mark.parametrize(
    "command",
    ["history", "describe", "files", "checkpoint", "schema", "sample", "properties"],
)
def test_without_rights_each_says_so_and_tells_no_secret(
    minio: S3Endpoint, uri: str, command: str
) -> None:
    conf = restricted(minio, ["s3:PutObject"])
    outcome = lakelog(command, uri, conf=conf)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("lakelog: ")
    assert "Traceback" not in outcome.err
    assert conf["spark.hadoop.fs.s3a.secret.key"] not in outcome.err


@pytest.mark.parametrize(
    "command",
    ["history", "describe", "files", "checkpoint", "schema", "sample", "properties"],
)
def test_where_no_table_is_each_says_so(minio: S3Endpoint, s3_bucket: str, command: str) -> None:
    outcome = lakelog(command, f"s3a://{s3_bucket}/none", conf=minio.conf)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert "no Delta table at s3a://" in outcome.err


def test_events_are_read_from_the_bucket(minio: S3Endpoint, s3_bucket: str) -> None:
    client = minio.client()
    lost = CommitStats(
        table="/t",
        version=2,
        attempt=1,
        outcome=CommitOutcome.CONFLICT,
        operation="UPDATE",
        txn_id="u-1",
        read_version=1,
        winner_version=2,
        winners=1,
        conflict="DELTA_CONCURRENT_APPEND",
        job="cleaner",
    )
    body = f"hello\n{lost.to_json()}\n".encode()
    for key in ("events/a.jsonl", "events/deep/b.jsonl", "events/c.txt"):
        client.put_object(Bucket=s3_bucket, Key=key, Body=body)
    folder = f"s3a://{s3_bucket}/events"
    for place, files in ((folder, 2), (f"{folder}/*.jsonl", 1), (f"{folder}/c.txt", 1)):
        found = lakelog_json("conflicts", place, conf=minio.conf, code=1)
        assert len(found["files"]) == files
        assert [each["job"] for each in found["lost"]] == ["cleaner"]
        assert found["passed_over"]["duplicates"] == files - 1
    missing = lakelog("conflicts", f"s3a://{s3_bucket}/nothing", conf=minio.conf)
    assert (missing.code, missing.out, missing.err.count("\n")) == (2, "", 1)
