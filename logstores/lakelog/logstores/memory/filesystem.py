"""The buckets of `MemoryLogStore` as a pyarrow file system. A path is `name/key`."""

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING

import pyarrow.fs as pafs

from lakelog.logstores.memory.client import bucket
from lakelog.logstores.object_store.create_once import RetryPolicy
from lakelog.logstores.object_store.filesystem import ObjectFiles

if TYPE_CHECKING:
    from collections.abc import Hashable

    from lakelog.logstores.memory.client import MemoryClient


@cache
def memory_filesystem() -> pafs.FileSystem:
    """The one file system over all buckets of this process."""
    return pafs.PyFileSystem(MemoryFiles("memory", RetryPolicy()))


class MemoryFiles(ObjectFiles):
    """What pyarrow calls. It holds nothing of a store's conf, which may be secret, when pickled."""

    def _locate(self, path: str) -> tuple[MemoryClient, str]:
        name, _, key = path.partition("/")
        return bucket(name), key.strip("/")

    def _identity(self) -> Hashable:
        return "memory"

    def _sink(self, path: str) -> io.IOBase:
        return _Sink(*self._locate(path))


class _Sink(io.BytesIO):
    """Bytes on their way to a bucket: without the local file, which other clients upload."""

    def __init__(self, client: MemoryClient, key: str) -> None:
        super().__init__()
        self._client, self._key = client, key

    def close(self) -> None:
        if not self.closed:
            self._client.put(self._key, self.getvalue())
        super().close()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            super().close()  # half a copy is nothing
        self.close()
