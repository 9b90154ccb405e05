"""Lock tables that are missing, wrong, out of reach or forbidden: one clear error each, in time."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from botocore.stub import Stubber

from lakelog.logstores.s3_dynamodb import LockTableError, S3DynamoDBLogStore
from support.dynamodb_tables import LockedTable
from support.servers._service import free_port

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.dynamodb import DynamoDBEndpoint
    from support.servers.minio import S3Endpoint

CREATE = {"spark.lakelog.s3dynamodb.createTable": "true"}
HASTY = {
    "spark.lakelog.store.request.timeout": "20",
    "spark.lakelog.store.retry.timeBudget": "0.5",
}


@pytest.fixture
def table(minio: S3Endpoint, dynamodb: DynamoDBEndpoint, s3_bucket: str) -> LockedTable:
    """One whose lock table does not exist yet."""
    return LockedTable(minio, dynamodb, s3_bucket, f"errors-{uuid.uuid4().hex[:8]}")


def make(table: LockedTable, keys: list[tuple[str, str, str]]) -> None:
    table.ddb().create_table(
        TableName=table.lock_table,
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind, _ in keys],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": letter} for name, _, letter in keys
        ],
        BillingMode="PAY_PER_REQUEST",
    )


def assert_no_secret(table: LockedTable, error: BaseException) -> None:
    shown = f"{error!r} {error}"
    assert table.s3.secret_key not in shown
    assert table.dynamodb.secret_key not in shown


def test_a_missing_table_is_named_with_both_ways_to_make_it(table: LockedTable) -> None:
    store = table.store()
    for work in (
        lambda: store.write(table.path(0), ["zero"]),
        lambda: store.list_from(table.path(0)),
        lambda: store.read(table.path(0)),
    ):
        with pytest.raises(LockTableError) as caught:
            work()
        text = str(caught.value)
        assert table.lock_table in text
        assert "us-east-1" in text
        assert "spark.lakelog.s3dynamodb.createTable=true" in text
        assert "aws dynamodb create-table" in text
        assert_no_secret(table, caught.value)
    assert table.lock_table not in table.ddb().list_tables()["TableNames"]


def test_a_table_is_made_with_deltas_keys_and_throughput_and_with_expiry(
    table: LockedTable,
) -> None:
    settings = {"provisionedThroughput_rcu": "11", "provisionedThroughput_wcu": "12"}
    table.store(CREATE, **settings).write(table.path(0), ["zero"])
    client = table.ddb()
    made = client.describe_table(TableName=table.lock_table)["Table"]
    assert made["KeySchema"] == [
        {"AttributeName": "tablePath", "KeyType": "HASH"},
        {"AttributeName": "fileName", "KeyType": "RANGE"},
    ]
    types = {each["AttributeName"]: each["AttributeType"] for each in made["AttributeDefinitions"]}
    assert types == {"tablePath": "S", "fileName": "S"}
    assert made["ProvisionedThroughput"]["ReadCapacityUnits"] == 11
    assert made["ProvisionedThroughput"]["WriteCapacityUnits"] == 12
    expiry = client.describe_time_to_live(TableName=table.lock_table)["TimeToLiveDescription"]
    assert expiry == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expireTime"}


def test_writers_that_make_the_table_at_once_all_go_on(table: LockedTable) -> None:
    def work(_: int) -> str:
        try:
            table.store(CREATE).write(table.path(0), ["zero"])
        except FileExistsError:
            return "conflict"
        return "won"

    with ThreadPoolExecutor(6) as pool:
        outcomes = sorted(pool.map(work, range(6)))
    assert outcomes == ["conflict"] * 5 + ["won"]


@pytest.mark.parametrize(
    "keys",
    [
        [("tablePath", "HASH", "S")],
        [("fileName", "HASH", "S"), ("tablePath", "RANGE", "S")],
        [("tablePath", "HASH", "S"), ("fileName", "RANGE", "N")],
        [("id", "HASH", "S")],
    ],
)
def test_a_table_with_other_keys_is_refused_and_nothing_is_written(
    table: LockedTable, keys: list[tuple[str, str, str]]
) -> None:
    make(table, keys)
    for more in ({}, CREATE):
        with pytest.raises(
            LockTableError, match=r"can't hold commits.*tablePath.*fileName"
        ) as caught:
            table.store(more).write(table.path(0), ["zero"])
        assert keys[0][0] in str(caught.value)
    assert table.ddb().scan(TableName=table.lock_table)["Count"] == 0
    assert table.text(f"{0:020d}.json") is None


@pytest.mark.parametrize("fit", [True, False])
def test_without_the_right_to_describe_the_table_its_keys_are_tried_instead(
    table: LockedTable, fit: bool
) -> None:
    keys = [("tablePath", "HASH", "S"), ("fileName", "RANGE", "S")]
    make(table, keys if fit else keys[:1])
    store = table.store()
    _, ddb = table.sdks(store)

    def deny(**_: Any) -> Any:
        from botocore.exceptions import ClientError

        reply = {
            "Error": {"Code": "AccessDeniedException", "Message": "not authorized"},
            "ResponseMetadata": {"HTTPStatusCode": 400},
        }
        raise ClientError(reply, "DescribeTable")  # type: ignore[arg-type, unused-ignore]

    ddb.meta.events.register("before-call.dynamodb.DescribeTable", deny)
    try:
        if fit:
            store.write(table.path(0), ["zero"])
        else:
            with pytest.raises(LockTableError, match="refuses a GetItem"):
                store.write(table.path(0), ["zero"])
    finally:
        ddb.meta.events.unregister("before-call.dynamodb.DescribeTable", deny)


@pytest.mark.parametrize(
    ("code", "status", "kind", "said"),
    [
        ("AccessDeniedException", 400, PermissionError, r"dynamodb:PutItem .*here: dynamodb:Query"),
        ("UnrecognizedClientException", 400, PermissionError, "does not know this access key"),
        ("InvalidSignatureException", 400, PermissionError, "clock is off"),
        ("ExpiredTokenException", 400, PermissionError, "credentials have expired"),
        ("MissingAuthenticationTokenException", 400, PermissionError, "without credentials"),
        ("ResourceNotFoundException", 400, LockTableError, "there is no DynamoDB table"),
        ("ValidationException", 400, LockTableError, "refuses a Query"),
        ("SomethingNewException", 400, OSError, "SomethingNewException"),
        ("403", 403, OSError, "a proxy in between"),
    ],
)
def test_refusals_for_good_are_reported_at_once_with_what_to_do(
    table: LockedTable, code: str, status: int, kind: type[Exception], said: str
) -> None:
    table.store(CREATE).write(table.path(0), ["zero"])
    store = table.store()
    _, ddb = table.sdks(store)
    with Stubber(ddb) as stub:
        stub.add_client_error("query", code, "told by the service", http_status_code=status)
        with pytest.raises(kind, match=said) as caught:
            store.write(table.path(1), ["one"])
        stub.assert_no_pending_responses()
    assert table.lock_table in str(caught.value)
    assert_no_secret(table, caught.value)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ProvisionedThroughputExceededException", 400),
        ("ThrottlingException", 400),
        ("RequestLimitExceeded", 400),
        ("InternalServerError", 500),
        ("ServiceUnavailable", 503),
    ],
)
def test_throttling_and_trouble_of_the_service_are_waited_out(
    table: LockedTable, code: str, status: int
) -> None:
    table.store(CREATE).write(table.path(0), ["zero"])
    store = table.store()
    _, ddb = table.sdks(store)
    log = table.log(store)
    with Stubber(ddb) as stub:
        for _ in range(3):
            stub.add_client_error("query", code, http_status_code=status)
        stub.add_response("query", {"Items": [], "Count": 0})
        assert log.newest() is None
        stub.assert_no_pending_responses()


def test_an_endpoint_that_is_down_is_reported_within_the_budget(table: LockedTable) -> None:
    down = f"http://127.0.0.1:{free_port()}"
    store = table.store({**HASTY, "spark.lakelog.s3dynamodb.endpoint": down})
    with pytest.raises(OSError, match=rf"{down}: no connection .*given up after 0\.5 s") as caught:
        store.write(table.path(0), ["zero"])
    assert_no_secret(table, caught.value)
    assert table.text(f"{0:020d}.json") is None


def test_a_missing_bucket_is_named_and_nothing_gets_a_row(table: LockedTable) -> None:
    other = LockedTable(table.s3, table.dynamodb, f"none-{uuid.uuid4().hex}", table.lock_table)
    with pytest.raises(OSError, match=other.bucket):
        other.store(CREATE).write(other.path(0), ["zero"])
    if table.lock_table in table.ddb().list_tables()["TableNames"]:
        assert table.ddb().scan(TableName=table.lock_table)["Count"] == 0


def test_missing_credentials_are_reported_with_the_ways_to_give_them(
    table: LockedTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    conf = {key: value for key, value in table.conf().items() if "s3dynamodb.access" not in key}
    conf = {key: value for key, value in conf.items() if "s3dynamodb.secret" not in key}
    with pytest.raises(PermissionError, match=r"no usable credentials.*AWS_ACCESS_KEY_ID"):
        S3DynamoDBLogStore(conf).write(table.path(0), ["zero"])


def test_dynamodb_can_have_s3as_credentials_by_the_provider_of_the_conf(table: LockedTable) -> None:
    conf = {key: value for key, value in table.conf().items() if ".s3dynamodb." not in key}
    conf["spark.lakelog.s3dynamodb.endpoint"] = table.dynamodb.url
    conf["spark.io.delta.storage.S3DynamoDBLogStore.credentials.provider"] = (
        "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
    )
    _, ddb = table.sdks(S3DynamoDBLogStore(conf))
    found = ddb._request_signer._credentials
    assert (found.access_key, found.secret_key) == (table.s3.access_key, table.s3.secret_key)
