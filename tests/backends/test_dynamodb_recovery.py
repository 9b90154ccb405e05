"""Writers that die between two requests to the real services, and what the next one makes of it.

`tests/unit/logstores/s3_dynamodb/test_recovery.py` has the same, and more, without servers.
"""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.logstores import CommitOutcomeUnknownError, S3ConditionalLogStore
from lakelog.logstores.s3_dynamodb import LostDraftError, TableBypassedError
from support.aws_requests import watching
from support.dynamodb_tables import LockedTable, commit_name
from support.lock_table import CrashError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.logstores.s3_dynamodb import S3DynamoDBLogStore
    from support.servers.dynamodb import DynamoDBEndpoint
    from support.servers.minio import S3Endpoint

LOCK_TABLE = f"recovery-{uuid.uuid4().hex[:8]}"
REQUESTS = 7
DECIDED = 5
"""The request before which the row is in the table."""


@pytest.fixture
def table(minio: S3Endpoint, dynamodb: DynamoDBEndpoint, s3_bucket: str) -> LockedTable:
    table = LockedTable(minio, dynamodb, s3_bucket, LOCK_TABLE)
    table.store({"spark.lakelog.s3dynamodb.createTable": "true"}).write(table.path(0), ["zero"])
    return table


def before_request(number: int, then: Callable[[], Any]) -> Callable[[int], None]:
    def before(at: int) -> None:
        if at == number:
            then()

    return before


def die() -> None:
    raise CrashError


def crash(table: LockedTable, at: int, version: int = 1) -> None:
    """A writer of "one" dies before a request."""
    store = table.store()
    with pytest.raises(CrashError), watching(*table.sdks(store), before=before_request(at, die)):
        store.write(table.path(version), ["one"])


def versions(store: S3DynamoDBLogStore, table: LockedTable) -> list[str]:
    return [status.name for status in store.list_from(table.path(0))]


@pytest.mark.parametrize("at", range(REQUESTS))
def test_a_reader_finishes_what_was_decided(table: LockedTable, at: int) -> None:
    crash(table, at)
    store = table.store()
    decided = at >= DECIDED
    assert versions(store, table) == [commit_name(0), commit_name(1)][: 1 + decided]
    if decided:
        assert list(store.read(table.path(1))) == ["one"]
        item = table.item(1)
        assert item is not None
        assert item["complete"] == {"S": "true"}


@pytest.mark.parametrize("at", range(REQUESTS))
def test_a_probe_for_the_next_version_finds_what_was_decided(table: LockedTable, at: int) -> None:
    crash(table, at)
    store = table.store()
    if at >= DECIDED:
        assert list(store.read(table.path(1))) == ["one"]
    else:
        with pytest.raises(FileNotFoundError):
            store.read(table.path(1))


@pytest.mark.parametrize("at", range(REQUESTS))
def test_a_writer_goes_on_from_what_was_decided(table: LockedTable, at: int) -> None:
    crash(table, at)
    store = table.store()
    if at >= DECIDED:
        with pytest.raises(FileExistsError):
            store.write(table.path(1), ["rival"])
        store.write(table.path(2), ["two"])
        assert table.text(commit_name(1)) == "one\n"
    else:
        store.write(table.path(1), ["rival"])
        assert table.text(commit_name(1)) == "rival\n"


def test_many_who_finish_one_commit_at_once_agree(table: LockedTable) -> None:
    crash(table, DECIDED)
    stores = [table.store() for _ in range(8)]

    def work(number: int) -> list[str] | str:
        if number % 2:
            return versions(stores[number], table)
        try:
            stores[number].write(table.path(1), ["rival"])
        except FileExistsError:
            return "conflict"
        return "won"

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(work, range(8)))
    assert outcomes == ["conflict", [commit_name(0), commit_name(1)]] * 4
    assert table.text(commit_name(1)) == "one\n"


def test_a_sleeper_whose_rivals_row_expired_gets_a_conflict(table: LockedTable) -> None:
    store = table.store(ddb_ttl="0")

    def rival_comes_and_its_row_goes() -> None:
        table.store(ddb_ttl="0").write(table.path(1), ["rival"])
        table.delete_item(1)

    with (
        pytest.raises(FileExistsError),
        watching(*table.sdks(store), before=before_request(4, rival_comes_and_its_row_goes)),
    ):
        store.write(table.path(1), ["sleeper"])
    assert table.text(commit_name(1)) == "rival\n"
    item = table.item(1)
    assert item is not None
    assert item["complete"] == {"S": "true"}
    table.store(ddb_ttl="0").write(table.path(2), ["next"])


def test_a_log_whose_rows_have_all_expired_goes_on(table: LockedTable) -> None:
    table.store().write(table.path(1), ["one"])
    for version in (0, 1):
        table.delete_item(version)
    store = table.store()
    with pytest.raises(FileExistsError):
        store.write(table.path(1), ["rival"])
    store.write(table.path(2), ["two"])
    assert versions(store, table) == [commit_name(version) for version in range(3)]


def test_a_writer_of_conditional_puts_beside_the_table_is_caught(table: LockedTable) -> None:
    S3ConditionalLogStore(table.conf()).write(table.path(1), ["beside the table"])
    with pytest.raises(TableBypassedError, match=f"lakelog migrate {table.uri} --to dynamodb"):
        table.store().write(table.path(2), ["two"])
    assert table.item(2) is None
    assert table.text(commit_name(2)) is None
    assert list(table.store().read(table.path(1))) == ["beside the table"]


def test_a_put_beside_the_table_in_mid_commit_is_caught_and_stops_readers_too(
    table: LockedTable,
) -> None:
    store = table.store()

    def beside() -> None:
        S3ConditionalLogStore(table.conf()).write(table.path(1), ["beside the table"])

    with (
        pytest.raises(CommitOutcomeUnknownError, match="bypasses"),
        watching(*table.sdks(store), before=before_request(DECIDED, beside)),
    ):
        store.write(table.path(1), ["one"])
    with pytest.raises(TableBypassedError):
        versions(table.store(), table)
    off = {"spark.lakelog.s3dynamodb.guard": "false"}
    assert versions(table.store(off), table) == [commit_name(0), commit_name(1)]


def test_drafts_stay_and_are_hidden_from_the_names_of_versions(table: LockedTable) -> None:
    crash(table, 4)
    store = table.store()
    store.write(table.path(1), ["one"])
    assert versions(store, table) == [commit_name(0), commit_name(1)]
    names = [status.name for status in store.list_from(f"{table.uri}/_delta_log/")]
    assert names == [".tmp", commit_name(0), commit_name(1)]


def test_a_stale_draft_of_a_lost_race_is_never_taken_for_a_commit(table: LockedTable) -> None:
    crash(table, 4)  # its draft is there, its row is not
    assert table.item(1) is None
    store = table.store()
    assert versions(store, table) == [commit_name(0)]
    store.write(table.path(1), ["other"])
    assert table.text(commit_name(1)) == "other\n"


def test_a_draft_that_was_removed_too_early_is_reported(table: LockedTable) -> None:
    crash(table, DECIDED)
    item = table.item(1)
    assert item is not None
    table.delete_object(item["tempPath"]["S"])
    with pytest.raises(LostDraftError, match="lifecycle rule"):
        versions(table.store(), table)
