"""Processes that commit to one table on Google Cloud Storage lose nothing, by Google's settings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelog.core.conflicts.winner import read_winner
from lakelog.core.delta_log import DeltaLog
from support.tables import new_table

if TYPE_CHECKING:
    from support.servers.fake_gcs import GCSEndpoint

SCRIPT = Path(__file__).parent.parent / "support" / "racing_writers.py"
PROCESSES, COMMITS = 4, 15


@pytest.fixture
def by_environment(fake_gcs: GCSEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """An emulator is found as Google's own clients find it; Google needs no setting."""
    if fake_gcs.anonymous:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", fake_gcs.url.removeprefix("http://"))


@pytest.mark.usefixtures("by_environment")
def test_racing_processes_lose_no_commit_and_double_none(gcs_bucket: str) -> None:
    table = new_table(f"gs://{gcs_bucket}/a table").table
    done = subprocess.run(
        [sys.executable, str(SCRIPT), table, str(PROCESSES), str(COMMITS)],
        capture_output=True,
        check=False,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert [result["error"] for result in results if "error" in result] == []
    reported = {name: version for result in results for name, version in result["done"]}
    assert sorted(reported.values()) == list(range(1, PROCESSES * COMMITS + 1))
    log = DeltaLog.for_table(table)
    assert log.snapshot.num_files == PROCESSES * COMMITS
    for name, version in reported.items():
        commit = read_winner(log.store, table, version)
        assert commit is not None
        assert [add.path for add in commit.adds] == [name]
    assert read_winner(log.store, table, PROCESSES * COMMITS + 1) is None


@pytest.mark.usefixtures("by_environment")
def test_a_table_is_read_through_its_checkpoint(gcs_bucket: str) -> None:
    from lakelog.core.actions.operation import Operation
    from support.tables import add_file

    log = new_table(f"gs://{gcs_bucket}/t")
    for number in range(12):
        log.start_transaction().commit([add_file(f"f{number}")], Operation.write("Append"))
    log.checkpoint()
    fresh = DeltaLog.for_table(log.table)
    assert sorted(file.path for file in fresh.snapshot.files()) == sorted(
        f"f{number}" for number in range(12)
    )
