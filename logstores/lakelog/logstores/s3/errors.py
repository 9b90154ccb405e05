"""What S3 and the way to it say, in the words of `ObjectClient`.

Codes and statuses are those of S3's "List of error codes", and what MinIO and others make of them.
"""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from lakelog.logstores.errors import MissingExtraError, UnsafeLogStoreError
from lakelog.logstores.object_store.client import KeyTakenError, NotTheServiceError, TryAgainError
from lakelog.logstores.unreachable import is_for_now

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_CONDITION: Final = (
    "this endpoint does not support If-None-Match on PUT, so it can't tell which of two writers "
    "came first. Use lakelog.logstores.S3DynamoDBLogStore, or "
    "lakelog.logstores.S3SingleDriverLogStore with spark.lakelog.unsafe.singleWriter=true where "
    "there is one writer"
)
_WAYS: Final = (
    "Give them by spark.hadoop.fs.s3a.access.key and .secret.key, by "
    "spark.hadoop.fs.s3a.aws.credentials.provider, by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "by a profile (AWS_PROFILE), or by a role of the machine or container"
)
_WRONG_PLACE: Final = {
    "AuthorizationHeaderMalformed",
    "PermanentRedirect",
    "TemporaryRedirect",
    "Redirect",
    "IllegalLocationConstraintException",
    "301",
    "307",
}
_EXPIRED: Final = {
    "ExpiredToken",
    "ExpiredTokenException",
    "RequestExpired",
    "TokenRefreshRequired",
}
_REFUSED_KEY: Final = {
    "InvalidAccessKeyId": "the service does not know this access key. Check "
    "spark.hadoop.fs.s3a.access.key, and that the endpoint is the one that issued it",
    "SignatureDoesNotMatch": "the secret key does not belong to the access key. Check "
    "spark.hadoop.fs.s3a.secret.key for missing or added characters",
    "InvalidToken": "the session token does not belong to the access key. Set or unset "
    "spark.hadoop.fs.s3a.session.token",
    "InvalidClientTokenId": "the service does not know this access key or session token",
}
# Refused before anything was done. Others of the kind (MinIO's SlowDownWrite) may have begun.
_NOTHING_DONE: Final = {"SlowDown", "TooManyRequests"}
_TEMPORARY: Final = {"RequestTimeout", "RequestTimeoutException"}
_ASSUMING: Final = {"AssumeRole", "AssumeRoleWithWebIdentity"}
_now = time.time
_CERTIFICATE: Final = ("CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request goes, for messages."""

    endpoint: str
    region: str
    bucket: str = ""
    key: str = ""

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}" if self.bucket else self.endpoint


@contextlib.contextmanager
def speaking_s3(doing: str, place: Place) -> Iterator[None]:
    """Translate what the SDK raises in the block.

    Args:
        doing: `connect`, `create`, `put`, `read`, `list`, `delete` or `upload`.
        place: of the request.

    Raises:
        KeyTakenError: 412.
        TryAgainError: as `ObjectClient` has it.
        FileNotFoundError: no such object or bucket.
        PermissionError: credentials or permissions.
        NotTheServiceError: something in between answered.
        OSError: the rest.
        UnsafeLogStoreError: the endpoint has no conditional put.
    """
    try:
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError
        from urllib3.exceptions import HTTPError
    except ModuleNotFoundError as error:
        raise MissingExtraError("s3", "S3") from error

    outer = sys.exception()
    try:
        yield
    except ClientError as error:
        raise _reply_error(error, doing, place) from error
    except ResponseParserError as error:
        raise _not_s3(place, "its reply is not XML") from error
    except (BotoCoreError, HTTPError) as error:
        raise _transport_error(error, place, outer) from error


def check_reply(reply: dict[str, Any], needed: str, place: Place) -> None:
    """Refuse a successful reply that S3 can't have sent.

    A login page of a company's proxy comes with status 200. To the SDK it is an object without an
    ETag, or a listing with nothing in it.

    Raises:
        OSError: it is a web page.
        TryAgainError: it lacks what S3 always sends.
    """
    if needed in reply:
        return
    if _is_html(reply):
        raise _not_s3(place, "it answered with an HTML page")
    raise TryAgainError(f"{place}: the reply lacks {needed}", may_have_landed=True)


