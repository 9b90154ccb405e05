"""What Google Cloud Storage and its libraries say, as errors of the contract.

Sources of the meanings: https://cloud.google.com/storage/docs/json_api/v1/status-codes
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from typing import TYPE_CHECKING, Any, Final

from lakelog.logstores.errors import LogStoreConfError, MissingExtraError
from lakelog.logstores.object_store.client import KeyTakenError, NotTheServiceError, TryAgainError
from lakelog.logstores.unreachable import is_for_now

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOLDS: Final = ("retentionPolicyNotMet", "objectUnderActiveHold", "retentionexpirationtime")
_CLOCK: Final = re.compile(r"(?i)iat and exp|reasonable timeframe|clock")
_TOKEN: Final = re.compile(r"(?i)(bearer|access_token|refresh_token|assertion)([\s=:\"']+)\S+")
_CHECK: Final = "Check fs.gs.storage.root.url, fs.gs.proxy.address and HTTPS_PROXY."
_LONGEST: Final = 300
_ANONYMOUS: Final = "Anonymous caller"
_NO_CREDENTIALS: Final = (
    "{}: Google Cloud Storage requires authentication (HTTP 401), but no credentials are set. Set "
    "fs.gs.auth.type to APPLICATION_DEFAULT or SERVICE_ACCOUNT_JSON_KEYFILE."
)
# An object's name may have the word in it, and what is said of a missing object has its name.
_NO_BUCKET: Final = re.compile(r"(?i)\bbucket does not exist|no such bucket|bucket not found")


class ForeignReplyError(Exception):
    """A successful reply that is not Google's, or not complete."""


@contextlib.contextmanager
def translated(
    what: str, permission: str, *, changes: bool = False, conditional: bool = False
) -> Iterator[None]:
    """Translate the libraries' errors in the block to those that an `ObjectClient` may raise.

    Args:
        what: the object or the prefix, as a `gs:` URI.
        permission: the permission that the request needs: `storage.objects.get`.
        changes: whether the request changes something, so that a lost reply may hide a success.
        conditional: whether it has a condition: 412 without one is a rule of the organisation.

    Raises:
        MissingExtraError: the extra `gcs` is not installed.
    """
    try:
        import requests
        from google.api_core.exceptions import GoogleAPICallError
        from google.auth.exceptions import GoogleAuthError
    except ImportError as error:
        raise MissingExtraError("gcs", "Google Cloud Storage") from error

    outer = sys.exception()
    try:
        yield
    except GoogleAPICallError as error:
        _service(error, what, permission, changes, conditional)
    except GoogleAuthError as error:
        _login(error, what)
    except ForeignReplyError as error:
        text = f"{what}: {error}, so it may come from a proxy in between. {_CHECK}"
        raise TryAgainError(text, may_have_landed=changes) from None
    except _corruption() as error:
        raise TryAgainError(
            f"{what}: the bytes do not match the checksum that Google sent", may_have_landed=changes
        ) from error
    except requests.exceptions.RequestException as error:
        unsent = _never_sent(error)
        raise TryAgainError(
            f"{what}: {_connection(error)}",
            may_have_landed=changes and not unsent,
            unreached=unsent
            and not isinstance(error, requests.exceptions.ConnectTimeout)
            and not is_for_now(error, outer),
        ) from None


def _corruption() -> type[Exception]:
    """The error of a wrong checksum: google-cloud-storage 2 has it in another package."""
    try:
        from google.cloud.storage.exceptions import DataCorruption
    except ImportError:
        from google.resumable_media.common import DataCorruption
    found: type[Exception] = DataCorruption
    return found


def _service(error: Any, what: str, permission: str, changes: bool, conditional: bool) -> None:
    status = int(error.code or 0)
    answer = _message_of(error)
    if status == 412 and conditional:
        raise KeyTakenError(f"{what}: HTTP 412. {answer}") from None
    foreign = _is_foreign(error, changes)
    if foreign and status < 500 and status not in (408, 409, 429) and (changes or status == 404):
        raise NotTheServiceError(
            f"{what}: HTTP {status} without Google's error, so it may come from a proxy in "
            f"between. {answer or _CHECK}"
        ) from None
    if status == 404:
        raise FileNotFoundError(_missing(what, answer)) from None
    if status == 429:
        raise TryAgainError(
            f"{what}: Google Cloud Storage throttles these requests (429). It accepts one write "
            f"per second to one name. {answer}",
            may_have_landed=changes and foreign,
            retry_after=_retry_after(error),
        ) from None
    if status in (408, 409) or status >= 500:
        raise TryAgainError(
            f"{what}: HTTP {status}. {answer}",
            may_have_landed=changes and (foreign or status != 409),
            retry_after=_retry_after(error),
        ) from None
    if status in (401, 403):
        raise PermissionError(_refused(error, status, what, permission, answer)) from None
    hint = ""
    if (status == 400 and "userProject" in answer) or "requester pays" in answer.lower():
        hint = (
            " This bucket is requester-pays: set spark.hadoop.fs.gs.requester.pays.mode=ENABLED"
            " and spark.hadoop.fs.gs.requester.pays.project.id."
        )
    raise OSError(
        f"{what}: Google Cloud Storage refused with HTTP {status}. {answer}{hint}"
    ) from None


