"""The store of a table's folder, by the credentials that hold for now.

A catalog says where a table is, and vends what opens it; that ends, mostly within an hour. Whoever
has the table open for longer asks the store of each moment.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Protocol

from lakelog.logstores.contract import StandIn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow.fs

    from lakelog.core.catalogs.renewed_files import SentFiles
    from lakelog.logstores import Capabilities, FileStatus, LogStore


class Storage(Protocol):
    """The folder of a table."""

    asks_for_credentials: bool
    """Whether the catalog's credentials open it."""

    def __call__(self) -> LogStore:
        """Its store, with credentials that hold for now."""
        ...

    def travelling(self) -> SentFiles:
        """Its file system for a job elsewhere, where nobody renews credentials: with young ones."""
        ...


class RenewedStore(StandIn):
    """A store that is, at each call, another one. Pickled, it is the one of that moment."""

    def __init__(self, storage: Storage) -> None:
        """Open nothing yet."""
        super().__init__()
        self._inner = storage

    @property
    def asks_for_credentials(self) -> bool:
        """Whether the catalog's credentials open the storage; else those of the conf do."""
        return self._inner.asks_for_credentials

    @property
    def storage(self) -> LogStore:
        """The one of now."""
        return self._inner()

    def read(self, path: str) -> Iterator[str]:
        """As of any store."""
        return self._inner().read(path)

    def read_bytes(self, path: str) -> bytes:
        """As of any store."""
        return self._inner().read_bytes(path)

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        """As of any store."""
        self._inner().write(path, lines, overwrite=overwrite)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """As of any store."""
        return self._inner().list_from(path)

    @property
    def capabilities(self) -> Capabilities:
        """Those of the storage."""
        return self._inner().capabilities

    def is_partial_write_visible(self, path: str) -> bool:
        """As of any store."""
        return self._inner().is_partial_write_visible(path)

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        """The storage of data files and checkpoints."""
        if not self._inner.asks_for_credentials:
            return self._files()
        from lakelog.core.catalogs.renewed_files import renewed_filesystem

        return renewed_filesystem(self._files, self._inner.travelling)

    def _files(self) -> pyarrow.fs.FileSystem:
        return self._inner().filesystem

    @property
    def conf(self) -> Mapping[str, str]:
        """That of the storage, with the keys that the catalog vended."""
        return self._inner().conf

    def filesystem_path(self, path: str) -> str:
        """As the storage spells it."""
        return self._inner().filesystem_path(path)

    def settings(self) -> Mapping[str, str]:
        """Those of the storage."""
        return self._inner().settings()

    def create_folder(self, path: str) -> None:
        """In the storage."""
        self._inner().create_folder(path)

    def delete_files(self, paths: Sequence[str]) -> dict[str, Exception]:
        """In the storage."""
        return self._inner().delete_files(paths)

    @contextlib.contextmanager
    def staged(self, path: str) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
        """In the storage."""
        with self._inner().staged(path) as given:
            yield given

    def close(self) -> None:
        """Release what the storage holds; the catalog is shared."""
        self._inner().close()

    def __reduce__(self) -> tuple[Any, ...]:
        """The store of now: elsewhere nobody asks the catalog."""
        return _same, (self._inner(),)


def _same(store: LogStore) -> LogStore:
    return store
