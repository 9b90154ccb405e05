"""One durable commit of one action on the local file system, lakelog against deltalake.

Both sides keep their table open and commit one `add` of a blind append; deltalake does not sync
its commit file to the disk, lakelog does (the file and the folder).
"""

from __future__ import annotations

import shutil
import tempfile
import time
import uuid
from pathlib import Path

import deltalake
import pyarrow as pa
from deltalake.transaction import AddAction
from measure import Measurement

from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.actions import AddFile

SCHEMA = pa.schema([pa.field("a", pa.int64())])


def file_name(i: int) -> str:
    """A name as Spark's writers and ours give it."""
    return f"part-{i:05d}-{uuid.uuid4()}.c000.snappy.parquet"


def commit_ours(log: DeltaLog, i: int, *, newest: bool = True) -> float:
    add = AddFile(
        path=file_name(i),
        partition_values={},
        size=1000,
        modification_time=1,
        data_change=True,
        stats='{"numRecords":1}',
    )
    start = time.perf_counter()
    log.start_transaction(newest=newest).commit([add], Operation("WRITE", {"mode": "Append"}))
    return time.perf_counter() - start


def commit_theirs(table: deltalake.DeltaTable, schema: object, i: int) -> float:
    add = AddAction(
        path=file_name(i),
        size=1000,
        partition_values={},
        modification_time=1,
        data_change=True,
        stats='{"numRecords":1}',
    )
    start = time.perf_counter()
    table.create_write_transaction([add], "append", schema, [])
    return time.perf_counter() - start


def measure(folder: Path, commits: int = 60) -> list[Measurement]:
    """Interleave `commits` commits of each side; checkpoints are off on both."""
    root = Path(tempfile.mkdtemp(dir=folder))
    try:
        ours_path, theirs_path = str(root / "ours"), str(root / "theirs")
        properties = {"delta.checkpointInterval": "1000000"}
        write_arrow(ours_path, SCHEMA.empty_table(), properties=properties, mode="append")
        deltalake.write_deltalake(theirs_path, SCHEMA.empty_table(), configuration=properties)
        log = DeltaLog.for_table(ours_path)
        log.update()
        table = deltalake.DeltaTable(theirs_path)
        schema = table.schema()
        ours, theirs = [], []
        for i in range(commits + 10):
            one, other = commit_ours(log, i), commit_theirs(table, schema, i)
            if i >= 10:
                ours.append(one)
                theirs.append(other)
        assert log.update().version == commits + 10
        return [
            Measurement(
                "commit of one action, local, durable",
                f"deltalake {deltalake.__version__}",
                ours,
                theirs,
                0.15,
                note="the peer does not fsync",
            )
        ]
    finally:
        shutil.rmtree(root, ignore_errors=True)
