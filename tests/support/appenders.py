"""A process that appends to a table whenever it is told to, by lakelog in two ways or by deltalake.

    python tests/support/appenders.py lakelog TABLE FIRST_ID COMMITS

For each line on stdin it makes so many commits of one row each, ids counting on from the first,
and answers with one line of JSON: for each commit its id, its version and its transaction, as far
as the client says them. A conf for lakelog comes as JSON in `LAKELOG_TEST_CONF`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CONF_VARIABLE = "LAKELOG_TEST_CONF"

# deltalake gives up after fifteen lost races unless it is told otherwise.
_RETRIES = 10_000


class Appender:
    """Such a process, begun; whoever uses it tells it when."""

    def __init__(
        self,
        client: str,
        table: str,
        first: int,
        commits: int,
        conf: Mapping[str, str] | None = None,
    ) -> None:
        """Begin it.

        Args:
            client: lakelog, by its transactions; write_arrow, the same as users do; deltalake.
            table: to append to.
            first: id of its first row.
            commits: of each round.
            conf: for lakelog.
        """
        self.client = client
        self.acknowledged: list[dict[str, Any]] = []
        self._process = process = subprocess.Popen(
            [sys.executable, __file__, client, table, str(first), str(commits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, CONF_VARIABLE: json.dumps(dict(conf or {}))},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout

    def ready(self) -> None:
        """Wait until it has opened the table."""
        assert self._out.readline() == "ready\n"

    def go(self) -> None:
        """Begin a round."""
        self._in.write("go\n")

    def finish_round(self) -> None:
        """Wait for its end; what was acknowledged is in `acknowledged`."""
        line = self._out.readline()
        assert line, f"{self.client} ended with {self._process.wait(60)}"
        self.acknowledged += json.loads(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._in.close()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()
            self._process.wait()
            self._out.close()


def row(number: int, writer: str) -> pa.Table:
    """The one row of a commit."""
    return pa.table({"id": pa.array([number], pa.int64()), "writer": [writer]})


def by_lakelog(table: str) -> Callable[[int], dict[str, Any]]:
    """Appends to a table of plain features, and tells the transaction's id too."""
    from lakelog.core import DeltaLog
    from lakelog.core.actions.operation import Operation
    from lakelog.core.data.file_writer import DataFileWriter, write_plan

    log = DeltaLog.for_table(table, json.loads(os.environ.get(CONF_VARIABLE, "{}")))

    def append(number: int) -> dict[str, Any]:
        txn = log.start_transaction()
        schema = log.snapshot.schema
        with DataFileWriter(write_plan(log.store, log.table, schema), schema) as writer:
            writer.write(row(number, "lakelog"))
        version = txn.commit(writer.close(), Operation.write("Append"))
        return {"id": number, "version": version, "txn": txn._committer.txn_id}

    return append


def by_write_arrow(table: str) -> Callable[[int], dict[str, Any]]:
    """Appends as users do, whatever features the table has."""
    from lakelog.core import DeltaLog, write_arrow

    log = DeltaLog.for_table(table, json.loads(os.environ.get(CONF_VARIABLE, "{}")))

    def append(number: int) -> dict[str, Any]:
        return {"id": number, "version": write_arrow(log, row(number, "lakelog"), mode="append")}

    return append


def by_deltalake(table: str) -> Callable[[int], dict[str, Any]]:
    """Appends, and tells no version: deltalake doesn't."""
    import deltalake

    properties = deltalake.CommitProperties(max_commit_retries=_RETRIES)

    def append(number: int) -> dict[str, Any]:
        data = row(number, "deltalake")
        deltalake.write_deltalake(table, data, mode="append", commit_properties=properties)
        return {"id": number}

    return append


def main() -> None:
    """Serve until stdin closes."""
    client, table, first, commits = sys.argv[1:]
    ways = {"lakelog": by_lakelog, "write_arrow": by_write_arrow, "deltalake": by_deltalake}
    append = ways[client](table)
    number = int(first)
    print("ready", flush=True)
    for _ in sys.stdin:
        done = [append(number + index) for index in range(int(commits))]
        number += len(done)
        print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
