"""What `lakelog report` takes of the CPU and of memory, by its parts.

    python benchmarks/report.py [--commits 10000] [--files 1000000] [--rounds 3]   # printed only

A table of ten thousand versions and a million files without a checkpoint, where opening it reads
all commits, and then with one. Each run is a fresh process. "Reading commits" is the timeline's
pass over the log, which VACUUM's outlook shares; "the rest" should take five seconds at most. How
many commits are read is counted: each once to open the table without a checkpoint, and each once
for the timeline.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from scale import make_table

PARTS = ("opening", "reading commits", "the rest")


def run_report(table: str) -> dict[str, float]:
    """Seconds of the CPU by part, the peak of memory, and what was read, in this process."""
    import lakelog.cli.report.growth as growth
    from lakelog.cli.report.facts import facts
    from lakelog.cli.report.page import page
    from lakelog.cli.secrets import Scrubber
    from lakelog.core import DeltaLog
    from lakelog.logstores.local.store import LocalLogStore

    spent = 0.0
    reads: list[str] = []  # by threads too, for which appending needs no lock
    read_file_changes, read_bytes = growth.read_file_changes, LocalLogStore.read_bytes

    def timed(*args: Any) -> Any:
        nonlocal spent
        began = time.process_time()
        try:
            return read_file_changes(*args)
        finally:
            spent += time.process_time() - began

    def counted(self: Any, path: str) -> bytes:
        if path.rsplit("/", 1)[1].removesuffix(".json").isdigit():
            reads.append(path)
        return read_bytes(self, path)

    growth.read_file_changes = timed  # type: ignore[assignment]
    LocalLogStore.read_bytes = counted  # type: ignore[method-assign]
    start = time.process_time()
    log = DeltaLog.for_table(table)
    files = log.snapshot.num_files
    opened = time.process_time()
    html = page(Scrubber({}).data(facts(log, (), lambda _: None)), "now")
    whole = time.process_time() - opened
    return {
        "opening": opened - start,
        "reading commits": spent,
        "the rest": whole - spent,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "files": files,
        "reads": len(reads),
        "page": len(html.encode()) / 1000,
    }


def _row(name: str, runs: list[dict[str, float]]) -> str:
    cells = [f"{statistics.median(run[part] for run in runs):.2f} s" for part in PARTS]
    last = runs[-1]
    return (
        f"| {name} | {' | '.join(cells)} | {max(run['peak'] for run in runs):,.0f} MB "
        f"| {last['reads']:,.0f} | {last['page']:,.0f} KB |"
    )


def main() -> None:
    """Make the table, run the reports, print a row for each kind of table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        print(json.dumps(run_report(asked.run)))
        return
    root = Path(tempfile.mkdtemp())
    try:
        table = make_table(root / "table", asked.files, asked.commits)
        print(
            f"{asked.files:,} files in {asked.commits:,} commits; seconds of the CPU\n\n"
            f"| log | {' | '.join(PARTS)} | peak | commits read | page |\n"
            "|---|--:|--:|--:|--:|--:|--:|"
        )
        for name in ("without a checkpoint", "with one"):
            if name == "with one":
                from lakelog.core import DeltaLog

                DeltaLog.for_table(table).checkpoint()
            command = [sys.executable, __file__, "--run", table]
            runs = [
                json.loads(subprocess.check_output(command, text=True)) for _ in range(asked.rounds)
            ]
            print(_row(name, runs), flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
