"""TPC-H: the twenty-two queries by lakelog and delta-spark, each in a warm process, in turns.

    python benchmarks/tpch.py [--scale 1] [--rounds N] [--peers tuned]   # printed only

Both read the same tables, which delta-spark wrote from the Parquet files of `tpchgen-cli`, and
their answers must be equal. A query's time includes `load` of the tables that it names. lakelog has
a session for each peer, tuned where the peer is, with the same number of shuffle partitions. A
third session reads the same Parquet files by Spark alone: what no table can do without.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from cpu_of_tree import cpu_seconds
from measure import HEADER, Measurement
from tpch_queries import QUERIES
from versus_delta import OURS, PAIRED, PLAIN, Engine, start_pairs, without_a_table

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
WARM_UPS = 1
TARGET = 0.8


def _make(root: Path, writer: Engine, scale: float) -> None:
    beside = Path(sys.executable).parent / "tpchgen-cli"
    generator = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if generator is None:
        raise RuntimeError("tpchgen-cli is missing: pip install --group bench")
    source = root / "source"
    command = [generator, "parquet", "-s", str(scale), f"--output-dir={source}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for name in TABLES:
        writer.run("write", source=str(source / f"{name}.parquet"), table=str(root / name))


def measure(
    folder: Path,
    peer_python: str,
    peer_jars: str,
    scale: float = 1,
    rounds: int = 3,
    peers: tuple[str, ...] = tuple(PAIRED),
    warm_ups: int = WARM_UPS,
) -> tuple[list[Measurement], str]:
    """Measure all queries; the second value names the versions and tells each query's ratio."""
    root = Path(tempfile.mkdtemp(dir=folder))
    engines: dict[str, Engine] = {}
    wall: dict[tuple[str, int], list[float]] = defaultdict(list)
    cpu: dict[tuple[str, int], list[float]] = defaultdict(list)
    try:
        start_pairs(engines, peers, peer_python, peer_jars, root, plain=True)
        _make(root, engines[peers[0]], scale)
        for number, sql in QUERIES.items():
            tables = {name: str(root / name) for name in TABLES if name in sql}
            for repeat in range(warm_ups + rounds):
                answers = set()
                for side, engine in engines.items():
                    before = cpu_seconds(engine.pid)
                    took, answer = engine.run("query", tables=tables, sql=sql)
                    used = cpu_seconds(engine.pid) - before
                    answers.add(json.dumps(answer))
                    if repeat >= warm_ups:
                        wall[side, number].append(took)
                        cpu[side, number].append(used)
                if len(answers) != 1:
                    raise RuntimeError(f"query {number}: the engines disagree")
            print(f"  query {number}: done", flush=True)
        found, prose = _summary(wall, cpu, peers, scale)
        versions = (
            f"lakelog on PySpark {engines[OURS[peers[0]]].version}, delta-spark on PySpark "
            f"{engines[peers[0]].version}; local[2], 5 GB heap, warm sessions, {warm_ups} warm-ups "
            "a query; the tables are delta-spark's. "
        )
        return found, versions + prose
    finally:
        for engine in engines.values():
            engine.close()
        shutil.rmtree(root, ignore_errors=True)


def _summary(
    wall: dict[tuple[str, int], list[float]],
    cpu: dict[tuple[str, int], list[float]],
    peers: tuple[str, ...],
    scale: float,
) -> tuple[list[Measurement], str]:
    found, prose = [], []
    work = f"TPC-H at scale {scale:g}, geometric mean of {len(QUERIES)} queries"
    for peer in peers:
        for kind, seconds in (("", wall), (", CPU", cpu)):
            sides = (OURS[peer], peer, PLAIN[peer])
            ours, theirs, plain = ([_mean([min(seconds[s, n]) for n in QUERIES])] for s in sides)
            note = without_a_table(plain, theirs)
            found.append(Measurement(work + kind, PAIRED[peer], ours, theirs, TARGET, note=note))
        each = ", ".join(f"{n} {min(cpu[OURS[peer], n]) / min(cpu[peer, n]):.2f}" for n in QUERIES)
        prose.append(f"CPU over that of {PAIRED[peer]}, query by query: {each}.")
    return found, " ".join(prose)


def _mean(values: list[float]) -> float:
    # A clock that ticks every 10 ms may say 0.
    return math.exp(sum(math.log(max(each, 0.01)) for each in values) / len(values))


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-ups", type=int, default=WARM_UPS)
    parser.add_argument("--peers", nargs="+", choices=list(PAIRED), default=list(PAIRED))
    args = parser.parse_args()
    here = Path(__file__).parent.parent
    sys.path.insert(0, str(here / "tests"))
    from support import delta_spark

    folder = here / ".cache" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    peer = delta_spark.installed()
    jars = ",".join(map(str, peer.jars))
    found, versions = measure(
        folder, str(peer.python), jars, args.scale, args.rounds, tuple(args.peers), args.warm_ups
    )
    print("\n".join([versions, HEADER, *(each.row() for each in found)]))


if __name__ == "__main__":
    main()
