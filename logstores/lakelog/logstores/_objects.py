"""An object store as a LogStore, on a client that makes one request at a time.

Creating a key once is easy until a reply gets lost: the request is repeated, meets the object
that it made itself, and hears "exists". So each create carries a token of its own in the object's
metadata, SDK retries are off, and this loop decides:

    2xx                              -> created
    taken (412; Azure: 409)          -> whose token? ours: created; another's: FileExistsError
    a conflict in flight, 429, 5xx,
    a timeout, a broken connection   -> wait, then again with the same token
    the budget is spent              -> look once more, then say what is known and no more

A request that timed out can still land later. That is why an absent object proves nothing once a
request may have reached the service: the outcome is then `CommitOutcomeUnknownError`.
"""

from __future__ import annotations

import contextlib
import random
import tempfile
import time
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from lakelog.logstores._contract import Capabilities, FileStatus, LogStore, Scope
from lakelog.logstores._settings import seconds_setting
from lakelog.logstores._trust import ensure_trusted
from lakelog.logstores.errors import CommitOutcomeUnknownError
from lakelog.logstores.lines import decode_lines, encode_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow.fs

__all__ = [
    "KeyTakenError",
    "ObjectClient",
    "ObjectEntry",
    "ObjectLogStore",
    "Owner",
    "PreparedRequest",
    "RetryPolicy",
    "TryAgainError",
    "create_once",
]

BUDGET_KEY: Final = "spark.lakelog.store.retry.timeBudget"
"""Seconds that one operation may go on repeating requests."""
TIMEOUT_KEY: Final = "spark.lakelog.store.request.timeout"
"""Seconds that one request may take to connect, and again between two bytes of its reply."""
TOKEN_NAME: Final = "lakelogtoken"
"""The metadata key of the token; Azure takes identifiers only, so all stores use one."""

_LONGEST_PACE: Final = 30.0
"""Seconds; a service that asks for more is asked again after these."""

_T = TypeVar("_T")


class KeyTakenError(Exception):
    """The service says that the key has an object. Whose it is has to be looked up."""


class TryAgainError(Exception):
    """The service or the way to it failed for now."""

    def __init__(
        self, reason: str, *, may_have_landed: bool, retry_after: float | None = None
    ) -> None:
        """Say what failed.

        Args:
            reason: for people, without secrets.
            may_have_landed: whether the request may have been, or may yet be, carried out.
                `False` for a refusal by the service itself (409, 429, 503 SlowDown with nothing
                done) and for a connection that was never made.
            retry_after: seconds that the service asked to wait.
        """
        super().__init__(reason)
        self.may_have_landed = may_have_landed
        self.retry_after = retry_after


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
class RetryPolicy:
    """How long and how patiently requests are repeated."""

    budget: float = 60.0
    """Seconds from the first request to the last one's start."""
    first_wait: float = 0.05
    longest_wait: float = 5.0

    def waits(self) -> Iterator[float]:
        """Seconds to wait before each repetition: decorrelated jitter, within the budget."""
        deadline = time.monotonic() + self.budget
        wait = self.first_wait
        while (left := deadline - time.monotonic()) > 0:
            wait = min(self.longest_wait, random.uniform(self.first_wait, wait * 3))  # noqa: S311, RUF100
            yield min(wait, left)


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

    def prepared_create(self, key: str, body: bytes, token: str) -> PreparedRequest | None:  # noqa: ARG002
        """`create` as bytes for a socket; `None` where it can't be had."""
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

        A missing bucket is a `FileNotFoundError` that says so.
        """

    @abstractmethod
    def delete(self, key: str) -> None:
        """Delete an object; none there is no error."""

    @abstractmethod
    def upload(self, key: str, source: Path) -> None:
        """Make or replace an object of any size from a local file, whole or not at all.

        May take several requests (a multipart upload); what a failed one leaves is cleaned up.
        """

    def close(self) -> None:  # noqa: B027  # not every client holds connections
        """Release connections."""


def create_once(
    client: ObjectClient, key: str, body: bytes, path: str, policy: RetryPolicy
) -> None:
    """Make an object exactly once, whatever becomes of the replies.

    Raises:
        FileExistsError: another writer has the key.
        CommitOutcomeUnknownError: nobody knows; the object may exist, now or later.
        OSError: it was not made.
    """
    token = uuid.uuid4().hex
    uncertain = False
    seen = ""
    waits = policy.waits()
    while True:
        try:
            client.create(key, body, token)
        except KeyTakenError:
            owner, seen = _owner(client, key, waits)
            if owner is not None and owner.token == token:
                return
            if owner is not None:
                raise FileExistsError(f"{path} exists: another writer made it") from None
            if seen:
                raise CommitOutcomeUnknownError(
                    path, f"the service says that it exists, but its owner can't be read ({seen})"
                ) from None
            # Whoever had the key deleted it since. Only trying again can say who has it now.
            seen = "the service said that it exists, and then that it does not"
            retry_after = None
        except TryAgainError as error:
            uncertain = uncertain or error.may_have_landed
            seen, retry_after = str(error), error.retry_after
        else:
            return
        wait = next(waits, None)
        if wait is None:
            _give_up(client, key, path, token, uncertain, seen)
            return
        _pause(wait, retry_after)


def _owner(client: ObjectClient, key: str, waits: Iterator[float]) -> tuple[Owner | None, str]:
    """Who has the key, and why that can't be said."""
    while True:
        try:
            return client.owner(key), ""
        except TryAgainError as error:
            wait = next(waits, None)
            if wait is None:
                return None, str(error)
            _pause(wait, error.retry_after)
        except OSError as error:
            return None, str(error)


