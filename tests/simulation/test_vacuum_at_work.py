"""VACUUM while others write, read, travel in time, are slow, or die: nothing retained is lost.

VACUUM takes one step at a time, where a step ends with the next call of its store, and between any
two steps others do what was drawn. They do it in the same process and by another store.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import (
    DeltaLog,
    Operation,
    delete_rows,
    optimize,
    restore,
    update_rows,
    vacuum,
    write_arrow,
)
from lakelog.core.errors import DeltaAnalysisError, DeltaConcurrentModificationException
from lakelog.core.maintain.vacuum import vacuum_table as command
from simulation.stepping import Killed, SteppingStore
from support.aged_tables import HOUR, UNCHECKED, age_all, data_files, put
from support.examples import seeds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.core import Snapshot
    from lakelog.core.actions import AddFile

RETENTION = 5
"""Hours."""


@dataclass
class Others:
    """Everybody but VACUUM."""

    uri: str
    random: random.Random
    kills: bool
    slow: list[tuple[Any, list[AddFile]]] = field(default_factory=list)
    """Transactions whose files are written and not committed."""
    travellers: list[Snapshot] = field(default_factory=list)
    in_doubt: set[str] = field(default_factory=set)
    steps: int = 0

    def act(self) -> None:
        """Do something, or nothing."""
        self.steps += 1
        if self.kills and self.random.random() < 0.03:
            raise Killed
        if self.random.random() < 0.25:
            deeds = [
                self.append,
                self.delete,
                self.update,
                self.overwrite,
                self.travel,
                self.compact,
            ]
            deeds += [self.begin_slowly, self.end_slowly, self.go_back, self.checkpoint]
            with contextlib.suppress(DeltaConcurrentModificationException):
                self.random.choice(deeds)()

    def rows(self, count: int = 3) -> dict[str, list[int]]:
        return {"id": [self.random.randrange(10) for _ in range(count)], "p": [self.steps] * count}

    def append(self) -> None:
        write_arrow(self.uri, self.rows(), mode="append")

    def overwrite(self) -> None:
        write_arrow(self.uri, self.rows(), mode="overwrite")

    def delete(self) -> None:
        delete_rows(self.uri, f"id = {self.random.randrange(10)}")

    def update(self) -> None:
        update_rows(self.uri, {"id": "id + 1"}, f"id = {self.random.randrange(10)}")

    def compact(self) -> None:
        optimize(self.uri)

    def checkpoint(self) -> None:
        DeltaLog.for_table(self.uri).checkpoint()

    def travel(self) -> None:
        """Open a version, and read it when all is over."""
        snapshot = DeltaLog.for_table(self.uri).snapshot
        _ = snapshot.file_table
        self.travellers.append(snapshot)

    def begin_slowly(self) -> None:
        """Write a file that another process commits much later."""
        log = DeltaLog.for_table(self.uri)
        template = log.snapshot.files()
        if not template:
            return
        name = f"slow-{self.steps}.parquet"
        source = Path(self.uri) / template[0].path
        if not source.exists() or template[0].deletion_vector is not None:
            return
        (Path(self.uri) / name).write_bytes(source.read_bytes())
        self.slow.append((log, [replace(template[0], path=name, data_change=True)]))

    def end_slowly(self) -> None:
        if self.slow:
            log, files = self.slow.pop()
            log.start_transaction().commit(files, Operation.write("Append"))

    def go_back(self) -> None:
        """Restore a version that the retention covers."""
        log = DeltaLog.for_table(self.uri)
        newest = log.snapshot.version
        with contextlib.suppress(DeltaAnalysisError):
            restore(log, version=self.random.choice([newest - 1, newest - 2, newest]))


def build(uri: str, draw: random.Random) -> None:
    """Make a table with a past, of which some is beyond the retention."""
    properties = {
        "delta.deletedFileRetentionDuration": f"interval {RETENTION} hours",
        "delta.enableDeletionVectors": draw.choice(["true", "false"]),
        "delta.enableChangeDataFeed": draw.choice(["true", "false"]),
        "delta.checkpointInterval": "4",
    }
    write_arrow(uri, {"id": [1, 2], "p": [0, 0]}, properties=properties, mode="append")
    past = Others(uri, draw, kills=False)
    for _ in range(4):
        draw.choice([past.append, past.delete, past.update, past.overwrite])()
    for number in range(4):
        put(uri, f"left over {number}", hours=RETENTION + 1)
    age_all(uri, RETENTION + 1)
    _age_tombstones(uri)
    for _ in range(2):
        draw.choice([past.append, past.delete, past.overwrite])()


def _age_tombstones(uri: str) -> None:
    """As if the writers' clock had shown what the storage's shows now."""
    import json

    stamp = int((time.time() - (RETENTION + 1) * HOUR) * 1000)
    for path in (Path(uri) / "_delta_log").glob("*.json"):
        times = path.stat().st_mtime
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if "remove" in line:
                line["remove"]["deletionTimestamp"] = stamp
        path.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in lines))
        os.utime(path, (times, times))
    for path in (Path(uri) / "_delta_log").glob("*.crc"):
        path.unlink()


def complaints(uri: str, others: Others, began: float) -> Iterator[str]:
    """What the retention promises and the storage does not hold."""
    log = DeltaLog.for_table(uri)
    newest = log.update().version
    times = {
        version: (Path(uri) / "_delta_log" / f"{version:020d}.json").stat().st_mtime
        for version in range(newest + 1)
    }
    for version in range(newest + 1):
        replaced = times.get(version + 1)
        if replaced is None or replaced >= began - RETENTION * HOUR:
            with contextlib.suppress(OSError):
                log.snapshot_at(version).to_arrow()
                continue
            yield f"version {version} can't be read"
    for snapshot in others.travellers:
        try:
            snapshot.to_arrow()
        except OSError as error:
            yield f"a reader of version {snapshot.version} lost a file: {error}"
    for _, files in others.slow:
        if not (Path(uri) / files[0].path).exists():
            yield f"the file {files[0].path} of a write at work is gone"


@pytest.mark.parametrize("seed", seeds(5))
@pytest.mark.parametrize("mode", ["FULL", "LITE"])
def test_nothing_that_the_retention_promises_is_lost(
    seed: int, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(f"{seed} {mode}")
    monkeypatch.setattr(command, "_BATCH", 2)
    with tempfile.TemporaryDirectory(prefix="lakelog-vacuum-") as folder:
        uri = f"{folder}/t"
        build(uri, draw)
        others = Others(uri, draw, kills=draw.random() < 0.5)
        others.travel()
        began = time.time()
        store = SteppingStore()
        others_act = others.act
        monkeypatch.setattr(SteppingStore, "act", staticmethod(others_act))
        log = DeltaLog.for_table(uri)
        log = DeltaLog(log.table, store, log.conf, log.clock)
        with contextlib.suppress(Killed, DeltaConcurrentModificationException):
            vacuum(log, mode=mode)
        monkeypatch.setattr(SteppingStore, "act", staticmethod(lambda: None))
        assert others.steps
        assert list(complaints(uri, others, began)) == []
        # Whatever was left undone, the next run does.
        vacuum(uri, mode="FULL")
        assert not [name for name in data_files(uri) if name.startswith("left over")]
        assert list(complaints(uri, others, began)) == []


def test_a_vacuum_that_forgets_a_rule_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from lakelog.core.maintain.vacuum.kept import KeptFiles

    monkeypatch.setattr(KeptFiles, "may_go", lambda self, paths: set(paths))

    def play() -> None:
        for seed in range(6):
            with monkeypatch.context() as patch:
                test_nothing_that_the_retention_promises_is_lost(seed, "FULL", patch)

    with pytest.raises(AssertionError):
        play()


def test_a_retention_of_nothing_still_keeps_what_is_needed_now() -> None:
    draw = random.Random(5)
    with tempfile.TemporaryDirectory(prefix="lakelog-vacuum-") as folder:
        uri = f"{folder}/t"
        build(uri, draw)
        rows = DeltaLog.for_table(uri).snapshot.to_arrow()
        vacuum(uri, 0, conf=UNCHECKED)
        assert DeltaLog.for_table(uri).snapshot.to_arrow().equals(rows)
        assert isinstance(rows, pa.Table)


WRITING = """
import contextlib, random, sys
from lakelog.core.errors import DeltaConcurrentModificationException
from simulation.test_vacuum_at_work import Others
others = Others(sys.argv[1], random.Random(int(sys.argv[2])), kills=False)
print("ready", flush=True)
for _ in range(10):
    others.steps += 1
    deeds = [others.append, others.delete, others.update, others.overwrite, others.compact]
    with contextlib.suppress(DeltaConcurrentModificationException):
        others.random.choice([*deeds, others.checkpoint, others.go_back])()
"""
VACUUMING = """
import sys
from lakelog.core import vacuum
from lakelog.core.maintain.vacuum import vacuum_table as command
command._BATCH = 1
vacuum(sys.argv[1], progress=lambda told: print(told, flush=True))
"""


def test_processes_that_write_and_travel_beside_vacuums_that_are_killed(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    draw = random.Random(7)
    build(uri, draw)
    others = Others(uri, draw, kills=False)
    others.travel()
    others.begin_slowly()
    began = time.time()

    def child(code: str, *args: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", code, uri, *args]
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env)

    writers = [child(WRITING, "1"), child(WRITING, "2")]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for lines in (1, 3):
        with child(VACUUMING) as vacuuming:
            assert vacuuming.stdout is not None
            for _ in range(lines):
                vacuuming.stdout.readline()
            vacuuming.kill()
        others.travel()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    assert list(complaints(uri, others, began)) == []
    vacuum(uri)
    assert not [name for name in data_files(uri) if name.startswith("left over")]
    assert list(complaints(uri, others, began)) == []
