"""A folder for probes below a URI: made, used, and removed again, never in a table's own log."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lakelog.logstores.doctor.lock_table_checks import as_dynamodb_store, forget_rows
from lakelog.logstores.object_store.store import ObjectLogStore, TryAgainError
from lakelog.logstores.object_store.trust import probe_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores.contract import LogStore
    from lakelog.logstores.object_store.store import ObjectClient


class ProbeArea:
    """`<uri>/.lakelog-probe-<random>`, with folders that look like tables' logs in it.

    Attributes:
        folder: the URI of the area.
    """

    def __init__(self, store: LogStore, uri: str) -> None:
        """Choose a name; nothing is created yet.

        Args:
            store: any.
            uri: of a table, or of a folder that is to hold tables. Need not exist.
        """
        self._store = store
        self._uri = uri.rstrip("/")
        self._missing: list[str] = []
        self._logs: list[str] = []
        self.folder: str = f"{self._uri}/{probe_folder()}"

    def log(self, name: str) -> str:
        """Make a folder for a log, as a table's, and return its URI.

        Raises:
            OSError: it can't be made.
        """
        if not self._missing:
            self._missing = _missing_folders(self._store, self._uri)
        path = f"{self.folder}/{name}/_delta_log"
        self._logs.append(path)
        self._store.create_folder(path)
        return path

    def clear(self) -> list[str]:
        """Remove everything in the area, and return what is left, as far as it can be seen."""
        if isinstance(self._store, ObjectLogStore):
            return self._clear_objects(self._store)
        filesystem, path = self._store.filesystem, self._store.filesystem_path(self.folder)
        try:
            filesystem.delete_dir(path)
        except FileNotFoundError:
            return []
        except (OSError, NotImplementedError):
            return [self.folder]
        for each in self._missing:
            # Not recursive: if the folder is in use by now, it stays.
            try:
                os.rmdir(each)  # noqa: PTH106
            except OSError:
                break
        return []

    def _clear_objects(self, store: ObjectLogStore) -> list[str]:
        client, prefix = store._locate(self.folder + "/")
        left = []
        locked = as_dynamodb_store(store)
        if locked is not None:
            left += [f"rows of {log}" for log in self._logs if not forget_rows(locked, log)]
        try:
            for key in list(_keys(client, prefix)):
                try:
                    client.delete(key)
                except (OSError, TryAgainError):
                    left.append(key)
        except (OSError, TryAgainError):
            left.append(prefix)
        return left


def _missing_folders(store: LogStore, uri: str) -> list[str]:
    """The folders that making one below the URI will make on a local disk, deepest first."""
    from lakelog.logstores.local.store import LocalLogStore, local_path

    if not isinstance(store, LocalLogStore):
        return []
    path = local_path(uri)
    found = []
    while path and not os.path.lexists(path):
        found.append(path)
        path = path.rpartition("/")[0]
    return found


def _keys(client: ObjectClient, prefix: str) -> Iterator[str]:
    continuation: str | None = None
    while True:
        entries, continuation = client.page(prefix, "", continuation, None)
        for entry in entries:
            if entry.is_prefix:
                yield from _keys(client, f"{prefix}{entry.name}/")
            else:
                yield prefix + entry.name
        if continuation is None:
            return
