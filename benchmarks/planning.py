"""Planning one partition of a table of a million files: lakelog and delta-spark, in turns.

Each engine is a warm process with a Spark session, and each time opens the table as if for the
first time: delta-spark with the cache of its logs emptied, lakelog with a new `DeltaLog`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from measure import Measurement
from scale import COMMITS, DAYS, FILES, make_table
from versus_delta import Engine

WARM_UPS = 1


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
        for number in range(WARM_UPS + rounds):
            for name, engine in engines.items():
                day = number % DAYS
                took, found = engine.run("plan", table=table, where=f"day = {day}")
                if found != files // DAYS:
                    raise RuntimeError(f"{name}: {found} files of one day, not {files // DAYS}")
                if number >= WARM_UPS:
                    seconds[name].append(took)
        work = f"open {files:,} files and choose those of one partition"
        labels = {"delta": "delta-spark", "tuned": "delta-spark, snapshotPartitions=2"}
        found_rows = [
            Measurement(work, label, seconds["lakelog"], seconds[name], 0.25)
            for name, label in labels.items()
        ]
        versions = (
            f"The table's log is a checkpoint of lakelog's. lakelog on PySpark "
            f"{engines['lakelog'].version}, delta-spark on PySpark {engines['delta'].version}; "
            f"local[2], 5 GB heap, warm sessions, {WARM_UPS} warm-ups each."
        )
        return found_rows, versions
    finally:
        for engine in engines.values():
            engine.close()
        shutil.rmtree(root, ignore_errors=True)