def _pause(wait: float, retry_after: float | None) -> None:
    time.sleep(max(wait, min(retry_after or 0.0, _LONGEST_PACE)))


def _give_up(
    client: ObjectClient, key: str, path: str, token: str, uncertain: bool, seen: str
) -> None:
    owner, trouble = _owner(client, key, iter(()))
    if owner is not None and owner.token == token:
        return
    if owner is not None:
        raise FileExistsError(f"{path} exists: another writer made it")
    if uncertain:
        after = f"afterwards it could not be looked up ({trouble})" if trouble else "it is absent"
        raise CommitOutcomeUnknownError(path, f"{seen}; {after}")
    raise OSError(f"{path} was not written: {seen}")


class ObjectLogStore(LogStore):
    """What the stores on object storage share. A subclass says how to reach a bucket.

    An object appears whole under its key when its request ends, and services list what they
    acknowledged; so nothing partial is ever visible and a listing is never stale. Folders do not
    exist: one that holds nothing is missing.
    """

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        """Keep the conf; connect at the first use.

        Raises:
            LogStoreConfError: a retry setting is no number.
        """
        super().__init__(conf)
        self._policy = RetryPolicy(budget=seconds_setting(self.conf, BUDGET_KEY, 60.0))
        self._timeout = seconds_setting(self.conf, TIMEOUT_KEY, 20.0)

    @abstractmethod
    def _locate(self, path: str) -> tuple[ObjectClient, str]:
        """The client of the path's bucket, made once, and the key in it.

        Raises:
            ValueError: the path is no URI of this store.
        """

    def read(self, path: str) -> Iterator[str]:  # the contract says it
        client, key = self._locate(path)
        data = self._again(path, lambda: client.get(key))
        return decode_lines(data.splitlines(keepends=True) if b"\r" not in data else _cut(data))

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        body = b"".join(encode_lines(lines))
        client, key = self._locate(path)
        if overwrite:
            self._again(path, lambda: client.put(key, body))
        else:
            ensure_trusted(client, key, self.conf, self._timeout)
            create_once(client, key, body, path, self._policy)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        folder, slash, start = path.rpartition("/")
        client, prefix = self._locate(folder + slash)
        # A server that orders by UTF-16, not by code point, may leave out too much.
        asked = start if start.isascii() else ""
        found = list(self._pages(path, client, prefix, asked, None))
        if not found and not (asked and any(self._pages(path, client, prefix, "", 1))):
            raise FileNotFoundError(f"{folder} does not exist: no object is below it")
        kept = {entry.name: entry for entry in found if entry.name >= start and entry.name}
        return (_status(folder + slash, kept[name]) for name in sorted(kept))

    def is_partial_write_visible(self, path: str) -> bool:  # noqa: ARG002
        return False

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            exclusive_create=Scope.CLUSTER,
            partial_write_visible=False,
            atomic_overwrite=True,
            consistent_listing=True,
            ordered_listing=True,
            durable=True,
        )

    def create_folder(self, path: str) -> None:
        """Do nothing: an object store has no folders."""

    @contextlib.contextmanager
    def staged(self, path: str) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
        """Stage in a local temporary file, then upload it in one piece."""
        from pyarrow.fs import LocalFileSystem

        client, key = self._locate(path)
        with tempfile.TemporaryDirectory(prefix="lakelog-") as folder:
            draft = Path(folder) / "draft"
            yield LocalFileSystem(), str(draft)
            self._again(path, lambda: client.upload(key, draft))

    def _pages(
        self, path: str, client: ObjectClient, prefix: str, start: str, limit: int | None
    ) -> Iterator[ObjectEntry]:
        continuation: str | None = None
        while True:
            token = continuation
            entries, continuation = self._again(
                path, lambda token=token: client.page(prefix, start, token, limit)
            )
            yield from entries
            if continuation is None or limit is not None:
                return

    def _again(self, path: str, request: Callable[[], _T]) -> _T:
        """Repeat a request that may be repeated, within the budget.

        Raises:
            OSError: it failed to the last.
        """
        waits = self._policy.waits()
        while True:
            try:
                return request()
            except TryAgainError as error:
                wait = next(waits, None)
                if wait is None:
                    raise OSError(
                        f"{path}: {error}; given up after {self._policy.budget:g} s"
                    ) from error
                _pause(wait, error.retry_after)


def _cut(data: bytes) -> Iterator[bytes]:
    # splitlines of bytes also breaks at a lone \r; a split at \n doesn't.
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        yield data[start : end + 1]
        start = end + 1
    if start < len(data):
        yield data[start:]


def _status(folder: str, entry: ObjectEntry) -> FileStatus:
    return FileStatus(folder + entry.name, entry.length, entry.modification_time, entry.is_prefix)
