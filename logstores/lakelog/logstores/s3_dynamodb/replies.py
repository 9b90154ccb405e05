"""What DynamoDB and the way to it say, in the words of `RowTable`.

The codes are those of "Error handling with DynamoDB" in AWS's developer guide.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lakelog.logstores.errors import MissingExtraError
from lakelog.logstores.object_store.client import NotTheServiceError, TryAgainError
from lakelog.logstores.s3_dynamodb.conf import CREATE_KEY, ENDPOINT_KEY, PROVIDER, REGION_NAME
from lakelog.logstores.s3_dynamodb.conf import TABLE_NAME as TABLE_KEY
from lakelog.logstores.s3_dynamodb.errors import LockTableError
from lakelog.logstores.s3_dynamodb.lock_rows import CommitRow
from lakelog.logstores.s3_dynamodb.row_table import RowTakenError
from lakelog.logstores.unreachable import is_for_now

if TYPE_CHECKING:
    from collections.abc import Iterator

# Refused before anything was done.
_PACED: Final = {
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
    "LimitExceededException",
    "ResourceInUseException",
}
_KEYS: Final = {
    "ExpiredTokenException": "the credentials have expired. Renew them, or use a source that "
    "renews itself (a profile, a role)",
    "UnrecognizedClientException": "the service does not know this access key or session token",
    "InvalidSignatureException": "the secret key does not belong to the access key, or this "
    "machine's clock is off by more than five minutes (set it by NTP)",
    "IncompleteSignatureException": "the request arrived without a complete signature: a proxy in "
    "between may have removed headers",
    "MissingAuthenticationTokenException": "the request arrived without credentials",
}
_WAYS: Final = (
    "Give them by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile (AWS_PROFILE) or a role "
    f"of the machine or container; {PROVIDER}=org.apache.hadoop.fs.s3a."
    "SimpleAWSCredentialsProvider takes those of fs.s3a.access.key; "
    "spark.lakelog.s3dynamodb.access.key and .secret.key are for DynamoDB alone"
)


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Which table, for messages."""

    table: str
    region: str
    endpoint: str | None

    def __str__(self) -> str:
        where = f" at {self.endpoint}" if self.endpoint else ""
        return f"DynamoDB table {self.table} in {self.region}{where}"

    def missing(self) -> str:
        """The text for a table that does not exist."""
        return (
            f"there is no {self}. Check {TABLE_KEY} and {REGION_NAME}: writers that use two "
            "tables don't exclude each other, so none is created unasked. To create it, set "
            f"{CREATE_KEY}=true once, or run: {self.command()}"
        )

    def wrong_keys(self, found: str) -> str:
        """The text for a table with other keys."""
        return (
            f"the {self} can't hold commits: {found}. It needs the partition key tablePath and "
            f"the sort key fileName, both strings. Set {TABLE_KEY} to another table, or delete "
            "this one if it is not needed."
        )

    def command(self) -> str:
        """How to create the table manually."""
        return (
            f"aws dynamodb create-table --region {self.region} --table-name {self.table} "
            "--attribute-definitions AttributeName=tablePath,AttributeType=S "
            "AttributeName=fileName,AttributeType=S --key-schema "
            "AttributeName=tablePath,KeyType=HASH AttributeName=fileName,KeyType=RANGE "
            "--billing-mode PAY_PER_REQUEST"
        )


@contextlib.contextmanager
def speaking_dynamodb(action: str, place: TablePlace) -> Iterator[None]:
    """Translate what the SDK raises in the block.

    Args:
        action: the API's name of what is done, `PutItem`.
        place: the table.

    Raises:
        RowTakenError: the condition of a put was not met.
        TryAgainError: throttling, timeouts, broken connections, 5xx.
        LockTableError: the table is missing, or has other keys.
        PermissionError: credentials or permissions.
        OSError: the rest.
    """
    try:
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError
        from urllib3.exceptions import HTTPError
    except ModuleNotFoundError as error:
        raise MissingExtraError("s3", "DynamoDB") from error

    outer = sys.exception()
    try:
        yield
    except ClientError as error:
        raise _reply_error(error.response, action, place) from error
    except ResponseParserError as error:
        raise TryAgainError(
            f"{place}: {_not_dynamodb('its reply is not JSON')}", may_have_landed=True
        ) from error
    except (BotoCoreError, HTTPError) as error:
        raise _transport_error(error, place, outer) from error


