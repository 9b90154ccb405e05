"""Many producers of one table for minutes: threads that share appenders, which compact their files.

    python tests/support/many_producers.py TABLE PROCESS PRODUCERS MINUTES

Each producer appends ten rows at a time, about seven times a second. What the process takes of
memory comes as a line of JSON now and then, and at the end how many rows each producer has
appended. A conf comes as JSON in `LAKELOG_TEST_CONF`.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

from lakelog.core import Appender, appender

CONF_VARIABLE = "LAKELOG_TEST_CONF"
BATCH, PAUSE = 10, 0.15
_TEXT = 200
"""Characters of a row, which compress badly."""


def resident() -> int:
    """Bytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def produce(a: Appender, producer: int, until: float, counts: dict[int, int]) -> None:
    """Append until the time is up."""
    draw, number = random.Random(producer), 0
    while time.monotonic() < until:
        rows = [
            {"producer": producer, "id": number + each, "text": draw.randbytes(_TEXT // 2).hex()}
            for each in range(BATCH)
        ]
        a.append(rows)
        number += BATCH
        time.sleep(PAUSE * 2 * draw.random())
    counts[producer] = number


def main() -> None:
    """Produce."""
    table, process, producers, minutes = sys.argv[1:]
    first, count = int(process) * int(producers), int(producers)
    conf: dict[str, str] = json.loads(os.environ.get(CONF_VARIABLE, "{}"))
    until, counts = time.monotonic() + 60 * float(minutes), dict[int, int]()
    options: dict[str, Any] = {"every": "1s", "compact": True, "conf": conf}
    with appender(table, app_id=f"process-{process}", **options) as a:
        threads = [
            threading.Thread(target=produce, args=(a, each, until, counts))
            for each in range(first, first + count)
        ]
        for each in threads:
            each.start()
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, max(float(minutes), 0.5)))
            print(json.dumps({"resident": resident(), "held": a.metrics.pending_bytes}), flush=True)
        for each in threads:
            each.join()
    print(json.dumps({"counts": counts, "compacted": a.metrics.compacted}), flush=True)


if __name__ == "__main__":
    main()
