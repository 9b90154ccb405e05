"""lakelog and other clients of Unity Catalog, no JVM, commit to one table, in turns and at once."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelog.core import DeltaLog, delete_rows, read_arrow, write_arrow
from support.delta_spark import PeerUnavailableError
from support.fault_proxy import FaultProxy
from support.servers._service import ServerUnavailableError
from support.servers.standalone import until
from support.unity_faults import Told, check_told, commit_by_lakelog, commit_through, plan
from support.unity_judges import Judge, duckdb_judge, kernel_judge
from support.unity_server import UnityServer, Ways, serving
from support.unity_tables import make_table, other_client_commits, rows_in_log

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE = "lake.s.t"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityServer]:
    with serving(UnityServer(tmp_path, Ways(checks_published=True), token="t0ken")) as served:
        make_table(served)
        yield served


@pytest.fixture(
    params=[
        pytest.param("duckdb", marks=pytest.mark.needs("duckdb_unity")),
        pytest.param("kernel", marks=pytest.mark.needs("kernel_unity")),
    ]
)
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def command(client: str) -> tuple[str, ...]:
    try:
        return {"duckdb": duckdb_judge, "kernel": kernel_judge}[client]()
    except (PeerUnavailableError, ServerUnavailableError) as exc:
        pytest.skip(str(exc))


def by_lakelog(server: UnityServer) -> list[int]:
    return sorted(read_arrow(TABLE, conf=server.conf())["id"].to_pylist())


def folder_of(server: UnityServer) -> Path:
    return Path(server.table(TABLE).location.removeprefix("file://"))


def unpublished(server: UnityServer) -> list[int]:
    log = folder_of(server) / "_delta_log"
    known = server.table(TABLE)
    return [v for v in range(known.latest + 1) if not (log / f"{v:020d}.json").exists()]


def test_in_turns_each_reads_and_publishes_what_the_other_commits(
    server: UnityServer, command: tuple[str, ...]
) -> None:
    conf = server.conf()
    with Judge(command, server, TABLE) as judge:
        for number in range(0, 6, 2):
            write_arrow(TABLE, {"id": [number]}, mode="append", conf=conf)
            judge.append(number + 1)
            assert judge.ids() == by_lakelog(server) == list(range(number + 2))
        delete_rows(TABLE, "id IN (0, 3)", conf=conf)
        assert judge.ids() == by_lakelog(server) == [1, 2, 4, 5]
        other_client_commits(server, folder_of(server), 6)
        judge.append(7)
        assert judge.ids() == by_lakelog(server) == [1, 2, 4, 5, 6, 7]
        write_arrow(TABLE, {"id": [8]}, mode="append", conf=conf)
    until(lambda: not unpublished(server), "all is published")
    assert DeltaLog.for_table(TABLE, conf).snapshot_at(version=2).to_arrow().num_rows == 2


@pytest.mark.parametrize(
    ("writers", "commits", "seed"),
    [(1, 8, 0), *(pytest.param(4, 25, seed, marks=pytest.mark.nightly) for seed in range(2))],
)
def test_faults_before_the_server_lose_and_double_nothing(
    server: UnityServer,
    client: str,
    command: tuple[str, ...],
    writers: int,
    commits: int,
    seed: int,
) -> None:
    """Every other commit meets a fault. DuckDB's meet none: it deletes the data file of a commit
    whose reply it does not get, and the table with it."""
    drawn = random.Random(seed)
    ours, theirs = ([plan(drawn, commits) for _ in range(writers)] for _ in range(2))
    if client == "duckdb":
        theirs = [[""] * commits] * writers

    def by_judge(first: int, faults: list[str]) -> Told:
        with FaultProxy(server.url) as proxy, Judge(command, server, TABLE, proxy.url) as judge:
            return commit_through(proxy, first, faults, judge.append)

    with ThreadPoolExecutor(2 * writers) as pool:
        by_judges = [pool.submit(by_judge, 1000 * n, each) for n, each in enumerate(theirs)]
        by_us = [
            pool.submit(commit_by_lakelog, server, TABLE, 1000 * n, each)
            for n, each in enumerate(ours, writers)
        ]
        told = [each.result() for each in by_us]
        told_by_judges = [each.result() for each in by_judges]
    present = Counter(by_lakelog(server))
    with Judge(command, server, TABLE) as judge:
        assert judge.ids() == sorted(present.elements())
    check_told([*told, *told_by_judges], present)
    assert all(len(each.met) >= commits // 2 < len(each.said) for each in told)
    assert server.table(TABLE).latest == present.total()
    write_arrow(TABLE, {"id": [-1]}, mode="append", conf=server.conf())
    until(lambda: not unpublished(server), "all is published")
    assert rows_in_log(folder_of(server)) == present + Counter([-1])


@pytest.mark.parametrize(
    ("writers", "commits"), [(2, 5), pytest.param(4, 25, marks=pytest.mark.nightly)]
)
def test_at_once_none_is_lost_and_none_doubled(
    server: UnityServer, command: tuple[str, ...], writers: int, commits: int
) -> None:
    def append(start: int, judge: Judge | None) -> list[int]:
        log = DeltaLog.for_table(TABLE, server.conf())
        for number in range(start, start + commits):
            if judge is not None:
                judge.append(number)
            else:
                write_arrow(log, {"id": [number]}, mode="append")
        return list(range(start, start + commits))

    with ExitStack() as stack:
        judges = [stack.enter_context(Judge(command, server, TABLE)) for _ in range(writers)]
        with ThreadPoolExecutor(2 * writers) as pool:
            done = [
                pool.submit(append, 1000 * number, judge)
                for number, judge in enumerate([*judges, *[None] * writers])
            ]
            expected = sorted(number for each in done for number in each.result())
        assert by_lakelog(server) == judges[0].ids() == expected
    assert server.table(TABLE).latest == len(expected)
