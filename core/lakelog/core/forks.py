"""Locks that a forked child finds free.

A fork copies a lock as it is, but not the thread that would release it: a child that goes on with
what its parent has open would wait for ever. What such a lock guards must be whole at any moment:
it keeps threads from doing the same work twice, not from seeing it half done.
"""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary

from lakelog.logstores.systems import after_fork

_owners: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def lock_of(owner: object) -> Any:
    """A lock for the attribute `_lock` of an object, which may be a weak key."""
    _owners[owner] = threading.Lock
    return threading.Lock()


def reentrant_lock_of(owner: object) -> Any:
    """The same, of the kind that its thread may take again."""
    _owners[owner] = threading.RLock
    return threading.RLock()


def _renew() -> None:
    for owner, kind in list(_owners.items()):
        owner._lock = kind()


after_fork(_renew)
