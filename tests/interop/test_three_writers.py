"""lakelog, delta-spark and deltalake append to one local table, in turns and at once.

What can be promised at once differs by pair; `docs/interoperability.md` says why. lakelog and
deltalake both publish a commit by link(2), which never replaces a file: between them nothing is
lost. delta-spark looks whether the file is there and then renames over it, so it may replace a
commit that another process made in between; nobody ever replaces one of delta-spark's.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import deltalake
import pytest

from lakelog.core import DeltaLog, write_arrow
from support import appenders
from support.appenders import Appender
from support.samples import ids, rows_of

# A checkpoint of a version whose commit a peer then replaces would keep the replaced rows.
NO_CHECKPOINTS = {"delta.checkpointInterval": "100000"}


CROWD = [("lakelog", 1000), ("deltalake", 2000), ("lakelog", 3000), ("deltalake", 4000)]


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "t")
    write_arrow(path, appenders.row(0, "creator"), properties=NO_CHECKPOINTS, mode="append")
    return path


def commit_infos(path):
    """Version -> commitInfo; of every file that is in the log."""
    found = {}
    for file in (Path(path) / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        (found[int(file.stem)],) = [a["commitInfo"] for a in actions if "commitInfo" in a]
    assert sorted(found) == list(range(len(found))), "a version is missing"
    return found


def checkpoints(path):
    return {int(f.name[:20]) for f in (Path(path) / "_delta_log").glob("*.checkpoint.parquet")}


@pytest.mark.one_day_in(3, 2)
def test_in_turns_each_sees_all_rows_of_the_others(delta_spark, tmp_path):
    path = str(tmp_path / "t")
    expected = []
    every_third = {"delta.checkpointInterval": "3"}
    for turn in range(4):
        number = 3 * turn
        write_arrow(path, appenders.row(number, "lakelog"), properties=every_third, mode="append")
        assert delta_spark.count(path) == number + 1
        delta_spark.append_rows(path, "id long, writer string", [[number + 1, "delta-spark"]])
        assert len(deltalake.DeltaTable(path).to_pyarrow_table()) == number + 2
        deltalake.write_deltalake(path, appenders.row(number + 2, "deltalake"), mode="append")
        expected += [number, number + 1, number + 2]
        assert ids(DeltaLog.for_table(path).snapshot.to_arrow()) == expected
        if turn == 1:
            delta_spark.checkpoint(path)
        if turn == 2:
            deltalake.DeltaTable(path).create_checkpoint()
    assert len(commit_infos(path)) == 12
    assert rows_of(delta_spark.read(path)) == rows_of(DeltaLog.for_table(path).snapshot.to_arrow())
    assert {3, 6, 9} <= checkpoints(path), "made by the commits of ours"


@pytest.mark.parametrize("commits", [8, pytest.param(20, marks=pytest.mark.nightly)])
def test_lakelog_and_deltalake_at_once_lose_and_double_nothing(path, commits):
    with ExitStack() as stack:
        appending = [
            stack.enter_context(Appender(client, path, first, commits)) for client, first in CROWD
        ]
        for each in appending:
            each.ready()
        for each in appending:
            each.go()
        for each in appending:
            each.finish_round()
    infos = commit_infos(path)
    assert len(infos) == 1 + len(CROWD) * commits
    acknowledged = [commit for each in appending for commit in each.acknowledged]
    assert len(acknowledged) == len(CROWD) * commits
    for commit in acknowledged:
        if "version" in commit:
            assert infos[commit["version"]]["txnId"] == commit["txn"]
    expected = sorted([0, *(commit["id"] for commit in acknowledged)])
    assert ids(DeltaLog.for_table(path).snapshot.to_arrow()) == expected
    assert ids(deltalake.DeltaTable(path).to_pyarrow_table()) == expected


@pytest.mark.one_day_in(2)
@pytest.mark.parametrize("rounds", [3, pytest.param(10, marks=pytest.mark.nightly)])
def test_three_at_once_replace_none_of_each_others_commits_but_as_delta_spark_does(
    delta_spark, path, rounds
):
    burst = 4
    with ExitStack() as stack:
        appending = [
            stack.enter_context(Appender(client, path, first, burst))
            for client, first in (("lakelog", 1000), ("deltalake", 2000))
        ]
        for each in appending:
            each.ready()
        for number in range(rounds):
            for each in appending:
                each.go()
            batches = [[[3000 + 2 * number + k, "delta-spark"]] for k in range(2)]
            delta_spark.append_rows(path, "id long, writer string", *batches)
            for each in appending:
                each.finish_round()
    lakelog, lake = appending
    infos = commit_infos(path)
    rows = DeltaLog.for_table(path).snapshot.to_arrow()
    found = ids(rows)
    assert len(found) == len(set(found)), "a row is there twice"
    assert len(found) == len(infos), "a commit of one row holds one row"
    assert found == ids(delta_spark.read(path))

    by_spark = {v for v, info in infos.items() if "Apache-Spark" in info["engineInfo"]}
    # delta-spark's own commits are all there: neither of the others replaces a file.
    assert set(range(3000, 3000 + 2 * rounds)) <= set(found)
    assert len(by_spark) == 2 * rounds
    # What is missing of ours was replaced by delta-spark, at the very version that we were given.
    for commit in lakelog.acknowledged:
        if infos[commit["version"]].get("txnId") == commit["txn"]:
            assert commit["id"] in found
        else:
            assert commit["version"] in by_spark
            assert commit["id"] not in found
    # deltalake tells no version: as many of its rows can be missing as delta-spark replaced.
    acknowledged = len(lakelog.acknowledged) + len(lake.acknowledged)
    assert acknowledged == 2 * rounds * burst
    assert len(infos) <= 1 + 2 * rounds + acknowledged
