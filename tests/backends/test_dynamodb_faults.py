"""The lock table and the bucket behind a network that loses, delays, repeats and refuses."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, TypeAlias

import pytest

from lakelog.logstores import CommitOutcomeUnknownError
from lakelog.logstores.conformance.http.writes import FOREIGN_ANSWERS
from support.bad_networks import brief_last_look
from support.dynamodb_tables import LockedTable, commit_name
from support.fault_proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.logstores import S3DynamoDBLogStore
    from support.servers.dynamodb import DynamoDBEndpoint
    from support.servers.minio import S3Endpoint

LOCK_TABLE = f"faults-{uuid.uuid4().hex[:8]}"
QUICK = {
    "spark.lakelog.store.request.timeout": "0.5",
    "spark.lakelog.store.retry.timeBudget": "10",
}
HASTY = {
    "spark.lakelog.store.request.timeout": "20",
    "spark.lakelog.store.retry.timeBudget": "0.6",
}
"""Hardly anything is repeated, so what is asked once has its time."""
FAULTS = ["drop_reply", "hang_reply", "cut_reply", "tell:500", "tell:503", "reset", "twice"]
Faults: TypeAlias = "list[tuple[str, Callable[[int], bytes]]]"
"""Each with the request of a version that it meets."""
PUT_ITEM = b"DynamoDB_20120810.PutItem"
QUERY = b"DynamoDB_20120810.Query"


@pytest.fixture
def table(minio: S3Endpoint, dynamodb: DynamoDBEndpoint, s3_bucket: str) -> LockedTable:
    table = LockedTable(minio, dynamodb, s3_bucket, LOCK_TABLE)
    table.store({"spark.lakelog.s3dynamodb.createTable": "true"}).write(table.path(0), ["zero"])
    return table


@pytest.fixture
def rows(dynamodb: DynamoDBEndpoint) -> Iterator[FaultProxy]:
    with FaultProxy(dynamodb.url) as proxy:
        yield proxy


@pytest.fixture
def objects(minio: S3Endpoint) -> Iterator[FaultProxy]:
    with FaultProxy(minio.url) as proxy:
        yield proxy


def behind(
    table: LockedTable,
    rows: FaultProxy | None,
    objects: FaultProxy | None,
    more: dict[str, str],
) -> S3DynamoDBLogStore:
    """The table's store through proxies, with its clients warm: version 1 is made here."""
    conf = dict(more)
    if rows is not None:
        conf["spark.lakelog.s3dynamodb.endpoint"] = rows.url
    if objects is not None:
        conf["spark.hadoop.fs.s3a.endpoint"] = objects.url
    store = table.store(conf)
    store.write(table.path(1), ["one"])
    return store


def committed(table: LockedTable, versions: int = 4) -> list[str | None]:
    return [table.text(commit_name(version)) for version in range(versions)]


def harmed(
    table: LockedTable, store: S3DynamoDBLogStore, proxy: FaultProxy, faults: Faults
) -> None:
    """A commit after the other, each of which meets a fault, and all of them are there once."""
    for version, (fault, target) in enumerate(faults, 2):
        proxy.arm(fault, target(version))
        store.write(table.path(version), [fault])
        assert proxy.fired == [fault], version
        proxy.fired.clear()
        assert table.text(commit_name(version)) == f"{fault}\n"
        item = table.item(version)
        assert item is not None
        assert item["complete"] == {"S": "true"}, fault
    there = ["zero\n", "one\n", *[f"{fault}\n" for fault, _ in faults], None]
    assert committed(table, len(there)) == there
    with pytest.raises(FileExistsError):
        store.write(table.path(len(faults) + 1), ["rival"])


@pytest.mark.parametrize("target", [QUERY, PUT_ITEM])
def test_a_fault_of_the_table_costs_no_commit_and_doubles_none(
    table: LockedTable, rows: FaultProxy, target: bytes
) -> None:
    faults: Faults = [(fault, lambda _: target) for fault in FAULTS]
    harmed(table, behind(table, rows, None, QUICK), rows, faults)


