"""16 processes append to one table at once; every commit is counted.

Each side runs with its own defaults. The peer gives up a commit after 15 lost races, and its figure
is what landed in the time that it took.
"""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
from deltalake.transaction import AddAction
from measure import Measurement

from lakelog.core import AddFile, DeltaLog, Operation, write_arrow

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = pa.schema([pa.field("a", pa.int64())])
PROPERTIES = {"delta.checkpointInterval": "1000000"}


def _add(kind: type[Any], worker: int, i: int) -> Any:
    return kind(
        path=f"part-{worker}-{i}.parquet",
        partition_values={},
        size=1000,
        modification_time=1,
        data_change=True,
        stats='{"numRecords":1}',
    )


def _ours(path: str, worker: int, commits: int, barrier: Any, failures: Any) -> None:
    log = DeltaLog.for_table(path)
    log.update()
    barrier.wait()
    for i in range(commits):
        try:
            log.start_transaction().commit(
                [_add(AddFile, worker, i)], Operation("WRITE", {"mode": "Append"})
            )
        except Exception as exc:
            failures.put(repr(exc))
        log.update()


def _theirs(path: str, worker: int, commits: int, barrier: Any, failures: Any) -> None:
    table = deltalake.DeltaTable(path)
    schema = table.schema()
    barrier.wait()
    for i in range(commits):
        try:
            table.create_write_transaction([_add(AddAction, worker, i)], "append", schema, [])
        except Exception as exc:
            failures.put(repr(exc))
        table.update_incremental()


def _race(
    target: Callable[..., None], path: str, processes: int, commits: int
) -> tuple[float, list[str]]:
    context = multiprocessing.get_context("spawn")
    barrier, failures = context.Barrier(processes + 1), context.Queue()
    workers = [
        context.Process(target=target, args=(path, w, commits, barrier, failures), daemon=True)
        for w in range(processes)
    ]
    for worker in workers:
        worker.start()
    barrier.wait(timeout=120)
    start = time.perf_counter()
    for worker in workers:
        worker.join(timeout=600)
    seconds = time.perf_counter() - start
    errors = []
    while not failures.empty():
        errors.append(failures.get())
    return seconds, errors


def _landed(path: str, wanted: int, errors: int) -> tuple[int, str]:
    """How many commits are in the table, and a note that names the lost and doubled ones."""
    paths = deltalake.DeltaTable(path).file_uris()
    landed = len(set(paths))
    doubled = len(paths) - landed
    lost = wanted - errors - landed
    note = f"{landed} of {wanted} landed once"
    if errors:
        note += f", {errors} gave up"
    if lost or doubled:
        note += f", **{lost} lost, {doubled} doubled**"
    return landed, note


def measure(
    folder: Path, processes: int = 16, commits: int = 50, rounds: int = 3
) -> list[Measurement]:
    """Run the two sides in turns; the figures are commits a second."""
    ours, theirs = [], []
    notes: list[str] = []
    for _ in range(rounds):
        root = Path(tempfile.mkdtemp(dir=folder))
        try:
            our_path, their_path = str(root / "ours"), str(root / "theirs")
            write_arrow(our_path, SCHEMA.empty_table(), properties=PROPERTIES)
            deltalake.write_deltalake(their_path, SCHEMA.empty_table(), configuration=PROPERTIES)
            for side, target, path, rates in (
                ("lakelog", _ours, our_path, ours),
                ("peer", _theirs, their_path, theirs),
            ):
                seconds, errors = _race(target, path, processes, commits)
                landed, note = _landed(path, processes * commits, len(errors))
                rates.append(landed / seconds)
                notes.append(f"{side}: {note}")
        finally:
            shutil.rmtree(root, ignore_errors=True)
    return [
        Measurement(
            f"{processes} processes x {commits} blind appends",
            f"deltalake {deltalake.__version__}",
            ours,
            theirs,
            3.0,
            higher_is_better=True,
            unit="commits/s",
            note="; ".join(sorted(notes)),
        )
    ]
