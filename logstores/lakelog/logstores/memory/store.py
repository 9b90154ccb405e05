"""The log in the memory of one process: for tests, notebooks and examples."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.logstores.contract import Scope
from lakelog.logstores.errors import LogStoreConfError
from lakelog.logstores.locations import shown
from lakelog.logstores.memory.client import bucket, forget_bucket
from lakelog.logstores.object_store.store import ObjectLogStore

if TYPE_CHECKING:
    import pyarrow.fs

    from lakelog.logstores.contract import Capabilities
    from lakelog.logstores.memory.client import MemoryClient


class MemoryLogStore(ObjectLogStore):
    """A log in memory, at `memory://name/path`; the default for the scheme `memory`.

    All instances of a process share what is under one name; `filesystem` shows the same files. As
    on object storage, a folder is there while something is in it.
    """

    def _locate(self, path: str) -> tuple[MemoryClient, str]:
        name, key = _parts(path)
        return bucket(name), key

    @property
    def capabilities(self) -> Capabilities:  # noqa: D102  # the contract says it
        return replace(super().capabilities, exclusive_create=Scope.PROCESS, durable=False)

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:  # noqa: D102
        from lakelog.logstores.memory.filesystem import memory_filesystem

        return memory_filesystem()

    def filesystem_path(self, path: str) -> str:  # noqa: D102
        name, key = _parts(path)
        return f"{name}/{key}".rstrip("/") or "/"

    @staticmethod
    def forget(name: str) -> None:
        """Drop all that is under `memory://name`."""
        forget_bucket(name)


def _parts(uri: str) -> tuple[str, str]:
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme.lower() != "memory" or not rest.startswith("/"):
        raise LogStoreConfError(f"{shown(uri)} is not a path in memory: give memory://name/path")
    if not rest.startswith("//"):
        return "", rest.lstrip("/")
    name, _, key = rest[2:].partition("/")
    return name, key.lstrip("/")
