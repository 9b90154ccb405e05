"""Planning reads: lakelog and delta-spark in turns, each a warm process with a Spark session.

Of a table of a million files one partition is chosen, and the table is opened each time as if for
the first time: delta-spark with the cache of its logs emptied, lakelog with a new `DeltaLog`.

Of a table of ten thousand files, which are all there, whole queries are planned as a script says
them (`spark.read.format("delta")` after `enable`, and SQL) up to Spark's tasks, which nobody runs:
with the log that the session kept, and once with the table opened anew.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from cpu_of_tree import cpu_seconds
from measure import Measurement
from scale import COMMITS, DAYS, FILES, make_table
from versus_delta import Engine

WARM_UPS = 1
READ_WARM_UPS = 2
LABELS = {"delta": "delta-spark", "tuned": "delta-spark, snapshotPartitions=2"}
SMALL_FILES = 10_000
SMALL_DAYS = 1_000
_READ = {"where": "", "sql": False, "anew": False}
READS: dict[str, tuple[dict[str, Any], float]] = {
    "spark.read, no filter": (_READ, 1.0),
    "spark.read and one partition": ({**_READ, "where": "day = {day}"}, 1.0),
    "the same, table opened anew": ({**_READ, "where": "day = {day}", "anew": True}, 0.25),
    "SQL, one partition": ({**_READ, "where": "day = {day}", "sql": True}, 0.25),
    "SQL, ten ids": ({**_READ, "where": "id BETWEEN {id} AND {id} + 9", "sql": True}, 0.25),
}
"""What is planned -> the job, and the target."""


def measure(
    folder: Path, peer_python: str, peer_jars: str, files: int = FILES, rounds: int = 3
) -> tuple[list[Measurement], str]:
    """Measure; the second value names the versions."""
    from lakelog.core import DeltaLog

    root = Path(tempfile.mkdtemp(dir=folder))
    engines: dict[str, Engine] = {}
    try:
        table = make_table(root / "table", files, COMMITS)
        DeltaLog.for_table(table).checkpoint()
        engines["lakelog"] = Engine(sys.executable, ["lakelog"], root / "lakelog.log")
        jars = ["delta", "--jars", peer_jars]
        engines["delta"] = Engine(peer_python, jars, root / "delta.log")
        engines["tuned"] = Engine(peer_python, [*jars, "--tuned"], root / "tuned.log")
        seconds: dict[str, list[float]] = {name: [] for name in engines}
        for number in range(WARM_UPS + rounds - 1):  # delta-spark takes half a minute for each
            for name, engine in engines.items():
                day = number % DAYS
                took, found = engine.run("plan", table=table, where=f"day = {day}")
                if found != files // DAYS:
                    raise RuntimeError(f"{name}: {found} files of one day, not {files // DAYS}")
                if number >= WARM_UPS:
                    seconds[name].append(took)
        work = f"open {files:,} files and choose those of one partition"
        found_rows = [
            Measurement(work, label, seconds["lakelog"], seconds[name], 0.25)
            for name, label in LABELS.items()
        ]
        found_rows += _reads(_real_table(root / "small"), engines, rounds)
        versions = (
            f"The table's log is a checkpoint of lakelog's. lakelog on PySpark "
            f"{engines['lakelog'].version}, delta-spark on PySpark {engines['delta'].version}; "
            f"local[2], 5 GB heap, warm sessions, {WARM_UPS} warm-ups each, {READ_WARM_UPS} of a "
            "read's plan."
        )
        return found_rows, versions
    finally:
        for engine in engines.values():
            engine.close()
        shutil.rmtree(root, ignore_errors=True)


def _real_table(folder: Path) -> str:
    """A table of small files that are really there, ten in each partition, and a checkpoint."""
    import pyarrow as pa

    from lakelog.core import DeltaLog, write_arrow

    table = str(folder)
    days = pa.array(range(SMALL_DAYS), pa.int32())
    for first in range(0, SMALL_FILES, SMALL_DAYS):
        ids = pa.array(range(first, first + SMALL_DAYS), pa.int64())
        write_arrow(table, pa.table({"id": ids, "day": days}), mode="append", partition_by=["day"])
    DeltaLog.for_table(table).checkpoint()
    return table


def _reads(table: str, engines: dict[str, Engine], rounds: int) -> list[Measurement]:
    """Plan each of `READS` in turns; wall time, and the CPU of an engine's processes."""
    wall: dict[tuple[str, str], list[float]] = {}
    cpu: dict[tuple[str, str], list[float]] = {}
    for work, (job, _) in READS.items():
        for number in range(READ_WARM_UPS + rounds):
            words = {"day": 7 + number, "id": 100 * number}
            asked = {**job, "table": table, "where": job["where"].format_map(words)}
            tasks = set()
            for name, engine in engines.items():
                before = cpu_seconds(engine.pid)
                took, found = engine.run("plan_read", **asked)
                tasks.add(found)
                if number >= READ_WARM_UPS:
                    wall.setdefault((name, work), []).append(took)
                    cpu.setdefault((name, work), []).append(cpu_seconds(engine.pid) - before)
            if len(tasks) != 1:
                raise RuntimeError(f"{work}: the engines plan {tasks} tasks")
    return [
        Measurement(
            f"plan a read of {SMALL_FILES:,} files: {work}{kind}",
            label,
            seconds["lakelog", work],
            seconds[name, work],
            target,
        )
        for name, label in LABELS.items()
        for work, (_, target) in READS.items()
        for kind, seconds in (("", wall), (", CPU", cpu))
    ]
