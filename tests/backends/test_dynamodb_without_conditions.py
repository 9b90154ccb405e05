"""The lock table over S3 services that have no conditional put: there the row alone decides."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import UnsafeLogStoreError
from lakelog.logstores.s3_dynamodb import migrate
from support.dynamodb_tables import LockedTable, commit_name
from support.fault_proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.dynamodb import DynamoDBEndpoint
    from support.servers.minio import S3Endpoint

LOCK_TABLE = f"without-{uuid.uuid4().hex[:8]}"
CREATE = {"spark.lakelog.s3dynamodb.createTable": "true"}


@pytest.fixture
def ignoring(s3rver: S3Endpoint, dynamodb: DynamoDBEndpoint) -> LockedTable:
    """On a service that takes the header and heeds it not."""
    bucket = f"without-{uuid.uuid4().hex[:8]}"
    client = s3rver.client()
    client.create_bucket(Bucket=bucket)
    client.close()
    return LockedTable(s3rver, dynamodb, bucket, LOCK_TABLE)


@pytest.fixture
def refusing(
    minio: S3Endpoint, dynamodb: DynamoDBEndpoint, s3_bucket: str
) -> Iterator[tuple[LockedTable, dict[str, str]]]:
    """On a service that answers 501 to every put with the header."""
    with FaultProxy(minio.url) as proxy:
        proxy.arm("refuse:501:NotImplemented", b"If-None-Match: *", times=100_000)
        conf = {**CREATE, "spark.hadoop.fs.s3a.endpoint": proxy.url}
        yield LockedTable(minio, dynamodb, s3_bucket, LOCK_TABLE), conf
        assert set(proxy.fired) == {"refuse:501:NotImplemented"}


def test_of_writers_that_race_one_wins_each_version(ignoring: LockedTable) -> None:
    stores = [ignoring.store(CREATE) for _ in range(6)]
    stores[0].write(ignoring.path(0), ["zero"])

    def work(who: int) -> list[int]:
        won: list[int] = []
        version = 1
        while len(won) < 3:
            try:
                stores[who].write(ignoring.path(version), [f"{who} {version}"])
                won.append(version)
            except FileExistsError:
                version += 1
        return won

    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(work, range(6)))
    assert sorted(version for won in outcomes for version in won) == list(range(1, 19))
    for who, won in enumerate(outcomes):
        assert [ignoring.text(commit_name(v)) for v in won] == [f"{who} {v}\n" for v in won]


def test_a_file_that_is_there_is_not_put_again(ignoring: LockedTable) -> None:
    store = ignoring.store(CREATE)
    store.write(ignoring.path(0), ["zero"])
    ignoring.delete_item(0)
    with pytest.raises(FileExistsError):
        store.write(ignoring.path(0), ["anew"])
    assert ignoring.text(commit_name(0)) == "zero\n"


def test_the_move_to_conditional_puts_that_are_none_is_refused(ignoring: LockedTable) -> None:
    store = ignoring.store(CREATE)
    store.write(ignoring.path(0), ["zero"])
    probing = {**ignoring.conf(), "spark.lakelog.store.endpointProbe": "always"}
    with pytest.raises(UnsafeLogStoreError):
        migrate(ignoring.uri, probing, to="conditional")
    store.write(ignoring.path(1), ["one"])


def test_a_commit_works_where_the_header_is_refused(
    refusing: tuple[LockedTable, dict[str, str]],
) -> None:
    table, conf = refusing
    store = table.store(conf)
    for version in range(3):
        store.write(table.path(version), [f"{version}"])
    with pytest.raises(FileExistsError):
        table.store(conf).write(table.path(2), ["rival"])
    assert [table.text(commit_name(version)) for version in range(3)] == ["0\n", "1\n", "2\n"]


def test_files_without_a_row_are_refused_there_and_so_is_the_move_to_conditional_puts(
    refusing: tuple[LockedTable, dict[str, str]],
) -> None:
    table, conf = refusing
    store = table.store(conf)
    store.write(table.path(0), ["zero"])
    with pytest.raises(UnsafeLogStoreError):
        store.write(f"{table.uri}/_delta_log/some.other", ["x"])
    probing = {**table.conf(), **conf, "spark.lakelog.store.endpointProbe": "always"}
    with pytest.raises(UnsafeLogStoreError):
        migrate(table.uri, probing, to="conditional")
    store.write(table.path(1), ["one"])
