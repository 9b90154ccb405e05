"""Spark writes and scans: lakelog and delta-spark, each in a warm process, in turns.

Beside the wall time stands the CPU of the engine's whole tree of processes, JVM and workers. A
third session reads and writes Parquet files by Spark alone: what a table can't do without.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from cpu_of_tree import cpu_seconds
from measure import Measurement

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
TUNED = "with lakelog-python and Unix sockets"
"""What the documentation advises for lakelog's sessions, as tables of other peers say theirs."""
WARM_UPS = 4
"""Rounds of each work that are not counted: the JVMs compile their hot paths meanwhile."""


PAIRED = {
    "delta": "delta-spark",
    "tuned": "delta-spark, snapshotPartitions=2, shuffle.partitions=2",
}
OURS = {"delta": "lakelog", "tuned": "lakelog-tuned"}
"""lakelog's session beside each peer of `PAIRED`."""
PLAIN = {"delta": "plain", "tuned": "plain-tuned"}
"""Spark's session without tables beside each of them."""


def make_source(path: Path, rows: int) -> None:
    """Eight columns (two long, int, two double, two string, timestamp) in eight files."""
    path.mkdir(parents=True)
    per_file = rows // 8
    for part in range(8):
        start = part * per_file
        i = pa.array(range(start, start + per_file), pa.int64())
        mixed = pc.bit_wise_and(pc.multiply(i, 2654435761), 0x7FFFFFFF)
        category = pc.bit_wise_and(pc.shift_right(mixed, 7), 1023)
        twenty = pc.subtract(category, pc.multiply(pc.divide(category, 20), 20))
        table = pa.table(
            {
                "l1": i,
                "l2": mixed,
                "i1": pc.cast(pc.bit_wise_and(mixed, 1023), pa.int32()),
                "d1": pc.divide(pc.cast(mixed, pa.float64(), safe=False), 1000.0),
                "d2": pc.sin(pc.cast(mixed, pa.float64(), safe=False)),
                "s1": pc.binary_join_element_wise(
                    "cat", pc.utf8_lpad(pc.cast(twenty, pa.string()), 2, "0"), "_"
                ),
                "s2": pc.binary_join_element_wise("name", pc.cast(mixed, pa.string()), "-"),
                "t1": pc.cast(pc.add(pc.multiply(i, 1_000_000), 10**15), pa.timestamp("us", "UTC")),
            }
        )
        pq.write_table(table, path / f"part-{part}.parquet", row_group_size=per_file)


