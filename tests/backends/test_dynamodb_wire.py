"""Rows, drafts and requests as Delta's own store makes and reads them.

The expected forms are those of `ExternalCommitEntry` and `S3DynamoDBLogStore` of delta-storage.
"""

from __future__ import annotations

import re
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.logstores.s3_dynamodb.lock_rows import LogFile, LogFolder
from support.aws_requests import watching
from support.dynamodb_tables import LockedTable, commit_name
from support.lock_table import CrashError

if TYPE_CHECKING:
    from support.servers.dynamodb import DynamoDBEndpoint
    from support.servers.minio import S3Endpoint

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
LOCK_TABLE = f"wire-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def table(minio: S3Endpoint, dynamodb: DynamoDBEndpoint, s3_bucket: str) -> LockedTable:
    table = LockedTable(minio, dynamodb, s3_bucket, LOCK_TABLE)
    table.store({"spark.lakelog.s3dynamodb.createTable": "true"}).write(table.path(0), ["zero"])
    return table


def stop(number: int) -> Any:
    def before(at: int) -> None:
        if at == number:
            raise CrashError

    return before


def test_a_completed_row_is_the_jvms_to_the_last_attribute(table: LockedTable) -> None:
    before = int(time.time())
    table.store().write(table.path(1), ["one"])
    item = table.item(1)
    assert item is not None
    expires = int(item["expireTime"].pop("N"))
    draft = item.pop("tempPath")["S"]
    assert item == {
        "tablePath": {"S": table.uri},
        "fileName": {"S": "00000000000000000001.json"},
        "complete": {"S": "true"},
        "expireTime": {},
    }
    assert before + 86_400 <= expires <= int(time.time()) + 86_400
    assert re.fullmatch(rf"\.tmp/00000000000000000001\.json\.{UUID}", draft)
    assert table.text(draft) == table.text(commit_name(1)) == "one\n"


def test_a_row_that_is_not_complete_has_no_expiry_and_says_so_in_text(table: LockedTable) -> None:
    store = table.store()
    with pytest.raises(CrashError), watching(*table.sdks(store), before=stop(5)):
        store.write(table.path(1), ["one"])
    item = table.item(1)
    assert item is not None
    assert set(item) == {"tablePath", "fileName", "tempPath", "complete"}
    assert item["complete"] == {"S": "false"}
    assert table.text(item["tempPath"]["S"]) == "one\n", "the draft is whole before the row"
    assert table.text(commit_name(1)) is None


def test_the_conf_sets_how_long_a_row_lives(table: LockedTable) -> None:
    table.store(ddb_ttl="7").write(table.path(1), ["one"])
    item = table.item(1)
    assert item is not None
    assert abs(int(item["expireTime"]["N"]) - time.time() - 7) < 60


@pytest.mark.parametrize("complete", ["false", "TRUE", "no"])
def test_what_the_jvm_began_is_finished_whatever_else_its_row_holds(
    table: LockedTable, complete: str
) -> None:
    draft = f".tmp/{commit_name(1)}.{uuid.uuid4()}"
    table.put_object(draft, "by the jvm\n")
    table.put_item(1, draft, complete, surplus={"N": "7"})
    names = [status.name for status in table.store().list_from(table.path(0))]
    assert names == [commit_name(0), commit_name(1)]
    assert table.text(commit_name(1)) == "by the jvm\n"
    item = table.item(1)
    assert item is not None
    assert item["complete"] == {"S": "true"}
    assert item["tempPath"] == {"S": draft}
    assert "N" in item["expireTime"]


def test_the_jvms_copy_of_our_draft_is_known_as_our_commit(table: LockedTable) -> None:
    store = table.store()

    def before(at: int) -> None:
        if at == 5:  # our row is in the table, our file is not made yet
            table.put_object(commit_name(1), "one\n")

    with watching(*table.sdks(store), before=before):
        store.write(table.path(1), ["one"])
    item = table.item(1)
    assert item is not None
    assert item["complete"] == {"S": "true"}


def test_the_jvms_condition_meets_our_row_and_ours_meets_the_jvms(table: LockedTable) -> None:
    table.store().write(table.path(1), ["one"])
    client = table.ddb()
    item = table.item(1)
    with pytest.raises(client.exceptions.ConditionalCheckFailedException):
        client.put_item(
            TableName=table.lock_table, Item=item, Expected={"fileName": {"Exists": False}}
        )
    draft = f".tmp/{commit_name(2)}.{uuid.uuid4()}"
    table.put_object(draft, "by the jvm\n")
    store = table.store()

    def before(at: int) -> None:
        if at == 4:  # just before our row
            table.put_item(2, draft, "false")

    with pytest.raises(FileExistsError), watching(*table.sdks(store), before=before):
        store.write(table.path(2), ["two"])
    assert list(store.read(table.path(2))) == ["by the jvm"]


