"""Stores that let another one do the work."""

from __future__ import annotations

from abc import abstractmethod

from lakelog.logstores.contract import LogStore


class StandIn(LogStore):
    """A store that stands before another: what that one is, and is called, is what counts."""

    @property
    @abstractmethod
    def storage(self) -> LogStore:
        """The other, as it is now."""


def behind(store: LogStore) -> LogStore:
    """The store that does the work of a store: another for a stand-in, else itself."""
    return store.storage if isinstance(store, StandIn) else store
