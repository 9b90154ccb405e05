"""Many processes append to one table at once; every commit is counted.

Each side runs with its own defaults. The peer gives up a commit after 15 lost races, and its figure
is what landed in the time that it took. On the local disk it makes fewer commits, in as many
processes: commits a second are compared, and it would take five minutes for as many.
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
from commits import file_name
from deltalake.transaction import AddAction
from measure import Measurement

from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.actions import AddFile

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = pa.schema([pa.field("a", pa.int64())])
THEIR_COMMITS = 15
"""Commits of each of the peer's processes on the local disk."""
PROPERTIES = {"delta.checkpointInterval": "1000000"}


def _add(kind: type[Any], worker: int) -> Any:
    return kind(
        path=file_name(worker),
        partition_values={},
        size=1000,
        modification_time=1,
        data_change=True,
        stats='{"numRecords":1}',
    )


def _ours(
    path: str, conf: dict[str, str], worker: int, commits: int, barrier: Any, failures: Any
) -> None:
    log = DeltaLog.for_table(path, conf)
    log.update()
    barrier.wait()
    for _ in range(commits):
        try:
            log.start_transaction().commit(
                [_add(AddFile, worker)], Operation("WRITE", {"mode": "Append"})
            )
        except Exception as exc:
            failures.put(repr(exc))
        log.update()


def _theirs(
    path: str, options: dict[str, str], worker: int, commits: int, barrier: Any, failures: Any
) -> None:
    table = deltalake.DeltaTable(path, storage_options=options)
    schema = table.schema()
    barrier.wait()
    for _ in range(commits):
        try:
            table.create_write_transaction([_add(AddAction, worker)], "append", schema, [])
        except Exception as exc:
            failures.put(repr(exc))
        table.update_incremental()


def _race(
    target: Callable[..., None], path: str, options: dict[str, str], processes: int, commits: int
) -> tuple[float, list[str]]:
    context = multiprocessing.get_context("spawn")
    barrier, failures = context.Barrier(processes + 1), context.Queue()
    workers = [
        context.Process(
            target=target, args=(path, options, w, commits, barrier, failures), daemon=True
        )
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


def _landed(path: str, options: dict[str, str], wanted: int, errors: int) -> tuple[int, str]:
    """How many commits are in the table, and a note that names the lost and doubled ones."""
    paths = deltalake.DeltaTable(path, storage_options=options).file_uris()
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
    """Race on the local file system."""
    root = Path(tempfile.mkdtemp(dir=folder))
    try:
        places = str(root), {}, str(root), {}
        theirs = min(commits, THEIR_COMMITS)
        return measure_at(*places, processes, commits, rounds, target=3.0, their_commits=theirs)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def measure_at(
    ours_root: str,
    conf: dict[str, str],
    theirs_root: str,
    options: dict[str, str],
    processes: int,
    commits: int,
    rounds: int,
    *,
    target: float,
    place: str = "",
    their_commits: int | None = None,
) -> list[Measurement]:
    """Run the two sides in turns, each round on new tables; the figures are commits a second.

    The peer's processes make as many commits as lakelog's, or `their_commits`.
    """
    ours, theirs = [], []
    notes: list[str] = []
    per_process = {"lakelog": commits, "peer": their_commits or commits}
    about = f"the peer makes {their_commits} a process; " if their_commits else ""
    for number in range(rounds):
        our_path, their_path = f"{ours_root}/ours-{number}", f"{theirs_root}/theirs-{number}"
        write_arrow(our_path, SCHEMA.empty_table(), conf=conf, properties=PROPERTIES, mode="append")
        deltalake.write_deltalake(
            their_path, SCHEMA.empty_table(), configuration=PROPERTIES, storage_options=options
        )
        for side, work, path, settings, rates in (
            ("lakelog", _ours, our_path, conf, ours),
            ("peer", _theirs, their_path, options, theirs),
        ):
            seconds, errors = _race(work, path, settings, processes, per_process[side])
            shown = f"{theirs_root}/{path.rpartition('/')[2]}"
            landed, note = _landed(shown, options, processes * per_process[side], len(errors))
            rates.append(landed / seconds)
            notes.append(f"{side}: {note}")
    return [
        Measurement(
            f"{processes} processes x {commits} blind appends{place}",
            f"deltalake {deltalake.__version__}",
            ours,
            theirs,
            target,
            higher_is_better=True,
            unit="commits/s",
            note=about + "; ".join(sorted(notes)),
        )
    ]
