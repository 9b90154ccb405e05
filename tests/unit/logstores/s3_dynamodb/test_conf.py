"""The settings of the DynamoDB store: Delta's keys in all spellings, and ours."""

from __future__ import annotations

import pytest

from lakelog.logstores import S3DynamoDBLogStore, resolve
from lakelog.logstores.errors import InconsistentLogStoreConfError, LogStoreConfError
from lakelog.logstores.s3.credentials import CredentialSource
from lakelog.logstores.s3_dynamodb.conf import LockTableSettings

PREFIX = "io.delta.storage.S3DynamoDBLogStore."
SPELLINGS = ["spark." + PREFIX, PREFIX, "spark.hadoop.spark." + PREFIX, "spark.hadoop." + PREFIX]


def test_the_defaults_are_deltas_but_no_table_is_made_unasked() -> None:
    found = LockTableSettings.from_conf({})
    assert (found.table, found.region, found.ttl) == ("delta_log", "us-east-1", 86_400)
    assert (found.rcu, found.wcu, found.sources) == (5, 5, ())
    assert (found.create, found.guard, found.key_scheme) == (False, True, None)


@pytest.mark.parametrize("prefix", SPELLINGS)
def test_every_spelling_of_a_key_of_deltas_counts(prefix: str) -> None:
    found = LockTableSettings.from_conf(
        {
            prefix + "ddb.tableName": "locks",
            prefix + "ddb.region": "eu-west-1",
            prefix + "ddb.ttl": "3600",
            prefix + "provisionedThroughput.rcu": "7",
            prefix + "provisionedThroughput.wcu": "8",
            prefix + "read.retries": "0",
            prefix + "credentials.provider": (
                "com.amazonaws.auth.profile.ProfileCredentialsProvider"
            ),
        }
    )
    assert (found.table, found.region, found.ttl) == ("locks", "eu-west-1", 3600)
    assert (found.rcu, found.wcu) == (7, 8)
    assert found.sources == (CredentialSource.PROFILE,)


@pytest.mark.parametrize("first", SPELLINGS)
@pytest.mark.parametrize("second", SPELLINGS)
def test_two_spellings_with_two_values_are_refused_by_name(first: str, second: str) -> None:
    if first == second:
        return
    conf = {first + "ddb.tableName": "a", second + "ddb.tableName": "b"}
    with pytest.raises(InconsistentLogStoreConfError) as caught:
        S3DynamoDBLogStore(conf)
    assert first + "ddb.tableName" in str(caught.value)
    assert second + "ddb.tableName" in str(caught.value)
    same = {first + "ddb.tableName": "a", second + "ddb.tableName": "a"}
    assert LockTableSettings.from_conf(same).table == "a"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ddb.ttl", "-1"),
        ("ddb.ttl", "a day"),
        ("read.retries", "-1"),
        ("provisionedThroughput.rcu", "0"),
        ("provisionedThroughput.wcu", "five"),
    ],
)
@pytest.mark.parametrize("prefix", SPELLINGS)
def test_a_number_that_is_none_is_refused_under_the_key_that_was_set(
    prefix: str, name: str, value: str
) -> None:
    with pytest.raises(LogStoreConfError, match=f"^the conf {prefix}{name} must be a whole number"):
        S3DynamoDBLogStore({prefix + name: value})


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("spark." + PREFIX + "ddb.table", "ddb.tableName"),
        ("spark.hadoop." + PREFIX + "ddb.Region", "ddb.region"),
        (PREFIX + "tableName", "ddb.tableName"),
        ("spark.lakelog.s3dynamodb.createtable", "createTable"),
        ("spark.lakelog.s3dynamodb.endpiont", "endpoint"),
    ],
)
def test_a_key_that_no_one_reads_is_refused_with_the_nearest(key: str, nearest: str) -> None:
    with pytest.raises(
        LogStoreConfError, match=f"nothing reads the key {key}; did you mean .*{nearest}"
    ):
        S3DynamoDBLogStore({key: "x"})


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("endpoint", "localhost:8000", "must be a URL"),
        ("createTable", "yes", "must be true or false"),
        ("guard", "off", "must be true or false"),
        ("keyScheme", "gs", "must be one of s3a, s3, s3n"),
        ("access.key", "AKIA-EXAMPLE", "set both or neither"),
        ("secret.key", "s3cr3t-value", "set both or neither"),
    ],
)
def test_our_own_keys_are_checked(key: str, value: str, said: str) -> None:
    with pytest.raises(LogStoreConfError, match=said) as caught:
        S3DynamoDBLogStore({f"spark.lakelog.s3dynamodb.{key}": value})
    if key.endswith(".key"):
        assert value not in str(caught.value)


def test_a_provider_without_a_counterpart_is_refused_by_the_name_of_its_key() -> None:
    key = f"spark.{PREFIX}credentials.provider"
    with pytest.raises(LogStoreConfError, match=f"{key} names com.example.MyProvider"):
        S3DynamoDBLogStore({key: "com.example.MyProvider"})


def test_s3as_keys_are_taken_where_the_provider_says_so() -> None:
    found = LockTableSettings.from_conf(
        {
            f"spark.{PREFIX}credentials.provider": (
                "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
            ),
            "spark.hadoop.fs.s3a.access.key": "AKIA-EXAMPLE",
            "spark.hadoop.fs.s3a.secret.key": "s3cr3t-value",
        }
    )
    assert found.sources == (CredentialSource.SIMPLE,)
    assert found.s3.access_key == "AKIA-EXAMPLE"
    assert "s3cr3t" not in repr(found)


def test_the_jvms_class_name_leads_here() -> None:
    conf = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore"}
    assert resolve("s3a://b/t", conf).class_path == "lakelog.logstores.S3DynamoDBLogStore"


def test_the_settings_in_force_tell_the_table_even_where_the_conf_does_not() -> None:
    found = S3DynamoDBLogStore(
        {
            "spark.lakelog.s3dynamodb.secret.key": "s3cr3t-value",
            "spark.lakelog.s3dynamodb.access.key": "AKIA-EXAMPLE",
        }
    ).settings()
    assert found["lock table"] == "DynamoDB table delta_log in us-east-1"
    assert found["lock table's rows expire after"] == "86400 s"
    assert found["guard against writers that bypass the table"] == "on"
    assert "s3cr3t-value" not in str(dict(found))
