"""The variant with delta-spark: it and lakelog write one table at once, and no commit is lost.

On a local disk delta-spark alone replaces what another process commits at the same moment. Here
its conf names `io.lakelog.BridgeLogStore`, which commits by lakelog's store, through the service
that this process runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from itertools import cycle, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from settings import CHECKOUT, DELTA_SPARK, with_delta_spark

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from settings import Settings

_REPORT_EVERY = 10


class NoDeltaSparkError(Exception):
    """delta-spark can't be installed here; the text says why."""


def run(console: Console, settings: Settings, commits: int, refuse: Callable[[str], int]) -> int:
    """Make an empty table, let the three processes append to it, and count.

    Returns:
        The exit code: 0 if every delivery is in the table once, for each reader.
    """
    from processes import ChildError

    from lakelog.core import DeltaLog, create_table
    from lakelog.core.errors import DeltaError, LogStoreError
    from lakelog.logstores import resolve
    from lakelog.logstores.service import LogStoreService

    console.print(
        f"\n[bold]lakelog: delta-spark and lakelog write one Delta table, {commits} commits[/]\n",
        highlight=False,
    )
    try:
        store = resolve(settings.table, settings.conf).class_path
        if DeltaLog.for_table(settings.table, settings.conf).table_exists():
            return refuse(f"a Delta table is at {settings.table} already; name another by --table")
        python, jars = _delta_spark(console)
        endpoint = Path(settings.folder, "bridge")
        settings = with_delta_spark(settings, commits, jars, endpoint)
        expected, schema = _prepared(settings, commits)
        create_table(settings.table, schema, conf=settings.conf)
        with LogStoreService(settings.conf, endpoint_file=endpoint):
            _introduce(console, settings, store)
            found = _written(console, settings, python)
    except (ChildError, DeltaError, LogStoreError, NoDeltaSparkError) as exc:
        return refuse(str(exc))
    return _conclude(console, settings, expected, found, refuse)


def _delta_spark(console: Console) -> tuple[str, list[str]]:
    """The Python and the jars of a delta-spark of its own, installed once into `.cache`.

    Raises:
        NoDeltaSparkError: Java or Maven is missing, or a download failed.
    """
    console.print("  delta-spark and its PySpark (downloaded once) …", end="", highlight=False)
    done = subprocess.run(
        [sys.executable, "-m", "support.delta_spark", "--json"],
        cwd=CHECKOUT / "tests",
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )
    console.print()
    if done.returncode:
        raise NoDeltaSparkError(done.stderr.strip())
    found = json.loads(done.stdout)
    return found["python"], found["jars"]


def _prepared(settings: Settings, commits: int) -> tuple[dict[int, tuple[int, int]], Any]:
    import pyarrow.parquet as pq
    from source import prepare_deliveries

    expected = prepare_deliveries(settings, commits)
    return expected, pq.read_schema(settings.source / "deliveries" / "0.parquet")


def _introduce(console: Console, settings: Settings, store: str) -> None:
    console.print(f"  table     {settings.table}", highlight=False)
    console.print(f"  LogStore  {store}", highlight=False)
    console.print("  conf of delta-spark, beside its own:", highlight=False)
    for key, value in settings.bridge_conf.items():
        console.print(f"            {key}={value}", highlight=False, soft_wrap=True)
    console.print()


def _written(console: Console, settings: Settings, python: str) -> dict[str, dict[str, Any]]:
    """Run the three processes; what each counts in the finished table."""
    from processes import Team

    starting, writing = set(settings.deliveries), set(settings.deliveries)
    found: dict[str, dict[str, Any]] = {}
    bars = Progress(
        TextColumn("  {task.description}", style="bold"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("commits", style="dim"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    tasks = {
        name: bars.add_task(name, total=len(mine)) for name, mine in settings.deliveries.items()
    }
    committed: Counter[str] = Counter()
    # delta-spark takes longest for a commit, so the others take a turn after each of its: all of
    # them write until the end. Two turns come first, as a last one may be of either.
    turns = cycle(name for name in settings.deliveries if name != DELTA_SPARK)
    with Team(settings) as team, bars:
        for name in settings.deliveries:
            team.start(name, "appender.py", python if name == DELTA_SPARK else None)
        for name, message in team.messages():
            what = message["what"]
            if what == "ready":
                starting.discard(name)
                if not starting:
                    console.print("  all processes are up; go")
                    team.tell_all("go")
                    team.tell(next(turns), "turn")
                    team.tell(next(turns), "turn")
            elif what == "committed":
                committed[name] += 1
                bars.advance(tasks[name])
                if name == DELTA_SPARK:
                    team.tell(next(turns), "turn")
                if not console.is_terminal and committed[name] % _REPORT_EVERY == 0:
                    console.print(f"  {name:<16}  {committed[name]} commits", highlight=False)
            elif what == "written":
                writing.discard(name)
                if not writing:
                    team.tell_all("stop")
            elif what == "result":
                found[name] = message["counts"]
    return found


def _conclude(
    console: Console,
    settings: Settings,
    expected: dict[int, tuple[int, int]],
    found: dict[str, dict[str, Any]],
    refuse: Callable[[str], int],
) -> int:
    from report import read_with_deltalake, section

    from lakelog.core import DeltaLog

    history = DeltaLog.for_table(settings.table, settings.conf).history()[::-1]
    writers = [entry.user_metadata or "" for entry in history[1:]]
    wanted = Counter(
        f"{name}: delivery {number}"
        for name, mine in settings.deliveries.items()
        for number in mine
    )
    names = [text.partition(":")[0] for text in writers]
    turns = sum(one != other for one, other in pairwise(names))
    section(console, "What is in the table")
    for name, count in sorted(Counter(names).items()):
        console.print(f"  {name:<16}  {count} commits", highlight=False)
    console.print(f"  The writer changed {turns} times from one version to the next.")
    if Counter(writers) != wanted:
        lost, more = wanted - Counter(writers), Counter(writers) - wanted
        text = "\n".join([f"  {each}" for each in sorted(lost)] or ["  none"])
        return refuse(
            f"LOST {lost.total()} commits, and {more.total()} are too many; lost:\n{text}"
        )
    readers = {name: _numbered(counts) for name, counts in found.items()}
    other = read_with_deltalake(settings)
    if other is not None:
        readers["deltalake"] = other[1]
    for name, counts in readers.items():
        if counts != expected:
            return refuse(f"NO MATCH: {name} counts {counts} by month, and the source {expected}")
    rows = sum(rows for rows, _ in expected.values())
    console.print(
        f"\n[bold green]none lost[/]: {len(writers)} commits, versions 1 to {history[-1].version}; "
        f"{rows:,} rows, each once, for {', '.join(sorted(readers))}",
        highlight=False,
        soft_wrap=True,
    )
    console.print(f"[dim]The table stays in {settings.table}[/]\n", highlight=False, soft_wrap=True)
    return 0


def _numbered(counts: dict[str, Any]) -> dict[int, tuple[int, int]]:
    return {int(month): (rows, miles) for month, (rows, miles) in counts.items()}
