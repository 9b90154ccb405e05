"""Streams: lakelog and delta-spark, each in a warm process, in turns.

What is timed is Spark's own `triggerExecution` of each batch, from the query's progress; a catch-up
is timed as a whole. Beside the wall time stands the CPU of the engine's whole tree of processes,
JVM and workers, over the whole query. Sinks read Parquet files, one a batch; sources write to
Spark's `noop`, as does `rate-micro-batch`, whose rows Spark makes up: what a batch costs at least.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from cpu_of_tree import cpu_seconds
from measure import Measurement
from versus_delta import OURS, PAIRED, TUNED, Engine, start_pairs, without_a_table

from lakelog.core import write_arrow

SMALL, LARGE, ROWS, COMMITS = 30, 8, 100_000, 1_000
CHECKPOINTS = "spark.hadoop.fs.AbstractFileSystem.file.impl=org.apache.hadoop.fs.local.RawLocalFs"
"""Of the tuned sessions: checkpoints without files of check sums, which on a local disk without
Hadoop's native library cost a process each."""
SKIPPED = 5
"""Batches at the start of a query that are not counted."""


def _rows(first: int, count: int) -> pa.Table:
    ids = pa.array(range(first, first + count), pa.int64())
    return pa.table(
        {"id": ids, "n": pa.array([1.5] * count), "p": [f"p{i % 7}" for i in range(count)]}
    )


def _make(root: Path, small: int, large: int, commits: int) -> None:
    for name, files, rows in (("small", small, 1), ("large", large, ROWS)):
        folder = root / name
        folder.mkdir()
        for number in range(files):
            pq.write_table(_rows(number * rows, rows), folder / f"{number:04}.parquet")
    for name, count in (("one_by_one", small), ("catch_up", commits)):
        for number in range(count):
            write_arrow(root / name, _rows(number, 1), mode="append")


def _jobs(root: Path) -> dict[str, dict[str, Any]]:
    one = {"maxFilesPerTrigger": "1"}
    return {
        "sink_small": {"source": str(root / "small"), "options": one, "sink": True},
        "sink_large": {"source": str(root / "large"), "options": one, "sink": True},
        "source": {"table": str(root / "one_by_one"), "options": {**one, "startingVersion": "0"}},
        # Other clients don't know the option.
        "source_on_driver": {
            "table": str(root / "one_by_one"),
            "options": {**one, "startingVersion": "0", "readOnDriver": "true"},
        },
        "catch_up": {"table": str(root / "catch_up"), "options": {"startingVersion": "0"}},
        "catch_up_on_driver": {
            "table": str(root / "catch_up"),
            "options": {"startingVersion": "0", "readOnDriver": "true"},
        },
    }


def _counted(batches: list[int]) -> list[float]:
    """The seconds of a query's batches without the first ones."""
    return [each / 1000 for each in batches[min(SKIPPED, len(batches) // 4) :]]


def measure(
    folder: Path,
    peer_python: str,
    peer_jars: str,
    rounds: int = 2,
    small: int = SMALL,
    large: int = LARGE,
    commits: int = COMMITS,
    peers: tuple[str, ...] = ("tuned", "delta"),
) -> tuple[list[Measurement], str]:
    """Measure all; the second value names the versions."""
    targets = {
        "sink_small": ("stream into a table, one row a batch", 0.25),
        "sink_large": (f"stream into a table, {ROWS:,} rows a batch", 0.8),
        "source": ("stream out of a table, one row a batch", 0.8),
        "source_on_driver": ("stream out of a table, one row a batch, readOnDriver", 0.8),
        "catch_up": (f"stream out of a table, {commits:,} commits by availableNow", 0.6),
        "catch_up_on_driver": (
            f"stream out of a table, {commits:,} commits by availableNow, readOnDriver",
            0.6,
        ),
    }
    root = Path(tempfile.mkdtemp(dir=folder))
    engines: dict[str, Engine] = {}
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    cpu: dict[tuple[str, str], list[float]] = defaultdict(list)
    rate: dict[str, list[float]] = defaultdict(list)
    try:
        _make(root, small, large, commits)
        start_pairs(engines, peers, peer_python, peer_jars, root, confs=[CHECKPOINTS])
        # The first round warms up and is not counted.
        for number in range(rounds + 1):
            for op, job in _jobs(root).items():
                for name, engine in engines.items():
                    place = root / f"{name}-{op}-{number}"
                    sink = str(place / "out") if job.get("sink") else None
                    before = cpu_seconds(engine.pid)
                    took, batches = engine.run(
                        "stream", **{**job, "sink": sink}, checkpoint=str(place / "checkpoint")
                    )
                    used = cpu_seconds(engine.pid) - before
                    shutil.rmtree(place, ignore_errors=True)
                    told = f"{took:.2f} s, {used:.2f} s of CPU, {len(batches)} batches"
                    print(f"  round {number}: {op}, {name}: {told}", flush=True)
                    if number:
                        cpu[name, op].append(used)
                    if number and op.startswith("catch_up"):
                        seconds[name, op].append(took)
                    elif number:
                        seconds[name, op] += _counted(batches)
            for peer in peers:
                place = root / f"rate-{peer}-{number}"
                _, batches = engines[OURS[peer]].run("rate", batches=small, checkpoint=str(place))
                rate[peer] += _counted(batches) if number else []
                shutil.rmtree(place, ignore_errors=True)
        measurements = []
        for peer in peers:
            for op, (work, target) in targets.items():
                for kind, taken in (("", seconds), (", CPU of the query", cpu)):
                    ours, theirs = taken[OURS[peer], op], taken[peer, op]
                    least = op.startswith("source") and not kind
                    note = without_a_table(rate[peer], theirs) if least else ""
                    measurements.append(
                        Measurement(work + kind, PAIRED[peer], ours, theirs, target, note=note)
                    )
        tuned = f"; the tuned ones with {CHECKPOINTS}" if "tuned" in peers else ""
        versions = (
            f"lakelog on PySpark {engines[OURS[peers[0]]].version}, {TUNED} where the peer is "
            f"tuned, delta-spark on PySpark {engines[peers[0]].version}; local[2], 5 GB heap, warm "
            f"sessions{tuned}. Wall time is per batch, but for the catch-up; CPU is that of the "
            f"whole query ({small} small batches, {large} large ones) in the engine's tree of "
            "processes."
        )
        return measurements, versions
    finally:
        for engine in engines.values():
            engine.close()
        shutil.rmtree(root, ignore_errors=True)
