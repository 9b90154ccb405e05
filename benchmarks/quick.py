"""The short benchmark that every change runs: ratios against a peer, held to a file.

    python benchmarks/quick.py            # compare with ratios.json; name what is worse, exit 1
    python benchmarks/quick.py --update   # measure three times, and keep the highest in ratios.json

Each row is the CPU time of one piece of work, lakelog's over the peer's, the two taking turns: user
and system time of the process, or of a process tree where another one works. Of each side the least
of some rounds counts, since whatever else the machine does only ever adds. A row that is `WORSE`
times its ratio in the file is measured twice more, and fails the run if it is so each time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RATIOS = HERE / "ratios.json"
WORSE = 1.5
_TRIES = 3
_AGAIN = 8
_FILES, _COMMITS, _LONG = 50_000, 25, 120

Work = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One piece of work, done by both sides."""

    name: str
    ours: Work
    theirs: Work
    rounds: int = 12
    cpu: Callable[[], float] = time.process_time


def ratio_of(row: Row) -> float:
    """Measure a row; both sides are warmed up once."""
    row.ours()
    row.theirs()
    least = [float("inf"), float("inf")]
    for _ in range(row.rounds):
        for side, work in enumerate((row.ours, row.theirs)):
            begun = row.cpu()
            work()
            least[side] = min(least[side], row.cpu() - begun)
    return least[0] / max(least[1], 1e-9)


def complaints(found: dict[str, float], expected: dict[str, float]) -> list[str]:
    """What is wrong with some ratios, a sentence a row; nothing where all is as good as it was."""
    said = []
    for name, ratio in found.items():
        if name not in expected:
            said.append(f"{name}: {RATIOS.name} has no ratio of it. Run quick.py --update")
        elif ratio > WORSE * expected[name]:
            worse = ratio / expected[name]
            said.append(
                f"{name}: {ratio:.2f} of the peer's time, {worse:.1f} times the "
                f"{expected[name]:.2f} of {RATIOS.name}"
            )
    gone = [name for name in expected if name not in found]
    said += [f"{name}: in {RATIOS.name}, and not measured. Run quick.py --update" for name in gone]
    return said


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _log_rows(root: Path) -> Iterator[Row]:
    """Commits and appends to tables that stay open, and opening of a table that does not change."""
    import commits
    import deltalake
    import pyarrow as pa

    from lakelog.core import DeltaLog, create_table, write_arrow

    properties = {"delta.checkpointInterval": "1000000"}
    ours, theirs = str(root / "ours"), str(root / "theirs")
    write_arrow(ours, commits.SCHEMA.empty_table(), properties=properties, mode="append")
    deltalake.write_deltalake(theirs, commits.SCHEMA.empty_table(), configuration=properties)
    log, table = DeltaLog.for_table(ours), deltalake.DeltaTable(theirs)
    schema = table.schema()

    def commit_ours() -> None:
        for number in range(_AGAIN):
            commits.commit_ours(log, number)

    def commit_theirs() -> None:
        for number in range(_AGAIN):
            commits.commit_theirs(table, schema, number)

    yield Row("commit of one action", commit_ours, commit_theirs)

    rows = pa.table({"a": list(range(100)), "b": [f"text {n}" for n in range(100)]})
    mine, other = str(root / "appended"), str(root / "appended by the peer")
    create_table(mine, {"a": "long", "b": "string"})
    deltalake.write_deltalake(other, rows)

    def append_ours() -> None:
        for _ in range(_AGAIN):
            write_arrow(mine, rows, mode="append")

    def append_theirs() -> None:
        for _ in range(_AGAIN):
            deltalake.write_deltalake(other, rows, mode="append")

    yield Row("append of 100 rows", append_ours, append_theirs)


def _opening_rows(root: Path) -> Iterator[Row]:
    import deltalake
    import scale

    from lakelog.core import DeltaLog

    long = scale.make_table(root / "long", _LONG, _LONG)
    DeltaLog.for_table(long).checkpoint(100)
    yield Row(
        "open in a fresh process",
        lambda: _fresh("lakelog", long),
        lambda: _fresh("deltalake", long),
        rounds=4,
        cpu=_children,
    )

    def open_ours() -> None:
        for _ in range(_AGAIN):
            assert DeltaLog.for_table(long).snapshot.num_files == _LONG

    def open_theirs() -> None:
        for _ in range(_AGAIN):
            assert len(deltalake.DeltaTable(long).file_uris()) == _LONG

    yield Row("open in a warm process", open_ours, open_theirs)

    wide = scale.make_table(root / "wide", _FILES, _COMMITS)

    def replay_ours() -> None:
        assert DeltaLog.for_table(wide).snapshot.file_table.num_rows == _FILES

    def replay_theirs() -> None:
        assert deltalake.DeltaTable(wide).get_add_actions().num_rows == _FILES

    yield Row(f"replay of {_FILES:,} files", replay_ours, replay_theirs, rounds=3)

    log, table = DeltaLog.for_table(wide), deltalake.DeltaTable(wide)
    day = "7"

    def prune_ours() -> None:
        for _ in range(5):
            assert len(log.snapshot.files(f"day = {day}")) == _FILES // scale.DAYS

    def prune_theirs() -> None:
        for _ in range(5):
            assert len(table.file_uris([("day", "=", day)])) == _FILES // scale.DAYS

    yield Row("files of one partition", prune_ours, prune_theirs)


