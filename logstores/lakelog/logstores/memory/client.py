"""Buckets of objects in the memory of this process."""

from __future__ import annotations

import itertools
import time
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from lakelog.logstores.object_store.client import KeyTakenError, ObjectClient, ObjectEntry, Owner

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_AFTER_SLASH = chr(ord("/") + 1)


class StoredObject(NamedTuple):
    """One state of an object."""

    body: bytes
    token: str | None
    modification_time: int = 0


class MemoryClient(ObjectClient):
    """One bucket. Each request is one step of a dict, so that no thread or fork needs a lock.

    Attributes:
        objects: key -> what is there.
    """

    def __init__(self, endpoint: str) -> None:
        """Begin empty.

        Args:
            endpoint: the URI of the bucket, with a slash at its end.
        """
        self.objects: dict[str, StoredObject] = {}
        self._endpoint = endpoint

    @property
    def endpoint(self) -> str:  # the contract says it
        return self._endpoint

    @property
    def is_known(self) -> bool:
        return True

    @property
    def lists_in_order(self) -> bool:
        return True

    def create(self, key: str, body: bytes, token: str) -> None:
        made = _object(body, token)
        if self.objects.setdefault(key, made) is not made:
            raise KeyTakenError(key)

    def put(self, key: str, body: bytes) -> None:
        self.objects[key] = _object(body, None)

    def get(self, key: str) -> bytes:
        found = self.objects.get(key)
        if found is None:
            raise FileNotFoundError(f"{self._endpoint}{key} does not exist")
        return found.body

    def owner(self, key: str) -> Owner | None:
        found = self.objects.get(key)
        return None if found is None else Owner(found.token, found.modification_time)

    def page(
        self, prefix: str, start: str, continuation: str | None, limit: int | None
    ) -> tuple[list[ObjectEntry], str | None]:
        del continuation  # all is in the first one
        return list(itertools.islice(self._entries(prefix, start), limit)), None

    def _entries(self, prefix: str, start: str) -> Iterator[ObjectEntry]:
        objects = dict(self.objects)
        keys = sorted(objects)
        at = bisect_left(keys, prefix + start)
        while at < len(keys) and keys[at].startswith(prefix):
            name, slash, _ = keys[at][len(prefix) :].partition("/")
            if slash and name:
                yield ObjectEntry(name, 0, 0, is_prefix=True)
                at = bisect_left(keys, prefix + name + _AFTER_SLASH, at)
                continue
            found = objects[keys[at]]
            yield ObjectEntry(name, len(found.body), found.modification_time)
            at += 1

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)

    @property
    def most_deletions(self) -> int:
        return 1000

    def delete_many(self, keys: Sequence[str]) -> list[str]:
        for key in keys:
            self.objects.pop(key, None)
        return []

    def upload(self, key: str, source: Path) -> None:
        self.put(key, source.read_bytes())


_buckets: dict[str, MemoryClient] = {}


def bucket(name: str) -> MemoryClient:
    """The bucket of that name in this process; made at first use."""
    found = _buckets.get(name)
    if found is None:
        made = MemoryClient(f"memory://{name}/" if name else "memory:/")
        found = _buckets.setdefault(name, made)
    return found


def forget_bucket(name: str) -> None:
    """Drop a bucket and all that is in it."""
    _buckets.pop(name, None)


def _object(body: bytes, token: str | None) -> StoredObject:
    return StoredObject(body, token, time.time_ns() // 1_000_000)
