"""Streams from a table to others, through one death after the other: nothing lost, nothing doubled.

    python -m support.killed_streams.lives --kills 50 [--seed N] [--on minio|azurite [--faults]]

Rows are appended while the queries run and while they are dead. Two deaths of three are `kill -9`
of all their processes at once, at a moment drawn by chance; one is that of a Python worker alone.
With `--faults` requests meet errors of the server and of the network on their way, besides.
At the end every row must have arrived, once.

Interrupted (`kill -INT`), it kills no more, and tells what became of the rows so far.

A life is measured by how far its queries come, and by the CPU time that they take: on a busy
machine all of it takes longer, and nothing else changes.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core import DeltaLog, write_arrow
from support.killed_streams.places import KINDS, Place, place
from support.killed_streams.queries import SHAPES
from support.process_sessions import cpu_seconds, end_session, members
from support.spark_java import submit_options
from support.spark_python import WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PROGRAM = Path(__file__).with_name("queries.py")
_CPU_SECONDS = 400
"""What queries that get nowhere may use of the CPU before the test gives up."""
_IDLE_SECONDS = 600
"""The same, of time without a step, for queries that wait for each other."""
_APPENDS = 0.3
"""How often there is something new where one looks whether the queries have come further."""
_ROWS = 20
_MOST_FAILURES = 5
_TOO_SLOW = "Python worker failed to connect back"
"""Spark gives each of its Python processes ten seconds to begin, which no conf can change."""
_MOST_TOO_SLOW = 40
_AT_ONCE = 2


@dataclass
class Report:
    """What became of the rows."""

    seed: int
    kills: int = 0
    """All processes at once."""
    worker_kills: int = 0
    failures: int = 0
    """Queries that ended by an error, as after a worker's death."""
    too_slow: int = 0
    """Queries that ended since the machine was too busy for a Python process to begin in time."""
    faults: int = 0
    """Of the server and of the network."""
    rows: int = 0
    """Appended to the source, each id twice."""
    cpu: float = 0.0
    """Seconds that all processes of the queries took."""
    batches: dict[str, int] = field(default_factory=dict)
    """Sink -> how many batches its history has."""
    wrong: list[str] = field(default_factory=list)
    """What was lost, or came twice."""

    def fail(self, said: str) -> None:
        """Note the end of a life that nobody took, and what it said."""
        if _TOO_SLOW in said:
            self.too_slow += 1
        else:
            self.failures += 1
        expected = self.kills + self.worker_kills + self.faults + _MOST_FAILURES
        if self.failures > expected or self.too_slow > _MOST_TOO_SLOW:
            raise AssertionError(f"the queries fail by themselves: {self}; the last one:\n{said}")


class _Source:
    """The table that the queries read, and the rows that it should have."""

    def __init__(self, path: str, conf: dict[str, str], drawn: random.Random) -> None:
        self.path, self._conf, self._drawn = path, conf, drawn
        self.rows: list[tuple[int, int, int]] = []

    def append(self) -> None:
        """Commit some rows: half of them new, half of them as in the commit before."""
        first = len(self.rows) // 2
        new = [(first + i, (first + i) % 7, self._drawn.randrange(100)) for i in range(_ROWS)]
        old = self.rows[-2 * _ROWS :][:_ROWS] if self.rows else []
        # Of the first commit each row is there twice at once.
        rows = new + (old or new)
        table = pa.table(
            {
                "id": pa.array([r[0] for r in rows], pa.int64()),
                "k": pa.array([r[1] for r in rows], pa.int64()),
                "n": pa.array([r[2] for r in rows], pa.int64()),
                "p": [f"x {r[0] % 3}" for r in rows],
            }
        )
        write_arrow(
            self.path, table, mode="append", conf=self._conf,
            properties=None if self.rows else {"delta.enableChangeDataFeed": "true"},
        )  # fmt: skip
        # The new ones first, so that the next commit repeats them.
        self.rows += new + (old or new)


