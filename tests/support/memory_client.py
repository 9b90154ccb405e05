"""Object clients in memory, obedient and not: what probes and first uses are tried on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from lakelog.logstores.errors import UnsafeLogStoreError
from lakelog.logstores.memory import client
from lakelog.logstores.memory.client import StoredObject
from lakelog.logstores.object_store.store import (
    KeyTakenError,
    ObjectEntry,
    ObjectLogStore,
    Owner,
    TryAgainError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow.fs


class MemoryClient(client.MemoryClient):
    """Keeps every promise.

    Attributes:
        objects: key -> bytes and token.
        requests: name and key of each request, in order.
        forbidden: names of requests that are answered with PermissionError.
    """

    def __init__(self, endpoint: str = "memory://bucket", *, known: bool = False) -> None:
        super().__init__(endpoint)
        self.requests: list[tuple[str, str]] = []
        self.forbidden: set[str] = set()
        self._known = known
        self._lock = threading.Lock()

    @property
    def is_known(self) -> bool:
        return self._known

    @property
    def most_deletions(self) -> int:
        return 1

    def create(self, key: str, body: bytes, token: str) -> None:
        self._asked("create", key)
        super().create(key, body, token)

    def put(self, key: str, body: bytes) -> None:
        self._asked("put", key)
        super().put(key, body)

    def get(self, key: str) -> bytes:
        self._asked("get", key)
        return super().get(key)

    def owner(self, key: str) -> Owner | None:
        self._asked("owner", key)
        return super().owner(key)

    def page(
        self, prefix: str, start: str, continuation: str | None, limit: int | None
    ) -> tuple[list[ObjectEntry], str | None]:
        self._asked("page", prefix)
        return super().page(prefix, start, continuation, limit)

    def delete(self, key: str) -> None:
        self._asked("delete", key)
        super().delete(key)

    def _asked(self, request: str, key: str) -> None:
        self.requests.append((request, key))
        if request in self.forbidden:
            raise PermissionError(f"these credentials may not {request} {key}")


class IgnoringClient(MemoryClient):
    """Answers every create with success, and keeps the last."""

    def create(self, key: str, body: bytes, token: str) -> None:
        self._asked("create", key)
        self.objects[key] = StoredObject(body, token)


class RacyClient(MemoryClient):
    """Looks first and writes afterwards: creates that meet all succeed.

    But for the first key of all, creates of a key wait between the look and the write until
    `together` of them have looked, so that each race is lost, and not now and then.
    """

    def __init__(self, endpoint: str = "memory://bucket", *, together: int) -> None:
        super().__init__(endpoint)
        self._together = together
        self._gates: dict[str, threading.Barrier] = {}

    def create(self, key: str, body: bytes, token: str) -> None:
        self._asked("create", key)
        if key in self.objects:
            raise KeyTakenError(key)
        with self._lock:
            parties = self._together if self._gates else 1
            gate = self._gates.setdefault(key, threading.Barrier(parties))
        gate.wait(30)
        self.objects[key] = StoredObject(body, token)


class RefusingClient(MemoryClient):
    """Says that it has no conditional create."""

    def create(self, key: str, body: bytes, token: str) -> None:
        self._asked("create", key)
        raise UnsafeLogStoreError("the endpoint answered 501 NotImplemented")


class HalfDeafClient(MemoryClient):
    """Does what it is told, and never says so."""

    def create(self, key: str, body: bytes, token: str) -> None:
        super().create(key, body, token)
        raise TryAgainError("the reply was lost", may_have_landed=True)


class MemoryClientStore(ObjectLogStore):
    """A store on such a client, at `mem://bucket/key`."""

    def __init__(self, client: MemoryClient, conf: Mapping[str, str] | None = None) -> None:
        super().__init__(conf)
        self.client = client

    def _locate(self, path: str) -> tuple[MemoryClient, str]:
        return self.client, path.removeprefix("mem://bucket/")

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        raise NotImplementedError

    def filesystem_path(self, path: str) -> str:
        return path.removeprefix("mem://")
