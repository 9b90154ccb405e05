"""Commands that change a table: lakelog and delta-spark, each in a warm process, in turns.

Every round each engine changes a fresh copy of one table that delta-spark itself wrote, at a place
of its own, so nothing of a round is left for the next. DELETE, UPDATE and MERGE touch one row in a
hundred: either rows that lie together, in few files (clustered), or some of every file (scattered).

Beside the wall time stands the CPU of the engine's whole tree of processes, JVM and workers: what
threads hide in the one shows in the other. delta-spark is measured as it comes and tuned; tuned, it
has also loaded the table's snapshot before the clock starts, as in a session that used the table
before. lakelog opens the table within the time that is measured, against both. It has a session for
each peer, tuned where the peer is, with the same number of shuffle partitions.

    python benchmarks/commands.py [WORD …] [--rows N] [--rounds N] [--peers tuned]   # printed only

runs the works whose names hold one of the words.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from cpu_of_tree import cpu_seconds
from measure import HEADER, Measurement
from versus_delta import OURS, PAIRED, TUNED, Engine, make_source, start_pairs

PARTS, SMALL_FILES, OLD_FILES = 20, 1_000, 100_000
WARM_UPS = 2
"""Rounds that are not counted: the JVMs compile their hot paths meanwhile."""


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
    jobs["scan of two columns, with vectors"] = ("deleted", {"op": "scan_two"}, 0.7, 0.7)
    jobs[f"OPTIMIZE of {small:,} small files"] = ("small", {"op": "optimize"}, 0.6, 0.6)
    jobs[f"VACUUM of {old:,} files"] = ("old", {"op": "vacuum"}, 0.5, 0.5)
    return jobs


def _make(root: Path, writer: Engine, rows: int, small: int, old: int, needed: set[str]) -> None:
    """The tables that the work begins with, written by delta-spark."""
    source = root / "source"
    make_source(source, rows)
    for name in sorted({"plain", "vectors", "deleted"} & needed):
        writer.run(
            "lay_out",
            source=str(source),
            table=str(root / name),
            files=PARTS,
            vectors=name != "plain",
        )
    if "deleted" in needed:
        writer.run("delete", table=str(root / "deleted"), where="l1 % 100 = 7")
    if "old" in needed:
        _make_old(root / "old", old)
    if "small" not in needed:
        return
    # As many rows a file as a job writes that runs every few seconds.
    little = root / "little"
    little.mkdir()
    pq.write_table(
        pq.read_table(source / "part-0.parquet").slice(0, small * 20), little / "a.parquet"
    )
    writer.run("lay_out", source=str(little), table=str(root / "small"), files=small, vectors=False)


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


def _copy(table: Path, to: Path) -> None:
    """A table to be changed: its data files are linked, as nobody ever writes into them."""
    shutil.copytree(table, to, copy_function=os.link, ignore=lambda *_: ["_delta_log"])
    # Times of files are kept: VACUUM goes by them.
    shutil.copytree(table / "_delta_log", to / "_delta_log")


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
    words: list[str] | None = None,
    peers: tuple[str, ...] = tuple(PAIRED),
    warm_ups: int = WARM_UPS,
) -> tuple[list[Measurement], str]:
    """Measure all works, or those that hold a word; the second value names the versions."""
    root = Path(tempfile.mkdtemp(dir=folder))
    engines: dict[str, Engine] = {}
    measurements: list[Measurement] = []
    jobs = _jobs(rows, small, old)
    if words:
        jobs = {name: job for name, job in jobs.items() if any(word in name for word in words)}
    try:
        start_pairs(engines, peers, peer_python, peer_jars, root)
        needed = {start for start, *_ in jobs.values()}
        _make(root, engines[peers[0]], rows, small, old, needed)
        for name, (start, job, *targets) in jobs.items():
            wall, cpu = _rounds(root, engines, root / start, job, rounds, warm_ups)
            for peer in peers:
                label, target = PAIRED[peer], targets[peer == "tuned"]
                for kind, seconds in (("", wall), (", CPU", cpu)):
                    ours, theirs = seconds[OURS[peer]], seconds[peer]
                    found = Measurement(name + kind, label, ours, theirs, target)
                    measurements.append(found)
                    print(found.row(), flush=True)
        versions = (
            f"lakelog on PySpark {engines[OURS[peers[0]]].version}, {TUNED} where the peer is "
            f"tuned, delta-spark on PySpark {engines[peers[0]].version}; local[2], 5 GB heap, warm "
            f"sessions, {warm_ups} warm-ups each; CPU is that of the engine's tree of processes."
        )
        return measurements, versions
    finally:
        for engine in engines.values():
            engine.close()
        shutil.rmtree(root, ignore_errors=True)


def _rounds(
    root: Path,
    engines: dict[str, Engine],
    start: Path,
    job: dict[str, Any],
    rounds: int,
    warm_ups: int,
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """One work by each engine in turns: side -> seconds of wall time, and of CPU."""
    wall: dict[str, list[float]] = defaultdict(list)
    cpu: dict[str, list[float]] = defaultdict(list)
    for number in range(warm_ups + rounds):
        left = set()
        for side, engine in engines.items():
            table = root / f"{side}-{uuid.uuid4().hex[:8]}"
            _copy(start, table)
            if side == "tuned":
                engine.run("open", table=str(table))
            before = cpu_seconds(engine.pid)
            took, _ = engine.run(**job, table=str(table))
            used = cpu_seconds(engine.pid) - before
            left.add(_left(engine, job["op"], table))
            shutil.rmtree(table)
            if number >= warm_ups:
                wall[side].append(took)
                cpu[side].append(used)
        if len(left) != 1:
            raise RuntimeError(f"{job}: the engines disagree: {left}")
    return wall, cpu


def main() -> None:
    """Print the rows of some works."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-ups", type=int, default=WARM_UPS)
    parser.add_argument("--peers", nargs="+", choices=list(PAIRED), default=list(PAIRED))
    args = parser.parse_args()
    here = Path(__file__).parent.parent
    sys.path.insert(0, str(here / "tests"))
    from support import delta_spark

    folder = here / ".cache" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    peer = delta_spark.installed()
    jars = ",".join(map(str, peer.jars))
    found, versions = measure(
        folder,
        str(peer.python),
        jars,
        args.rows,
        args.rounds,
        words=args.words,
        peers=tuple(args.peers),
        warm_ups=args.warm_ups,
    )
    print("\n".join([versions, HEADER, *(each.row() for each in found)]))


if __name__ == "__main__":
    main()
