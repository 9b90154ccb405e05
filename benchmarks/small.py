"""Small writes on the local disk: commits with all that follows them, appends, many partitions.

    python benchmarks/small.py [WORD …] [--rounds N]   # printed only

Both sides take turns, each with its own defaults: lakelog syncs what it writes to the disk, makes a
checkpoint every 10 commits and a checksum file for each, deltalake a checkpoint every 100.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
import uuid
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pyarrow as pa
from commits import SCHEMA, commit_ours, commit_theirs
from measure import HEADER, Measurement

from lakelog.core import DeltaLog, write_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Work = Callable[[], object]

_COMMITS, _APPENDS, _PARTITIONS = 300, 50, 2_000


def _commits(root: Path) -> tuple[Work, Work]:
    """Commits of one action to tables that stay open."""
    ours, theirs = str(root / "ours"), str(root / "theirs")
    write_arrow(ours, SCHEMA.empty_table(), mode="append")
    deltalake.write_deltalake(theirs, SCHEMA.empty_table())
    log, table = DeltaLog.for_table(ours), deltalake.DeltaTable(theirs)
    log.update()
    schema = table.schema()
    return (
        lambda: [commit_ours(log, number) for number in range(_COMMITS)],
        lambda: [commit_theirs(table, schema, number) for number in range(_COMMITS)],
    )


def _appends(root: Path) -> tuple[Work, Work]:
    """Appends of a hundred rows, each of which opens the table anew."""
    rows = pa.table({"a": list(range(100)), "b": [f"text {n}" for n in range(100)]})
    ours, theirs = str(root / "ours"), str(root / "theirs")
    return (
        lambda: [write_arrow(ours, rows, mode="append") for _ in range(_APPENDS)],
        lambda: [deltalake.write_deltalake(theirs, rows, mode="append") for _ in range(_APPENDS)],
    )


def _partitions(root: Path) -> tuple[Work, Work]:
    """One write of ten rows to each partition."""
    count = 10 * _PARTITIONS
    rows = pa.table({"a": list(range(count)), "p": [n % _PARTITIONS for n in range(count)]})
    ours, theirs = str(root / "ours"), str(root / "theirs")
    return (
        lambda: write_arrow(ours, rows, mode="append", partition_by=["p"]),
        lambda: deltalake.write_deltalake(theirs, rows, mode="append", partition_by=["p"]),
    )


WORKS: dict[str, tuple[Callable[[Path], tuple[Work, Work]], float]] = {
    f"{_COMMITS} commits of one action, checkpoints and checksums with them": (_commits, 0.15),
    f"{_APPENDS} appends of 100 rows": (_appends, 0.7),
    f"one write into {_PARTITIONS:,} partitions": (_partitions, 1.0),
}


def measure(folder: Path, rounds: int = 5, words: list[str] | None = None) -> Iterator[Measurement]:
    """Wall time and CPU of each work; a round of each side comes before those that count."""
    peer = f"deltalake {deltalake.__version__}"
    for name, (prepare, target) in WORKS.items():
        if words and not any(word in name for word in words):
            continue
        took: dict[tuple[int, str], list[float]] = defaultdict(list)
        for number in range(1 + rounds):
            root = Path(tempfile.mkdtemp(dir=folder, prefix=f"small-{uuid.uuid4().hex[:8]}"))
            try:
                for side, work in enumerate(prepare(root)):
                    wall, cpu = time.perf_counter(), time.process_time()
                    work()
                    if number:
                        took[side, "wall"].append(time.perf_counter() - wall)
                        took[side, "cpu"].append(time.process_time() - cpu)
            finally:
                shutil.rmtree(root, ignore_errors=True)
        for kind, label in (("wall", ""), ("cpu", ", CPU")):
            yield Measurement(name + label, peer, took[0, kind], took[1, kind], target)


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    folder = Path(__file__).parent.parent / ".cache" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    print(HEADER)
    for each in measure(folder, args.rounds, args.words):
        print(each.row(), flush=True)


if __name__ == "__main__":
    main()
