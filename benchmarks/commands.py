"""Commands that change a table: lakelog and delta-spark, each in a warm process, in turns.

Every round each engine changes a fresh copy of one table that delta-spark itself wrote, so nothing
of a round is left for the next. DELETE, UPDATE and MERGE touch one row in a hundred: either rows
that lie together, in few files (clustered), or some of every file (scattered).

Beside the wall time stands the CPU of the engine's whole tree of processes, JVM and workers: what
threads hide in the one shows in the other. delta-spark is measured as it comes and tuned.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from cpu_of_tree import cpu_seconds
from measure import Measurement
from versus_delta import Engine, make_source

PARTS, SMALL_FILES, OLD_FILES = 20, 1_000, 100_000
WARM_UPS = 2
"""Rounds that are not counted: the JVMs compile their hot paths meanwhile."""
PEERS = {"delta": "delta-spark", "tuned": "delta-spark, snapshotPartitions=2, shuffle.partitions=2"}


def _rows_of(where: str, rows: int) -> dict[str, Any]:
    """The condition and the MERGE's keys of one row in a hundred."""
    few = rows // 100
    keys = (
        {"first": rows // 3, "step": 1, "count": few}
        if where == "clustered"
        else {"first": 7, "step": 100, "count": few}
    )
    condition = (
        f"l1 >= {rows // 3} AND l1 < {rows // 3 + few}" if where == "clustered" else "l1 % 100 = 7"
    )
    return {"where": condition, "keys": keys}


def _jobs(rows: int, small: int, old: int) -> dict[str, tuple[str, dict[str, Any], float, float]]:
    """Work -> the table it begins with, the job, and its targets as delta comes and tuned."""
    jobs: dict[str, tuple[str, dict[str, Any], float, float]] = {}
    for vectors, where, op in itertools.product(
        (False, True), ("clustered", "scattered"), ("delete", "update", "merge")
    ):
        also = ", with vectors" if vectors else ""
        by_way = {"clustered": (0.35, 0.6), "scattered": (0.55, 0.5)}[where]
        targets = (0.2, 0.35) if vectors else by_way
        name = f"{op.upper()} of {rows // 100:,} of {rows:,} rows, {where}{also}"
        start = "vectors" if vectors else "plain"
        jobs[name] = (start, {"op": op, **_rows_of(where, rows)}, *targets)
    jobs[f"OPTIMIZE of {small:,} small files"] = ("small", {"op": "optimize"}, 0.6, 0.6)
    jobs[f"VACUUM of {old:,} files"] = ("old", {"op": "vacuum"}, 0.5, 0.5)
    return jobs


def _make(root: Path, writer: Engine, rows: int, small: int, old: int) -> None:
    """The tables that the work begins with, written by delta-spark."""
    source = root / "source"
    make_source(source, rows)
    for name in ("plain", "vectors"):
        writer.run(
            "lay_out",
            source=str(source),
            table=str(root / name),
            files=PARTS,
            vectors=name == "vectors",
        )
    # As many rows a file as a job writes that runs every few seconds.
    little = root / "little"
    little.mkdir()
    pq.write_table(
        pq.read_table(source / "part-0.parquet").slice(0, small * 20), little / "a.parquet"
    )
    writer.run("lay_out", source=str(little), table=str(root / "small"), files=small, vectors=False)
    _make_old(root / "old", old)


def _make_old(table: Path, files: int) -> None:
    """A table of which half the files were removed a month ago."""
    from scale import SCHEMA

    log = table / "_delta_log"
    log.mkdir(parents=True)
    long_ago = time.time() - 30 * 86_400
    at = int(long_ago * 1000)
    info = '{"commitInfo":{"timestamp":1,"operation":"WRITE","operationParameters":{}}}'
    metadata = {
        "id": "old",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": SCHEMA,
        "partitionColumns": ["day"],
        "configuration": {},
        "createdTime": 1,
    }
    adds, removes = [info, '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}'], [info]
    adds.append(_line("metaData", metadata))
    for number in range(files):
        day = number % 200
        path = f"day={day}/part-{number:08d}.snappy.parquet"
        place = table / path
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(b"x")
        os.utime(place, (long_ago, long_ago))
        shared = {"path": path, "partitionValues": {"day": str(day)}, "size": 1, "dataChange": True}
        adds.append(_line("add", {**shared, "modificationTime": at}))
        if number % 2:
            extra = {"deletionTimestamp": at, "extendedFileMetadata": True}
            removes.append(_line("remove", {**shared, **extra}))
    for version, lines in enumerate((adds, removes)):
        commit = log / f"{version:020d}.json"
        commit.write_text("\n".join(lines) + "\n")
        os.utime(commit, (long_ago, long_ago))


def _line(kind: str, value: dict[str, Any]) -> str:
    return json.dumps({kind: value}, separators=(",", ":"))


def _left(engine: Engine, op: str, table: Path) -> str:
    """What a command left behind: rows, or for VACUUM, whose table has none, files."""
    if op == "vacuum":
        return str(sum(1 for _ in table.glob("day=*/*.parquet")))
    return json.dumps(engine.run("sums", table=str(table))[1])


def measure(
    folder: Path,
    peer_python: str,
    peer_jars: str,
    rows: int = 5_000_000,
    rounds: int = 3,
    small: int = SMALL_FILES,
    old: int = OLD_FILES,
) -> tuple[list[Measurement], str]:
    """Measure all; the second value names the versions."""
    root = Path(tempfile.mkdtemp(dir=folder))
    engines: dict[str, Engine] = {}
    wall: dict[tuple[str, str], list[float]] = defaultdict(list)
    cpu: dict[tuple[str, str], list[float]] = defaultdict(list)
    jobs = _jobs(rows, small, old)
    try:
        engines["lakelog"] = Engine(sys.executable, ["lakelog"], root / "lakelog.log")
        jars = ["delta", "--jars", peer_jars]
        engines["delta"] = Engine(peer_python, jars, root / "delta.log")
        tuned = [*jars, "--tuned", "--conf", "spark.sql.shuffle.partitions=2"]
        engines["tuned"] = Engine(peer_python, tuned, root / "tuned.log")
        _make(root, engines["delta"], rows, small, old)
        for name, (start, job, *_) in jobs.items():
            for number in range(WARM_UPS + rounds):
                left = set()
                for side, engine in engines.items():
                    table = root / f"{side}-now"
                    # Times of files are kept: VACUUM goes by them.
                    shutil.copytree(root / start, table)
                    before = cpu_seconds(engine.pid)
                    took, _ = engine.run(**job, table=str(table))
                    used = cpu_seconds(engine.pid) - before
                    left.add(_left(engine, job["op"], table))
                    shutil.rmtree(table)
                    if number >= WARM_UPS:
                        wall[side, name].append(took)
                        cpu[side, name].append(used)
                if len(left) != 1:
                    raise RuntimeError(f"{name}: the engines disagree: {left}")
            print(f"  {name}: done", flush=True)
        measurements = []
        for peer, label in PEERS.items():
            for name, (_, _, *targets) in jobs.items():
                target = targets[peer == "tuned"]
                for kind, seconds in (("", wall), (", CPU", cpu)):
                    ours, theirs = seconds["lakelog", name], seconds[peer, name]
                    measurements.append(Measurement(name + kind, label, ours, theirs, target))
        versions = (
            f"lakelog on PySpark {engines['lakelog'].version}, delta-spark on PySpark "
            f"{engines['delta'].version}; local[2], 5 GB heap, warm sessions, {WARM_UPS} warm-ups "
            "each; CPU is that of the engine's tree of processes."
        )
        return measurements, versions
    finally:
        for engine in engines.values():
            engine.close()
        shutil.rmtree(root, ignore_errors=True)