@dataclass
class _Growth:
    """Appends now and then, but no more than queries read that get on: else there is no end."""

    source: _Source
    drawn: random.Random
    checkpoints: str
    ahead: int
    """How many commits more there may be than steps."""
    appended: int = 0

    def __call__(self) -> None:
        room = self.appended < self.ahead + _steps(self.checkpoints)
        if room and self.drawn.random() < _APPENDS:
            self.source.append()
            self.appended += 1


def live_and_die(
    where: str | Place,
    kills: int,
    seed: int,
    *,
    shapes: tuple[str, ...] = tuple(SHAPES),
    checkpoints: str | None = None,
    most_steps: int = 12,
    enough: threading.Event | None = None,
) -> Report:
    """Let queries be killed so many times, then end, and count.

    Args:
        where: the place of the tables, or a folder of this machine.
        kills: how many deaths.
        seed: what is drawn by.
        shapes: which queries, of `SHAPES`.
        checkpoints: a folder of this machine; default: in that of the tables, which then is one.
        most_steps: fewer than that come about before a death: batches that were begun or ended.
        enough: once it is set, no further life begins that is to be killed.
    """
    drawn = random.Random(seed)
    at = where if isinstance(where, Place) else Place(where)
    folder, conf = at.folder, at.conf
    report = Report(seed)
    source = _Source(f"{folder}/source", conf, drawn)
    source.append()
    if "upserts" in shapes:
        empty = pa.table({"k": pa.array([], pa.int64()), "n": pa.array([], pa.int64())})
        write_arrow(f"{folder}/upserts", empty, mode="append", conf=conf)
    checkpoints = checkpoints or f"{folder}/checkpoints"
    spec = {
        "source": source.path,
        "sinks": folder,
        "checkpoints": checkpoints,
        "shapes": list(shapes),
        "to_end": False,
    }
    number = 0
    while report.kills + report.worker_kills < kills and not (enough and enough.is_set()):
        for _ in range(drawn.randrange(4)):
            source.append()
        # Small batches go by way of the driver; every other life has jobs for them.
        way = {"spark.lakelog.write.path": "arrow" if number % 2 else "auto"}
        # All at once would be many processes for two cores.
        some = drawn.sample(shapes, min(len(shapes), _AT_ONCE))
        at.arm(drawn)
        with _life({**spec, "shapes": some, "conf": {**at.life_conf, **way}}, report) as life:
            process = life.process
            _ready(process)
            # How far they come is what counts, however slow the machine is; then a moment more.
            before = _steps(checkpoints)
            steps = before + drawn.randrange(most_steps)
            grow = _Growth(source, drawn, checkpoints, most_steps - before)
            _wait(process, checkpoints, steps, grow, lambda: drawn.uniform(0.05, 0.5))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(drawn.uniform(0, 1))
            if process.poll() is not None:
                report.faults = at.faults()
                report.fail(life.said())
                continue
            workers = _workers(process.pid) if number % 3 == 2 else []
            if workers:
                os.kill(drawn.choice(workers), signal.SIGKILL)
                report.worker_kills += 1
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(drawn.uniform(2, 6))
                report.failures += process.poll() is not None
            else:
                report.kills += 1
            _log(f"{report.kills} + {report.worker_kills} kills, {len(source.rows)} rows")
        number += 1
    at.heal()
    report.faults = at.faults()
    while True:
        with _life({**spec, "conf": at.life_conf, "to_end": True}, report) as life:
            _ready(life.process)
            _wait(life.process, checkpoints)
            if not life.process.wait():
                break
            report.fail(life.said())
    report.rows = len(source.rows)
    for shape in shapes:
        _judge(report, shape, f"{folder}/{shape}", source.rows, conf)
    return report


def _steps(checkpoints: str) -> int:
    """How many batches of all queries were begun, and how many were ended."""
    return sum(1 for _ in Path(checkpoints).glob("*/[oc]*s/[0-9]*"))