def check_reply(reply: Any, place: TablePlace) -> None:
    """Refuse a successful reply that DynamoDB can't have sent.

    A login page of a company's proxy comes with status 200, and to the SDK it is a reply with
    nothing in it: a row that was put, or a table without rows.

    Raises:
        TryAgainError: it is not JSON.
    """
    headers = reply.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    kind = str(headers.get("content-type", ""))
    if kind and "json" not in kind.lower():
        raise TryAgainError(
            f"{place}: {_not_dynamodb('its reply is not JSON')}", may_have_landed=True
        )


def _reply_error(reply: Any, action: str, place: TablePlace) -> Exception:
    status = int(reply.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    fault = reply.get("Error", {})
    code = str(fault.get("Code", ""))
    if code == "ConditionalCheckFailedException":
        item = reply.get("Item")
        return RowTakenError(CommitRow.from_item(item) if item else None)
    answer = f"{place}: {action} was answered {status} {code}".rstrip()
    if code in _PACED or status == 429:
        return TryAgainError(answer, may_have_landed=code not in _PACED)
    if code in _KEYS:
        return PermissionError(f"{answer}: {_KEYS[code]}.")
    if code == "ResourceNotFoundException":
        return LockTableError(place.missing())
    if status >= 500:
        return TryAgainError(answer, may_have_landed=True)
    if not code or code.isdigit():  # the service always names its errors
        return NotTheServiceError(f"{answer}: {_not_dynamodb('it gives no error code')}.")
    message = str(fault.get("Message", "")).rstrip(".")[:300]
    if code == "ValidationException":
        return LockTableError(place.wrong_keys(f"it refuses a {action} ({message})"))
    if code in ("AccessDeniedException", "AccessDenied") or status in (401, 403):
        return PermissionError(
            f"{answer}: these credentials may not do that. They need dynamodb:GetItem, "
            f"dynamodb:Query and dynamodb:PutItem on the table (here: dynamodb:{action})."
        )
    return OSError(f"{answer} ({message}).")


def _transport_error(error: Exception, place: TablePlace, outer: BaseException | None) -> Exception:
    from botocore import exceptions as sdk

    kind = type(error).__name__
    lacking = (
        sdk.NoCredentialsError,
        sdk.PartialCredentialsError,
        sdk.CredentialRetrievalError,
        sdk.TokenRetrievalError,
        sdk.ProfileNotFound,
    )
    if isinstance(error, lacking):
        return PermissionError(f"{place}: no usable credentials for DynamoDB ({kind}). {_WAYS}.")
    if isinstance(
        error, (sdk.EndpointConnectionError, sdk.ConnectTimeoutError, sdk.ProxyConnectionError)
    ):
        return TryAgainError(
            f"{place}: no connection ({kind}); check {REGION_NAME} and {ENDPOINT_KEY}, and that "
            "the service is up.",
            may_have_landed=False,
            unreached=not (isinstance(error, sdk.ConnectTimeoutError) or is_for_now(error, outer)),
        )
    if isinstance(error, sdk.InvalidRegionError):
        return LockTableError(f"{place}: {REGION_NAME} is not the name of a region.")
    if isinstance(error, sdk.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return OSError(f"{place}: {error}. For a private certificate set AWS_CA_BUNDLE.")
    broken = (sdk.HTTPClientError, sdk.ConnectionError, sdk.IncompleteReadError)
    if isinstance(error, sdk.BotoCoreError) and not isinstance(error, broken):
        return OSError(f"{place}: {kind}: {error}")
    return TryAgainError(f"{place}: the connection failed ({kind})", may_have_landed=True)


def _not_dynamodb(why: str) -> str:
    return (
        f"{why}, so it is not a DynamoDB service, or a proxy in between answered: check "
        f"{ENDPOINT_KEY} and the proxy settings (HTTPS_PROXY, NO_PROXY)"
    )
