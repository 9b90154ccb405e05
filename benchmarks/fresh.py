"""What a fresh process pays that opens a table and ends: CPU of the whole of it, imports and all.

    python benchmarks/fresh.py   # printed only

The least of several runs counts: a process is disturbed by others, and never helped. The "long"
table has a checkpoint of 100 files and 20 commits after it. Commands of the terminal are held to
wall time, which is what who types them waits for.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

_RUNS = 9
ABOUT = (
    f"The least of {_RUNS} fresh processes: CPU of the whole process, imports and all; of the "
    'commands of the terminal, wall time. The "long" table has a checkpoint of 100 files and 20 '
    "commits after it."
)
_HEADER = "| process | time | target | reached |\n|---|--:|--:|---|"
_OPEN = "from lakelog.core import DeltaLog; s = DeltaLog.for_table({table!r}{conf}).snapshot"


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _least(command: Sequence[str], *, wall: bool = False) -> float:
    """Seconds of the quickest run, after one that warms the disk's cache."""
    found = []
    for _ in range(_RUNS + 1):
        before, start = _of_children(), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        cpu, end = _of_children() - before, time.perf_counter()
        found.append(end - start if wall else cpu)
    return min(found[1:])


def _row(work: str, seconds: float, target: float | None = None) -> tuple[str, bool]:
    if target is None:
        return f"| {work} | {seconds:.2f} s | | |", True
    reached = seconds <= target
    verdict = "yes" if reached else "**no**"
    return f"| {work} | {seconds:.2f} s | ≤ {target:g} s | {verdict} |", reached


def _tables(root: Path) -> tuple[str, str]:
    from lakelog.core import DeltaLog, write_arrow

    short, long = str(root / "short"), str(root / "long")
    rows = pa.table({"a": list(range(10)), "b": [f"text {n}" for n in range(10)]})
    write_arrow(short, rows, mode="append")
    properties = {"delta.checkpointInterval": "1000000"}
    write_arrow(long, rows, mode="append", properties=properties)
    for number in range(1, 120):
        if number == 100:
            DeltaLog.for_table(long).checkpoint()
        write_arrow(long, rows, mode="append")
    return short, long


def measure(folder: Path) -> tuple[str, bool]:
    """The table of all processes, and whether all targets were reached."""
    with tempfile.TemporaryDirectory(dir=folder) as root:
        return _measured(Path(root))


def _measured(root: Path) -> tuple[str, bool]:
    from object_store import BUCKET, client_of

    from lakelog.core import write_arrow
    from support.servers.minio import run_minio

    short, long = _tables(root)
    python = [sys.executable, "-c"]
    lakelog = str(Path(sys.executable).parent / "lakelog")
    opened = _OPEN.format(table=short, conf="")
    counted = _OPEN.format(table=long, conf="") + "; s.num_files"
    theirs = f"import deltalake; deltalake.DeltaTable({short!r})"
    imports = "import pyarrow, pyarrow.fs, pyarrow.parquet"
    rows = [
        _row("`import pyarrow` alone, the fixed price", _least([*python, "import pyarrow"])),
        _row(
            "the same with `pyarrow.fs` and `pyarrow.parquet`, which a checkpoint needs",
            _least([*python, imports]),
        ),
        _row("`DeltaLog.for_table(t).snapshot`, local", _least([*python, opened]), 0.25),
        _row("the same and `num_files`", _least([*python, f"{opened}; s.num_files"])),
        _row("`num_files` of the long table", _least([*python, counted])),
    ]
    with run_minio() as endpoint:
        client = client_of(endpoint)
        client.create_bucket(Bucket=BUCKET)  # type: ignore[attr-defined]
        table, conf = f"s3a://{BUCKET}/t", endpoint.conf
        write_arrow(table, pa.table({"a": [1]}), conf=conf, mode="append")
        far = _OPEN.format(table=table, conf=f", {conf!r}")
        rows.append(_row("`snapshot` on S3 (MinIO)", _least([*python, far]), 0.45))
    for command in ("history", "schema"):
        seconds = _least([lakelog, command, short], wall=True)
        rows.append(_row(f"`lakelog {command}`, wall time to the end", seconds, 0.4))
    rows.append(_row(f"deltalake {deltalake.__version__} opens it", _least([*python, theirs])))
    return "\n".join([_HEADER, *(row for row, _ in rows)]), all(ok for _, ok in rows)


def main() -> int:
    """Print the table; the exit code says whether all targets were reached."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    with tempfile.TemporaryDirectory() as folder:
        table, reached = measure(Path(folder))
    print(ABOUT, table, sep="\n\n")
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