class Engine:
    """A running `engine.py`."""

    def __init__(self, python: str, arguments: list[str], log: Path) -> None:
        self._log = log.open("w")
        self._process = subprocess.Popen(
            [python, str(HERE / "engine.py"), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            bufsize=1,
        )
        ready = self._answer()
        self.pid = self._process.pid
        self.version: str = ready["ready"]

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the engine ended; its log is {self._log.name}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def run(self, op: str, **job: Any) -> tuple[float, Any]:
        """Do a job; how long it took, and what came of it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"op": op, **job}) + "\n")
        answer = self._answer()
        return answer["seconds"], answer["result"]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


def start_pairs(
    engines: dict[str, Engine],
    peers: tuple[str, ...],
    peer_python: str,
    peer_jars: str,
    root: Path,
    *,
    plain: bool = False,
    confs: Sequence[str] = (),
) -> None:
    """Start each peer, and lakelog beside it, tuned if the peer is; `engines` gets them at once.

    As they come they have eight shuffle partitions: Spark's own default of 200 would be slower on
    two cores. Tuned they have two, and what `confs` says.
    """
    for peer in peers:
        more = []
        if peer == "tuned":
            tuned = ("spark.sql.shuffle.partitions=2", *confs)
            more = ["--tuned", *(f"--conf={each}" for each in tuned)]
        ours, log = OURS[peer], root / f"lakelog-{peer}.log"
        engines[ours] = Engine(sys.executable, ["lakelog", *more], log)
        if plain:
            log = root / f"{PLAIN[peer]}.log"
            engines[PLAIN[peer]] = Engine(sys.executable, ["plain", *more], log)
        arguments = ["delta", "--jars", peer_jars, *more]
        engines[peer] = Engine(peer_python, arguments, root / f"{peer}.log")


def without_a_table(plain: list[float], theirs: list[float]) -> str:
    """The note of what Spark alone took for the same, and of its ratio to the peer's figure."""
    took, share = statistics.median(plain), statistics.median(plain) / statistics.median(theirs)
    return f"Spark without a table: {took:.3g} s, {share:.2f}"


def _job_table(root: Path, engine: str, op: str, stand: dict[str, str]) -> str:
    """Scans and appends go to a standing table, big writes to a fresh one."""
    if op in ("scan_two", "count"):
        return stand[f"{engine}/write"]
    if op in ("one_row", "append"):
        return stand.setdefault(f"{engine}/{op}", str(root / f"{engine}-{op}"))
    return str(root / f"{engine}-{op}-{uuid.uuid4().hex[:8]}")


def measure(
    folder: Path,
    peer_python: str,
    peer_jars: str,
    rows: int = 5_000_000,
    rounds: int = 4,
    peers: tuple[str, ...] = ("delta", "tuned"),
    warm_ups: int = WARM_UPS,
) -> tuple[list[Measurement], str]:
    """Measure all Spark work; the second value names the versions."""
    targets = [
        ("write", f"Spark write, {rows:,} rows x 8 columns", 0.6, rounds),
        ("append", "the same, appended to a table that has such rows", 0.6, rounds),
        ("write_partitioned", "a write partitioned by 20 values", 0.6, rounds),
        ("scan_two", "scan of two columns", 0.27, rounds + 1),
        ("one_row", "one-row Spark write", 0.45, 9),
    ]
    root = Path(tempfile.mkdtemp(dir=folder))
    engines: dict[str, Engine] = {}
    try:
        source = root / "source"
        make_source(source, rows)
        engines["lakelog"] = Engine(sys.executable, ["lakelog", "--tuned"], root / "lakelog.log")
        jars = ["delta", "--jars", peer_jars]
        for peer in peers:
            also = ["--tuned"] if peer == "tuned" else []
            engines[peer] = Engine(peer_python, [*jars, *also], root / f"{peer}.log")
        engines["plain"] = Engine(sys.executable, ["plain"], root / "plain.log")
        stand: dict[str, str] = {}
        wall: dict[tuple[str, str], list[float]] = {}
        cpu: dict[tuple[str, str], list[float]] = {}
        for op, _, _, repeats in targets:
            for i in range(repeats + warm_ups):
                results = set()
                for name, engine in engines.items():
                    table = _job_table(root, name, op, stand)
                    before = cpu_seconds(engine.pid)
                    took, result = engine.run(op, table=table, source=str(source))
                    used = cpu_seconds(engine.pid) - before
                    results.add(json.dumps(result))
                    if i >= warm_ups:
                        wall.setdefault((name, op), []).append(took)
                        cpu.setdefault((name, op), []).append(used)
                    if op.startswith("write"):
                        old = stand.get(f"{name}/{op}")
                        stand[f"{name}/{op}"] = table
                        if old:
                            shutil.rmtree(old, ignore_errors=True)
                if len(results) != 1:
                    raise RuntimeError(f"{op}: the engines disagree: {results}")
            print(f"  {op}: done", flush=True)
        measurements = []
        for peer in peers:
            label = "delta-spark" if peer == "delta" else "delta-spark, snapshotPartitions=2"
            for op, work, target, _ in targets:
                for kind, seconds in (("", wall), (", CPU", cpu)):
                    ours, theirs = seconds["lakelog", op], seconds[peer, op]
                    note = without_a_table(seconds["plain", op], theirs)
                    measurements.append(
                        Measurement(work + kind, label, ours, theirs, target, note=note)
                    )
        versions = (
            f"lakelog on PySpark {engines['lakelog'].version}, {TUNED}, delta-spark on PySpark "
            f"{engines[peers[0]].version}; local[2], 5 GB heap, warm sessions, "
            f"{warm_ups} warm-ups each."
        )
        return measurements, versions
    finally:
        for engine in engines.values():
            engine.close()
        shutil.rmtree(root, ignore_errors=True)
