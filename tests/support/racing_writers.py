"""Many processes that commit blind appends to one table at once.

    python tests/support/racing_writers.py TABLE PROCESSES COMMITS
    python tests/support/racing_writers.py TABLE PROCESSES create

Forks the writers, lets them go at the same moment, and prints one line of JSON: per process what
it did. With `create` each of them creates the table instead. The environment variable
`RACING_CONF` holds the conf as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelog.core.actions import AddFile, Metadata
from lakelog.core.actions.operation import Operation
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import DeltaConcurrentModificationException

if TYPE_CHECKING:
    from lakelog.core.transaction.optimistic import OptimisticTransaction

CONF: dict[str, str] = json.loads(os.environ.get("RACING_CONF", "{}"))
SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'


def append(table: str, writer: int, commits: int) -> dict[str, Any]:
    """One process's work."""
    log = DeltaLog.for_table(table, CONF)
    done: list[tuple[str, int]] = []
    attempts = 0
    began = time.monotonic()
    for number in range(commits):
        name = f"w{writer}-{number}.parquet"
        add = AddFile(path=name, partition_values={}, size=1, modification_time=1, data_change=True)
        txn = log.start_transaction()
        done.append((name, txn.commit([add], Operation.write("Append"))))
        attempts += len(txn.attempts)
    return {"done": done, "attempts": attempts, "seconds": time.monotonic() - began}


def create(txn: OptimisticTransaction) -> dict[str, Any]:
    """Create the table; say which version that made, or which error was met."""
    txn.update_metadata(Metadata(id=str(os.getpid()), schema_string=SCHEMA))
    try:
        return {"created": f"version {txn.commit([], Operation.create_table())}"}
    except DeltaConcurrentModificationException as exc:
        return {"created": type(exc).__name__}


def race(table: str, processes: int, commits: int | None) -> list[dict[str, Any]]:
    """Fork the writers, start them together, collect what they did."""
    sys.path.append(str(Path(__file__).parents[1]))
    from support.imported import import_what_it_imports

    import_what_it_imports(lambda: DeltaLog.for_table(table, CONF).start_transaction())
    gate_read, gate_write = os.pipe()
    pipes = []
    ready_pipes = []
    for writer in range(processes):
        out_read, out_write = os.pipe()
        ready_read, ready_write = os.pipe()
        if os.fork() == 0:
            os.close(gate_write)
            creator = DeltaLog.for_table(table, CONF).start_transaction()
            os.close(ready_write)
            os.read(gate_read, 1)  # returns when the parent closes the gate
            try:
                done = create(creator) if commits is None else append(table, writer, commits)
                text = json.dumps(done)
            except BaseException as exc:
                text = json.dumps({"error": repr(exc)})
            with os.fdopen(out_write, "w") as out:
                out.write(text)
            os._exit(0)
        os.close(out_write)
        os.close(ready_write)
        pipes.append(out_read)
        ready_pipes.append(ready_read)
    os.close(gate_read)
    for ready in ready_pipes:
        os.read(ready, 1)
        os.close(ready)
    os.close(gate_write)
    results = []
    for pipe in pipes:
        with os.fdopen(pipe) as stream:
            results.append(json.loads(stream.read()))
    for _ in pipes:
        os.wait()
    return results


if __name__ == "__main__":
    work = None if sys.argv[3] == "create" else int(sys.argv[3])
    print(json.dumps(race(sys.argv[1], int(sys.argv[2]), work)))
