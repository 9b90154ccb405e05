"""The peak of memory of a stream of batches, in and out, each side in a process of its own.

    python benchmarks/memory.py [--batches 143] [--rounds N]   # printed only

A batch has 100,000 rows of six numbers and a text, 8.4 MB in memory. The table that is read is the
one that the side itself wrote. The fixed price, pyarrow and the batches alone, is a row too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from alone import _peak
from measure import HEADER, Measurement

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 100_000
SIDES = ("lakelog", "deltalake")
SCHEMA = pa.schema(
    [pa.field("id", pa.int64())]
    + [pa.field(f"x{n}", pa.float64()) for n in range(5)]
    + [pa.field("text", pa.string())]
)


def _batches(count: int) -> Iterator[pa.RecordBatch]:
    import numpy as np

    drawn = np.random.default_rng(7)
    words = pa.array([f"{n:032x}" for n in range(1000)])
    for number in range(count):
        numbers = [pa.array(drawn.random(ROWS)) for _ in range(5)]
        text = words.take(pa.array(drawn.integers(0, 1000, ROWS)))
        ids = pa.array(np.arange(number * ROWS, (number + 1) * ROWS))
        yield pa.record_batch([ids, *numbers, text], schema=SCHEMA)


def _in(side: str, table: str, count: int) -> int:
    reader = pa.RecordBatchReader.from_batches(SCHEMA, _batches(count))
    if side == "lakelog":
        from lakelog.core import write_arrow

        write_arrow(table, reader, mode="append")
    else:
        import deltalake

        deltalake.write_deltalake(table, reader, mode="append")
    return count * ROWS


def _out(side: str, table: str) -> int:
    if side == "lakelog":
        from lakelog.core import DeltaLog

        batches: Any = DeltaLog.for_table(table).snapshot.scan().to_batches()
    else:
        import deltalake

        batches = deltalake.DeltaTable(table).to_pyarrow_dataset().to_batches()
    return sum(batch.num_rows for batch in batches)


def child(kind: str, side: str, table: str, count: int) -> None:
    """Do one thing in this process; print the rows and the peak in MB."""
    if kind == "none":
        rows = sum(batch.num_rows for batch in _batches(count))
    else:
        rows = _in(side, table, count) if kind == "in" else _out(side, table)
    print(json.dumps([rows, _peak() / 1e6]))


def _run(kind: str, side: str, table: Path, count: int) -> float:
    done = subprocess.run(
        [sys.executable, __file__, "--child", kind, side, str(table), "--batches", str(count)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    rows, peak = json.loads(done.stdout)
    if rows != count * ROWS:
        raise RuntimeError(f"{side}, {kind}: {rows} rows of {count * ROWS}")
    return float(peak)


def measure(folder: Path, batches: int = 143, rounds: int = 3) -> list[Measurement]:
    """Both sides take turns."""
    import deltalake

    peer, size = f"deltalake {deltalake.__version__}", batches * ROWS * 84 / 1e9
    peaks: dict[tuple[str, str], list[float]] = defaultdict(list)
    root = Path(tempfile.mkdtemp(dir=folder, prefix="memory-"))
    try:
        for number in range(rounds):
            bare = _run("none", "", root, batches)
            for side in SIDES:
                table = root / f"{side}-{number}"
                peaks[side, "in"].append(_run("in", side, table, batches))
                peaks[side, "out"].append(_run("out", side, table, batches))
                shutil.rmtree(table)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    works = {
        "in": f"a stream of {size:.1f} GB in, peak of memory",
        "out": f"a table of {size:.1f} GB out by batches, peak of memory",
    }
    return [
        Measurement(
            name,
            peer,
            peaks["lakelog", kind],
            peaks["deltalake", kind],
            1.0,
            unit="MB",
            note=f"pyarrow, numpy and the batches alone: {bare:.0f} MB",
        )
        for kind, name in works.items()
    ]


def main() -> None:
    """Print the rows; or be one run of one side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=143)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=3)
    args = parser.parse_args()
    if args.child:
        child(*args.child, args.batches)
        return
    folder = Path(__file__).parent.parent / ".cache" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    print(HEADER)
    for each in measure(folder, args.batches, args.rounds):
        print(each.row(), flush=True)


if __name__ == "__main__":
    main()
