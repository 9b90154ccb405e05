"""A bucket of Alibaba Cloud OSS, one request at a time, on the official SDK (version 2).

A create is a PutObject with `x-oss-forbid-overwrite: true`, which OSS answers with 409
FileAlreadyExists where the name is taken:
https://www.alibabacloud.com/help/en/oss/developer-reference/putobject
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any, Final, NoReturn

from lakelog.logstores import FileTooLargeError, LogStoreConfError, UnsafeLogStoreError
from lakelog.logstores.limits import check_declared_length
from lakelog.logstores.object_store import (
    TOKEN_NAME,
    KeyTakenError,
    NotTheServiceError,
    ObjectClient,
    ObjectEntry,
    Owner,
    TryAgainError,
)
from lakelog.logstores.unreachable import is_for_now, never_reached

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CLOCK: Final = "RequestTimeTooSkewed"
_KEYS: Final = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "SecurityTokenExpired")
_PAGE: Final = 1000


class OSSClient(ObjectClient):
    """The requests that a log needs, on one bucket."""

    def __init__(self, sdk: Any, endpoint: str, bucket: str) -> None:
        """Take a client of the SDK whose retries are off.

        Args:
            sdk: an `alibabacloud_oss_v2.Client`.
            endpoint: its address, for messages.
            bucket: its name.
        """
        self._sdk = sdk
        self._endpoint = endpoint
        self._bucket = bucket
        self._checked = False

    @property
    def endpoint(self) -> str:
        return f"{self._endpoint}/{self._bucket}"

    def create(self, key: str, body: bytes, token: str) -> None:
        self._refuse_versions()
        with self._translated(key, changes=True):
            self._put(key, body, metadata={TOKEN_NAME: token}, forbid_overwrite=True)

    def put(self, key: str, body: bytes) -> None:
        with self._translated(key, changes=True):
            self._put(key, body)

    def get(self, key: str) -> bytes:
        import alibabacloud_oss_v2 as oss

        with self._translated(key):
            found = self._sdk.get_object(oss.GetObjectRequest(bucket=self._bucket, key=key))
            with contextlib.closing(found.body):
                check_declared_length(found.content_length)
                data: bytes = found.body.content
            if found.content_length is not None and len(data) != found.content_length:
                raise TryAgainError(
                    f"{self._uri(key)}: the reply was cut short", may_have_landed=False
                )
            return data

    def owner(self, key: str) -> Owner | None:
        import alibabacloud_oss_v2 as oss

        try:
            with self._translated(key):
                found = self._sdk.head_object(oss.HeadObjectRequest(bucket=self._bucket, key=key))
        except FileNotFoundError:
            return None
        return Owner((found.metadata or {}).get(TOKEN_NAME))

    def page(
        self, prefix: str, start: str, continuation: str | None, limit: int | None
    ) -> tuple[list[ObjectEntry], str | None]:
        import alibabacloud_oss_v2 as oss

        asked = oss.ListObjectsV2Request(
            bucket=self._bucket,
            prefix=prefix,
            delimiter="/",
            # OSS leaves the name itself out, and every name that begins with it is above it.
            start_after=(prefix + start)[:-1] if start and not continuation else None,
            continuation_token=continuation,
            max_keys=min(limit or _PAGE, _PAGE),
        )
        with self._translated(prefix):
            found = self._sdk.list_objects_v2(asked)
        if found.is_truncated and not found.next_continuation_token:
            raise TryAgainError(
                f"{self._uri(prefix)}: the listing is incomplete and has no continuation token",
                may_have_landed=False,
            )
        entries = [
            ObjectEntry(
                each.key[len(prefix) :],
                int(each.size or 0),
                int(each.last_modified.timestamp() * 1000) if each.last_modified else 0,
            )
            for each in found.contents or ()
        ]
        entries += [
            ObjectEntry(each.prefix[len(prefix) :].rstrip("/"), 0, 0, is_prefix=True)
            for each in found.common_prefixes or ()
        ]
        return entries, found.next_continuation_token if found.is_truncated else None

    def delete(self, key: str) -> None:
        import alibabacloud_oss_v2 as oss

        with self._translated(key, changes=True):
            self._sdk.delete_object(oss.DeleteObjectRequest(bucket=self._bucket, key=key))

    def upload(self, key: str, source: Path) -> None:
        # One PutObject takes 5 GB, more than a checkpoint has.
        with self._translated(key, changes=True), source.open("rb") as body:
            self._put(key, body)

    def _put(self, key: str, body: Any, **more: Any) -> None:
        import alibabacloud_oss_v2 as oss

        self._sdk.put_object(oss.PutObjectRequest(bucket=self._bucket, key=key, body=body, **more))

    def _refuse_versions(self) -> None:
        """On a bucket with versions OSS ignores the header, and overwrites."""
        import alibabacloud_oss_v2 as oss

        if self._checked:
            return
        try:
            with self._translated(""):
                found = self._sdk.get_bucket_versioning(
                    oss.GetBucketVersioningRequest(bucket=self._bucket)
                )
        except PermissionError:
            status = (
                None  # this account may not ask: the probe has already seen what the bucket does
            )
        else:
            status = found.version_status
        if status in ("Enabled", "Suspended"):
            raise UnsafeLogStoreError(
                f"oss://{self._bucket} has versioning {status.lower()}, and OSS then ignores "
                "x-oss-forbid-overwrite: two writers would overwrite each other's commits. Use a "
                "bucket on which versioning was never turned on."
            )
        self._checked = True

    def _uri(self, key: str) -> str:
        return f"oss://{self._bucket}/{key}"

    @contextlib.contextmanager
    def _translated(self, key: str, *, changes: bool = False) -> Iterator[None]:
        from alibabacloud_oss_v2 import exceptions

        outer = sys.exception()
        try:
            yield
        except exceptions.BaseError as error:
            on_the_way = (
                exceptions.RequestError,
                exceptions.ResponseError,
                exceptions.DeserializationError,
                exceptions.InconsistentError,
                exceptions.ResponseNotReadError,
                exceptions.StreamClosedError,
                exceptions.StreamConsumedError,
            )
            inner = error.unwrap() if isinstance(error, exceptions.OperationError) else error
            what = self._uri(key)
            if isinstance(inner, exceptions.ServiceError):
                _service(inner, what, changes)
            if isinstance(inner, exceptions.CredentialsBaseError):
                raise LogStoreConfError(
                    f"{what}: no credentials. Set fs.oss.accessKeyId and fs.oss.accessKeySecret, "
                    "or OSS_ACCESS_KEY_ID and OSS_ACCESS_KEY_SECRET in the environment."
                ) from None
            if not isinstance(inner, on_the_way):
                raise OSError(f"{what}: {inner}") from None
            # The SDK speaks of a request that was not sent, but a reset says nothing of the kind.
            sent = not isinstance(inner, exceptions.RequestError)
            cause = inner if sent else inner.unwrap() or inner
            unsent = never_reached(cause, outer)
            raise TryAgainError(
                f"{what}: the connection failed ({type(inner).__name__})",
                may_have_landed=changes and not unsent,
                unreached=unsent and not is_for_now(cause, outer),
            ) from None
        except (FileNotFoundError, PermissionError, FileTooLargeError):
            raise
        except OSError as error:
            # A body that breaks off while it is read comes as the HTTP library's own error.
            raise TryAgainError(
                f"{self._uri(key)}: the connection broke ({type(error).__name__})",
                may_have_landed=changes,
            ) from None


def _service(error: Any, what: str, changes: bool) -> NoReturn:
    status, code = int(error.status_code or 0), str(error.code or "")
    answer = (
        f"OSS said: {code or 'nothing'} (HTTP {status}), request {error.request_id or 'unknown'}"
    )
    if status == 409 and code == "FileAlreadyExists":
        raise KeyTakenError(what) from None
    foreign = code in ("", "BadErrorResponse") and not error.request_id
    if foreign and changes and status < 500 and status not in (408, 429):
        raise NotTheServiceError(
            f"{what}: HTTP {status} without OSS's code, so it may come from a proxy in between"
        ) from None
    if status == 404 and code == "NoSuchBucket":
        raise FileNotFoundError(f"{what}: the bucket does not exist. {answer}") from None
    if status == 404:
        raise FileNotFoundError(f"{what} does not exist") from None
    if status in (408, 429) or status >= 500:
        landed = changes and (foreign or status != 429)
        raise TryAgainError(f"{what}: {answer}", may_have_landed=landed) from None
    if code == _CLOCK:
        raise PermissionError(f"{what}: correct this host's clock (NTP). {answer}") from None
    if code in _KEYS:
        raise PermissionError(
            f"{what}: the access key is wrong or expired. Check fs.oss.accessKeyId, "
            f"fs.oss.accessKeySecret and fs.oss.securityToken. {answer}"
        ) from None
    if status in (401, 403):
        raise PermissionError(
            f"{what}: not allowed. The account needs oss:GetObject, oss:PutObject, "
            f"oss:DeleteObject and oss:ListObjects. {answer}"
        ) from None
    if code == "FileImmutable":
        raise PermissionError(
            f"{what} is protected by a retention policy of its bucket. {answer}"
        ) from None
    raise OSError(f"{what}: OSS refused. {answer}") from None
