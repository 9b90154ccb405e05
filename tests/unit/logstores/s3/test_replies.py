"""What each reply of S3, and each way not to get one, is taken for."""

from __future__ import annotations

import sys
import time
from email.utils import formatdate
from typing import Any

import pytest
from botocore import exceptions as sdk
from botocore.parsers import ResponseParserError
from urllib3.exceptions import ProtocolError

from lakelog.logstores import MissingExtraError, UnsafeLogStoreError
from lakelog.logstores.object_store.store import KeyTakenError, NotTheServiceError, TryAgainError
from lakelog.logstores.s3.client import S3Client
from lakelog.logstores.s3.errors import Place, check_reply, speaking_s3
from support.scripted_server import scripted_server

PLACE = Place("https://s3.example.com", "eu-west-1", "lake", "t/_delta_log/0.json")
URL = {"endpoint_url": "https://s3.example.com/lake/t"}


def reply(status: int, code: str = "", message: str = "", **headers: str) -> sdk.ClientError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    parsed: Any = {
        "Error": {"Code": code or str(status), "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": named},
    }
    return sdk.ClientError(parsed, "PutObject")


def named(value: object) -> str | None:
    """A test's name."""
    if isinstance(value, sdk.ClientError):
        status = value.response["ResponseMetadata"]["HTTPStatusCode"]
        return f"{status}-{value.response['Error']['Code']}"
    return type(value).__name__ if isinstance(value, Exception) else None


def taken_for(error: Exception, doing: str = "create") -> Exception:
    def meet() -> None:
        with speaking_s3(doing, PLACE):
            raise error

    with pytest.raises(Exception) as caught:  # which one is the question
        meet()
    assert caught.value is not error
    return caught.value


@pytest.mark.parametrize(
    ("status", "code", "landed"),
    [
        (409, "ConditionalRequestConflict", False),
        (409, "OperationAborted", False),
        (429, "TooManyRequests", False),
        (429, "", True),
        (503, "SlowDown", False),
        (503, "TooManyRequests", False),
        (503, "SlowDownWrite", True),
        (503, "ServiceUnavailable", True),
        (503, "", True),
        (500, "InternalError", True),
        (502, "", True),
        (504, "", True),
        (408, "", True),
        (400, "RequestTimeout", True),
    ],
)
@pytest.mark.parametrize("doing", ["create", "put", "read", "list", "delete", "upload"])
def test_trouble_that_passes_is_no_error(status: int, code: str, landed: bool, doing: str) -> None:
    again = taken_for(reply(status, code), doing)
    assert isinstance(again, TryAgainError)
    assert again.may_have_landed is landed


def test_a_pause_is_asked_for_in_seconds_or_by_a_date() -> None:
    def asked(text: str) -> float | None:
        again = taken_for(reply(503, "SlowDown", retry_after=text))
        assert isinstance(again, TryAgainError)
        return again.retry_after

    assert asked("7") == 7.0
    assert asked("0.5") == 0.5
    assert asked("-3") == 0.0
    assert asked("soon") is None
    assert asked("") is None
    then = asked(formatdate(time.time() + 90, usegmt=True))
    assert then is not None
    assert 60 < then < 91
    assert asked(formatdate(time.time() - 90, usegmt=True)) == 0.0


def test_a_key_that_is_taken_is_known_only_when_it_was_to_be_made() -> None:
    assert isinstance(taken_for(reply(412, "PreconditionFailed")), KeyTakenError)
    assert type(taken_for(reply(412, "PreconditionFailed"), "put")) is OSError


