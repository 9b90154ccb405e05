"""Tables of a million files: opening them, following them, asking them, against deltalake.

What such a table takes of a Spark job's driver is measured against a fixed limit: the peak of
memory of the Python process, with PySpark in it. The JVM is a process of its own.

Each figure of opening comes from a fresh process, started in turns with the peer's, which
reports seconds and its own peak of memory. Both sides make their file list ready to be used:
lakelog its live files as columns, deltalake its add actions as a record batch.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import deltalake
from alone import _peak
from measure import Measurement

FILES = 1_000_000
COMMITS = 100
DAYS = 1000
SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "value", "type": "double", "nullable": True, "metadata": {}},
            {"name": "name", "type": "string", "nullable": True, "metadata": {}},
            {"name": "day", "type": "integer", "nullable": True, "metadata": {}},
        ],
    }
)
DRIVER_MEGABYTES = 700
PEER = f"deltalake {deltalake.__version__}"


def _add_line(number: int, rng: random.Random) -> str:
    day, low = number % DAYS, number * 1000
    stats = (
        f'{{\\"numRecords\\":1000,\\"minValues\\":{{\\"id\\":{low},\\"value\\":{rng.random():.6f},'
        f'\\"name\\":\\"a{number:07d}\\"}},\\"maxValues\\":{{\\"id\\":{low + 999},'
        f'\\"value\\":{1 + rng.random():.6f},\\"name\\":\\"z{number:07d}\\"}},'
        f'\\"nullCount\\":{{\\"id\\":0,\\"value\\":0,\\"name\\":0}}}}'
    )
    return (
        f'{{"add":{{"path":"day={day}/part-{number:08d}-{rng.getrandbits(64):016x}.snappy.parquet",'
        f'"partitionValues":{{"day":"{day}"}},"size":{10_000 + number % 977},'
        f'"modificationTime":1700000000000,"dataChange":true,"stats":"{stats}"}}}}'
    )


def make_table(folder: Path, files: int, commits: int) -> str:
    """A table of so many commits of as many adds each, written as plain JSON."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    rng = random.Random(7)
    metadata = {
        "id": "scale",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": SCHEMA,
        "partitionColumns": ["day"],
        "configuration": {"delta.checkpointInterval": "1000000"},
        "createdTime": 1,
    }
    each = files // commits
    for version in range(commits):
        lines = ['{"commitInfo":{"timestamp":1,"operation":"WRITE","operationParameters":{}}}']
        if version == 0:
            lines.append('{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}')
            lines.append(json.dumps({"metaData": metadata}))
        lines += [_add_line(version * each + i, rng) for i in range(each)]
        (log / f"{version:020d}.json").write_text("\n".join(lines) + "\n")
    return str(folder)


def child(side: str, work: str, path: str) -> dict[str, Any]:
    """One measurement, in this process; run as a child."""
    scan = 0.0
    if work in DRIVERS:
        return _driver(path, DRIVERS[work])
    if side == "lakelog":
        import pyarrow.parquet  # noqa: F401  # the peer's is compiled in

        from lakelog.core import DeltaLog

        began = time.perf_counter()
        log = DeltaLog.for_table(path)
        files = log.update().file_table.num_rows
        seconds = time.perf_counter() - began
        if work == "checkpoint":
            began = time.perf_counter()
            log.checkpoint()
            seconds = time.perf_counter() - began
        elif work == "update":
            began = time.perf_counter()
            print("ready", flush=True)
            sys.stdin.readline()
            began = time.perf_counter()
            files = log.update().file_table.num_rows
            seconds = time.perf_counter() - began
        elif work == "filter":
            # The first filter given as text loads the parser.
            log.start_transaction().filter_files("day = 7")
            txn = log.start_transaction()
            began = time.perf_counter()
            files = len(txn.filter_files("day = 500"))
            seconds = time.perf_counter() - began
            scan = _scan_of_days(log.snapshot.file_table)
    else:
        began = time.perf_counter()
        table = deltalake.DeltaTable(path)
        actions = table.get_add_actions()
        files, seconds = actions.num_rows, time.perf_counter() - began
        if work == "checkpoint":
            began = time.perf_counter()
            table.create_checkpoint()
            seconds = time.perf_counter() - began
        elif work == "update":
            print("ready", flush=True)
            sys.stdin.readline()
            began = time.perf_counter()
            table.update_incremental()
            files = table.get_add_actions().num_rows
            seconds = time.perf_counter() - began
        elif work == "filter":
            table.file_uris(file_pruning_predicate="day = 7")
            began = time.perf_counter()
            files = len(table.file_uris(file_pruning_predicate="day = 500"))
            seconds = time.perf_counter() - began
    return {"seconds": seconds, "files": files, "peak": _peak(), "scan": scan}


