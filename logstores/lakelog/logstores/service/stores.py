"""The stores behind the service: one for each scheme and each conf that clients come with."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from lakelog.logstores import keys
from lakelog.logstores.contract import Scope
from lakelog.logstores.errors import UnsafeLogStoreError
from lakelog.logstores.resolution import BRIDGE_CLASS, class_path_of, log_store_for, scheme_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.logstores.contract import LogStore

_HADOOP: Final = "spark.hadoop."
_HADOOP_FAMILIES: Final = ("fs.", "dfs.", "hadoop.", "kerberos.", "google.cloud.auth.")
_CHOICE: Final = ("spark.delta.logStore.", "delta.logStore.")
_MOST: Final = 256
"""Confs that are remembered: sessions come with settings of their own, and secrets are renewed."""


class Stores:
    """Makes a store when it is first asked for, and keeps it. Safe for use by several threads."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        """Keep the service's own settings, which win over those that clients come with."""
        self._conf = _spelled_out(conf)
        chosen = [key for key in conf if key.startswith(_CHOICE)]
        if not chosen:
            # So that what the client's conf says is behind the bridge counts.
            self._conf["spark.delta.logStore.class"] = BRIDGE_CLASS
        self._by_scheme = bool(chosen) and not any(key.endswith(".class") for key in chosen)
        self._lock = threading.Lock()
        self._made: dict[tuple[str, frozenset[tuple[str, str]]], LogStore] = {}

    def store_for(self, path: str, settings: Mapping[str, str]) -> LogStore:
        """The store of a path, for a client with these settings.

        Its `spark.lakelog.bridge.store` chooses the class, unless the service's own conf does for
        the path's scheme; its keys of Delta's say that it comes by the bridge, and are left out.

        Raises:
            LogStoreError: as `log_store_for`.
        """
        theirs = {k: v for k, v in settings.items() if not k.startswith(_CHOICE)}
        key = scheme_of(path), frozenset(theirs.items())
        with self._lock:
            store = self._made.get(key)
            if store is None:
                store = log_store_for(path, {**_spelled_out(theirs), **self._own(scheme_of(path))})
                if len(self._made) >= _MOST:
                    # Not closed: a request may be using it. It goes when that is through.
                    del self._made[next(iter(self._made))]
                self._made[key] = store
            return store

    def _own(self, scheme: str) -> dict[str, str]:
        """The service's own settings; a scheme that they don't name is the client's to choose."""
        impl = f"{_CHOICE[1]}{scheme}.impl"
        if not self._by_scheme or impl in self._conf or f"spark.{impl}" in self._conf:
            return self._conf
        return {**self._conf, f"spark.{impl}": BRIDGE_CLASS}

    def close(self) -> None:
        """Close them all; none may be in use."""
        with self._lock:
            made, self._made = list(self._made.values()), {}
        for store in made:
            store.close()


def refuse_unsafe(store: LogStore, path: str) -> None:
    """Refuse to commit by a store that excludes no other writer, as lakelog's own commits do.

    Raises:
        UnsafeLogStoreError: it excludes no other writer, and the conf doesn't allow that.
    """
    alone = keys.SINGLE_WRITER.of(store.conf)
    if store.capabilities.exclusive_create is Scope.NONE and not alone:
        raise UnsafeLogStoreError(
            f"{class_path_of(type(store))} excludes no other writer of {path}, so two commits may "
            "both believe that they made it. Choose another store, or set "
            f"{keys.SINGLE_WRITER}=true where there is one writer only, and only ever one"
        )


def _spelled_out(conf: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's keys with `spark.hadoop.` before them, so that one setting has one spelling."""
    return {(_HADOOP + k if k.startswith(_HADOOP_FAMILIES) else k): v for k, v in conf.items()}
