"""How many requests each operation on S3 makes: they are what is waited for, and paid for."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.core import write_arrow
from lakelog.core.actions.operation import Operation
from lakelog.core.delta_log import DeltaLog
from lakelog.logstores import S3ConditionalLogStore
from support.fault_proxy import FaultProxy
from support.kit_sizes import short_pages
from support.manual_clock import ManualClock
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.minio import S3Endpoint

LINES = ['{"commitInfo":{}}', "grüße"]


@pytest.fixture
def proxy(minio: S3Endpoint) -> Iterator[FaultProxy]:
    with FaultProxy(minio.url) as between:
        yield between


@pytest.fixture
def conf(minio: S3Endpoint, proxy: FaultProxy) -> dict[str, str]:
    return {
        **minio.conf,
        "spark.hadoop.fs.s3a.endpoint": proxy.url,
        "spark.lakelog.store.endpointProbe": "never",
    }


@pytest.fixture
def table(s3_bucket: str) -> str:
    return f"s3a://{s3_bucket}/{uuid.uuid4().hex}"


def commit(log: str, version: int = 0) -> str:
    return f"{log}/{version:020d}.json"


def methods(proxy: FaultProxy) -> list[str]:
    return [line.partition(" ")[0] for line in proxy.requests]


def test_each_operation_makes_as_few_requests_as_it_can(
    proxy: FaultProxy, conf: dict[str, str], table: str
) -> None:
    store = S3ConditionalLogStore(conf)
    path = commit(f"{table}/_delta_log")
    store.write(path, LINES)
    assert methods(proxy) == ["PUT"], "no look at the bucket or its region comes before it"
    store.read(path)
    assert methods(proxy) == ["PUT", "GET"]
    assert len(list(store.list_from(path))) == 1
    assert methods(proxy) == ["PUT", "GET", "GET"]
    store.write(path, LINES, overwrite=True)
    assert methods(proxy) == ["PUT", "GET", "GET", "PUT"]
    with pytest.raises(FileExistsError):
        store.write(path, LINES)
    assert methods(proxy)[4:] == ["PUT", "HEAD"]


def test_a_commit_is_one_put_one_probe_for_a_newer_version_and_one_look(
    proxy: FaultProxy, conf: dict[str, str], table: str
) -> None:
    log = new_table(table, conf=conf)
    log.start_transaction().commit([add_file("a")], Operation("WRITE"))
    before = len(proxy.requests)
    txn = log.start_transaction()
    txn.commit([add_file("b")], Operation("WRITE"))
    made = [line.split(" ")[:2] for line in proxy.requests[before:]]
    # A look at what was read comes last before the write.
    assert [method for method, _ in made] == ["GET", "GET", "PUT"]
    looked = [target.rpartition("/")[2] for _, target in made]
    assert looked == [commit("_delta_log", each).rpartition("/")[2] for each in (2, 1, 2)]
    assert DeltaLog.for_table(table, conf).update().version == 2


def test_a_warm_update_is_one_round_trip_and_what_was_committed_here_none(
    proxy: FaultProxy, conf: dict[str, str], table: str
) -> None:
    new_table(table, conf=conf)
    clock = ManualClock()
    log = DeltaLog.for_table(table, conf, clock)
    log.start_transaction().commit([add_file("a")], Operation("WRITE"))

    def asked() -> list[int]:
        """The versions that were looked at since the last time."""
        made = [line.split(" ")[:2] for line in proxy.requests[before:]]
        assert {method for method, _ in made} <= {"GET"}
        return sorted(int(target.rpartition("/")[2].partition(".")[0]) for _, target in made)

    before = len(proxy.requests)
    assert log.snapshot.version == 1
    assert log.snapshot.num_files == 1
    assert asked() == []
    assert log.update().version == 1
    assert asked() == [2]

    clock.advance(60)
    before = len(proxy.requests)
    log.update()
    # Both at once: unit tests of `update` say so.
    assert asked() == [1, 2]

    other = DeltaLog.for_table(table, conf, clock)
    other.start_transaction().commit([add_file("b")], Operation("WRITE"))
    before = len(proxy.requests)
    assert log.update().version == 2
    # What was read is the same table's only if its known version is there afterwards.
    assert asked() == [1, 2, 3]


def test_an_append_of_one_file_is_two_puts_a_probe_and_two_looks(
    proxy: FaultProxy, conf: dict[str, str], table: str
) -> None:
    log = DeltaLog.for_table(table, conf)
    write_arrow(log, {"a": [1, 2]})
    before = len(proxy.requests)
    write_arrow(log, {"a": [3]}, mode="append")
    made = [line.split(" ")[:2] for line in proxy.requests[before:]]
    shown = [f"{method} {target.rpartition('.')[2]}" for method, target in made]
    assert shown[:2] + shown[4:] == ["GET json", "PUT parquet", "PUT json"]
    # Side by side: whether the table is still the one that was read, and the file where it should.
    assert sorted(shown[2:4]) == ["GET json", "HEAD parquet"]
    assert log.update().num_files == 2


FRESH = """
import json, sys
from lakelog.core import DeltaLog

log = DeltaLog.for_table(sys.argv[1], json.loads(sys.argv[2]))
assert log.snapshot.num_files == 11
print(*sys.modules)
"""


def test_a_fresh_process_opens_a_table_with_few_modules(minio: S3Endpoint, table: str) -> None:
    """They are most of what it does: the rest is three round trips."""
    log = DeltaLog.for_table(table, minio.conf)
    for number in range(11):
        write_arrow(log, {"id": [number]}, mode="append")
    command = [sys.executable, "-c", FRESH, table, json.dumps(dict(minio.conf))]
    loaded = set(subprocess.check_output(command, text=True).split())
    heavy = ["boto3.resources", "pandas", "pyarrow.compute", "pyarrow.dataset", "sqlglot"]
    # A small checkpoint comes in one GET, so that nothing is opened by ranges.
    heavy.append("lakelog.logstores.s3.filesystem")
    assert not loaded & set(heavy)
    assert len(loaded) <= 640, len(loaded)


def test_a_listing_of_many_is_one_request_for_each_page_and_starts_late(
    proxy: FaultProxy,
    conf: dict[str, str],
    minio: S3Endpoint,
    table: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short_pages(monkeypatch, 10)
    log = f"{table}/_delta_log"
    bucket, _, prefix = log.removeprefix("s3a://").partition("/")
    client = minio.client()
    for version in range(11):
        client.put_object(Bucket=bucket, Key=f"{prefix}/{version:020d}.json", Body=b"")
    store = S3ConditionalLogStore(conf)
    assert len(list(store.list_from(f"{log}/"))) == 11
    assert methods(proxy) == ["GET", "GET"]
    assert [status.name[:20] for status in store.list_from(commit(log, 9))] == [
        f"{version:020d}" for version in (9, 10)
    ]
    assert len(proxy.requests) == 3
    assert "start-after=" in proxy.requests[2]
