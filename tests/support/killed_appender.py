"""A process that appends numbered rows, and says which are acknowledged, until it is killed.

    python tests/support/killed_appender.py TABLE APP_ID ROWS [SAVE_EVERY]

It goes on after the last number of the table, tells that first, and then each acknowledged number
on a line of its own. It ends by itself when the table has all of them. A conf comes as JSON in
`LAKELOG_TEST_CONF`.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading

from lakelog.core import Ticket, appender

CONF_VARIABLE = "LAKELOG_TEST_CONF"

_WAITING = 20
"""Appends that are not acknowledged, so that there are many commits."""


def main() -> None:
    """Append."""
    table, app_id, rows, *save_every = sys.argv[1:]
    saves = save_every[0] if save_every else None
    every = "5ms" if saves is None else "50ms"
    conf = json.loads(os.environ.get(CONF_VARIABLE, "{}"))
    with appender(table, app_id=app_id, every=every, save_every=saves, conf=conf) as a:
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
        acknowledger.put(None)
        thread.join()


if __name__ == "__main__":
    main()
