"""What the bridge to delta-spark adds to a commit and to a listing, and what it keeps in memory.

    python benchmarks/bridge.py [--rounds N] [--commits N]

A JVM calls `io.lakelog.BridgeLogStore`, which asks `lakelog serve`; the peer is the store that the
service asks in its turn, called in this process. Both are on the local disk and take turns. The
times of the JVM's calls are taken within the JVM.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cpu_of_tree import cpu_seconds

from lakelog.logstores import LocalLogStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENTRIES = 10_000
MOST_ADDED_MS = 2.0
MOST_OVER = 1.3
MOST_GROWTH_MB = 2.0
LINE = '{"add":{"path":"part-00000.parquet","size":1000,"stats":"' + "x" * 600 + '"}}'
HEAD = (
    "| work | by the bridge | the store alone | more | target | reached |\n"
    "|---|--:|--:|--:|--:|---|"
)
ABOUT = (
    "From a JVM, by way of `lakelog serve`, to `LocalLogStore`, against that store called in a "
    "process of Python; both in turns, medians. CPU is the mean of all calls, the JVM's and the "
    "service's together: they work side by side, so that on idle cores the longer one counts."
)


@dataclass
class Side:
    """What one side took: seconds of each call, and CPU seconds of them all."""

    times: list[float] = field(default_factory=list)
    cpu: float = 0.0

    @property
    def median(self) -> float:
        return float(1000 * statistics.median(self.times))

    @property
    def mean_cpu(self) -> float:
        return 1000 * self.cpu / len(self.times)


class Jvm:
    """The Java program, and the service that it asks."""

    def __init__(self, process: subprocess.Popen[str], service: subprocess.Popen[str]) -> None:
        self.process, self.service = process, service

    def tell(self, *words: object) -> list[float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return [int(each) / 1e9 for each in self.process.stdout.readline().split()]

    def cpu(self) -> float:
        return cpu_seconds(self.process.pid) + cpu_seconds(self.service.pid)

    def memory(self) -> float:
        """Resident megabytes of the service."""
        status = Path(f"/proc/{self.service.pid}/status").read_text()
        (line,) = (each for each in status.splitlines() if each.startswith("VmRSS"))
        return int(line.split()[1]) / 1024


@contextlib.contextmanager
def _running(argv: list[str], ready: str) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            if not said.startswith(ready):
                raise RuntimeError(f"{argv[0]} said {said!r}")
            yield process
        finally:
            process.terminate()


@contextlib.contextmanager
def jvm(folder: Path) -> Iterator[Jvm]:
    """Both, until the block ends."""
    from support.servers.bridge_jvm import class_path

    file, program = str(folder / "bridge"), str(Path(__file__).with_name("BridgeTimes.java"))
    serve = [sys.executable, "-c", "from lakelog.cli import main; main()", "serve"]
    java = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", class_path()]
    with (
        _running([*serve, "--endpoint", file], "# Serving") as service,
        _running([*java, program, file], "ready") as process,
    ):
        yield Jvm(process, service)


def _in_turns(
    jvm: Jvm, rounds: int, by_bridge: Callable[[int], list[float]], alone: Callable[[int], float],
    each: int,
) -> tuple[Side, Side]:  # fmt: skip
    """Rounds of each side, after as many to warm up."""
    bridge, store = Side(), Side()
    for number in range(-rounds, rounds):
        start = jvm.cpu()
        times = by_bridge(number)
        cpu = jvm.cpu() - start
        own = time.process_time()
        taken = [alone(number) for _ in range(each)]
        own = time.process_time() - own
        if number >= 0:
            bridge.times += times
            bridge.cpu += cpu
            store.times += taken
            store.cpu += own
    return bridge, store


def _commits(jvm: Jvm, folder: Path, rounds: int, each: int = 200) -> tuple[Side, Side]:
    ours, alone = folder / "served" / "_delta_log", folder / "alone" / "_delta_log"
    store, versions = LocalLogStore(), iter(range(1_000_000))
    ours.mkdir(parents=True)
    alone.mkdir(parents=True)

    def one(_: int) -> float:
        path = f"{alone}/{next(versions):020d}.json"
        start = time.perf_counter()
        store.write(path, [LINE])
        return time.perf_counter() - start

    first = rounds
    return _in_turns(
        jvm, rounds, lambda n: jvm.tell("commit", ours, (n + first) * each, each, LINE), one, each
    )


def _listings(jvm: Jvm, folder: Path, rounds: int, each: int = 10) -> tuple[Side, Side]:
    log = folder / "listed" / "_delta_log"
    log.mkdir(parents=True)
    for version in range(ENTRIES + 1):
        (log / f"{version:020d}.json").touch()
    store = LocalLogStore()

    def one(_: int) -> float:
        start = time.perf_counter()
        found = sum(1 for _ in store.list_from(f"{log}/{1:020d}.json"))
        taken = time.perf_counter() - start
        if found != ENTRIES:
            raise RuntimeError(f"{found} entries")
        return taken

    return _in_turns(jvm, rounds, lambda _: jvm.tell("list", log, 1, each, ENTRIES), one, each)


def _row(work: str, ours: str, alone: str, more: str, target: str, reached: bool | None) -> str:
    verdict = {True: "yes", False: "**no**", None: ""}[reached]
    return f"| {work} | {ours} | {alone} | {more} | {target} | {verdict} |"


def _memory(jvm: Jvm, folder: Path, commits: int) -> tuple[str, bool]:
    """What 10,000 commits add to the service, after a thousand to warm up."""
    log = folder / "long" / "_delta_log"
    log.mkdir(parents=True)
    jvm.tell("commits", log, 0, 1000, LINE)
    before = jvm.memory()
    jvm.tell("commits", log, 1000, commits, LINE)
    after = jvm.memory()
    reached = after - before <= MOST_GROWTH_MB
    work = f"the service's memory over {commits:,} commits"
    growth = f"{after - before:+.1f} MB"
    target = f"≤ {MOST_GROWTH_MB:g} MB"
    row = _row(work, f"{after:.1f} MB", f"{before:.1f} MB before", growth, target, reached)
    return row, reached


def measure(folder: Path, rounds: int = 6, commits: int = 10_000) -> tuple[str, bool]:
    """The table, and whether all targets were reached."""
    root = Path(tempfile.mkdtemp(dir=folder, prefix="bridge-"))
    try:
        with jvm(root) as both:
            ours, alone = _commits(both, root, rounds)
            added = ours.median - alone.median
            quick = added <= MOST_ADDED_MS
            shown = f"a commit of one action (n={len(ours.times)})"
            rows = [
                _row(shown, f"{ours.median:.2f} ms", f"{alone.median:.2f} ms",
                     f"{added:+.2f} ms", f"≤ {MOST_ADDED_MS:g} ms", quick),
                _row(f"{shown}, CPU", f"{ours.mean_cpu:.2f} ms", f"{alone.mean_cpu:.2f} ms",
                     f"{ours.mean_cpu - alone.mean_cpu:+.2f} ms", "–", None),
            ]  # fmt: skip
            ours, alone = _listings(both, root, rounds)
            over = ours.median / alone.median
            shown = f"a list of {ENTRIES:,} entries (n={len(ours.times)})"
            rows += [
                _row(shown, f"{ours.median:.1f} ms", f"{alone.median:.1f} ms",
                     f"x {over:.2f}", f"≤ x {MOST_OVER:g}", over <= MOST_OVER),
                _row(f"{shown}, CPU", f"{ours.mean_cpu:.1f} ms", f"{alone.mean_cpu:.1f} ms",
                     f"x {ours.mean_cpu / alone.mean_cpu:.2f}", "–", None),
            ]  # fmt: skip
            row, flat = _memory(both, root, commits)
            return "\n".join([HEAD, *rows, row]), quick and over <= MOST_OVER and flat
    finally:
        shutil.rmtree(root, ignore_errors=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--commits", type=int, default=10_000)
    args = parser.parse_args()
    here = Path(__file__).parent.parent
    sys.path.insert(0, str(here / "tests"))
    folder = here / ".cache" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    print(measure(folder, args.rounds, args.commits)[0])


if __name__ == "__main__":
    main()
