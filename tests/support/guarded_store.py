"""A store that opens to a key that is valid, as storages do whose credentials end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from lakelog.core.catalogs.renewed_files import SentFiles, renewed_filesystem
from lakelog.logstores import MemoryLogStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

KEY = "spark.guarded.key"


class GuardedStore(MemoryLogStore):
    """Memory, for who has the key of now. Chosen by `spark.delta.logStore.memory.impl`."""

    valid: ClassVar[str] = ""
    refused: ClassVar[list[str]] = []

    def _open(self) -> None:
        key = self.conf.get(KEY, "")
        if key != self.valid:
            self.refused.append(key)
            raise PermissionError(f"the key {key} has ended")

    def read(self, path: str) -> Iterator[str]:
        self._open()
        return super().read(path)

    def read_bytes(self, path: str) -> bytes:
        self._open()
        return super().read_bytes(path)

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        self._open()
        super().write(path, lines, overwrite=overwrite)

    def list_from(self, path: str) -> Iterator[Any]:
        self._open()
        return super().list_from(path)

    @property
    def filesystem(self) -> Any:
        return renewed_filesystem(self._files, lambda: SentFiles(self._files(), None, "t", "c"))

    def _files(self) -> Any:
        self._open()
        return super().filesystem
