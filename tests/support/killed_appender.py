"""A process that appends numbered rows, and says which are acknowledged, until it is killed.

    python tests/support/killed_appender.py TABLE APP_ID ROWS [SAVE_EVERY]

It goes on after the last number of the table, tells that first, and then each acknowledged number
on a line of its own. It ends by itself when the table has all of them. A conf comes as JSON in
`LAKELOG_TEST_CONF`.

With `LAKELOG_TEST_KILL=ROLE:N` it kills itself at the N-th moment of a role: before and after each
call of the store

- `open`, from the beginning on;
- `append`, once the appender is open;
- `compact`, of the thread that puts its small files together, which other runs don't have.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from lakelog.core import DeltaLog, Ticket, appender

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.logstores import LogStore

CONF_VARIABLE = "LAKELOG_TEST_CONF"
KILL_VARIABLE = "LAKELOG_TEST_KILL"
ROLES = ("open", "append", "compact")

_WAITING = 20
"""Appends that are not acknowledged, so that there are many commits."""
_CALLS = ("write", "read_bytes", "list_from", "delete_files")


class _Killer:
    """Counts the moments of a role."""

    def __init__(self, role: str, left: int) -> None:
        self._role, self._left = role, left
        self.is_open = False

    def watch(self, store: LogStore) -> None:
        """Count before and after each call of a store."""
        for name in _CALLS:
            setattr(store, name, self._counted(getattr(store, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self._count()
            result = call(*args, **kwargs)
            self._count()
            return result

        return counted

    def _count(self) -> None:
        if self._role == "append" and not self.is_open:
            return
        if self._role == "compact" and "compaction" not in threading.current_thread().name:
            return
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Append."""
    table, app_id, rows, *save_every = sys.argv[1:]
    saves = save_every[0] if save_every else None
    every = "5ms" if saves is None else "50ms"
    role, _, left = os.environ.get(KILL_VARIABLE, "").partition(":")
    killer = _Killer(role, int(left or 0))
    log = DeltaLog.for_table(table, json.loads(os.environ.get(CONF_VARIABLE, "{}")))
    killer.watch(log.store)
    compacts = role == "compact"
    with appender(log, app_id=app_id, every=every, save_every=saves, compact=compacts) as a:
        killer.is_open = True
        print(a.last_seq, flush=True)
        acknowledger: queue.Queue[Ticket | None] = queue.Queue(_WAITING)

        def acknowledge() -> None:
            while (ticket := acknowledger.get()) is not None:
                ticket.wait_saved()
                print(ticket.seq, flush=True)

        thread = threading.Thread(target=acknowledge)
        thread.start()
        for number in range(a.last_seq + 1, int(rows)):
            acknowledger.put(a.append([{"id": number, "app": app_id}], seq=number))
            if compacts:
                a.flush()  # a file for each row
        acknowledger.put(None)
        thread.join()


if __name__ == "__main__":
    main()
