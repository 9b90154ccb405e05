"""Processes and threads that commit to one table at once: every commit lands exactly once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lakelog.core.actions import CommitInfo, Metadata
from lakelog.core.actions.operation import Operation
from lakelog.core.conflicts.winner import read_winner
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import ProtocolChangedException
from support.tables import ID_SCHEMA, add_file, new_table

SCRIPT = Path(__file__).parent.parent / "support" / "racing_writers.py"


def race(table: str, processes: int, commits: int) -> list[dict[str, Any]]:
    """What each of the processes committed."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), table, str(processes), str(commits)],
        capture_output=True,
        check=False,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    results: list[dict[str, Any]] = json.loads(done.stdout)
    assert [r["error"] for r in results if "error" in r] == []
    return results


def logged(table: str, versions: int) -> dict[str, int]:
    """Name of the added file -> version, by the log itself."""
    store = DeltaLog.for_table(table).store
    found: dict[str, int] = {}
    for version in range(1, versions + 1):
        commit = read_winner(store, table, version)
        assert commit is not None, f"version {version} is missing"
        for add in commit.adds:
            assert add.path not in found, f"{add.path} is in two commits"
            found[add.path] = version
    assert read_winner(store, table, versions + 1) is None
    return found


@pytest.mark.parametrize("each", [10, pytest.param(50, marks=pytest.mark.nightly)])
def test_sixteen_processes_of_some_appends_lose_none_and_double_none(
    each: int, tmp_path: Path
) -> None:
    table = new_table(str(tmp_path / "t")).table
    results = race(table, 16, each)
    reported = {name: version for result in results for name, version in result["done"]}
    assert len(reported) == 16 * each
    assert logged(table, 16 * each) == reported
    assert DeltaLog.for_table(table).snapshot.num_files == 16 * each


def test_processes_that_create_one_table_at_once_make_it_once(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), table, "6", "create"],
        capture_output=True,
        check=True,
        text=True,
        timeout=120,
    )
    outcomes = Counter(result["created"] for result in json.loads(done.stdout))
    assert outcomes == {"version 0": 1, "ProtocolChangedException": 5}
    log = DeltaLog.for_table(table)
    assert log.snapshot.version == 0


def test_two_creators_at_once_make_one_table_and_the_loser_hears_of_it(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    first = DeltaLog.for_table(table).start_transaction()
    second = DeltaLog.for_table(table).start_transaction()
    for txn, name in ((first, "first"), (second, "second")):
        txn.update_metadata(Metadata(id=name, schema_string=ID_SCHEMA))
    assert first.commit([add_file("a")], Operation.write("Append")) == 0
    with pytest.raises(
        ProtocolChangedException, match="created the table at the same moment"
    ) as caught:
        second.commit([add_file("b")], Operation.write("Append"))
    assert caught.value.winning_version == 0
    log = DeltaLog.for_table(table)
    assert log.snapshot.metadata.id == "first"
    assert [f.path for f in log.snapshot.files()] == ["a"]
    again = log.start_transaction()
    assert again.commit([add_file("b")], Operation.write("Append")) == 1


@pytest.mark.parametrize("uri", ["local", "memory://races/threads"])
def test_threads_that_share_a_log_lose_none_and_double_none(tmp_path: Path, uri: str) -> None:
    log = new_table(str(tmp_path / "t") if uri == "local" else uri)
    versions: list[int] = []

    def work(writer: int) -> None:
        for number in range(10):
            txn = log.start_transaction()
            name = f"{writer}-{number}"
            versions.append(txn.commit([add_file(name)], Operation.write("Append")))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(versions) == list(range(1, 81))
    assert sorted(logged(log.table, 80)) == sorted(f"{w}-{n}" for w in range(8) for n in range(10))


def test_every_commit_of_a_race_names_its_own_transaction(tmp_path: Path) -> None:
    table = new_table(str(tmp_path / "t")).table
    race(table, 4, 5)
    store = DeltaLog.for_table(table).store
    ids = set()
    for version in range(21):
        commit = read_winner(store, table, version)
        assert commit is not None
        assert isinstance(commit.commit_info, CommitInfo)
        ids.add(commit.txn_id)
    assert len(ids) == 21
