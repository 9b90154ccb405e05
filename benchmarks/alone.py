"""MERGE and OPTIMIZE without Spark: lakelog's core and deltalake, each run in a fresh process.

    python benchmarks/alone.py [WORD …] [--rows N] [--rounds N]   # printed only

The tables are converted by deltalake, both sides take turns, and each change goes to a fresh copy.
lakelog flushes what it writes to the disk, deltalake does not.
A run reports the seconds of the command alone, and the CPU's time and the peak of memory of the
whole process, imports and all: what a job costs that starts, does this and ends.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from measure import HEADER, Measurement

PARTS = 20
SIDES = ("lakelog", "deltalake")


def _jobs(rows: int, small: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """Work -> the table it begins with, and the job."""
    few = rows // 100
    together = {"op": "merge", "first": rows // 3, "step": 1, "count": few}
    apart = {"op": "merge", "first": 7, "step": 100, "count": few}
    return {
        f"MERGE of {few:,} of {rows:,} rows, clustered": ("large", together),
        f"MERGE of {few:,} of {rows:,} rows, scattered": ("large", apart),
        f"OPTIMIZE of {PARTS} files of {rows // PARTS:,} rows": ("large", {"op": "optimize"}),
        f"OPTIMIZE of {small:,} files of 1,000 rows": ("small", {"op": "optimize"}),
    }


def _source(job: dict[str, Any]) -> pa.Table:
    """A row for each key, and a tenth as many new ones."""
    first, step, count = job["first"], job["step"], job["count"]
    keys = [*range(first, first + step * count, step), *range(-1, -1 - count, -10)]
    return pa.table(
        {
            "l1": pa.array(keys, pa.int64()),
            "l2": pa.array([2 * key for key in keys], pa.int64()),
            "s2": pa.array(["merged"] * len(keys)),
        }
    )


def _lakelog(job: dict[str, Any]) -> None:
    from lakelog.core import merge, optimize

    if job["op"] == "optimize":
        optimize(job["table"])
        return
    (
        merge(job["table"], _source(job), "t.l1 = s.l1", target_alias="t", source_alias="s")
        .when_matched_update({"l2": "s.l2", "s2": "s.s2"})
        .when_not_matched_insert({"l1": "s.l1", "l2": "s.l2"})
        .execute()
    )


def _deltalake(job: dict[str, Any]) -> None:
    from deltalake import DeltaTable

    table = DeltaTable(job["table"])
    if job["op"] == "optimize":
        table.optimize.compact()
        return
    (
        table.merge(_source(job), "t.l1 = s.l1", target_alias="t", source_alias="s")
        .when_matched_update({"l2": "s.l2", "s2": "s.s2"})
        .when_not_matched_insert({"l1": "s.l1", "l2": "s.l2"})
        .execute()
    )


def child(side: str, job: dict[str, Any]) -> dict[str, float]:
    """One command, in this process."""
    began = time.perf_counter()
    {"lakelog": _lakelog, "deltalake": _deltalake}[side](job)
    seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": seconds,
        "cpu": used.ru_utime + used.ru_stime,
        "peak": _peak() / 1e6,
    }


def _peak() -> int:
    """Of the memory of this process; `ru_maxrss` would begin with that of the one that forked."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _make(root: Path, rows: int, small: int, needed: set[str]) -> None:
    from deltalake import convert_to_deltalake
    from versus_delta import make_source

    make_source(root / "source", rows)
    data = pq.read_table(root / "source")
    for name, files, each in (("large", PARTS, rows // PARTS), ("small", small, 1_000)):
        if name not in needed:
            continue
        (root / name).mkdir()
        for number in range(files):
            part = data.slice(number * each % data.num_rows, each)
            pq.write_table(part, root / name / f"part-{number:05d}.snappy.parquet")
        convert_to_deltalake(root / name)


def _sums(table: Path) -> str:
    """What the rows of a table come to, by a third reader."""
    import polars as pl

    columns = (pl.len(), pl.col("l1").sum(), pl.col("l2").sum(), pl.col("d1").sum().round())
    return str(pl.scan_delta(str(table)).select(*columns).collect().row(0))


def measure(
    folder: Path,
    rows: int = 5_000_000,
    rounds: int = 3,
    small: int = 1_000,
    words: list[str] | None = None,
) -> list[Measurement]:
    """Measure all works, or those whose names hold a word."""
    import deltalake

    peer = f"deltalake {deltalake.__version__}"
    root = Path(tempfile.mkdtemp(dir=folder))
    # Bytecode is kept, as that of an installed package is.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(root / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    jobs = _jobs(rows, small)
    if words:
        jobs = {name: job for name, job in jobs.items() if any(word in name for word in words)}
    found: list[Measurement] = []
    try:
        _make(root, rows, small, {start for start, _ in jobs.values()})
        for name, (start, job) in jobs.items():
            got: dict[tuple[str, str], list[float]] = defaultdict(list)
            for number in range(1 + rounds):  # the first one leaves its bytecode
                left = set()
                for side in SIDES:
                    table = root / f"{side}-{uuid.uuid4().hex[:8]}"
                    shutil.copytree(root / start, table, copy_function=os.link)
                    # Nobody waits for the disk on account of what the other side has left.
                    os.sync()
                    done = subprocess.run(
                        [sys.executable, __file__, "--child", side],
                        input=json.dumps({**job, "table": str(table)}),
                        capture_output=True,
                        text=True,
                        check=True,
                        env=environment,
                    )
                    for kind, value in json.loads(done.stdout).items() if number else ():
                        got[side, kind].append(value)
                    left.add(_sums(table))
                    shutil.rmtree(table)
                if len(left) != 1:
                    raise RuntimeError(f"{name}: the sides disagree: {left}")
            for kind, label, unit in (
                ("seconds", "", "s"),
                ("cpu", ", CPU", "s"),
                ("peak", ", peak of memory", "MB"),
            ):
                ours, theirs = got["lakelog", kind], got["deltalake", kind]
                row = Measurement(name + label, peer, ours, theirs, 1.0, unit=unit)
                found.append(row)
                print(row.row(), flush=True)
        return found
    finally:
        shutil.rmtree(root, ignore_errors=True)


def main() -> None:
    """Print the rows of some works; or be one run of one side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", choices=SIDES)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(child(args.child, json.load(sys.stdin))))
        return
    folder = Path(__file__).parent.parent / ".cache" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    found = measure(folder, args.rows, args.rounds, words=args.words)
    print("\n".join([HEADER, *(each.row() for each in found)]))


if __name__ == "__main__":
    main()
