"""A container of an Azure account, one request at a time."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from lakelog.logstores.azure.errors import code_of, explained
from lakelog.logstores.azure.sdk import blob_service, wire
from lakelog.logstores.azure.upload import ONE_PUT, commit_blocks, stage_blocks
from lakelog.logstores.errors import FileTooLargeError
from lakelog.logstores.limits import check_declared_length
from lakelog.logstores.object_store.client import (
    TOKEN_NAME,
    KeyTakenError,
    ObjectEntry,
    ObjectInfo,
    Owner,
    RangedObjectClient,
    TryAgainError,
)
from lakelog.logstores.object_store.create_once import RetryPolicy, repeat

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime
    from pathlib import Path

    from azure.storage.blob import BlobClient

    from lakelog.logstores.azure.conf import AzureSettings
    from lakelog.logstores.object_store.client import PreparedRequest

LOCK_NAME: Final = ".lakelog.lock"
"""The blob, next to a log's files, whose lease is the writers' turn. It sorts before digits, and no
listing of ours shows it."""

# Put Blob answers the first to a failed If-None-Match: *. The others say "there is a blob" as well:
# a condition, a lease or a policy can only block one that exists.
_TAKEN: Final = frozenset(
    {
        "BlobAlreadyExists",
        "BlobImmutableDueToPolicy",
        "ConditionNotMet",
        "LeaseIdMissing",
        "TargetConditionNotMet",
    }
)

_HELD: Final = frozenset({"LeaseAlreadyPresent", "LeaseIsBreakingAndCannotBeAcquired"})

_KNOWN_CLOUDS: Final = (
    ".core.windows.net",
    ".core.chinacloudapi.cn",
    ".core.usgovcloudapi.net",
    ".storage.azure.net",
)

_BLOCK_POLICY: Final = RetryPolicy(budget=20.0)
"""For the blocks of a large file, each of which may be sent again without the others."""

_T = TypeVar("_T")


class LeaseHeldError(Exception):
    """Another writer holds the lease."""


class LeaseLostError(Exception):
    """The lease is no longer ours: it expired, was broken, or was released."""


class AzureClient(RangedObjectClient):
    """One container. In addition to an object client's requests it has those of a lease.

    A conflict of `create` is 409 here, not 412. The SDK's own retries are off.
    """

    page_size: ClassVar[int | None] = None
    """Entries of a page of a listing where nobody asks for fewer; `None` leaves it to Azure."""

    def __init__(self, settings: AzureSettings, container: str) -> None:
        """Keep both; connect at the first request."""
        self._settings = settings
        self._name = container

    @property
    def endpoint(self) -> str:
        return f"{self._settings.endpoint}/{self._name}"

    @property
    def is_known(self) -> bool:
        host = self._settings.endpoint.partition("://")[2].partition("/")[0]
        return host.endswith(_KNOWN_CLOUDS)

    @property
    def lists_in_order(self) -> bool:
        """Azure documents that List Blobs answers in lexicographic order."""
        return True

    def prepared_create(
        self,
        key: str,
        body: bytes,
        token: str,
        *,
        streamed: bool = False,  # noqa: ARG002  # no signature is over a body here
    ) -> PreparedRequest | None:
        from lakelog.logstores.azure.signing import prepared_put

        return self._ask(key, lambda: prepared_put(self._settings, self._name, key, body, token))

    def create(self, key: str, body: bytes, token: str) -> None:
        def request() -> None:
            # One Put Blob whatever the size: blocks would be made a blob by a second request, whose
            # lost reply is one doubt more.
            self._blob(key).upload_blob(
                body, length=len(body), overwrite=False, metadata={TOKEN_NAME: token}
            )

        # Azure says 409 where S3 and Google say 412.
        self._ask(key, request, KeyTakenError, _TAKEN)

    def put(self, key: str, body: bytes) -> None:
        self._ask(key, lambda: self._blob(key).upload_blob(body, length=len(body), overwrite=True))

    def get(self, key: str) -> bytes:
        def request() -> bytes:
            found = wire(self._settings).get(self._name, key, self._where(key))
            if found is not None:
                return found
            reply = self._blob(key).download_blob(max_concurrency=1)
            check_declared_length(reply.size)
            data = bytes(reply.readall())
            if not reply.properties.etag or len(data) != reply.size:
                # A page of a proxy has no ETag.
                raise TryAgainError(
                    f"{self._where(key)}: the reply is not the whole blob", may_have_landed=False
                )
            return data

        return self._ask(key, request)

    def owner(self, key: str) -> Owner | None:
        try:
            found = self._ask(key, lambda: self._blob(key).get_blob_properties())
        except FileNotFoundError:
            return None
        return Owner(metadata_of(found).get(TOKEN_NAME), milliseconds(found.last_modified))

    def page(
        self,
        prefix: str,
        start: str,  # noqa: ARG002  # from which names on: Azurite ignores it, so it is untried
        continuation: str | None,
        limit: int | None,
    ) -> tuple[list[ObjectEntry], str | None]:
        entries, following = self._listed(prefix, continuation, limit, "/")
        return [entry for entry in entries if entry.name != LOCK_NAME], following

    def flat_page(
        self, prefix: str, continuation: str | None
    ) -> tuple[list[ObjectEntry], str | None]:
        """One page of all blobs below a prefix, however deep, and the next one's continuation."""
        return self._listed(prefix, continuation, None, None)

    def info(self, key: str) -> ObjectInfo | None:
        """What is known of a blob; `None` if there is none."""
        try:
            found = self._ask(key, lambda: self._blob(key).get_blob_properties())
        except FileNotFoundError:
            return None
        entry = entry_of(found, "")
        return ObjectInfo(entry.length, entry.modification_time, str(found.etag), entry.is_prefix)

    def get_range(self, key: str, start: int, length: int, state: str) -> bytes:
        """Some bytes of a blob, if it is still the one with that ETag.

        Raises:
            OSError: it was replaced since.
        """
        from azure.core import MatchConditions

        def request() -> bytes:
            reply = self._blob(key).download_blob(
                offset=start,
                length=length,
                max_concurrency=1,
                etag=state,
                match_condition=MatchConditions.IfNotModified,
            )
            data = bytes(reply.readall())
            if len(data) != length:
                raise TryAgainError(
                    f"{self._where(key)}: the reply is not the whole range", may_have_landed=False
                )
            return data

        return self._ask(key, request)

    def delete(self, key: str) -> None:
        with suppress(FileNotFoundError):
            self._ask(key, lambda: self._blob(key).delete_blob(delete_snapshots="include"))

    def upload(self, key: str, source: Path) -> None:
        if source.stat().st_size <= ONE_PUT:
            self.put(key, source.read_bytes())
            return

        def attempt(request: Callable[[], object]) -> None:
            repeat(lambda: self._ask(key, request), self._where(key), _BLOCK_POLICY)

        # Blocks that a broken upload leaves belong to no blob; Azure drops them after a week.
        ids = stage_blocks(self._blob(key), source, attempt)
        self._ask(key, lambda: commit_blocks(self._blob(key), ids))

    def acquire_lease(self, key: str, lease_id: str, seconds: int) -> None:
        """Take the lease of a blob; taking it again with the same id extends it.

        Raises:
            LeaseHeldError: another id has it.
            FileNotFoundError: no such blob.
        """
        self._ask(key, lambda: self._lease(key, lease_id).acquire(seconds), LeaseHeldError, _HELD)

    def renew_lease(self, key: str, lease_id: str) -> None:
        """Extend a lease.

        Raises:
            LeaseLostError: it is not ours.
        """
        self._ask(key, lambda: self._lease(key, lease_id).renew(), LeaseLostError)

    def release_lease(self, key: str, lease_id: str) -> None:
        """Release a lease.

        Raises:
            LeaseLostError: it is not ours.
        """
        self._ask(key, lambda: self._lease(key, lease_id).release(), LeaseLostError)

    def break_lease(self, key: str) -> None:
        """End a lease at once, no matter who holds it; a missing one is not an error."""
        with suppress(LeaseLostError):
            self._ask(
                key,
                lambda: self._lease(key, None).break_lease(lease_break_period=0),
                LeaseLostError,
            )

    def _listed(
        self, prefix: str, continuation: str | None, limit: int | None, delimiter: str | None
    ) -> tuple[list[ObjectEntry], str | None]:
        def request() -> tuple[list[Any], str | None]:
            # Only the SDK's own code understands the listings' types.
            container: Any = blob_service(self._settings).get_container_client(self._name)
            asked: dict[str, Any] = {
                "include": ["metadata"],
                "results_per_page": limit or self.page_size,
            }
            if delimiter:
                listing = container.walk_blobs(prefix, delimiter=delimiter, **asked)
            else:
                listing = container.list_blobs(prefix, **asked)
            pages = listing.by_page(continuation)
            items = list(next(pages))
            return items, pages.continuation_token or None

        items, following = self._ask(prefix, request)
        return [entry_of(item, prefix) for item in items], following

    def _blob(self, key: str) -> BlobClient:
        return blob_service(self._settings).get_blob_client(self._name, key)

    def _lease(self, key: str, lease_id: str | None) -> Any:
        from azure.storage.blob import BlobLeaseClient

        return BlobLeaseClient(self._blob(key), lease_id)

    def _where(self, key: str) -> str:
        return f"{self.endpoint}/{key}"

    def _ask(
        self,
        key: str,
        request: Callable[[], _T],
        signal: type[Exception] | None = None,
        codes: Collection[str] | None = None,
    ) -> _T:
        """Make one request.

        Args:
            key: what it is about.
            request: makes it.
            signal: raised for 409 and 412 with one of the codes.
            codes: `None` for any. A reply that was cut off has none, and matches.
        """
        blob_service(self._settings)  # a missing extra is not an error of the service
        outer = sys.exception()
        try:
            return request()
        except (TryAgainError, FileTooLargeError):
            raise
        except Exception as error:  # noqa: BLE001, RUF100  # a torn reply breaks the SDK's parsers
            code = code_of(error)
            status = getattr(getattr(error, "response", None), "status_code", None)
            refused = status in (409, 412) and (not code or codes is None or code in codes)
            if signal is not None and refused:
                trouble: Exception = signal(f"{self._where(key)}: {status} {code}".rstrip())
            else:
                trouble = explained(error, self._where(key), self._settings.credential, outer)
        # Raised here, not there: an exception's context is printed, and the SDK's may quote URLs.
        raise trouble


_FOLDER_MARK: Final = "hdi_isfolder"
"""Metadata of blobs that stand for a directory, on accounts with a hierarchical namespace and
where Hadoop's drivers made one."""


def entry_of(item: Any, prefix: str) -> ObjectEntry:
    """A blob, or the name of a folder, relative to what was listed."""
    name = str(item.name)[len(prefix) :]
    if type(item).__name__ == "BlobPrefix":
        return ObjectEntry(name.rstrip("/"), 0, 0, is_prefix=True)
    if metadata_of(item).get(_FOLDER_MARK) == "true":
        return ObjectEntry(name, 0, 0, is_prefix=True)
    return ObjectEntry(name, int(item.size or 0), milliseconds(item.last_modified) or 0)


def milliseconds(when: datetime | None) -> int | None:
    """A time as milliseconds since 1970-01-01 UTC."""
    return None if when is None else int(when.timestamp() * 1000)


def metadata_of(item: Any) -> dict[str, str]:
    """Metadata of a blob; Azure keeps the case of names and ignores it."""
    return {str(name).lower(): str(value) for name, value in (item.metadata or {}).items()}
