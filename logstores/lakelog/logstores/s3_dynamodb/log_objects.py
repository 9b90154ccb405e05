"""The objects of a log whose commits are decided by rows: drafts, and the files made of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from lakelog.logstores.errors import UnsafeLogStoreError
from lakelog.logstores.object_store.client import KeyTakenError, TryAgainError
from lakelog.logstores.object_store.create_once import repeat
from lakelog.logstores.s3_dynamodb.lock_rows import version_of
from lakelog.logstores.systems import after_fork

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.logstores.object_store.client import ObjectClient, Owner
    from lakelog.logstores.object_store.create_once import RetryPolicy
    from lakelog.logstores.s3_dynamodb.lock_rows import CommitRow

_T = TypeVar("_T")

_conditional: dict[str, bool] = {}
"""Endpoint -> whether it honours If-None-Match, as far as this process knows."""

after_fork(_conditional.clear)


class LogObjects:
    """The objects below one `_delta_log`."""

    def __init__(self, client: ObjectClient, prefix: str, uri: str, policy: RetryPolicy) -> None:
        """Keep what reaches them.

        Args:
            client: of the bucket.
            prefix: the key of the log's folder, with a slash at its end.
            uri: the same folder as the user spells it, for messages.
            policy: how long requests are repeated.
        """
        self._client = client
        self._prefix = prefix
        self._uri = uri
        self._policy = policy

    def owner(self, name: str) -> Owner | None:
        """Who made an object, and when; `None` if there is none."""
        return self._again(name, lambda: self._client.owner(self._prefix + name))

    def read(self, name: str) -> bytes | None:
        """The whole object; `None` if there is none."""
        try:
            return self._again(name, lambda: self._client.get(self._prefix + name))
        except FileNotFoundError:
            return None

    def put_draft(self, row: CommitRow, body: bytes) -> None:
        """Write the draft, whole, before its row names it."""
        key = self._prefix + row.temp_path
        if not self._is_conditional():
            self._again(row.temp_path, lambda: self._client.put(key, body))
            return
        # A bucket policy may demand the condition of every put below `_delta_log`.
        try:
            self._again(row.temp_path, lambda: self._client.create(key, body, row.token))
        except KeyTakenError:
            return  # the name is unique: an earlier request of this call made it

    def publish(self, row: CommitRow, body: bytes) -> bool:
        """Make the file of a row, unless it is there.

        Returns:
            Whether the file has the bytes of the draft. `False`: it is another writer's.

        Raises:
            OSError: it could not be made for now; its row still demands it.
        """
        if self._learn_conditional(row, body):
            return self._create(row, body)
        # Such an endpoint leaves a gap between the check and the put. The row is the lock, as for
        # Delta.
        owner = self.owner(row.file_name)
        if owner is not None:
            return self._is_made_of(row, owner, body)
        key = self._prefix + row.file_name
        self._again(row.file_name, lambda: self._client.put(key, body))
        return True

    def is_made_of(self, row: CommitRow, owner: Owner) -> bool:
        """Whether the row's file has the bytes of its draft. A missing draft is not an objection.

        Args:
            row: whose file exists.
            owner: the file's.
        """
        if owner.token == row.token:
            return True
        draft = self.read(row.temp_path)
        return draft is None or self._is_made_of(row, owner, draft)

    def goes_beyond(self, version: int) -> bool:
        """Whether the log has a commit above a version."""
        prefix, start = self._prefix, f"{version + 1:020d}."
        continuation: str | None = None
        while True:
            request = partial(self._client.page, prefix, start, continuation, None)
            entries, continuation = self._again(start, request)
            versions = (version_of(entry.name) for entry in entries)
            if any(found is not None and found > version for found in versions):
                return True
            if continuation is None:
                return False

    def _create(self, row: CommitRow, body: bytes) -> bool:
        key = self._prefix + row.file_name
        patience = self._policy.start()
        while True:
            try:
                self._client.create(key, body, row.token)
            except KeyTakenError as error:
                owner = self.owner(row.file_name)
                if owner is not None:
                    return self._is_made_of(row, owner, body)
                seen = f"{error}, and then it was not there"
                more = patience.pause()
            except TryAgainError as error:
                seen = str(error)
                more = patience.pause_after(error)
            else:
                return True
            if not more:
                raise OSError(f"{self._uri}{row.file_name}: {seen}")

    def _is_made_of(self, row: CommitRow, owner: Owner, body: bytes) -> bool:
        if owner.token is not None:
            return owner.token == row.token
        # The JVM's copies carry no token.
        return self.read(row.file_name) == body

    def _is_conditional(self) -> bool:
        return self._client.is_known or _conditional.get(self._client.endpoint, False)

    def _learn_conditional(self, row: CommitRow, body: bytes) -> bool:
        """Try the condition on the draft, which is there: once a process for each endpoint."""
        if self._client.is_known:
            return True
        endpoint = self._client.endpoint
        if endpoint not in _conditional:
            key = self._prefix + row.temp_path
            heeded = False
            try:
                self._again(row.temp_path, lambda: self._client.create(key, body, row.token))
            except KeyTakenError:
                heeded = True
            except UnsafeLogStoreError:
                heeded = False
            _conditional[endpoint] = heeded
        return _conditional[endpoint]

    def _again(self, name: str, request: Callable[[], _T]) -> _T:
        return repeat(request, self._uri + name, self._policy)
