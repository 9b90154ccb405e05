"""An object store as a LogStore, on a client that makes one request at a time.

The client is in `client`, and creating an object exactly
once in `create_once`.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import tempfile
from abc import abstractmethod
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from lakelog.logstores import keys
from lakelog.logstores.contract import Capabilities, FileStatus, LogStore, Scope
from lakelog.logstores.limits import check_length, log_limit, reading
from lakelog.logstores.lines import decode_lines, encode_lines
from lakelog.logstores.object_store.client import (
    TOKEN_NAME,
    KeyTakenError,
    NotTheServiceError,
    ObjectClient,
    ObjectEntry,
    Owner,
    PreparedRequest,
    TryAgainError,
)
from lakelog.logstores.object_store.create_once import RetryPolicy, create_once, repeat
from lakelog.logstores.object_store.listing import in_name_order
from lakelog.logstores.object_store.object_deletion import delete_objects
from lakelog.logstores.object_store.trust import ensure_trusted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow.fs

__all__ = [
    "BUDGET_KEY",
    "TOKEN_NAME",
    "KeyTakenError",
    "NotTheServiceError",
    "ObjectClient",
    "ObjectEntry",
    "ObjectLogStore",
    "Owner",
    "PreparedRequest",
    "RetryPolicy",
    "TryAgainError",
    "create_once",
    "retry_policy",
]

BUDGET_KEY: Final = keys.RETRY_BUDGET.name
"""Seconds that one operation may go on repeating requests."""

_T = TypeVar("_T")


def retry_policy(conf: Mapping[str, str]) -> RetryPolicy:
    """How long and how often requests are repeated, by the conf.

    Raises:
        LogStoreConfError: a setting is not a number of seconds.
    """
    return RetryPolicy(
        budget=keys.RETRY_BUDGET.of(conf),
        reach=keys.REACH_BUDGET.of(conf),
    )


class ObjectLogStore(LogStore):
    """What the stores on object storage share. A subclass says how to reach a bucket.

    An object appears whole under its key when its request ends, and services list what they
    acknowledged; so nothing partial is ever visible and a listing is never stale. Folders do not
    exist: one that holds nothing is missing.

    An overwrite is repeated like any request, and a request that timed out may land late: after
    a later overwrite by another writer it brings the older contents back. A log overwrites
    `_last_checkpoint` and checkpoints only: the first is a hint that readers check against the
    listing, and the second has the same contents whichever writer writes it.
    """

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        """Keep the conf; connect at the first use.

        Raises:
            LogStoreConfError: a retry setting is not a number.
        """
        super().__init__(conf)
        self._policy = retry_policy(self.conf)
        self._timeout = keys.REQUEST_TIMEOUT.of(self.conf)

    @abstractmethod
    def _locate(self, path: str) -> tuple[ObjectClient, str]:
        """The client of the path's bucket, made once, and the key in it.

        Raises:
            ValueError: the path is not a URI of this store.
        """

    def read(self, path: str) -> Iterator[str]:  # the contract says it
        client, key = self._locate(path)
        # BytesIO breaks lines at \n alone, as the contract wants.
        return decode_lines(io.BytesIO(self._got(client, key, path)))

    def read_bytes(self, path: str) -> bytes:
        client, key = self._locate(path)
        return self._got(client, key, path)

    def _got(self, client: ObjectClient, key: str, path: str) -> bytes:
        limit = log_limit(self.conf)
        data = reading(path, limit, lambda: self._again(path, lambda: client.get(key)))
        check_length(path, len(data), limit)  # of a client that takes no limit
        return data

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        # The whole object in one request: only its end makes it visible. A multipart upload would
        # be as atomic and cost three requests.
        body = b"".join(encode_lines(lines))
        client, key = self._locate(path)
        if overwrite:
            # May be repeated blindly, as no version is ever overwritten; see above.
            self._again(path, lambda: client.put(key, body))
        else:
            # Some services take the condition and ignore it. What that would cost is found out
            # once, before the first commit and not by it.
            ensure_trusted(client, key, self.conf, self._timeout)
            create_once(client, key, body, path, self._policy)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        folder, slash, start = path.rpartition("/")
        client, prefix = self._locate(folder + slash)
        # A server that orders by UTF-16, not by code point, may leave out too much.
        asked = start if start.isascii() else ""
        pages = self._pages(path, client, prefix, asked, None)
        # The first page is asked for by this call, and says whether there is a folder.
        first = next((page for page in pages if page), [])
        if not first and not (asked and any(self._pages(path, client, prefix, "", 1))):
            raise FileNotFoundError(f"{folder} does not exist: no object is below it")
        entries = in_name_order(
            itertools.chain([first], pages), start, lists_in_order=client.lists_in_order
        )
        return (_status(folder + slash, entry) for entry in entries)

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

    def delete_files(self, paths: Sequence[str]) -> dict[str, Exception]:
        return delete_objects(paths, self._locate, self._policy)

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
    ) -> Iterator[list[ObjectEntry]]:
        """All pages, each when it is asked for, or, with a limit, up to the first with entries."""
        continuation: str | None = None
        while True:
            request = partial(client.page, prefix, start, continuation, limit)
            entries, continuation = self._again(path, request)
            yield entries
            if continuation is None or (limit is not None and entries):
                return

    def _again(self, path: str, request: Callable[[], _T]) -> _T:
        """Repeat a request that may be repeated, within the budget.

        Raises:
            OSError: every try failed.
        """
        return repeat(request, path, self._policy)


def _status(folder: str, entry: ObjectEntry) -> FileStatus:
    return FileStatus(folder + entry.name, entry.length, entry.modification_time, entry.is_prefix)
