"""A whole table on S3: what a commit asks of the service, and what lost replies do to it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING

import boto3
import deltalake
import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.actions import AddFile
from lakelog.core.errors import CommitOutcomeUnknownError
from support import racing_writers
from support.fault_proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.minio import S3Endpoint

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
NO_PROBE = {"spark.lakelog.store.endpointProbe": "never"}
IMPATIENT = {
    "spark.lakelog.store.retry.timeBudget": "2",
    "spark.lakelog.store.request.timeout": "1",
    "spark.lakelog.commit.timeBudget": "3",
}


@pytest.fixture
def uri(minio: S3Endpoint) -> str:
    bucket = f"table-{uuid.uuid4().hex[:12]}"
    boto3.client(
        "s3",
        endpoint_url=minio.url,
        region_name=minio.region,
        aws_access_key_id=minio.access_key,
        aws_secret_access_key=minio.secret_key,
    ).create_bucket(Bucket=bucket)
    return f"s3a://{bucket}/lake/flights"


@pytest.fixture
def proxy(minio: S3Endpoint) -> Iterator[FaultProxy]:
    with FaultProxy(minio.url) as running:
        yield running


def conf_of(minio: S3Endpoint, proxy: FaultProxy | None = None, **more: str) -> dict[str, str]:
    conf = {**minio.conf, **NO_PROBE, **more}
    if proxy is not None:
        conf["spark.hadoop.fs.s3a.endpoint"] = proxy.url
    return conf


def add(name: str) -> AddFile:
    return AddFile(path=name, partition_values={}, size=1, modification_time=1, data_change=True)


def append(log: DeltaLog, name: str) -> int:
    return log.start_transaction().commit([add(name)], Operation.write("Append"))


def names(uri: str, minio: S3Endpoint) -> list[str]:
    return sorted(f.path for f in DeltaLog.for_table(uri, conf_of(minio)).update().files())


def methods(proxy: FaultProxy) -> list[str]:
    return [line.split(" ")[0] for line in proxy.requests]


def test_an_uncontended_commit_is_one_put_and_two_looks(
    uri: str, minio: S3Endpoint, proxy: FaultProxy
) -> None:
    conf = conf_of(minio, proxy)
    write_arrow(uri, ROWS, conf=conf, mode="append")
    log = DeltaLog.for_table(uri, conf)
    log.update()
    for number in range(3):
        proxy.requests.clear()
        version = append(log, f"f{number}")
        assert methods(proxy) == ["GET", "GET", "PUT"], proxy.requests
        names = [line.split("?")[0].split(" ")[1].rpartition("/")[2] for line in proxy.requests]
        # For a newer version, for the one that was read, and the commit.
        assert names == [f"{each:020d}.json" for each in (version, version - 1, version)]
    assert log.snapshot.version == 3
    assert methods(proxy) == ["GET", "GET", "PUT"], "the new snapshot costs no request"


def test_a_transaction_that_was_opened_before_costs_one_put_and_one_look(
    uri: str, minio: S3Endpoint, proxy: FaultProxy
) -> None:
    conf = conf_of(minio, proxy)
    write_arrow(uri, ROWS, conf=conf, mode="append")
    txn = DeltaLog.for_table(uri, conf).start_transaction()
    proxy.requests.clear()
    txn.commit([add("f")], Operation.write("Append"))
    assert methods(proxy) == ["GET", "PUT"]


@pytest.mark.parametrize("fault", ["drop_reply", "hang_reply", "cut_reply", "tell:500", "twice"])
def test_a_commit_whose_reply_was_lost_is_there_once(
    fault: str, uri: str, minio: S3Endpoint, proxy: FaultProxy
) -> None:
    conf = conf_of(minio, proxy, **{"spark.lakelog.store.request.timeout": "1"})
    write_arrow(uri, ROWS, conf=conf, mode="append")
    log = DeltaLog.for_table(uri, conf)
    log.update()
    proxy.arm(fault, b"PUT /" + uri.partition("://")[2].encode())
    assert append(log, "mine") == 1
    assert fault in proxy.fired
    assert append(log, "next") == 2
    fresh = DeltaLog.for_table(uri, conf_of(minio)).update()
    assert fresh.version == 2
    assert sorted(f.path for f in fresh.files() if f.size == 1) == ["mine", "next"]


def test_an_endpoint_that_goes_down_in_mid_commit_is_an_unknown_outcome_and_keeps_the_data(
    uri: str, minio: S3Endpoint, proxy: FaultProxy
) -> None:
    write_arrow(uri, ROWS, conf=conf_of(minio), mode="append")
    log = DeltaLog.for_table(uri, conf_of(minio, proxy, **IMPATIENT))
    txn = log.start_transaction()
    proxy.arm("drop_reply", b"PUT /")
    # All but the look at the version that was read, which comes before the commit.
    proxy.arm("reset", re.compile(rb" /(?!\S*/0{20}\.json)"), times=10_000)
    with pytest.raises(CommitOutcomeUnknownError) as caught:
        txn.commit([add("mine")], Operation.write("Append"))
    assert "00000000000000000001.json" in str(caught.value)
    assert minio.secret_key not in str(caught.value)
    fresh = DeltaLog.for_table(uri, conf_of(minio)).update()
    assert fresh.version == 1, "the request had landed, so the data must not have been deleted"


def test_an_endpoint_that_never_answers_commits_nothing_and_says_so(
    uri: str, minio: S3Endpoint, proxy: FaultProxy
) -> None:
    write_arrow(uri, ROWS, conf=conf_of(minio), mode="append")
    log = DeltaLog.for_table(uri, conf_of(minio, proxy, **IMPATIENT))
    txn = log.start_transaction()
    proxy.arm("refuse:503:SlowDown", b" /", times=10_000)
    with pytest.raises((OSError, CommitOutcomeUnknownError)) as caught:
        txn.commit([add("mine")], Operation.write("Append"))
    assert "503" in str(caught.value) or "SlowDown" in str(caught.value)
    assert DeltaLog.for_table(uri, conf_of(minio)).update().version == 0


def test_a_checkpoint_is_published_in_one_upload_and_read_by_others(
    uri: str, minio: S3Endpoint, proxy: FaultProxy
) -> None:
    conf = conf_of(minio, proxy)
    write_arrow(uri, ROWS, conf=conf, mode="append")
    log = DeltaLog.for_table(uri, conf)
    for number in range(3):
        append(log, f"f{number}")
    proxy.requests.clear()
    log.checkpoint()
    puts = [line for line in proxy.requests if line.startswith("PUT ")]
    assert len(puts) == 2, "the checkpoint and the hint"
    assert not [line for line in proxy.requests if "tmp" in line]
    hint = json.loads("\n".join(log.store.read(f"{uri}/_delta_log/_last_checkpoint")))
    assert hint["version"] == 3
    bucket, _, key = uri.partition("://")[2].partition("/")
    theirs = deltalake.DeltaTable(
        f"s3://{bucket}/{key}",
        storage_options={
            "AWS_ENDPOINT_URL": minio.url,
            "AWS_REGION": minio.region,
            "AWS_ACCESS_KEY_ID": minio.access_key,
            "AWS_SECRET_ACCESS_KEY": minio.secret_key,
            "AWS_ALLOW_HTTP": "true",
        },
    )
    assert theirs.version() == 3
    assert len(theirs.file_uris()) == 4


def test_a_checkpoint_that_can_not_be_uploaded_leaves_the_table_as_it_was(
    uri: str, minio: S3Endpoint, proxy: FaultProxy
) -> None:
    write_arrow(uri, ROWS, conf=conf_of(minio), mode="append")
    log = DeltaLog.for_table(uri, conf_of(minio, proxy, **IMPATIENT))
    log.update()
    proxy.arm("refuse:503:SlowDown", b".checkpoint.parquet", times=10_000)
    with pytest.raises(OSError, match=r"SlowDown|503"):
        log.checkpoint()
    listed = [s.name for s in log.store.list_from(f"{uri}/_delta_log/")]
    assert listed == ["00000000000000000000.json"]


def test_processes_that_append_at_once_lose_and_double_nothing(uri: str, minio: S3Endpoint) -> None:
    conf = conf_of(minio)
    write_arrow(uri, ROWS, conf=conf, properties={"delta.checkpointInterval": "10"}, mode="append")
    writers, each = 6, 10
    answer = subprocess.run(
        [sys.executable, racing_writers.__file__, uri, str(writers), str(each)],
        env={**os.environ, "RACING_CONF": json.dumps(conf)},
        stdout=subprocess.PIPE,
        check=True,
        timeout=200,
    )
    results = json.loads(answer.stdout)
    assert not [result["error"] for result in results if "error" in result]
    pairs = [pair for result in results for pair in result["done"]]
    assert sorted(version for _, version in pairs) == list(range(1, writers * each + 1))
    assert set(names(uri, minio)) >= {name for name, _ in pairs}
    assert len(names(uri, minio)) == writers * each + 1