def _refused(error: Any, status: int, what: str, permission: str, answer: str) -> str:
    reasons = {str(each.get("reason", "")) for each in error.errors or ()}
    if reasons & set(_HOLDS) or any(hold.lower() in answer.lower() for hold in _HOLDS):
        return (
            f"{what} is protected by a retention policy or a hold of its bucket, so it can be "
            f"neither replaced nor deleted (HTTP {status}). New commits still work, but "
            f"_last_checkpoint can't be replaced: remove the policy from this bucket or "
            f"prefix. {answer}"
        )
    if _is_page(error):
        return f"{what}: HTTP {status}. {answer}"
    if status == 401 and _ANONYMOUS in answer:
        return _NO_CREDENTIALS.format(what)
    if status == 401:
        return (
            f"{what}: Google Cloud Storage does not accept the credentials (HTTP 401). Renew them: "
            f"`gcloud auth application-default login`, or a new key of the service "
            f"account. {answer}"
        )
    return (
        f"{what}: the account lacks the permission {permission} (HTTP 403). Give it the role "
        f"Storage Object User on the bucket. {answer}"
    )


def _missing(what: str, answer: str) -> str:
    if _NO_BUCKET.search(answer):
        return f"{what}: the bucket does not exist, or this account may not see it. {answer}"
    return f"{what} does not exist"


def _login(error: Any, what: str) -> None:
    """There was no token: the request itself was never sent."""
    from google.auth.exceptions import (
        DefaultCredentialsError,
        InvalidOperation,
        RefreshError,
        TransportError,
    )

    text = _clean(str(error))
    if isinstance(error, InvalidOperation):
        raise PermissionError(_NO_CREDENTIALS.format(what)) from None
    if isinstance(error, DefaultCredentialsError):
        raise LogStoreConfError(f"{what}: no Google credentials were found: {text}") from None
    if isinstance(error, TransportError) or getattr(error, "retryable", False):
        raise TryAgainError(
            f"{what}: could not get a token, because the token server does not answer: {text}",
            may_have_landed=False,
        ) from None
    if isinstance(error, RefreshError) and "invalid_grant" in text and _CLOCK.search(text):
        raise PermissionError(
            f"{what}: Google refused to give a token because the time in the request is off: "
            f"correct this host's clock (NTP). {text}"
        ) from None
    raise PermissionError(
        f"{what}: Google issued no token: the key or the login has expired, was revoked or belongs "
        f"to a deleted account. Create a new key, or log in again. {text}"
    ) from None


def _message_of(error: Any) -> str:
    """The service's message, short, in one line; never a page of HTML."""
    if _is_page(error):
        return (
            "An HTML page answered, so it was not Google Cloud Storage: a proxy or a login page "
            f"stands in between. {_CHECK}"
        )
    message = str(error.message or "")
    # Google's library puts "POST https://...: " before what the service said.
    text = _clean(re.sub(r"^[A-Z]+ https?://\S+: ", "", message))
    return f"It said: {text}" if text else ""


def _is_foreign(error: Any, changes: bool) -> bool:
    """Whether something in between answered: Google's errors are JSON, or have its own header.

    What it says of the bytes of an object is plain text, so a reading is doubted less.
    """
    if "X-GUploader-UploadID" in getattr(error.response, "headers", {}):
        return False
    text = str(getattr(error.response, "text", ""))
    try:
        found = json.loads(text)
    except ValueError:
        return changes or _is_page(error) or not text.strip()
    return not (isinstance(found, dict) and isinstance(found.get("error"), dict))


def _is_page(error: Any) -> bool:
    kind = str(getattr(error.response, "headers", {}).get("Content-Type", ""))
    return kind.startswith("text/html") and "<html" in str(error.message or "").lower()


def _clean(text: str) -> str:
    # A token never belongs in a message, whatever put it there.
    text = " ".join(_TOKEN.sub(r"\1\2…", text).split())
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _retry_after(error: Any) -> float | None:
    value = str(getattr(error.response, "headers", {}).get("Retry-After", ""))
    # The other form is a date, which would need the service's clock.
    return float(value) if value.isdigit() else None


def _never_sent(error: Exception) -> bool:
    """Whether the connection was not even made."""
    import requests
    from urllib3.exceptions import NewConnectionError

    if isinstance(error, (requests.exceptions.ConnectTimeout, requests.exceptions.ProxyError)):
        return True
    inner = error.args[0] if error.args else None
    return isinstance(getattr(inner, "reason", None), NewConnectionError)


def _connection(error: Exception) -> str:
    import requests

    if isinstance(error, requests.exceptions.ProxyError):
        return (
            "the HTTP proxy does not let the request through. Check fs.gs.proxy.address, "
            "fs.gs.proxy.username and HTTPS_PROXY"
        )
    if isinstance(error, requests.exceptions.SSLError):
        return f"the TLS connection failed: {_clean(str(error))}"
    if _never_sent(error):
        return "could not connect to the endpoint. Check its address and the network"
    if isinstance(error, requests.exceptions.Timeout):
        return "the endpoint did not answer in time"
    return f"the connection broke: {_clean(str(error))}"
