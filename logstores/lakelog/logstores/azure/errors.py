"""Azure's errors in lakelog's words: what was wrong, where, what to do.

Nothing of the SDK's own text is passed on, because it quotes URLs, and a URL may hold a signature.
The service's error code and its request id are: Azure's support asks for the latter.
"""

from __future__ import annotations

import email.utils
import re
import socket
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from lakelog.logstores.azure.credentials import SasToken
from lakelog.logstores.object_store.client import NotTheServiceError, TryAgainError
from lakelog.logstores.unreachable import causes, is_for_now

if TYPE_CHECKING:
    from lakelog.logstores.azure.credentials import Credential

_ADVICE: Final = {
    "AccountIsDisabled": "the storage account is disabled",
    "AccountRequiresHttps": "the account accepts https only: give an https endpoint",
    "AuthenticationFailed": "the account key or the signature is wrong for this account",
    "AuthorizationFailure": (
        "the request is not allowed: check that the key or SAS is this account's, and the "
        "account's network rules (firewall, private endpoints)"
    ),
    "AuthorizationPermissionMismatch": (
        "the identity or SAS lacks a permission: give the identity the role Storage Blob Data "
        "Contributor on the container, or make a SAS with read, create, write, delete and list"
    ),
    "AuthorizationProtocolMismatch": "the SAS allows https only: give an https endpoint",
    "AuthorizationResourceTypeMismatch": (
        "the SAS lacks a resource type: it needs containers and objects (srt=co)"
    ),
    "AuthorizationServiceMismatch": "the SAS is not for the blob service (ss=b)",
    "AuthorizationSourceIPMismatch": "the SAS does not allow this host's IP address",
    "BlobArchived": "the blob is in the archive tier: rehydrate it",
    "BlobImmutableDueToPolicy": (
        "an immutability policy or a legal hold keeps the blob from being replaced or deleted; "
        "a table's log needs a container without one"
    ),
    "ContainerBeingDeleted": "the container is being deleted",
    "FeatureVersionMismatch": "the blob uses a feature that the request's version does not know",
    "InsufficientAccountPermissions": "the credential may not do this on this account",
    "InvalidAuthenticationInfo": "the service does not accept this kind of credential",
    "InvalidBlobType": "the blob is an append or page blob; logs are block blobs",
    "InvalidResourceName": "Azure does not allow this container or blob name",
    "InvalidUri": "Azure does not allow this container or blob name",
    "KeyBasedAuthenticationNotPermitted": (
        "the account allows no account keys: sign in with an identity (OAuth) instead"
    ),
    "LeaseIdMissing": "the blob itself has a lease: break it",
    "NoAuthenticationInformation": "the request carried no credential that the service knows",
    "OutOfRangeInput": "a container's name must have 3 to 63 characters",
    "PublicAccessNotPermitted": "the account allows no anonymous access: set a credential",
    "ResourceNotFound": "check the names of the account and the container",
    "ResourceTypeMismatch": "there is a directory of that name",
}
"""Error code -> what it means here. Source: Microsoft's lists of storage and blob error codes."""

_DENIED: Final = frozenset({"AccountIsDisabled", "BlobImmutableDueToPolicy"})
_BUSY: Final = frozenset({"ServerBusy", "TooManyRequests", "AccountBeingCreated"})
# A list of blocks is invalid when another upload of the name was faster: it is uploaded again.
_AGAIN: Final = frozenset({"InternalError", "InvalidBlockList", "OperationTimedOut"})
_UNSENT: Final = frozenset(
    {"ConnectTimeout", "ConnectTimeoutError", "NameResolutionError", "NewConnectionError"}
)
_SKEW_SECONDS: Final = 300.0
_VERSION: Final = re.compile(r"(?i)x-ms-version|api version")
_STS: Final = re.compile(r"AADSTS\d+")


def code_of(error: BaseException) -> str:
    """The service's error code, such as `BlobNotFound`; empty where there is none.

    Replies to HEAD have no body, so the header is asked first.
    """
    response = getattr(error, "response", None)
    headers = getattr(response, "headers", None) or {}
    code = headers.get("x-ms-error-code") or getattr(error, "error_code", None) or ""
    return str(getattr(code, "value", code))


def explained(
    error: BaseException,
    where: str,
    credential: Credential | None = None,
    outer: BaseException | None = None,
) -> Exception:
    """The exception that stands for an error of the SDK.

    Args:
        error: what the SDK raised.
        where: the object, for messages; without secrets.
        credential: what the request was made with; a SAS says when it ends.
        outer: the exception that was being handled when the request began.
    """
    from azure.core.exceptions import ClientAuthenticationError

    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    if isinstance(status, int) and status >= 300:
        return _refusal(error, response, status, where, credential)
    if isinstance(error, ClientAuthenticationError):
        return _no_token(error, where)
    return _no_reply(error, where, outer)