def test_an_endpoint_without_conditions_is_unsafe_to_create_on() -> None:
    assert isinstance(taken_for(reply(501, "NotImplemented")), UnsafeLogStoreError)
    assert isinstance(taken_for(reply(400, "NotImplemented")), UnsafeLogStoreError)
    assert type(taken_for(reply(501, "NotImplemented"), "list")) is OSError


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (
            reply(404, "NoSuchKey"),
            FileNotFoundError,
            "s3://lake/t/_delta_log/0.json does not exist",
        ),
        (
            sdk.ClientError(reply(404).response, "HeadObject"),
            FileNotFoundError,
            "s3://lake/t/_delta_log/0.json does not exist",
        ),
        (reply(404), NotTheServiceError, "is not an S3 service, or a proxy in between answered"),
        (reply(404, "NoSuchBucket"), FileNotFoundError, "the bucket lake does not exist"),
        (reply(404, "NoSuchUpload"), OSError, "NoSuchUpload"),
        (reply(401, x_amz_request_id="1"), PermissionError, "s3:PutObject"),
        (reply(403, x_amz_request_id="1"), PermissionError, "s3:PutObject"),
        (reply(403), NotTheServiceError, "403 without an error code of S3"),
        (reply(403, "AccessDenied", "no"), PermissionError, "answered 403 AccessDenied (no)"),
        (reply(403, "RequestTimeTooSkewed"), PermissionError, "this machine's clock is off"),
        (reply(400, "InvalidToken"), PermissionError, "session token"),
        (reply(400, "EntityTooLarge"), OSError, "400 EntityTooLarge"),
        (reply(307, "TemporaryRedirect"), OSError, "the bucket is not in eu-west-1"),
        (
            reply(301, "PermanentRedirect", x_amz_bucket_region="us-east-2"),
            OSError,
            "the bucket is in us-east-2",
        ),
        (reply(407, content_type="text/html; charset=utf-8"), NotTheServiceError, "HTML page"),
        (sdk.NoCredentialsError(), PermissionError, "AWS_ACCESS_KEY_ID"),
        (sdk.PartialCredentialsError(provider="env", cred_var="x"), PermissionError, "AWS_PROFILE"),
        (
            sdk.UnauthorizedSSOTokenError(),
            PermissionError,
            "no usable S3 credentials (UnauthorizedSSOTokenError)",
        ),
        (
            sdk.SSLError(endpoint_url="x", error="[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"),
            OSError,
            "AWS_CA_BUNDLE",
        ),
        (ResponseParserError("not well-formed"), NotTheServiceError, "its reply is not XML"),
        (sdk.ParamValidationError(report="Invalid bucket name"), ValueError, "Invalid bucket name"),
        (sdk.UnknownEndpointError(service_name="s3", region_name="x"), OSError, "UnknownEndpoint"),
    ],
    ids=named,
)
def test_an_error_for_good_says_what_to_do(
    error: Exception, kind: type[Exception], words: str
) -> None:
    classified = taken_for(error)
    assert type(classified) is kind
    assert words in str(classified)


@pytest.mark.parametrize(
    ("error", "landed"),
    [
        (sdk.EndpointConnectionError(endpoint_url=URL["endpoint_url"]), False),
        (sdk.ConnectTimeoutError(endpoint_url=URL["endpoint_url"]), False),
        (sdk.ProxyConnectionError(proxy_url="http://gate:3128"), False),
        (sdk.ReadTimeoutError(endpoint_url=URL["endpoint_url"]), True),
        (sdk.ConnectionClosedError(endpoint_url=URL["endpoint_url"]), True),
        (sdk.HTTPClientError(error=ConnectionResetError()), True),
        (sdk.SSLError(endpoint_url="x", error="EOF occurred in violation of protocol"), True),
        (sdk.ResponseStreamingError(error="broken"), True),
        (sdk.IncompleteReadError(actual_bytes=1, expected_bytes=2), True),
        (ProtocolError("connection broken"), True),
    ],
    ids=named,
)
def test_a_broken_way_is_tried_again(error: Exception, landed: bool) -> None:
    again = taken_for(error)
    assert isinstance(again, TryAgainError)
    assert again.may_have_landed is landed


def test_sts_is_told_apart_from_s3() -> None:
    busy = reply(503, "ServiceUnavailable")
    busy.operation_name = "AssumeRole"
    again = taken_for(busy)
    assert isinstance(again, TryAgainError)
    assert not again.may_have_landed, "S3 itself was not asked yet"
    refused = reply(403, "AccessDenied")
    refused.operation_name = "AssumeRole"
    assert "the role was not assumed" in str(taken_for(refused))


def test_a_success_that_s3_cannot_have_given_is_none() -> None:
    check_reply({"ETag": "x"}, "ETag", PLACE)
    page = {"ResponseMetadata": {"HTTPHeaders": {"content-type": "text/html"}}}
    with pytest.raises(OSError, match="HTML page"):
        check_reply(page, "ETag", PLACE)
    with pytest.raises(TryAgainError, match="lacks ETag") as caught:
        check_reply({}, "ETag", PLACE)
    assert caught.value.may_have_landed


def test_a_machine_without_boto3_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.exceptions", None)
    with pytest.raises(MissingExtraError, match=r"'\.\[s3\]'"), speaking_s3("read", PLACE):
        pass


def test_a_page_that_promises_more_without_saying_where_is_no_end_of_the_log() -> None:
    page = (
        b'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name>'
        b"<Prefix>t/_delta_log/</Prefix><KeyCount>1</KeyCount><IsTruncated>true</IsTruncated>"
        b"<Contents><Key>t/_delta_log/00000000000000000000.json</Key><ETag>x</ETag>"
        b"<LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents>"
        b"</ListBucketResult>"
    )
    with scripted_server() as server:
        server.say(200, page)
        server.headers["Content-Type"] = "application/xml"
        conf = {
            "spark.hadoop.fs.s3a.endpoint": server.url,
            "spark.hadoop.fs.s3a.access.key": "AKIDEXAMPLE",
            "spark.hadoop.fs.s3a.secret.key": "secret",
        }
        with pytest.raises(TryAgainError, match="lacks NextContinuationToken"):
            S3Client.from_conf(conf, "bucket").page("t/_delta_log/", "", None, None)
