"""What the `fs.s3a.*` settings mean."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from lakelog.logstores import (
    InconsistentLogStoreConfError,
    LogStoreConfError,
    S3ConditionalLogStore,
    S3SingleDriverLogStore,
    Scope,
    log_store_for,
)
from lakelog.logstores.s3 import client as _s3_client
from lakelog.logstores.s3.client import S3Client
from lakelog.logstores.s3.conf import S3Encryption, S3Settings
from lakelog.logstores.s3.sdk import client_config, new_sdk_client, sdk_client
from lakelog.logstores.s3.uri import bucket_and_key
from lakelog.logstores.s3.wire import Wire
from support.s3_settings import FS, KEYS, SECRET, parsed, settings

# Keys


@pytest.mark.parametrize("prefix", [FS, "fs.s3a."])
def test_keys_count_with_and_without_spark_hadoop(prefix: str) -> None:
    found = parsed({**KEYS, "endpoint.region": "eu-west-3"}, prefix=prefix)
    assert (found.access_key, found.secret_key) == ("AKIAEXAMPLE", SECRET)
    assert found.region == "eu-west-3"


def test_two_spellings_with_two_values_are_refused_without_the_values() -> None:
    conf = {FS + "secret.key": SECRET, "fs.s3a.secret.key": "other", FS + "access.key": "a"}
    with pytest.raises(InconsistentLogStoreConfError) as caught:
        S3Settings.from_conf(conf, "lake")
    assert SECRET not in str(caught.value)


def test_a_setting_for_one_bucket_goes_before_the_setting_for_all() -> None:
    values = {
        **KEYS,
        "endpoint": "s3.example.com",
        "bucket.lake.endpoint": "lake.example.com",
        "bucket.lake.access.key": "AKIALAKE",
        "bucket.a.b.secret.key": "of the bucket a.b",
    }
    assert parsed(values).endpoint == "https://lake.example.com"
    assert parsed(values).access_key == "AKIALAKE"
    assert parsed(values, "pond").endpoint == "https://s3.example.com"
    assert parsed(values, "a.b").secret_key == "of the bucket a.b"


def test_nothing_set_leaves_everything_to_the_sdk() -> None:
    assert S3Settings.from_conf({}, "lake") == S3Settings()


def test_an_error_names_the_spelling_that_is_set() -> None:
    with pytest.raises(LogStoreConfError, match=r"fs\.s3a\.bucket\.lake\.path\.style\.access"):
        parsed({"bucket.lake.path.style.access": "yes please"})


# Endpoint


@pytest.mark.parametrize(
    ("text", "tls", "expected"),
    [
        ("minio:9000", "true", "https://minio:9000"),
        ("minio:9000", "false", "http://minio:9000"),
        ("http://minio:9000/", "true", "http://minio:9000"),
        ("https://minio:9000", "false", "https://minio:9000"),
        ("s3.amazonaws.com", "true", None),
        ("https://s3.amazonaws.com", "true", None),
        ("", "true", None),
    ],
)
def test_an_endpoint_may_come_with_a_scheme_or_without(
    text: str, tls: str, expected: str | None
) -> None:
    values = {"endpoint": text, "connection.ssl.enabled": tls}
    assert parsed(values).endpoint == expected


@pytest.mark.parametrize("text", ["ftp://minio", "http://user:pw@minio", "http://minio?x=1", "a b"])
def test_an_endpoint_that_is_none_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(LogStoreConfError, match=r"fs\.s3a\.endpoint must be") as caught:
        settings(endpoint=text)
    assert text not in str(caught.value)


@pytest.mark.parametrize(
    ("endpoint", "region"),
    [
        ("s3.eu-west-1.amazonaws.com", "eu-west-1"),
        ("s3-us-west-2.amazonaws.com", "us-west-2"),
        ("s3.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("https://bucket.vpce-1-abc.s3.us-gov-east-1.amazonaws.com:443", "us-gov-east-1"),
        ("s3.example.com", None),
    ],
)
def test_the_region_is_read_from_an_endpoint_of_aws(endpoint: str, region: str | None) -> None:
    assert settings(endpoint=endpoint).region == region
    assert settings(endpoint=endpoint, endpoint__region="x").region == "x"


@pytest.mark.parametrize(
    ("values", "addressing"),
    [
        ({}, "auto"),
        ({"path.style.access": "true"}, "path"),
        ({"endpoint": "s3.eu-west-1.amazonaws.com"}, "auto"),
        ({"endpoint": "s3.eu-west-1.amazonaws.com", "path.style.access": "true"}, "path"),
        ({"endpoint": "minio:9000"}, "path"),
        ({"endpoint": "minio:9000", "path.style.access": "true"}, "path"),
        ({"endpoint": "oss.example.com", "path.style.access": "false"}, "virtual"),
    ],
)
def test_a_bucket_is_in_the_path_on_an_endpoint_of_ones_own_unless_told_otherwise(
    values: dict[str, str], addressing: str
) -> None:
    assert client_config(parsed(values)).s3["addressing_style"] == addressing


# Requests


def test_the_sdk_never_repeats_a_request(no_aws: pytest.MonkeyPatch) -> None:
    no_aws.setenv("AWS_MAX_ATTEMPTS", "7")
    config = new_sdk_client(parsed(KEYS)).meta.config
    assert config.retries["total_max_attempts"] == 1
    assert config.request_checksum_calculation == "when_required"
    assert config.response_checksum_validation == "when_required"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1500", 1.5), ("200s", 200.0), ("3m", 180.0), ("250 ms", 0.25), ("1H", 3600.0)],
)
def test_times_are_written_as_in_hadoop(text: str, seconds: float) -> None:
    found = parsed({"connection.timeout": text, "connection.establish.timeout": "5s"})
    assert found.read_timeout == seconds
    assert found.connect_timeout == 5.0
    assert client_config(found).read_timeout == seconds


@pytest.mark.parametrize("text", ["0", "soon", "-5", "1.5s", "3 weeks"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(LogStoreConfError, match=r"fs\.s3a\.connection\.timeout must be a time"):
        settings(connection__timeout=text)


def test_the_time_of_all_stores_counts_where_hadoops_is_not_set() -> None:
    found = S3Settings.from_conf({"spark.lakelog.store.request.timeout": "3"}, "lake")
    assert (found.connect_timeout, found.read_timeout) == (3.0, 3.0)


def test_a_proxy_with_a_password_is_used_and_not_shown() -> None:
    found = parsed(
        {
            "proxy.host": "gate",
            "proxy.port": "3128",
            "proxy.username": "me@x",
            "proxy.password": "p/w",
        }
    )
    assert found.proxy == "http://me%40x:p%2Fw@gate:3128"
    assert client_config(found).proxies["https"] == found.proxy
    assert "p%2Fw" not in repr(found)


@pytest.mark.parametrize(
    ("values", "proxy"),
    [
        ({"proxy.host": "gate"}, "http://gate:80"),
        ({"proxy.host": "gate", "proxy.ssl.enabled": "true"}, "https://gate:443"),
        ({}, None),
    ],
)
def test_a_proxy_has_a_port_of_its_scheme(values: dict[str, str], proxy: str | None) -> None:
    assert parsed(values).proxy == proxy


def test_half_a_login_for_the_proxy_is_refused() -> None:
    with pytest.raises(LogStoreConfError, match="set both or neither"):
        settings(proxy__host="gate", proxy__username="me")


def test_the_user_agent_has_what_the_user_wants() -> None:
    assert client_config(settings(user__agent__prefix="nightly")).user_agent_extra == "nightly"
    assert client_config(settings()).user_agent_extra == "lakelog"


def test_connections_are_kept_as_many_as_wanted() -> None:
    assert client_config(settings(connection__maximum="7")).max_pool_connections == 7
    with pytest.raises(LogStoreConfError, match=r"connection\.maximum must be a whole number"):
        settings(connection__maximum="0")


# Encryption

CUSTOMER_KEY = bytes(range(32))
CUSTOMER_TEXT = base64.b64encode(CUSTOMER_KEY).decode()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"encryption.algorithm": "AES256"}, S3Encryption("AES256")),
        ({"encryption.algorithm": "SSE-KMS"}, S3Encryption("aws:kms")),
        (
            {"server-side-encryption-algorithm": "sse-kms", "server-side-encryption.key": "arn:k"},
            S3Encryption("aws:kms", kms_key="arn:k"),
        ),
        (
            {"encryption.algorithm": "DSSE-KMS", "encryption.key": "arn:k"},
            S3Encryption("aws:kms:dsse", kms_key="arn:k"),
        ),
        (
            {"encryption.algorithm": "SSE-C", "encryption.key": CUSTOMER_TEXT},
            S3Encryption("SSE-C", customer_key=CUSTOMER_KEY),
        ),
    ],
)
def test_encryption_is_asked_for(values: dict[str, str], expected: S3Encryption) -> None:
    assert parsed(values).encryption == expected


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"encryption.algorithm": "CSE-KMS"}, "in the client"),
        ({"encryption.algorithm": "rot13"}, "known values are AES256"),
        ({"encryption.algorithm": "SSE-C"}, "32 bytes in base64, and it is not set"),
        ({"encryption.algorithm": "SSE-C", "encryption.key": SECRET}, "and it is not that"),
    ],
)
def test_encryption_that_cannot_be_had_is_refused(values: dict[str, str], why: str) -> None:
    with pytest.raises(LogStoreConfError, match=why) as caught:
        parsed(values)
    assert SECRET not in str(caught.value)


def headers_of(found: S3Settings, call: str, **arguments: Any) -> dict[str, str]:
    """The headers that the SDK would send; nothing is sent."""
    client = new_sdk_client(found)

    def keep(request: Any, **_: Any) -> None:
        raise Unsent(request.headers)

    client.meta.events.register("before-send.s3", keep)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_s3_client, "sdk_client", lambda _: client)
        patch.setattr(_s3_client, "wire_of", lambda _: Wire(client, None))
        request = getattr(S3Client(found, "lake"), call)
        with pytest.raises(Unsent) as caught:
            request(**arguments)
    return caught.value.headers


class Unsent(Exception):  # noqa: N818  # carries headers, tells of no error
    def __init__(self, headers: Any) -> None:
        super().__init__()
        self.headers = {
            name.lower(): value.decode() if isinstance(value, bytes) else str(value)
            for name, value in headers.items()
        }


def test_an_object_is_made_with_the_encryption_the_payer_and_the_token() -> None:
    values = {**KEYS, "encryption.algorithm": "SSE-KMS", "encryption.key": "arn:k"}
    found = parsed({**values, "requester.pays.enabled": "true", "user.agent.prefix": "nightly"})
    made = headers_of(found, "create", key="k", body=b"x", token="tok")
    assert made["if-none-match"] == "*"
    assert made["x-amz-meta-lakelogtoken"] == "tok"
    assert made["x-amz-server-side-encryption"] == "aws:kms"
    assert made["x-amz-server-side-encryption-aws-kms-key-id"] == "arn:k"
    assert made["x-amz-request-payer"] == "requester"
    assert "nightly" in made["user-agent"]
    read = headers_of(found, "get", key="k")
    assert read["x-amz-request-payer"] == "requester"
    assert "x-amz-server-side-encryption" not in read


def test_a_key_of_ones_own_goes_with_reads_too() -> None:
    found = parsed({**KEYS, "encryption.algorithm": "SSE-C", "encryption.key": CUSTOMER_TEXT})
    for call in ("get", "owner"):
        sent = headers_of(found, call, key="k")
        assert sent["x-amz-server-side-encryption-customer-key"] == CUSTOMER_TEXT


def test_no_secret_is_in_the_repr() -> None:
    found = parsed({**KEYS, "session.token": "t0ken", "encryption.algorithm": "SSE-C",
                    "encryption.key": CUSTOMER_TEXT})  # fmt: skip
    for secret in (SECRET, "t0ken", repr(CUSTOMER_KEY), CUSTOMER_TEXT):
        assert secret not in repr(found)


# Stores


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_each_scheme_of_s3_has_the_conditional_store(scheme: str) -> None:
    store = log_store_for(f"{scheme}://lake/t")
    assert type(store) is S3ConditionalLogStore
    assert store.capabilities.exclusive_create == Scope.CLUSTER
    assert not store.is_partial_write_visible(f"{scheme}://lake/t/x")


def test_the_single_driver_store_claims_to_exclude_no_one() -> None:
    assert S3SingleDriverLogStore().capabilities.exclusive_create == Scope.NONE


def test_one_client_serves_all_buckets_of_the_same_settings(no_aws: pytest.MonkeyPatch) -> None:
    one, two = settings(endpoint="minio:9000"), settings("pond", endpoint="minio:9000")
    assert sdk_client(one) is sdk_client(two)
    assert sdk_client(one) is not sdk_client(settings(endpoint="minio:9001"))


@pytest.mark.parametrize(
    ("endpoint", "known"),
    [
        (None, True),
        ("s3.eu-west-1.amazonaws.com", True),
        ("https://bucket.vpce-1-abc.s3.us-east-1.vpce.amazonaws.com", True),
        ("s3.example.com", False),
        ("http://evil-amazonaws.com", False),
    ],
)
def test_only_awss_own_hosts_are_known(
    endpoint: str | None, known: bool, no_aws: pytest.MonkeyPatch
) -> None:
    values = {} if endpoint is None else {"endpoint": endpoint}
    assert S3Client(parsed(values), "lake").is_known is known


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://lake/t/_delta_log/0.json", ("lake", "t/_delta_log/0.json")),
        ("s3a://lake", ("lake", "")),
        ("S3A://lake/", ("lake", "")),
        ("s3n://my.lake_1/a b/ü/%41", ("my.lake_1", "a b/ü/%41")),
    ],
)
def test_a_uri_is_a_bucket_and_a_key_as_it_stands(uri: str, expected: tuple[str, str]) -> None:
    assert bucket_and_key(uri) == expected


@pytest.mark.parametrize("uri", ["/lake/t", "gs://lake/t", "s3:/lake/t", "s3:///t", "s3://-x/t"])
def test_what_is_no_uri_of_s3_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="give s3://bucket/key"):
        bucket_and_key(uri)
