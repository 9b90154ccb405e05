"""A bucket of Oracle Object Storage, one request at a time, on the official SDK.

A create is a PutObject with `if-none-match: *`, which the service answers with 412 where the name
is taken: https://docs.oracle.com/en-us/iaas/api/#/en/objectstorage/latest/Object/PutObject
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any, Final, NoReturn

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

_META: Final = "opc-meta-"
_PAGE: Final = 1000


class OCIClient(ObjectClient):
    """The requests that a log needs, on one bucket."""

    def __init__(self, sdk: Any, namespace: str, bucket: str) -> None:
        """Take a client of the SDK whose retries and circuit breaker are off.

        Args:
            sdk: an `oci.object_storage.ObjectStorageClient`.
            namespace: of the tenancy.
            bucket: its name.
        """
        self._sdk = sdk
        self._where = (namespace, bucket)

    @property
    def endpoint(self) -> str:
        return f"{self._sdk.base_client.endpoint}/n/{self._where[0]}/b/{self._where[1]}"

    def create(self, key: str, body: bytes, token: str) -> None:
        with self._translated(key, changes=True):
            self._sdk.put_object(
                *self._where, key, body, if_none_match="*", opc_meta={TOKEN_NAME: token}
            )

    def put(self, key: str, body: bytes) -> None:
        with self._translated(key, changes=True):
            self._sdk.put_object(*self._where, key, body)

    def get(self, key: str) -> bytes:
        with self._translated(key):
            found = self._sdk.get_object(*self._where, key)
            declared = found.headers.get("content-length")
            with contextlib.closing(found.data):
                check_declared_length(declared)
                data: bytes = found.data.content
            if declared is None or int(declared) != len(data):
                raise TryAgainError(
                    f"{self._uri(key)}: the reply was cut short", may_have_landed=False
                )
            return data

    def owner(self, key: str) -> Owner | None:
        try:
            with self._translated(key):
                found = self._sdk.head_object(*self._where, key)
        except FileNotFoundError:
            return None
        return Owner(found.headers.get(_META + TOKEN_NAME))

    def page(
        self, prefix: str, start: str, continuation: str | None, limit: int | None
    ) -> tuple[list[ObjectEntry], str | None]:
        asked: dict[str, Any] = {
            "delimiter": "/",
            "fields": "name,size,timeModified",
            "limit": min(limit or _PAGE, _PAGE),
        }
        if prefix:
            asked["prefix"] = prefix
        if continuation or start:
            asked["start"] = continuation or prefix + start
        with self._translated(prefix):
            found = self._sdk.list_objects(*self._where, **asked).data
        if found is None or found.objects is None:
            raise TryAgainError(
                f"{self._uri(prefix)}: a successful reply has no listing, so it may come "
                "from a proxy in between",
                may_have_landed=False,
            )
        entries = [
            ObjectEntry(
                each.name[len(prefix) :],
                int(each.size or 0),
                int(each.time_modified.timestamp() * 1000) if each.time_modified else 0,
            )
            for each in found.objects
        ]
        entries += [
            ObjectEntry(each[len(prefix) :].rstrip("/"), 0, 0, is_prefix=True)
            for each in found.prefixes or ()
        ]
        return entries, found.next_start_with

    def delete(self, key: str) -> None:
        with contextlib.suppress(FileNotFoundError), self._translated(key, changes=True):
            self._sdk.delete_object(*self._where, key)

    def upload(self, key: str, source: Path) -> None:
        # One PutObject takes 50 GiB.
        with self._translated(key, changes=True), source.open("rb") as body:
            self._sdk.put_object(*self._where, key, body)

    def _uri(self, key: str) -> str:
        return f"oci://{self._where[1]}@{self._where[0]}/{key}"

    @contextlib.contextmanager
    def _translated(self, key: str, *, changes: bool = False) -> Iterator[None]:
        from oci import exceptions

        what, outer = self._uri(key), sys.exception()
        try:
            yield
        except exceptions.ServiceError as error:
            _service(error, what, changes)
        except exceptions.ConnectTimeout:
            text = f"{what}: could not connect"
            raise TryAgainError(text, may_have_landed=False) from None
        except exceptions.BaseRequestException as error:  # of its own copy of requests
            unsent = never_reached(error, outer)
            raise TryAgainError(
                f"{what}: the connection failed ({type(error).__name__})",
                may_have_landed=changes and not unsent,
                unreached=unsent and not is_for_now(error, outer),
            ) from None
        except (ValueError, AttributeError, TypeError) as error:
            # The SDK has no error of its own for a reply that is not JSON.
            raise TryAgainError(
                f"{what}: the reply is not Oracle's ({type(error).__name__}), so it may "
                "come from a proxy in between",
                may_have_landed=changes,
            ) from None


def _service(error: Any, what: str, changes: bool) -> NoReturn:
    status, code = int(error.status or 0), str(error.code or "")
    reply = f"Oracle said: {code or 'nothing'} (HTTP {status})"
    if status == 412:
        raise KeyTakenError(what) from None
    foreign = not code and "opc-request-id" not in (error.headers or {})
    if foreign and changes and status < 500 and status not in (408, 409, 429):
        raise NotTheServiceError(
            f"{what}: HTTP {status} without Oracle's code, so it may come from a proxy in between"
        ) from None
    if status == 404 and code in ("BucketNotFound", "NamespaceNotFound", "NotAuthorizedOrNotFound"):
        raise FileNotFoundError(
            f"{what}: the bucket does not exist, or this user may not see it. {reply}"
        ) from None
    if status == 404:
        raise FileNotFoundError(f"{what} does not exist") from None
    if status in (408, 409, 429) or status >= 500:
        landed = changes and (foreign or status not in (409, 429))
        raise TryAgainError(f"{what}: {reply}", may_have_landed=landed) from None
    if status == 401:
        raise PermissionError(
            f"{what}: the key does not belong to the user, or this host's clock is off. Check "
            f"fs.oci.client.auth.* or ~/.oci/config, and the clock (NTP). {reply}"
        ) from None
    if status == 403:
        raise PermissionError(
            f"{what}: not allowed. The policy has to let the group manage objects in the bucket "
            f"(OBJECT_CREATE, OBJECT_OVERWRITE, OBJECT_READ, OBJECT_INSPECT, OBJECT_DELETE). "
            f"{reply}"
        ) from None
    raise OSError(f"{what}: Oracle Object Storage refused. {reply}") from None