_OPEN = {
    "lakelog": "from lakelog.core import DeltaLog; DeltaLog.for_table({!r}).snapshot.num_files",
    "deltalake": "import deltalake; len(deltalake.DeltaTable({!r}).file_uris())",
}


def _fresh(side: str, table: str) -> None:
    subprocess.run([sys.executable, "-c", _OPEN[side].format(table)], check=True)


@contextmanager
def _session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .appName("quick")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    try:
        spark.sparkContext.setLogLevel("ERROR")
        yield spark
    finally:
        spark.stop()


def _spark_rows(root: Path, spark: Any) -> Iterator[Row]:
    """Against Spark's own Parquet source in the same session: one JVM, as warm for both."""
    from cpu_of_tree import cpu_seconds

    import lakelog.spark

    def cpu() -> float:
        return cpu_seconds(os.getpid())

    source, ours, theirs = (str(root / name) for name in ("rows", "spark", "parquet"))
    spark.range(300_000).selectExpr(
        "id", "id % 100 AS a", "rand(7) AS b", "concat('text ', id) AS c"
    ).write.parquet(source)
    rows = spark.read.parquet(source)

    def write_ours() -> None:
        lakelog.spark.write(rows).mode("append").save(ours)

    def write_theirs() -> None:
        rows.write.mode("append").parquet(theirs)

    def scan(frame: Any) -> None:
        assert frame.where("a < 90").selectExpr("sum(b)", "max(c)").first()[0] > 0

    for _ in range(3):  # what the JIT compiles is no row's business
        write_ours()
        write_theirs()
        scan(lakelog.spark.read(spark).load(ours))
        scan(spark.read.parquet(theirs))
    yield Row("Spark write, over Spark's own of Parquet", write_ours, write_theirs, 4, cpu)

    def scan_ours() -> None:
        scan(lakelog.spark.read(spark).load(ours))

    def scan_theirs() -> None:
        scan(spark.read.parquet(theirs))

    yield Row("Spark scan, over Spark's own of Parquet", scan_ours, scan_theirs, 4, cpu)


def measure(root: Path, expected: dict[str, float], *, with_spark: bool) -> dict[str, float]:
    """Measure all rows: name -> ratio. What is too bad is measured again.

    Without ratios to compare with, all are measured three times, and the highest counts.
    """
    found: dict[str, float] = {}

    def take(row: Row) -> None:
        begun = time.perf_counter()
        most = WORSE * expected.get(row.name, 0.0)
        seen = [ratio_of(row)]
        while len(seen) < _TRIES and min(seen) > most:
            seen.append(ratio_of(row))
        ratio = min(seen) if most else max(seen)
        found[row.name] = ratio
        was = f"{expected[row.name]:.2f}" if row.name in expected else "none"
        print(
            f"{row.name:42} {ratio:6.2f}  ({was} in {RATIOS.name}; "
            f"{time.perf_counter() - begun:.0f} s)",
            flush=True,
        )

    for row in (*_log_rows(root), *_opening_rows(root)):
        take(row)
    if with_spark:
        with _session() as spark:
            for row in _spark_rows(root, spark):
                take(row)
    return found


def main() -> int:
    """Run it; the exit code says whether every row is as good as it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help=f"write {RATIOS.name} anew")
    args = parser.parse_args()
    expected: dict[str, float] = json.loads(RATIOS.read_text()) if RATIOS.exists() else {}
    with tempfile.TemporaryDirectory(prefix="lakelog-quick-") as folder:
        found = measure(Path(folder), {} if args.update else expected, with_spark=True)
    if args.update:
        rounded = {name: round(ratio, 3) for name, ratio in found.items()}
        RATIOS.write_text(json.dumps(rounded, indent=4) + "\n")
        return 0
    said = complaints(found, expected)
    for each in said:
        print(f"WORSE: {each}")
    return 1 if said else 0


if __name__ == "__main__":
    raise SystemExit(main())
