"""Whether a store is a network away, where a request costs a round trip and bytes cost little."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.logstores.contract import Scope, behind

if TYPE_CHECKING:
    from lakelog.logstores.contract import LogStore


def is_far(store: LogStore) -> bool:
    """Whether to save round trips: everywhere but on a disk of this host.

    A store that excludes the writers of one host, and no others, is such a disk.
    """
    return store.capabilities.exclusive_create != Scope.HOST


def fetches_whole(store: LogStore) -> bool:
    """Whether `read_bytes` gets a file of any kind by one request.

    An object store does. The contract promises it of text alone, so that a store may read lines.
    """
    if not is_far(store):
        return False
    from lakelog.logstores.object_store import ObjectLogStore

    return isinstance(behind(store), ObjectLogStore)
