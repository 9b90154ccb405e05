"""Tasks that Spark runs more than once: rows are right, and what is left over is VACUUM's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

# The fixture belongs to one process.
pytestmark = pytest.mark.xdist_group("retried tasks")
ROWS = 400
TESTS = Path(__file__).parents[1]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(each, marks=pytest.mark.one_day_in(4, 2 * turn, together=True))
        for turn, each in enumerate(["fails", "twice"])
    ],
)
def outcomes(request, tmp_path_factory):
    """What became of a table of each command; see `support.retried_tasks`."""
    folder = tmp_path_factory.mktemp("retried")
    command = [sys.executable, "-m", "support.retried_tasks", request.param, str(folder)]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=230)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def expected(command):
    """The rows after a command, its change feed and its metrics."""
    old = dict.fromkeys(range(ROWS), 0)
    new = dict(old)
    kind = command.partition(",")[0]
    if kind == "save":
        new |= dict.fromkeys(range(ROWS, ROWS + 10), 0)
        metrics = {"numOutputRows": "10"}
    elif kind == "delete":
        new = {i: n for i, n in old.items() if i % 4 != 1}
        metrics = {"numDeletedRows": "100", "numCopiedRows": "100"}
    elif kind == "update":
        new |= {i: 1 for i in old if i % 4 == 1}
        metrics = {"numUpdatedRows": "100", "numCopiedRows": "100"}
    else:
        new |= dict.fromkeys(range(3), 5)
        new |= {i: 1 for i in range(ROWS - 20, ROWS) if i % 4 < 2}
        new = {i: n for i, n in new.items() if i < ROWS - 20 or i % 4 != 2}
        new |= dict.fromkeys(range(ROWS, ROWS + 10), 7)
        metrics = {
            "numSourceRows": "30",
            "numTargetRowsUpdated": "13",
            "numTargetRowsDeleted": "5",
            "numTargetRowsInserted": "10",
        }
    changes = [["insert", i, n] for i, n in new.items() if i not in old]
    changes += [["delete", i, n] for i, n in old.items() if i not in new]
    for i in old.keys() & new.keys():
        if old[i] != new[i]:
            changes += [["update_preimage", i, old[i]], ["update_postimage", i, new[i]]]
    return [list(each) for each in sorted(new.items())], sorted(changes), metrics


@pytest.mark.soak
@pytest.mark.parametrize(
    "command",
    ["save, arrow", "save, native", "delete", "update", "merge, rows", "merge, bitmaps"],
)
def test_a_task_that_runs_again_does_no_harm(outcomes, command):
    found = outcomes[command]
    rows, changes, metrics = expected(command)
    assert found["rows"] == rows
    assert found["changes"] == changes
    assert found["metrics"].items() >= metrics.items()
    assert max(Counter(found["named"]).values()) == 1  # no file is in the log twice
    assert not found["missing"]
    if command != "save, native":  # Spark's own writer takes back what its attempts wrote
        assert found["orphans"], "no attempt wrote a file that is not in the log"
    assert found["left"] == found["current"]
    assert found["same"]