def test_an_uncontended_commit_takes_seven_requests(table: LockedTable) -> None:
    store = table.store()
    store.write(table.path(1), ["one"])
    with watching(*table.sdks(store)) as requests:
        store.write(table.path(2), ["two"])
    # Delta's steps take nine at the least: it looks for the file again, and reads its draft back.
    assert requests == [
        "s3 HeadObject",
        "dynamodb Query",
        "s3 HeadObject",
        "s3 PutObject",
        "dynamodb PutItem",
        "s3 PutObject",
        "dynamodb PutItem",
    ]


def test_a_listing_asks_for_the_newest_row_first_and_a_read_only_where_it_misses(
    table: LockedTable,
) -> None:
    store = table.store()
    with watching(*table.sdks(store)) as requests:
        assert [s.name for s in store.list_from(table.path(0))] == [commit_name(0)]
    assert requests == ["dynamodb Query", "s3 ListObjectsV2"]
    with watching(*table.sdks(store)) as requests:
        assert list(store.read(table.path(0))) == ["zero"]
    assert requests == ["s3 GetObject"]
    with watching(*table.sdks(store)) as requests, pytest.raises(FileNotFoundError):
        store.read(table.path(1))
    assert requests == ["s3 GetObject", "dynamodb GetItem"]
    with watching(*table.sdks(store)) as requests, pytest.raises(FileNotFoundError):
        store.read(f"{table.uri}/_delta_log/_last_checkpoint")
    assert requests == ["s3 GetObject"]


def test_an_overwrite_and_any_other_name_never_touch_the_table(table: LockedTable) -> None:
    store = table.store()
    with watching(*table.sdks(store)) as requests:
        store.write(table.path(0), ["replaced"], overwrite=True)
        store.write(f"{table.uri}/_delta_log/_last_checkpoint", ["{}"], overwrite=True)
        store.write(f"{table.uri}/_delta_log/{0:020d}.checkpoint.json", ["{}"])
        store.write(f"{table.uri}/elsewhere/{commit_name(5)}", ["no log"])
        list(store.list_from(f"{table.uri}/elsewhere/"))
    assert not [request for request in requests if request.startswith("dynamodb")]


@pytest.mark.parametrize(
    ("folder", "key"),
    [
        ("s3a://b/t/_delta_log", "s3a://b/t"),
        ("s3://b/t/_delta_log/", "s3://b/t"),
        ("s3a://b//x///t//_delta_log", "s3a://b/x/t"),
        ("s3a://user@b/t/_delta_log", "s3a://b/t"),
        ("s3a://b/a b/ü%20+&=#?/_delta_log", "s3a://b/a b/ü%20+&=#?"),
        ("s3a://b/_delta_log", "s3a://b/"),
        ("s3n://b.c-d/t/_delta_log", "s3n://b.c-d/t"),
    ],
)
def test_the_partition_key_is_hadoops_spelling_of_the_tables_root(folder: str, key: str) -> None:
    found = LogFolder.from_uri(folder)
    assert found is not None
    assert found.table_path == key


@pytest.mark.parametrize(
    "path",
    [
        "s3a://b/t/_delta_log/_sidecars/00000000000000000001.json",
        "s3a://b/t/_delta_log/_last_checkpoint",
        "s3a://b/t/_delta_log/00000000000000000001.crc",
        "s3a://b/t/_delta_log/00000000000000000001.checkpoint.parquet",
        "s3a://b/t/_delta_log/1.json",
        "s3a://b/t/x_delta_log/00000000000000000001.json",
        "/t/_delta_log/00000000000000000001.json",
    ],
)
def test_other_files_have_no_row(path: str) -> None:
    assert LogFile.from_path(path) is None


def test_the_key_can_have_the_scheme_that_the_jvms_writers_use() -> None:
    folder = LogFolder.from_uri("s3://b/t/_delta_log", "s3a")
    assert folder is not None
    assert folder.table_path == "s3a://b/t"
    assert folder.uri == "s3://b/t/_delta_log/"