def _reply_error(error: Any, doing: str, place: Place) -> Exception:
    reply = error.response
    meta = reply.get("ResponseMetadata", {})
    status = int(meta.get("HTTPStatusCode", 0))
    fault = reply.get("Error", {})
    code, message = str(fault.get("Code", "")), str(fault.get("Message", ""))
    answer = f"{place}: {place.endpoint} answered {status} {code}".rstrip()
    if message:
        answer += f" ({message.rstrip('.')})"
    if error.operation_name in _ASSUMING:
        return _not_assumed(f"STS answered {status} {code} ({message})", status, place)
    if status == 412:
        return KeyTakenError(answer) if doing == "create" else OSError(answer)
    if status == 501 or code == "NotImplemented":
        return (
            UnsafeLogStoreError(f"{answer}: {NO_CONDITION}.")
            if doing == "create"
            else OSError(answer)
        )
    foreign = _is_foreign(reply, status, code)
    if status in (409, 429) or code in _NOTHING_DONE:
        return TryAgainError(answer, may_have_landed=foreign, retry_after=_retry_after(meta))
    if status >= 500 or status == 408 or code in _TEMPORARY:
        if _is_html(reply):
            answer += " with an HTML page: a proxy or gateway in between?"
        return TryAgainError(answer, may_have_landed=True, retry_after=_retry_after(meta))
    if _is_html(reply):
        return _not_s3(place, f"it answered {status} with an HTML page")
    if foreign and doing == "create" and not error.operation_name.startswith("Head"):
        return _not_s3(place, f"it answered {status} without an error code of S3")
    if status == 404:
        return _missing(code, answer, place, error.operation_name)
    return _refusal(fault, meta, answer, doing, place) or OSError(f"{answer}.")


def _not_assumed(answer: str, status: int, place: Place) -> Exception:
    if status == 429 or status >= 500:  # before the request to S3 itself
        return TryAgainError(f"{place}: {answer}", may_have_landed=False)
    return PermissionError(
        f"{place}: the role was not assumed: {answer}. Check fs.s3a.assumed.role.arn, who may "
        "assume it, and the keys that ask for it."
    )


def _refusal(
    fault: dict[str, Any], meta: dict[str, Any], answer: str, doing: str, place: Place
) -> OSError | None:
    code = str(fault.get("Code", ""))
    headers = meta.get("HTTPHeaders", {})
    if code in _WRONG_PLACE:
        region = fault.get("Region") or headers.get("x-amz-bucket-region")
        right = f"is in {region}" if region else f"is not in {place.region}"
        return OSError(
            f"{answer}: requests were signed for {place.region}, and the bucket {right}. "
            f"Set spark.hadoop.fs.s3a.endpoint.region{f' = {region}' if region else ''}"
            " (and an endpoint of that region, if one is set)."
        )
    if code == "RequestTimeTooSkewed":
        return PermissionError(f"{answer}: {_skew(fault, headers)}. Correct the clock (NTP).")
    if code in _EXPIRED:
        return PermissionError(
            f"{answer}: the credentials have expired. Renew spark.hadoop.fs.s3a.session.token and "
            "its keys, or use a source that renews itself (a profile, a role)."
        )
    if code in _REFUSED_KEY:
        return PermissionError(f"{answer}: {_REFUSED_KEY[code]}.")
    if meta.get("HTTPStatusCode") in (401, 403):
        return PermissionError(f"{answer}: {_denied(doing, place)}.")
    return None


def _denied(doing: str, place: Place) -> str:
    needed = {
        "create": "s3:PutObject",
        "put": "s3:PutObject",
        "upload": "s3:PutObject and s3:AbortMultipartUpload",
        "read": "s3:GetObject, and s3:ListBucket to tell a missing object from a forbidden one",
        "list": f"s3:ListBucket on the bucket {place.bucket}",
        "delete": "s3:DeleteObject",
    }.get(doing, "another right")
    text = f"these credentials may not {doing} here; they need {needed}"
    if doing in ("put", "upload"):
        text += (
            ". A bucket policy that demands If-None-Match also refuses this: exempt "
            "_last_checkpoint, checkpoints and data files from it, and keep it for commits "
            "(_delta_log/*.json)"
        )
    return text