def _refusal(
    error: BaseException, response: Any, status: int, where: str, credential: Credential | None
) -> Exception:
    code, headers = code_of(error), response.headers
    foreign = not code and "x-ms-request-id" not in headers
    answer = f"{where}: {_answer_text(status, code, headers)}"
    if status in (408, 429) or status >= 500 or code in _BUSY | _AGAIN:
        if status == 501:
            return OSError(f"{answer}: the endpoint does not support this operation")
        kind = "; a web page, so it came from a proxy and not from Azure" if foreign else ""
        return TryAgainError(
            answer + kind,
            may_have_landed=foreign or not (status == 429 or code in _BUSY),
            retry_after=_seconds(headers.get("Retry-After")),
        )
    if foreign and "html" in (headers.get("Content-Type") or "").lower():
        return NotTheServiceError(
            f"{answer} with a web page: a proxy or a sign-in page is in front of the blob service"
        )
    if foreign:
        return NotTheServiceError(
            f"{answer} without Azure's code and request id, so it may come from a proxy in between"
        )
    if code == "ContainerNotFound":
        return FileNotFoundError(
            f"{answer}: there is no such container. Create it, or correct its name"
        )
    if status == 404:
        return FileNotFoundError(f"{answer}{_colon(_ADVICE.get(code, ''))}")
    if code == "InvalidHeaderValue" and _VERSION.search(str(error)):
        return OSError(
            f"{answer}: the service does not speak this SDK's version of the protocol. Set "
            "spark.lakelog.azure.apiVersion to one that it does, such as 2023-11-03"
        )
    denied = status in (401, 403, 407)
    timely = _time_trouble(str(error), headers, credential) if denied else ""
    text = f"{answer}{_colon(timely or _ADVICE.get(code, ''))}"
    return PermissionError(text) if denied or code in _DENIED else OSError(text)


def _colon(advice: str) -> str:
    return f": {advice}" if advice else ""


def _answer_text(status: int, code: str, headers: Any) -> str:
    request_id = headers.get("x-ms-request-id")
    tail = f", request id {request_id}" if request_id else ""
    return f"the service answered {status}{' ' + code if code else ''}{tail}"


def _time_trouble(text: str, headers: Any, credential: Credential | None) -> str:
    """A clock that is off and an expired signature look the same: 403 AuthenticationFailed."""
    lowered = text.lower()
    skew = _skew(headers.get("Date"))
    if skew:
        return f"this host's clock is {skew}: correct it"
    if "date header" in lowered and "old" in lowered:
        return "the request's date is too old: correct this host's clock"
    if isinstance(credential, SasToken):
        return _sas_trouble(credential)
    return ""


def _sas_trouble(sas: SasToken) -> str:
    """What is wrong with a signature by its own times, which are not a secret."""
    fields = parse_qs(sas.token)
    now = datetime.now(UTC)
    for name, late, phrase in (("se", True, "expired at"), ("st", False, "is valid only from")):
        try:
            when = datetime.fromisoformat(fields[name][0])
        except (KeyError, ValueError):
            continue
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        if (now > when) is late and now != when:
            return f"the SAS {phrase} {when:%Y-%m-%d %H:%M:%S} UTC: make a new one"
    return ""


def _skew(date: str | None) -> str:
    try:
        theirs = email.utils.parsedate_to_datetime(date or "").timestamp()
    except (TypeError, ValueError):
        return ""
    ahead = time.time() - theirs
    if abs(ahead) < _SKEW_SECONDS:
        return ""
    return f"{abs(ahead) / 60:.0f} minutes {'ahead of' if ahead > 0 else 'behind'} the service's"


def _seconds(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:  # a date: our own pace is good enough
        return None


def _no_token(error: BaseException, where: str) -> Exception:
    """No credential, or the sign-in service said no; of its text only the codes are passed on."""
    codes = sorted(set(_STS.findall(str(error))))
    if codes:
        return PermissionError(
            f"{where}: Microsoft Entra refused the sign-in ({', '.join(codes)}): check the tenant, "
            "the client id, and whether the secret is right and has not expired"
        )
    return PermissionError(
        f"{where}: no credential for Azure was found or accepted. Set fs.azure.account.key."
        "<account>, a SAS or the OAuth settings, or sign in with `az login` or a managed identity"
    )


def _no_reply(error: BaseException, where: str, outer: BaseException | None) -> Exception:
    from azure.core.exceptions import AzureError
    from requests.exceptions import RequestException

    chain = list(causes(error, outer))
    names = [type(each).__name__ for each in chain]
    text = " ".join(str(each) for each in chain)
    if any(isinstance(each, socket.gaierror) and _is_unknown(each) for each in chain) or (
        "NameResolutionError" in names and "Name or service not known" in text
    ):
        return OSError(f"{where}: there is no such host. Check the name of the storage account")
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return OSError(f"{where}: the server's certificate is not trusted on this host")
    if any(name in _UNSENT for name in names):
        silent = any("Timeout" in name for name in names)
        return TryAgainError(
            f"{where}: could not connect",
            may_have_landed=False,
            unreached=not (silent or is_for_now(error, outer)),
        )
    reason = "the connection broke before the whole reply came"
    if any("Timeout" in name for name in names):
        reason = "no reply in time"
    elif not isinstance(error, (AzureError, RequestException)):
        reason = f"the SDK could not read the reply ({names[0]})"
    return TryAgainError(f"{where}: {reason}", may_have_landed=True)


def _is_unknown(error: socket.gaierror) -> bool:
    return error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
