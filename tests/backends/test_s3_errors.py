"""What users get wrong about S3: one error each, soon, that names the mend and no secret."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import traceback
import uuid
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import TableNotFoundError
from lakelog.logstores import CommitOutcomeUnknownError, MissingExtraError, S3ConditionalLogStore
from lakelog.logstores.s3 import errors as _s3_errors
from support.fault_proxy import FaultProxy
from support.servers._service import free_port
from support.servers.minio import run_minio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.servers.minio import S3Endpoint

pytestmark = pytest.mark.needs("minio")

FS = "spark.hadoop.fs.s3a."
QUICK = {
    "spark.lakelog.store.endpointProbe": "never",
    "spark.lakelog.store.request.timeout": "20",
    "spark.lakelog.store.retry.timeBudget": "0.5",
}
SECRET = "Th1s-Is-A-Secret/That+Nobody=Sees"


@pytest.fixture
def log(s3_bucket: str) -> str:
    return f"s3a://{s3_bucket}/{uuid.uuid4().hex}/_delta_log"


@pytest.fixture
def proxy(minio: S3Endpoint) -> Iterator[FaultProxy]:
    with FaultProxy(minio.url) as between:
        yield between


@pytest.fixture
def store_with(minio: S3Endpoint) -> Callable[..., S3ConditionalLogStore]:
    """Makes stores with some settings of `fs.s3a` set otherwise; `None` unsets."""

    def make(settings: dict[str, str | None]) -> S3ConditionalLogStore:
        conf = {**minio.conf, **QUICK}
        for key, value in settings.items():
            conf.pop(FS + key, None)
            if value is not None:
                conf[FS + key] = value
        return S3ConditionalLogStore(conf)

    return make


@pytest.fixture
def message_of(caplog: pytest.LogCaptureFixture) -> Callable[..., str]:
    """Runs what has to fail, and gives the message, after a look for secrets all over."""

    def run(kind: type[Exception], action: Callable[[], Any], store: S3ConditionalLogStore) -> str:
        with caplog.at_level(logging.INFO), pytest.raises(kind) as caught:
            action()
        secrets = [
            value
            for key, value in store.conf.items()
            if "secret" in key or "token" in key or "password" in key
        ]
        seen = "".join(traceback.format_exception(caught.value))
        seen += repr(caught.value) + caplog.text + repr(store) + str(dict(store.settings()))
        seen += "".join(repr(client) + repr(client.settings) for client in store._clients.values())
        for secret in secrets:
            assert secret not in seen
        return str(caught.value)

    return run


def operations(store: S3ConditionalLogStore, log: str) -> dict[str, Callable[[], Any]]:
    path = f"{log}/00000000000000000000.json"
    return {
        "read": lambda: list(store.read(path)),
        "list": lambda: list(store.list_from(path)),
        "create": lambda: store.write(path, ["{}"]),
        "put": lambda: store.write(path, ["{}"], overwrite=True),
    }


OPERATIONS = ["read", "list", "create", "put"]


@pytest.mark.parametrize("doing", OPERATIONS)
def test_an_access_key_that_no_one_knows(
    doing: str,
    store_with: Callable[..., S3ConditionalLogStore],
    message_of: Callable[..., str],
    log: str,
) -> None:
    store = store_with({"access.key": "AKIAIOSFODNN7EXAMPLE", "secret.key": SECRET})
    message = message_of(PermissionError, operations(store, log)[doing], store)
    assert "InvalidAccessKeyId" in message
    assert "Check spark.hadoop.fs.s3a.access.key" in message


@pytest.mark.parametrize("doing", OPERATIONS)
def test_a_secret_key_with_a_character_missing(
    doing: str,
    minio: S3Endpoint,
    store_with: Callable[..., S3ConditionalLogStore],
    message_of: Callable[..., str],
    log: str,
) -> None:
    store = store_with({"secret.key": minio.secret_key[:-1]})
    message = message_of(PermissionError, operations(store, log)[doing], store)
    assert "SignatureDoesNotMatch" in message
    assert "spark.hadoop.fs.s3a.secret.key for missing or added characters" in message


@pytest.mark.parametrize("doing", OPERATIONS)
def test_no_credentials_anywhere(
    doing: str,
    store_with: Callable[..., S3ConditionalLogStore],
    message_of: Callable[..., str],
    log: str,
    no_aws: pytest.MonkeyPatch,
) -> None:
    store = store_with({"access.key": None, "secret.key": None})
    message = message_of(PermissionError, operations(store, log)[doing], store)
    for way in ("fs.s3a.access.key", "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "a role"):
        assert way in message


@pytest.mark.parametrize("doing", OPERATIONS)
def test_a_profile_that_does_not_exist(
    doing: str,
    store_with: Callable[..., S3ConditionalLogStore],
    message_of: Callable[..., str],
    log: str,
    no_aws: pytest.MonkeyPatch,
) -> None:
    no_aws.setenv("AWS_PROFILE", "of-another-machine")
    store = store_with({"access.key": None, "secret.key": None})
    assert "ProfileNotFound" in message_of(PermissionError, operations(store, log)[doing], store)


@pytest.mark.parametrize("doing", OPERATIONS)
def test_a_session_token_that_has_expired(
    doing: str,
    proxy: FaultProxy,
    store_with: Callable[..., S3ConditionalLogStore],
    message_of: Callable[..., str],
    log: str,
) -> None:
    store = store_with({"endpoint": proxy.url, "session.token": SECRET})
    proxy.arm("refuse:400:ExpiredToken", b"HTTP/1.1")
    message = message_of(PermissionError, operations(store, log)[doing], store)
    assert "the credentials have expired. Renew spark.hadoop.fs.s3a.session.token" in message


@pytest.mark.parametrize("doing", OPERATIONS)
def test_a_bucket_that_does_not_exist(
    doing: str, store_with: Callable[..., S3ConditionalLogStore], message_of: Callable[..., str]
) -> None:
    store = store_with({})
    log = "s3://a-bucket-that-nobody-made/t/_delta_log"
    message = message_of(FileNotFoundError, operations(store, log)[doing], store)
    assert message.startswith("the bucket a-bucket-that-nobody-made does not exist at http://")


def test_a_table_in_a_bucket_that_does_not_exist_is_told_of_the_bucket(
    store_with: Callable[..., S3ConditionalLogStore], message_of: Callable[..., str]
) -> None:
    store = store_with({})
    table = "s3://a-bucket-that-nobody-made/t"
    log = DeltaLog.for_table(table, store.conf)
    message = message_of(TableNotFoundError, log.update, store)
    assert "nothing is there (the bucket a-bucket-that-nobody-made does not exist at" in message


def test_a_bucket_of_impossible_letters(
    store_with: Callable[..., S3ConditionalLogStore], message_of: Callable[..., str]
) -> None:
    store = store_with({})
    message = message_of(ValueError, lambda: store.read("s3://no spaces/t/x"), store)
    assert "does not name a valid S3 bucket" in message


def test_credentials_in_the_uri_are_refused_and_not_repeated(
    store_with: Callable[..., S3ConditionalLogStore], message_of: Callable[..., str]
) -> None:
    store = store_with({})
    message = message_of(
        ValueError, lambda: store.read(f"s3a://AKIA:{SECRET[:8]}@bucket/t/x"), store
    )
    assert SECRET[:8] not in message
    assert "set spark.hadoop.fs.s3a.access.key" in message


@pytest.fixture(scope="module")
def far() -> Iterator[S3Endpoint]:
    """A service in another region, with the bucket `there`."""
    with run_minio("eu-central-1") as endpoint:
        client = endpoint.client()
        client.create_bucket(
            Bucket="there", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
        )
        client.close()
        yield endpoint


@pytest.mark.parametrize("doing", OPERATIONS)
def test_the_region_of_another_bucket(
    doing: str, far: S3Endpoint, message_of: Callable[..., str]
) -> None:
    store = S3ConditionalLogStore({**far.conf, **QUICK, FS + "endpoint.region": "us-west-2"})
    message = message_of(OSError, operations(store, "s3://there/t/_delta_log")[doing], store)
    assert "signed for us-west-2, and the bucket is in eu-central-1" in message
    assert "Set spark.hadoop.fs.s3a.endpoint.region = eu-central-1" in message


def test_a_redirect_to_another_region_without_its_name(
    proxy: FaultProxy,
    store_with: Callable[..., S3ConditionalLogStore],
    message_of: Callable[..., str],
    log: str,
) -> None:
    proxy.arm("refuse:301:PermanentRedirect", b"PUT /")
    store = store_with({"endpoint": proxy.url})
    message = message_of(OSError, operations(store, log)["create"], store)
    assert "the bucket is not in us-east-1. Set spark.hadoop.fs.s3a.endpoint.region" in message
    assert len(proxy.requests) == 1, "the region is not looked up behind the user's back"


@pytest.mark.parametrize("doing", OPERATIONS)
@pytest.mark.parametrize(("off", "way"), [(3600, "ahead"), (-7200, "behind")])
def test_a_clock_that_is_off(
    doing: str,
    off: int,
    way: str,
    store_with: Callable[..., S3ConditionalLogStore],
    message_of: Callable[..., str],
    log: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from botocore.auth import SigV4Auth

    date = SigV4Auth._set_necessary_date_headers

    def another_date(self: SigV4Auth, request: Any) -> None:
        right = datetime.strptime(request.context["timestamp"] + "+0000", "%Y%m%dT%H%M%SZ%z")
        wrong = right + timedelta(seconds=off)
        request.context["timestamp"] = wrong.strftime("%Y%m%dT%H%M%SZ")
        date(self, request)

    monkeypatch.setattr(SigV4Auth, "_set_necessary_date_headers", another_date)
    monkeypatch.setattr(_s3_errors, "_now", lambda: time.time() + off)
    store = store_with({})
    message = message_of(PermissionError, operations(store, log)[doing], store)
    assert "RequestTimeTooSkewed" in message
    assert "Correct the clock (NTP)" in message
    found = re.search(r"this machine's clock is (\d+) s (ahead|behind)", message)
    assert found is not None
    assert found[2] == way
    assert abs(int(found[1]) - abs(off)) < 60


@pytest.mark.parametrize("doing", OPERATIONS)
def test_an_endpoint_where_nothing_listens(
    doing: str,
    store_with: Callable[..., S3ConditionalLogStore],
    message_of: Callable[..., str],
    log: str,
) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    store = store_with({"endpoint": url})
    message = message_of(OSError, operations(store, log)[doing], store)
    assert f"no connection to {url}" in message
    assert "check the address, and that the service is up." in message
    assert "given up after 0.5 s" in message


def test_an_endpoint_whose_name_no_one_knows(
    store_with: Callable[..., S3ConditionalLogStore], message_of: Callable[..., str], log: str
) -> None:
    store = store_with({"endpoint": "http://s3.no-such-host.invalid"})
    message = message_of(OSError, operations(store, log)["create"], store)
    assert "no connection to http://s3.no-such-host.invalid" in message


def test_https_to_a_service_that_speaks_http(
    minio: S3Endpoint,
    store_with: Callable[..., S3ConditionalLogStore],
    message_of: Callable[..., str],
    log: str,
) -> None:
    store = store_with({"endpoint": minio.url.replace("http:", "https:")})
    message = message_of(OSError, operations(store, log)["create"], store)
    assert "begin the endpoint with http://" in message


ALLOWED = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"AWS": ["*"]},
            "Action": ["s3:PutObject"],
            "Resource": ["arn:aws:s3:::{bucket}/*"],
        }
    ],
}


def test_rights_to_put_and_not_to_list_or_read(
    minio: S3Endpoint,
    s3_bucket: str,
    store_with: Callable[..., S3ConditionalLogStore],
    message_of: Callable[..., str],
    log: str,
) -> None:
    client = minio.client()
    policy = json.dumps(ALLOWED).replace("{bucket}", s3_bucket)
    client.put_bucket_policy(Bucket=s3_bucket, Policy=policy)
    anybody = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    store = store_with(
        {"aws.credentials.provider": anybody, "access.key": None, "secret.key": None}
    )
    doing = operations(store, log)
    doing["create"]()
    message = message_of(PermissionError, doing["list"], store)
    assert f"may not list here; they need s3:ListBucket on the bucket {s3_bucket}" in message
    assert "may not read here; they need s3:GetObject" in message_of(
        PermissionError, doing["read"], store
    )
    client.delete_bucket_policy(Bucket=s3_bucket)
    client.close()


def test_a_policy_that_forbids_puts_without_the_header(
    proxy: FaultProxy,
    store_with: Callable[..., S3ConditionalLogStore],
    message_of: Callable[..., str],
    log: str,
) -> None:
    proxy.arm("refuse:403:AccessDenied", b"_last_checkpoint", times=2)
    store = store_with({"endpoint": proxy.url})
    store.write(f"{log}/00000000000000000000.json", ["{}"])

    def put() -> None:
        store.write(f"{log}/_last_checkpoint", ["{}"], overwrite=True)

    def upload() -> None:
        with store.staged(f"{log}/_last_checkpoint") as (files, draft):
            files.open_output_stream(draft).close()

    for action in (put, upload):
        message = message_of(PermissionError, action, store)
        assert "bucket policy that demands If-None-Match" in message
        assert "exempt _last_checkpoint, checkpoints and data files" in message


@pytest.mark.parametrize("doing", OPERATIONS)
@pytest.mark.parametrize("status", [200, 403, 407])
def test_a_page_of_the_companys_proxy(
    doing: str,
    status: int,
    proxy: FaultProxy,
    store_with: Callable[..., S3ConditionalLogStore],
    message_of: Callable[..., str],
    log: str,
) -> None:
    proxy.arm(f"html:{status}", b"HTTP/1.1", times=9)
    store = store_with({"endpoint": proxy.url})
    creates = doing == "create"
    kind = CommitOutcomeUnknownError if creates else OSError
    message = message_of(kind, operations(store, log)[doing], store)
    assert "HTML page" in message
    assert "proxy settings (HTTPS_PROXY, NO_PROXY)" in message
    # Whoever answers so may have let the request through: a create is looked for, once.
    assert len(proxy.requests) == 1 + creates, "a page for people is no reason to ask again"


def test_a_gateway_that_answers_with_html_is_reported(
    proxy: FaultProxy,
    store_with: Callable[..., S3ConditionalLogStore],
    message_of: Callable[..., str],
    log: str,
) -> None:
    proxy.arm("html:502", b"GET /", times=100)
    store = store_with({"endpoint": proxy.url})
    message = message_of(OSError, operations(store, log)["read"], store)
    assert "with an HTML page: a proxy or gateway in between?" in message


def test_the_sdk_is_not_installed(
    store_with: Callable[..., S3ConditionalLogStore],
    message_of: Callable[..., str],
    log: str,
    no_aws: pytest.MonkeyPatch,
) -> None:
    for name in ("boto3", "botocore", "botocore.session"):
        no_aws.setitem(sys.modules, name, None)
    store = store_with({})
    message = message_of(MissingExtraError, operations(store, log)["read"], store)
    assert message == "S3 needs an extra: pip install '.[s3]' in a clone of lakelog"
    assert message in store.settings()["s3 client"]