def _wait(
    process: subprocess.Popen[str],
    checkpoints: str,
    steps: int | None = None,
    meanwhile: Callable[[], object] = lambda: None,
    pause: Callable[[], float] = lambda: 0.5,
) -> None:
    """Wait until the queries have come so far, or until they end.

    Raises:
        AssertionError: they get nowhere.
    """
    before, used, since = _steps(checkpoints), 0.0, time.monotonic()
    while process.poll() is None and (steps is None or before < steps):
        meanwhile()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(pause())
        now, cpu = _steps(checkpoints), cpu_seconds(process.pid)
        if now > before:
            before, used, since = now, cpu, time.monotonic()
        elif cpu - used > _CPU_SECONDS or time.monotonic() - since > _IDLE_SECONDS:
            raise AssertionError(f"the queries get no further than {now} steps")


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class _Life:
    process: subprocess.Popen[str]
    log: Path

    def said(self) -> str:
        """The end of what its processes wrote to standard error."""
        return self.log.read_text(errors="replace")[-3000:]


@contextlib.contextmanager
def _life(spec: dict[str, Any], report: Report) -> Iterator[_Life]:
    """The processes of some queries, until the block ends: then all of them are killed."""
    with tempfile.NamedTemporaryFile("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(_PROGRAM), json.dumps(spec)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            env={
                "SPARK_SUBMIT_OPTS": submit_options(),
                **os.environ,
                "PYSPARK_PYTHON": WORKERS,
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
        )
        try:
            yield _Life(process, Path(log.name))
        finally:
            report.cpu = round(report.cpu + cpu_seconds(process.pid), 1)
            end_session(process)


def _ready(process: subprocess.Popen[str]) -> None:
    """Wait until the queries have been started; a life that ends before has said why."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "ready":
            return


def _workers(session: int) -> list[int]:
    """The Python processes that the JVM's Python daemons have forked."""
    all_members = members(session)
    parents = {each.pid: (each.parent, each.name) for each in all_members}
    found = []
    for each in all_members:
        above, kind = parents.get(each.parent, (0, ""))
        # leader -> JVM -> daemon -> worker
        grand = parents.get(above, (0, ""))[1]
        if "python" in each.name and "python" in kind and "java" in grand:
            found.append(each.pid)
    return sorted(found)


def _judge(
    report: Report,
    shape: str,
    path: str,
    rows: list[tuple[int, int, int]],
    conf: dict[str, str],
) -> None:
    """Compare a sink with what it should have."""
    log = DeltaLog.for_table(path, conf)
    found = log.snapshot.to_arrow()
    names = {"copy": ["id", "k", "n"], "distinct": ["id", "k"]}.get(shape, ["k", "n"])
    have: collections.Counter[tuple[int, ...]] = collections.Counter(
        zip(*(found[name].to_pylist() for name in names), strict=True)
    )
    totals: collections.Counter[int] = collections.Counter()
    for _, k, n in rows:
        totals[k] += n
    expected: collections.Counter[tuple[int, ...]] = collections.Counter(totals.items())
    if shape == "copy":
        expected = collections.Counter((i, k, 2 * n) for i, k, n in rows)
    elif shape == "distinct":
        expected = collections.Counter({(i, k) for i, k, _ in rows})
    for word, rest in (("lost", expected - have), ("too many", have - expected)):
        if rest:
            report.wrong.append(f"{shape}: {rest.total()} {word}: {dict(rest.most_common(5))}")
    epochs = collections.Counter(
        each.parameters["epochId"] for each in log.history() if "epochId" in each.parameters
    )
    report.batches[shape] = len(epochs) or log.snapshot.version
    if twice := [epoch for epoch, count in epochs.items() if count > 1]:
        report.wrong.append(f"{shape}: batches {twice} were committed twice")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 10**6))
    parser.add_argument("--on", choices=KINDS, default="local")
    parser.add_argument("--faults", action="store_true", help="of the server and of the network")
    options = parser.parse_args()
    checkpoints = tempfile.mkdtemp(prefix="checkpoints-")
    enough = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: enough.set())
    try:
        with place(options.on, faults=options.faults) as at:
            report = live_and_die(
                at, options.kills, options.seed, checkpoints=checkpoints, enough=enough
            )
    finally:
        shutil.rmtree(checkpoints, ignore_errors=True)
    print(report)
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
