"""A process that appends to a table whenever it is told to, by lakelog or by deltalake.

    python tests/support/appenders.py lakelog TABLE FIRST_ID COMMITS

For each line on stdin it makes so many commits of one row each, ids counting on from the first,
and answers with one line of JSON: for each commit its id, its version and its transaction, as far
as the client says them. A conf for lakelog comes as JSON in `LAKELOG_TEST_CONF`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

CONF_VARIABLE = "LAKELOG_TEST_CONF"

# deltalake gives up after fifteen lost races unless it is told otherwise.
_RETRIES = 10_000


def row(number: int, writer: str) -> pa.Table:
    """The one row of a commit."""
    return pa.table({"id": pa.array([number], pa.int64()), "writer": [writer]})


def by_lakelog(table: str) -> Callable[[int], dict[str, Any]]:
    """Appends as `write_arrow` does, and tells the transaction's id too."""
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
    append = {"lakelog": by_lakelog, "deltalake": by_deltalake}[client](table)
    number = int(first)
    print("ready", flush=True)
    for _ in sys.stdin:
        done = [append(number + index) for index in range(int(commits))]
        number += len(done)
        print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
