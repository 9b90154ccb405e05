"""Processes that append, killed with SIGKILL and started again: each row is there once."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelog.core import DeltaLog, appender, create_table, optimize, read_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SCRIPT = Path(__file__).parents[4] / "support" / "killed_appender.py"
ROWS, KILLS = 400, 4


def _start(table: str, app: str, options: Sequence[str]) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), table, app, str(ROWS), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _lines(process: subprocess.Popen[str]) -> Iterator[int]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.endswith("\n"):  # else it died while it wrote
            yield int(line)


def _of(table: str, app: str) -> list[int]:
    rows = read_arrow(table, where=f"app = '{app}'")
    return sorted(rows["id"].to_pylist())


@pytest.mark.one_day_in(2)
@pytest.mark.parametrize("options", [(), ("1ms",)])
def test_what_was_acknowledged_before_a_kill_is_there_once(
    tmp_path: Path, options: Sequence[str]
) -> None:
    table, draw = str(tmp_path / "t"), random.Random(1)
    create_table(table, "id bigint, app string")
    acknowledged: dict[str, int] = {"one": -1, "two": -1}
    for kill in range(KILLS):
        running = {app: _start(table, app, options) for app in acknowledged}
        for app, process in running.items():
            found = _lines(process)
            first = next(found)
            assert first >= acknowledged[app]
            acknowledged[app] = max(acknowledged[app], first)
            for _ in range(draw.randrange(40)):
                acknowledged[app] = max(acknowledged[app], next(found, -1))
            process.kill()
            with process:  # what it said before it died counts as well
                acknowledged[app] = max([acknowledged[app], *found])
        for app in acknowledged if options else ():
            appender(table, app_id=app).close()  # brings in what was saved
        for app, last in acknowledged.items():
            there = _of(table, app)
            assert there == list(range(len(there))), (kill, app)
            assert len(there) > last, (kill, app)
        if kill % 2 == 1:
            optimize(table)
    for app in acknowledged:
        with _start(table, app, options) as process:
            assert max(_lines(process)) == ROWS - 1
        assert process.returncode == 0
        assert _of(table, app) == list(range(ROWS))
        assert DeltaLog.for_table(table).snapshot.txn_version(app) == ROWS - 1