def _skew(fault: dict[str, Any], headers: dict[str, str]) -> str:
    try:
        server = _moment(str(fault["ServerTime"]))
        own = _moment(str(fault["RequestTime"]))
    except (KeyError, ValueError):
        try:
            server = parsedate_to_datetime(headers["date"]).timestamp()
            own = _now()
        except (KeyError, ValueError):
            return "this machine's clock is off"
    off = own - server
    return f"this machine's clock is {abs(off):.0f} s {'ahead' if off > 0 else 'behind'}"


def _moment(text: str) -> float:
    """`20261121T212345Z` or `2026-11-21T21:23:45Z` as seconds."""
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()


def _missing(code: str, answer: str, place: Place, operation: str) -> OSError:
    if code == "NoSuchBucket":
        return FileNotFoundError(
            f"the bucket {place.bucket} does not exist at {place.endpoint}. "
            "Create it, or check its name and spark.hadoop.fs.s3a.endpoint."
        )
    # The reply to a HEAD has no body, so no code. Any other reply of S3's has one, and a gateway's
    # bare 404 says nothing about an object: a log would seem to end there.
    if code == "NoSuchKey" or operation.startswith("Head"):
        return FileNotFoundError(f"{place} does not exist")
    if code in ("404", ""):
        return _not_s3(place, "it answered 404 without an error code of S3")
    return OSError(answer)


def _transport_error(error: Exception, place: Place, outer: BaseException | None) -> Exception:
    from botocore import exceptions as sdk

    kind = type(error).__name__
    if isinstance(
        error,
        (
            sdk.NoCredentialsError,
            sdk.PartialCredentialsError,
            sdk.CredentialRetrievalError,
            sdk.TokenRetrievalError,
            sdk.SSOError,
            sdk.ProfileNotFound,
        ),
    ):
        return PermissionError(f"{place}: no usable S3 credentials ({kind}). {_WAYS}.")
    if isinstance(error, sdk.SSLError) and any(mark in str(error) for mark in _CERTIFICATE):
        return OSError(
            f"{place}: no TLS with {place.endpoint}: {error}. For a private certificate set "
            "AWS_CA_BUNDLE; for a service without TLS begin the endpoint with http://."
        )
    if isinstance(
        error, (sdk.EndpointConnectionError, sdk.ConnectTimeoutError, sdk.ProxyConnectionError)
    ):
        return TryAgainError(
            f"{place}: no connection to {_target(error, place)} ({kind}); "
            "check the address, and that the service is up.",
            may_have_landed=False,
            unreached=not (isinstance(error, sdk.ConnectTimeoutError) or is_for_now(error, outer)),
        )
    if isinstance(error, (sdk.ParamValidationError, sdk.InvalidRegionError)):
        return ValueError(f"{place}: {error}")
    if isinstance(error, sdk.BotoCoreError) and not isinstance(
        error, (sdk.HTTPClientError, sdk.ConnectionError, sdk.IncompleteReadError)
    ):
        return OSError(f"{place}: {kind}: {error}")
    return TryAgainError(
        f"{place}: the connection to {place.endpoint} failed ({kind})", may_have_landed=True
    )


def _target(error: Any, place: Place) -> str:
    from botocore.exceptions import ProxyConnectionError

    if isinstance(error, ProxyConnectionError):
        return "the proxy"
    # STS is asked on the way, and may be what can't be reached.
    parts = urlsplit(str(error.kwargs.get("endpoint_url", place.endpoint)))
    return f"{parts.scheme}://{parts.netloc}"


def _not_s3(place: Place, why: str) -> OSError:
    return NotTheServiceError(
        f"{place}: {place.endpoint} is not an S3 service, or a proxy in between answered: {why}. "
        "Check spark.hadoop.fs.s3a.endpoint, and the proxy settings (HTTPS_PROXY, NO_PROXY)."
    )


def _is_foreign(reply: dict[str, Any], status: int, code: str) -> bool:
    """Whether something in between answered: S3 names each refusal, and each request of a HEAD."""
    headers = reply.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    named = code not in ("", str(status)) or any(str(key).startswith("x-amz-") for key in headers)
    return _is_html(reply) or not named


def _is_html(reply: dict[str, Any]) -> bool:
    headers = reply.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return str(headers.get("content-type", "")).lower().startswith("text/html")


def _retry_after(meta: dict[str, Any]) -> float | None:
    text = str(meta.get("HTTPHeaders", {}).get("retry-after", "")).strip()
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - _now())
    except ValueError:
        return None
