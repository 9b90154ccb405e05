"""The transactions of this process that are not over yet.

What they have written may be in no version so far, and must not be taken for leftovers.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from lakelog.logstores.systems import after_fork

if TYPE_CHECKING:
    from lakelog.core.table_log import TableLog


class _Transaction(Protocol):
    @property
    def delta_log(self) -> TableLog: ...

    @property
    def began_ms(self) -> int | None: ...


_lock = threading.Lock()
_known: WeakSet[_Transaction] = WeakSet()


def _reset_after_fork() -> None:
    # Another thread may have had the lock when this process was forked.
    global _lock
    _lock = threading.Lock()


after_fork(_reset_after_fork)


def remember(transaction: _Transaction) -> None:
    """Count a transaction in, as long as something refers to it."""
    with _lock:
        _known.add(transaction)


def oldest_open(table: str) -> int | None:
    """When the oldest open transaction on a table began, by this machine's clock.

    Args:
        table: its URI.

    Returns:
        Milliseconds since 1970-01-01 UTC; `None` if there is none.
    """
    with _lock:
        mine = [each for each in _known if each.delta_log.table == table]
    times = [each.began_ms for each in mine]
    return min((time for time in times if time is not None), default=None)
