"""Logs of very many commits: opening one, and checking a commit against all who were faster."""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Measurement
from scale import PEER, compare, make_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores import LogStore

COMMITS = 10_000
WINNERS = 1_000
SLIPPED = (40, 1, 7, 25)
"""Rivals who come between a check and the write that follows it, race by race."""
_names = itertools.count()


def measure(folder: Path, rounds: int = 3) -> list[Measurement]:
    """Measure both."""
    return [*_opening(folder, rounds), _check(()), _check(SLIPPED)]


def _opening(folder: Path, rounds: int) -> Iterator[Measurement]:
    root = Path(tempfile.mkdtemp(dir=folder))
    try:
        path = make_table(root / "table", COMMITS, COMMITS)
        ours, theirs = compare(path, "open", rounds)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    work = f"open {COMMITS:,} JSON commits of one file, no checkpoint"
    yield Measurement(work, PEER, [o["seconds"] for o in ours], [t["seconds"] for t in theirs], 1.0)
    memory = [[each["peak"] / 1e6 for each in side] for side in (ours, theirs)]
    yield Measurement("memory of that", PEER, memory[0], memory[1], 1.0, unit="MB")


def _check(slipped: tuple[int, ...]) -> Measurement:
    """A job that read one partition commits behind appends to another; its reads are counted."""
    from lakelog.core import DeltaLog, Operation
    from lakelog.core.actions import AddFile, Metadata
    from lakelog.core.clock import SystemClock
    from lakelog.core.conf import DeltaConf
    from lakelog.logstores import MemoryLogStore

    left = list(slipped)

    class Counting(MemoryLogStore):
        reads = 0

        def read_bytes(self, path: str) -> bytes:
            self.reads += 1
            return super().read_bytes(path)

        def write(self, path: str, lines: object, *, overwrite: bool = False) -> None:
            version = int(path.rsplit("/", 1)[1].split(".")[0])
            if left and version > WINNERS:
                _rivals(MemoryLogStore(), table, version, left.pop(0))
            super().write(path, lines, overwrite=overwrite)  # type: ignore[arg-type]

    table = f"memory://benchmark/{next(_names)}"
    store = Counting()
    log = DeltaLog(table, store, DeltaConf.from_mapping(None), SystemClock())
    columns = [
        {"name": name, "type": "string", "nullable": True, "metadata": {}} for name in ("id", "day")
    ]
    schema = json.dumps({"type": "struct", "fields": columns})
    txn = log.start_transaction()
    txn.update_metadata(Metadata(id="x", schema_string=schema, partition_columns=["day"]))
    txn.commit([], Operation.create_table(["day"]))
    txn = log.start_transaction()
    txn.filter_files("day = '2'")
    _rivals(MemoryLogStore(), table, 1, WINNERS)
    store.reads = 0
    mine = AddFile(
        path="mine",
        partition_values={"day": "2"},
        size=1,
        modification_time=1,
        data_change=True,
    )
    began = time.perf_counter()
    version = txn.commit([mine], Operation("WRITE"))
    seconds = time.perf_counter() - began
    winners = WINNERS + sum(slipped)
    assert version == winners + 1
    races = f", {len(slipped)} more races lost" if slipped else ""
    return Measurement(
        f"conflict check against {winners:,} winners{races}",
        "one read a winner",
        [store.reads],
        [winners],
        1.01,
        unit="reads",
        note=f"{seconds:.2f} s in all; also read: each version that was not there yet",
    )


def _rivals(store: LogStore, table: str, first: int, count: int) -> None:
    from lakelog.core.log.file_names import commit_path

    info = '{"commitInfo":{"operation":"WRITE","isBlindAppend":true}}'
    for version in range(first, first + count):
        add = {
            "path": f"rival-{version}",
            "partitionValues": {"day": "1"},
            "size": 1,
            "modificationTime": 1,
            "dataChange": True,
        }
        store.write(commit_path(table, version), [info, json.dumps({"add": add})])
