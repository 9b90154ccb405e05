"""What an object store has to offer: one bucket, one request at a time, and four answers.

The signals say what a request came to, and never more than is known. `create_once` decides whether
to repeat it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TOKEN_NAME: Final = "lakelogtoken"
"""The metadata key of the token; Azure takes identifiers only, so all stores use one."""


class KeyTakenError(Exception):
    """The service says that the key has an object. Whose it is has to be looked up."""


class NotTheServiceError(OSError):
    """Something in between answered: a proxy, a gateway, a sign-in page.

    It says nothing about what the service did with the request, which may have been carried out.
    """


class TryAgainError(Exception):
    """The service or the way to it failed for now."""

    def __init__(
        self,
        reason: str,
        *,
        may_have_landed: bool,
        retry_after: float | None = None,
        unreached: bool = False,
    ) -> None:
        """Say what failed.

        Args:
            reason: one sentence, without secrets.
            may_have_landed: whether the request may have been, or may yet be, carried out.
                `False` for a refusal by the service itself (409, 429, 503 SlowDown with nothing
                done) and for a connection that was never made.
            retry_after: seconds that the service asked to wait.
            unreached: whether no service is there: a name that does not resolve, a refused port. It
                is tried for seconds only, while a service that was reached gets the whole budget.
        """
        super().__init__(reason)
        self.may_have_landed = may_have_landed
        self.retry_after = retry_after
        self.unreached = unreached


@dataclass(frozen=True, slots=True)
class Owner:
    """Who made an object."""

    token: str | None
    """The token in its metadata; `None` on objects that other programs made."""
    modification_time: int | None = None
    """Milliseconds since 1970-01-01 UTC by the service's clock; `None` where it was not asked."""


@dataclass(frozen=True, slots=True)
class ObjectEntry:
    """One entry of a listing: an object, or a common prefix (the name of a "folder")."""

    name: str
    """Relative to the prefix that was listed, without a slash at its end."""
    length: int
    """Bytes; 0 for a common prefix."""
    modification_time: int
    """Milliseconds since 1970-01-01 UTC; 0 for a common prefix."""
    is_prefix: bool = False


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What a service says of one object without sending it."""

    length: int
    """Bytes."""
    modification_time: int
    """Milliseconds since 1970-01-01 UTC."""
    state: str
    """Which contents it has, by an ETag or a generation: an overwrite changes it."""
    is_folder: bool = False
    """Whether it stands for a folder, and has no bytes of its own."""


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A complete, authorised HTTP/1.1 request, for races whose last bytes leave together."""

    host: str
    port: int
    tls: bool
    data: bytes


class ObjectClient(ABC):
    """One bucket (container) of one service. Each method is one request, never repeated here.

    Every method translates the SDK's errors:

    - `TryAgainError`: timeouts, broken connections, 429, 5xx, and S3's 409, a conflict in flight.
    - `FileNotFoundError`: no such object (404 of a key).
    - `NotTheServiceError`: the answer can't be the service's own.
    - `PermissionError`, `OSError`, `LogStoreError`: all else, for good; the message names the
      object, what the service said, and what to do; no secret is in it.
    """

    @property
    @abstractmethod
    def endpoint(self) -> str:
        """Scheme, host, port and bucket: the thing that keeps or breaks promises. No secrets."""

    @property
    def is_known(self) -> bool:
        """Whether the service documents that `create` has one winner (AWS, Google, Azure)."""
        return False

    @property
    def lists_in_order(self) -> bool:
        """Whether the pages of a listing ascend by key, a folder's key being its name and a slash.

        Its entries are then given as the pages come; else all pages are fetched and sorted.
        """
        return False

    def prepared_create(  # noqa: PLR6301, RUF100
        self,
        key: str,  # noqa: ARG002
        body: bytes,  # noqa: ARG002
        token: str,  # noqa: ARG002
        *,
        streamed: bool = False,  # noqa: ARG002
    ) -> PreparedRequest | None:
        """`create` as bytes for a socket; `None` where that is not possible.

        Args:
            key: as in `create`.
            body: as in `create`.
            token: as in `create`.
            streamed: with no signature over the body, where there is a choice: a server may then
                look and act before it has the whole body.
        """
        return None

    @abstractmethod
    def create(self, key: str, body: bytes, token: str) -> None:
        """Make an object if the key is free, with the token in its metadata, in one request.

        Raises:
            KeyTakenError: the key has an object.
        """

    @abstractmethod
    def put(self, key: str, body: bytes) -> None:
        """Make or replace an object."""

    @abstractmethod
    def get(self, key: str) -> bytes:
        """The whole object: a body that ends early is a `TryAgainError`."""

    @abstractmethod
    def owner(self, key: str) -> Owner | None:
        """Who made the object; `None` if there is none."""

    @abstractmethod
    def page(
        self, prefix: str, start: str, continuation: str | None, limit: int | None
    ) -> tuple[list[ObjectEntry], str | None]:
        """One page of the entries right below `prefix`, and the continuation of the next one.

        Args:
            prefix: ends with a slash, or is empty for the bucket itself.
            start: a name within the prefix; entries below it may be left out. May be ignored.
            continuation: from the page before.
            limit: most entries that are wanted, where the caller needs no more.

        The object whose key is the prefix itself (a "folder marker") is an entry named "".
        A missing bucket is a `FileNotFoundError` that says so.
        """

    @abstractmethod
    def delete(self, key: str) -> None:
        """Delete an object; a missing one is not an error."""

    @property
    def most_deletions(self) -> int:
        """How many keys `delete_many` takes; 1 where the service has no request for many."""
        return 1

    def delete_many(self, keys: Sequence[str]) -> list[str]:
        """Delete objects by one request; missing ones are not an error.

        Called with `most_deletions` keys at most, where that is more than 1.

        Returns:
            The keys that the service did not delete.
        """
        for key in keys:
            self.delete(key)
        return []

    @abstractmethod
    def upload(self, key: str, source: Path) -> None:
        """Make or replace an object of any size from a local file, whole or not at all.

        May take several requests (a multipart upload); what a failed one leaves is cleaned up.
        """

    def close(self) -> None:  # noqa: B027  # not every client holds connections
        """Release connections."""


class RangedObjectClient(ObjectClient):
    """A client that gives parts of objects, so that data files need not be fetched whole."""

    @abstractmethod
    def info(self, key: str) -> ObjectInfo | None:
        """What is known of an object; `None` if there is none."""

    @abstractmethod
    def get_range(self, key: str, start: int, length: int, state: str) -> bytes:
        """Some bytes of an object, all of them, if its contents are still those of `state`.

        Args:
            key: the object.
            start: the first byte, from 0.
            length: how many; they are within the object.
            state: from `info`.

        Raises:
            OSError: the object was replaced since.
        """

    @abstractmethod
    def flat_page(
        self, prefix: str, continuation: str | None
    ) -> tuple[list[ObjectEntry], str | None]:
        """One page of all objects below a prefix, however deep, and the next one's continuation.

        An entry that stands for a folder is marked as a prefix and has the name that deletes it.
        """