DRIVERS = {"driver": "day = 500", "driver-stats": "id BETWEEN 500 AND 99999"}
"""Work of a Spark job's driver -> the files that it plans to read."""


def _driver(path: str, where: str) -> dict[str, Any]:
    """Plan a read of some of the table's files, as a Spark job does."""
    from pyspark.sql import SparkSession

    from lakelog.spark import read

    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        # The table has a log and no data files, at which Spark's own reader would look.
        .config("spark.lakelog.read.path", "arrow")
        .getOrCreate()
    )
    began = time.perf_counter()
    frame = read(spark).where(where).load(path)
    seconds = time.perf_counter() - began
    assert frame.columns == ["id", "value", "name", "day"]
    found = {"seconds": seconds, "files": 0, "peak": _peak(), "scan": 0.0}
    spark.stop()
    return found


def _scan_of_days(files: Any) -> float:
    """Seconds that it takes to look once at each value of the column that the filter needs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    began = time.perf_counter()
    chunks = files["partition_values"].chunks
    found = sum(pc.sum(pc.equal(pc.cast(c.items, pa.int32()), 500)).as_py() or 0 for c in chunks)
    seconds = time.perf_counter() - began
    assert found
    return seconds


def _run(side: str, work: str, path: str) -> dict[str, Any]:
    if work == "checkpoint":
        # Where one is there already the peer does nothing.
        for name in ("*.checkpoint.parquet", "_last_checkpoint"):
            for old in Path(path, "_delta_log").glob(name):
                old.unlink()
    process = subprocess.Popen(
        [sys.executable, __file__, side, work, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    if work == "update":
        assert process.stdout.readline() == "ready\n"
        version = sorted(Path(path, "_delta_log").glob("*.json"))[-1]
        number = int(version.stem) + 1
        line = _add_line(FILES + number, random.Random(number))
        target = version.with_name(f"{number:020d}.json")
        target.write_text('{"commitInfo":{"timestamp":1,"operation":"WRITE"}}\n' + line + "\n")
    out, _ = process.communicate("go\n", timeout=600)
    return json.loads(out.splitlines()[-1])


def compare(path: str, work: str, rounds: int) -> tuple[list[Any], list[Any]]:
    """What each side's processes report of a piece of work, lakelog's first."""
    ours, theirs = [], []
    for number in range(rounds + 1):
        one, other = _run("lakelog", work, path), _run("deltalake", work, path)
        if work != "update":
            assert one["files"] == other["files"], (work, one, other)
        if number:  # the first pair warms the disk's cache
            ours.append(one)
            theirs.append(other)
    return ours, theirs


def _row(name: str, pair: tuple[list[Any], list[Any]], target: float) -> Measurement:
    ours, theirs = pair
    return Measurement(
        name, PEER, [o["seconds"] for o in ours], [t["seconds"] for t in theirs], target
    )


def measure(folder: Path, files: int = FILES, rounds: int = 3) -> list[Measurement]:
    """Make the tables, and measure each piece of work."""
    root = Path(tempfile.mkdtemp(dir=folder))
    try:
        path = make_table(root / "table", files, COMMITS)
        found = [
            _row(f"open {files:,} files, 100 JSON commits", compare(path, "open", rounds), 0.5)
        ]
        found.append(
            _row(
                f"write the checkpoint of {files:,} files",
                compare(path, "checkpoint", rounds),
                1.0,
            )
        )
        subprocess.run([sys.executable, __file__, "lakelog", "checkpoint", path], check=True)
        opened = compare(path, "open", rounds)
        found.append(_row(f"open {files:,} files, checkpoint", opened, 0.3))
        found.append(
            Measurement(
                "memory of that",
                PEER,
                [o["peak"] / 1e6 for o in opened[0]],
                [t["peak"] / 1e6 for t in opened[1]],
                1.0,
                unit="MB",
            )
        )
        found.append(_row("update() after one commit", compare(path, "update", rounds), 0.2))
        filtered = compare(path, "filter", rounds)
        found.append(_row("files of one partition of 1,000", filtered, 1.0))
        over = [max(0.0, o["seconds"] - o["scan"]) for o in filtered[0]]
        scans = ", ".join(f"{o['scan'] * 1000:.1f} ms" for o in filtered[0])
        work = "the same, over one scan of the column it needs"
        found.append(Measurement(work, "50 ms", over, [0.05], 1.0, note=f"scans: {scans}"))
        for kind, where in DRIVERS.items():
            peak = _run("lakelog", kind, path)["peak"] / 1e6
            work = f"memory of a Spark driver that plans `{where}` of {files:,} files"
            peer = f"{DRIVER_MEGABYTES} MB"
            found.append(Measurement(work, peer, [peak], [DRIVER_MEGABYTES], 1.0, unit="MB"))
        return found
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    print(json.dumps(child(*sys.argv[1:4])))
