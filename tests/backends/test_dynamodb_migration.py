"""Moving a log from the lock table to conditional puts and back, with writers on both sides."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from lakelog.cli.app import app
from lakelog.logstores import S3ConditionalLogStore
from lakelog.logstores.s3_dynamodb import (
    LockTableError,
    LostDraftError,
    TableBypassedError,
    TableMovedError,
    migrate,
)
from lakelog.logstores.s3_dynamodb.lock_rows import MOVED_DRAFT, MOVED_NAME
from support.aws_requests import watching
from support.dynamodb_tables import LockedTable, commit_name
from support.lock_table import CrashError

if TYPE_CHECKING:
    from support.servers.dynamodb import DynamoDBEndpoint
    from support.servers.minio import S3Endpoint

LOCK_TABLE = f"migration-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def table(minio: S3Endpoint, dynamodb: DynamoDBEndpoint, s3_bucket: str) -> LockedTable:
    table = LockedTable(minio, dynamodb, s3_bucket, LOCK_TABLE)
    table.store({"spark.lakelog.s3dynamodb.createTable": "true"}).write(table.path(0), ["zero"])
    return table


def conditional(table: LockedTable) -> S3ConditionalLogStore:
    return S3ConditionalLogStore(table.conf())


def rows(table: LockedTable) -> dict[str, str]:
    """File name -> draft, of all rows of the table."""
    found = table.ddb().query(
        TableName=table.lock_table,
        ConsistentRead=True,
        KeyConditionExpression="tablePath = :t",
        ExpressionAttributeValues={":t": {"S": table.uri}},
    )
    return {item["fileName"]["S"]: item["tempPath"]["S"] for item in found["Items"]}


def crash_after_the_row(table: LockedTable, version: int) -> None:
    store = table.store()

    def die(at: int) -> None:
        if at == 5:
            raise CrashError

    with pytest.raises(CrashError), watching(*table.sdks(store), before=die):
        store.write(table.path(version), ["half-finished"])


def test_to_conditional_puts_and_back_loses_no_version(table: LockedTable) -> None:
    crash_after_the_row(table, 1)
    done = migrate(table.uri, table.conf(), to="conditional")
    assert done.version == 1
    assert done.steps[0] == f"finished the commit {commit_name(1)}"
    assert table.text(commit_name(1)) == "half-finished\n"
    for version in (2, 3):
        conditional(table).write(table.path(version), [f"{version}"])
    back = migrate(table.uri, table.conf(), to="dynamodb")
    assert back.version == 3
    item = table.item(3)
    assert item is not None
    assert item["complete"] == {"S": "true"}
    assert "N" in item["expireTime"]
    assert not {MOVED_NAME, commit_name(4)} & set(rows(table))
    assert MOVED_DRAFT not in rows(table).values()
    store = table.store()
    store.write(table.path(4), ["four"])
    names = [status.name for status in store.list_from(table.path(0))]
    assert names == [commit_name(version) for version in range(5)]


def test_writers_of_the_lock_table_are_stopped_at_every_step_they_may_be_at(
    table: LockedTable,
) -> None:
    for at in range(5):
        fresh = LockedTable(table.s3, table.dynamodb, table.bucket, table.lock_table)
        fresh.store().write(fresh.path(0), ["zero"])
        store = fresh.store()

        def move(number: int, at: int = at, fresh: LockedTable = fresh) -> None:
            if number == at:
                migrate(fresh.uri, fresh.conf(), to="conditional")

        with (
            pytest.raises((TableMovedError, FileExistsError)),
            watching(*fresh.sdks(store), before=move),
        ):
            store.write(fresh.path(1), ["late"])
        assert fresh.text(commit_name(1)) is None
        conditional(fresh).write(fresh.path(1), ["one"])
        with pytest.raises(TableMovedError, match="was moved to conditional puts"):
            fresh.store().write(fresh.path(2), ["two"])
        assert fresh.text(commit_name(2)) is None


def test_a_writer_whose_row_is_in_the_table_is_finished_before_the_move(table: LockedTable) -> None:
    store = table.store()

    def move(number: int) -> None:
        if number == 5:
            assert migrate(table.uri, table.conf(), to="conditional").version == 1

    with watching(*table.sdks(store), before=move):
        store.write(table.path(1), ["in time"])
    assert table.text(commit_name(1)) == "in time\n"


def test_readers_of_ours_go_on_after_the_move(table: LockedTable) -> None:
    migrate(table.uri, table.conf(), to="conditional")
    conditional(table).write(table.path(1), ["one"])
    store = table.store()
    assert [status.name for status in store.list_from(table.path(0))] == [
        commit_name(0),
        commit_name(1),
    ]
    assert list(store.read(table.path(1))) == ["one"]
    with pytest.raises(FileNotFoundError):
        store.read(table.path(2))


def test_each_way_may_be_run_again(table: LockedTable) -> None:
    migrate(table.uri, table.conf(), to="conditional")
    conditional(table).write(table.path(1), ["one"])
    assert migrate(table.uri, table.conf(), to="conditional").version == 1
    migrate(table.uri, table.conf(), to="dynamodb")
    assert migrate(table.uri, table.conf(), to="dynamodb").steps == ()
    table.store().write(table.path(2), ["two"])


def test_a_log_that_never_had_rows_can_enter(table: LockedTable) -> None:
    fresh = LockedTable(table.s3, table.dynamodb, table.bucket, table.lock_table)
    for version in range(3):
        conditional(fresh).write(fresh.path(version), [f"{version}"])
    done = migrate(fresh.uri, fresh.conf(), to="dynamodb")
    assert done.steps == (f"put a row for {commit_name(2)}",)
    fresh.store().write(fresh.path(3), ["three"])


def test_a_writer_that_goes_on_with_conditional_puts_is_found_and_the_mark_stays(
    table: LockedTable,
) -> None:
    migrate(table.uri, table.conf(), to="conditional")
    conditional(table).write(table.path(1), ["one"])
    store = table.store()
    _, ddb = table.sdks(store)
    deletions: list[str] = []

    def beside(model: object, **_: object) -> None:
        deletions.append(str(getattr(model, "name", "")))
        conditional(table).write(table.path(2), ["beside"])

    ddb.meta.events.register("before-call.dynamodb.DeleteItem", beside)
    try:
        with pytest.raises(TableBypassedError, match="is still at work"):
            migrate(table.uri, table.conf(), to="dynamodb")
    finally:
        ddb.meta.events.unregister("before-call.dynamodb.DeleteItem", beside)
    assert deletions == ["DeleteItem"]
    with pytest.raises(TableMovedError):
        table.store().write(table.path(3), ["three"])
    assert migrate(table.uri, table.conf(), to="dynamodb").version == 2


def test_a_file_that_differs_from_its_row_is_left_for_people_to_decide(table: LockedTable) -> None:
    crash_after_the_row(table, 1)
    conditional(table).write(table.path(1), ["beside the table"])
    for to in ("conditional", "dynamodb"):
        with pytest.raises(TableBypassedError):
            migrate(table.uri, table.conf(), to=to)
    done = migrate(table.uri, table.conf(), to="dynamodb", keep_files=True)
    assert done.steps == (f"kept {commit_name(1)}, which differs from its row",)
    assert table.text(commit_name(1)) == "beside the table\n"
    table.store().write(table.path(2), ["two"])


def test_a_log_with_a_hole_and_rows_without_files_are_refused(table: LockedTable) -> None:
    store = table.store()
    for version in (1, 2):
        store.write(table.path(version), [f"{version}"])
    table.delete_object(commit_name(1))
    with pytest.raises(LockTableError, match=r"incomplete: 0{19}1\.json is missing"):
        migrate(table.uri, table.conf(), to="conditional")
    table.put_object(f"{2:020d}.checkpoint.parquet", "behind a checkpoint holes are history")
    migrate(table.uri, table.conf(), to="conditional")
    migrate(table.uri, table.conf(), to="dynamodb")
    table.delete_object(commit_name(2))
    table.put_object(commit_name(1), "1\n")
    with pytest.raises(LockTableError, match=r"has a row for 0{19}2\.json.*ends with 0{19}1\.json"):
        migrate(table.uri, table.conf(), to="conditional")


def test_a_commit_that_no_one_can_finish_is_refused(table: LockedTable) -> None:
    crash_after_the_row(table, 1)
    item = table.item(1)
    assert item is not None
    table.delete_object(item["tempPath"]["S"])
    with pytest.raises(LostDraftError):
        migrate(table.uri, table.conf(), to="conditional")


def test_wrong_arguments_are_reported(table: LockedTable) -> None:
    with pytest.raises(ValueError, match="is not a table on S3"):
        migrate("/lake/t", table.conf(), to="dynamodb")
    with pytest.raises(ValueError, match="'conditional' or 'dynamodb'"):
        migrate(table.uri, table.conf(), to="postgres")  # type: ignore[arg-type]  # the point
    nothing = f"s3a://{table.bucket}/nothing-here"
    with pytest.raises(FileNotFoundError):
        migrate(nothing, table.conf(), to="dynamodb")


def test_the_command_moves_and_tells_and_exits_with_1_where_something_is_to_be_mended(
    table: LockedTable,
) -> None:
    arguments = [
        part for key, value in table.conf().items() for part in ("--conf", f"{key}={value}")
    ]
    run = CliRunner().invoke(app, ["migrate", table.uri, "--to", "conditional", *arguments])
    assert run.exit_code == 0, run.output
    assert f"took the row of {commit_name(1)}" in run.output
    assert "The newest version is 0." in run.output
    run = CliRunner().invoke(app, ["migrate", table.uri, "--to", "dynamodb", "--json", *arguments])
    assert run.exit_code == 0, run.output
    assert json.loads(run.output)["steps"][-1] == f"removed the mark {MOVED_NAME}"
    table.delete_object(commit_name(0))
    table.put_object(commit_name(1), "1\n")
    table.put_object(commit_name(3), "3\n")
    run = CliRunner().invoke(app, ["migrate", table.uri, "--to", "dynamodb", "--json", *arguments])
    assert run.exit_code == 1
    assert "is missing" in json.loads(run.stdout)["reason"]
    for secret in (table.s3.secret_key, table.dynamodb.secret_key):
        assert secret not in run.output