def test_the_answer_of_a_gateway_to_a_row_that_was_put_is_looked_behind(
    table: LockedTable, rows: FaultProxy
) -> None:
    faults: Faults = [(fault, lambda _: PUT_ITEM) for fault in FOREIGN_ANSWERS]
    harmed(table, behind(table, rows, None, QUICK), rows, faults)


@pytest.mark.parametrize("what", ["draft", "file", "look"])
def test_a_fault_of_the_bucket_costs_no_commit_and_doubles_none(
    table: LockedTable, objects: FaultProxy, what: str
) -> None:
    log = f"/{table.bucket}/{table.name}/_delta_log/".encode()

    def target(version: int) -> bytes:
        name = commit_name(version).encode()
        return {
            "draft": b"PUT " + log + b".tmp/",
            "file": b"PUT " + log + name,
            "look": b"HEAD " + log + name,
        }[what]

    faults: Faults = [
        (fault, target) for fault in (*FAULTS, "refuse:409:ConditionalRequestConflict")
    ]
    harmed(table, behind(table, None, objects, QUICK), objects, faults)


def test_a_row_whose_reply_is_lost_until_the_budget_ends_is_found_and_is_ours(
    table: LockedTable, rows: FaultProxy
) -> None:
    store = behind(table, rows, None, HASTY)
    rows.arm("drop_reply", PUT_ITEM)
    rows.arm("reset", PUT_ITEM, times=100)
    store.write(table.path(2), ["two"])
    assert committed(table)[2] == "two\n"
    item = table.item(2)
    assert item is not None
    assert item["complete"] == {"S": "false"}, "the next one completes it"
    table.store().write(table.path(3), ["three"])
    item = table.item(2)
    assert item is not None
    assert item["complete"] == {"S": "true"}


def test_a_table_that_falls_silent_in_mid_commit_leaves_the_outcome_unknown(
    table: LockedTable, rows: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief_last_look(monkeypatch)
    store = behind(table, rows, None, {**HASTY, "spark.lakelog.store.retry.timeBudget": "0.3"})
    rows.arm("drop_reply", PUT_ITEM)
    for silent in (PUT_ITEM, b"DynamoDB_20120810.GetItem"):
        rows.arm("reset", silent, times=10_000)
    with pytest.raises(CommitOutcomeUnknownError, match="could not be looked up") as caught:
        store.write(table.path(2), ["two"])
    assert table.dynamodb.secret_key not in str(caught.value)
    assert table.s3.secret_key not in str(caught.value)
    rows.disarm()
    assert list(store.read(table.path(2))) == ["two"], "it had landed, and the draft is kept"


def test_a_table_that_was_never_reached_is_a_failure_and_not_an_unknown_outcome(
    table: LockedTable, rows: FaultProxy
) -> None:
    store = behind(table, rows, None, HASTY)
    rows.arm("reset", QUERY, times=10_000)
    with pytest.raises(OSError, match=r"given up after 0\.6 s"):
        store.write(table.path(2), ["two"])
    assert committed(table)[2] is None


def test_a_bucket_that_fails_after_the_row_does_not_undo_the_commit(
    table: LockedTable, objects: FaultProxy
) -> None:
    store = behind(table, None, objects, HASTY)
    log = f"PUT /{table.bucket}/{table.name}/_delta_log/{commit_name(2)}".encode()
    objects.arm("refuse:503:SlowDown", log, times=10_000)
    store.write(table.path(2), ["two"])
    assert committed(table)[2] is None
    objects.disarm()
    assert list(store.read(table.path(2))) == ["two"], "whoever reads it makes it"


def test_a_page_of_a_web_proxy_is_reported_as_what_it_is(
    table: LockedTable, rows: FaultProxy
) -> None:
    store = behind(table, rows, None, HASTY)
    rows.arm("html:403", QUERY, times=10_000)
    with pytest.raises(OSError, match="not a DynamoDB service, or a proxy in between answered"):
        store.write(table.path(2), ["two"])
    rows.disarm()
    rows.arm("html:200", QUERY, times=10_000)
    with pytest.raises(OSError, match="a proxy in between answered"):
        store.write(table.path(2), ["two"])
    assert committed(table)[2] is None
