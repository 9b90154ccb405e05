"""lakelog and other clients of Unity Catalog, no JVM, commit to one table, in turns and at once."""

from __future__ import annotations

import random
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelog.core import DeltaLog, delete_rows, read_arrow, write_arrow
from lakelog.core.errors import CatalogError, CommitOutcomeUnknownError
from lakelog.core.hooks.background import wait_for_all
from support.delta_spark import PeerUnavailableError
from support.fault_proxy import FaultProxy
from support.servers.standalone import until
from support.unity_judges import Judge, duckdb_judge, kernel_judge
from support.unity_server import UnityServer, Ways, serving
from support.unity_tables import make_table, other_client_commits

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
        pytest.param("kernel", marks=[pytest.mark.nightly, pytest.mark.timeout(1000)]),
    ]
)
def command(request: pytest.FixtureRequest) -> tuple[str, ...]:
    try:
        return {"duckdb": duckdb_judge, "kernel": kernel_judge}[request.param]()
    except PeerUnavailableError as exc:
        pytest.skip(str(exc))


def by_lakelog(server: UnityServer) -> list[int]:
    return sorted(read_arrow(TABLE, conf=server.conf())["id"].to_pylist())


def unpublished(server: UnityServer) -> list[int]:
    log = Path(server.table(TABLE).location.removeprefix("file://")) / "_delta_log"
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
        folder = Path(server.table(TABLE).location.removeprefix("file://"))
        other_client_commits(server, folder, 6)
        judge.append(7)
        assert judge.ids() == by_lakelog(server) == [1, 2, 4, 5, 6, 7]
        write_arrow(TABLE, {"id": [8]}, mode="append", conf=conf)
    until(lambda: not unpublished(server), "all is published")
    assert DeltaLog.for_table(TABLE, conf).snapshot_at(version=2).to_arrow().num_rows == 2


FAULTS = (
    *("drop_reply", "tear_reply", "cut_reply", "twice", "tell:500", "tell:503", "page:502"),
    *("tell:400", "tell:403", "tell:409", "tell:429", "drop_request", "reset", "refuse:503"),
)
"""What a network and the proxies in it do to a request for a commit, and to its reply."""
COMMITS = re.compile(rb"^POST \S+/tables/t ")


@pytest.mark.nightly
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("seed", range(2))
def test_faults_before_the_server_lose_and_double_nothing(
    server: UnityServer, command: tuple[str, ...], seed: int
) -> None:
    """Of lakelog's requests for commits, every other one meets a fault. The judges meet none:
    DuckDB deletes the data file of a commit whose reply it does not get, and the table with it."""
    drawn, writers, commits = random.Random(seed), 4, 25

    def append(start: int, plan: list[str]) -> tuple[list[int], list[int]]:
        said, unsaid = list[int](), list[int]()
        with FaultProxy(server.url) as proxy:
            conf = server.conf() | {"spark.sql.catalog.lake.uri": proxy.url}
            log = DeltaLog.for_table(TABLE, conf)
            for number, fault in enumerate(plan, start):
                if number % 2:
                    proxy.arm(fault, COMMITS)
                try:
                    write_arrow(log, {"id": [number]}, mode="append")
                    said.append(number)
                except (CommitOutcomeUnknownError, CatalogError):
                    unsaid.append(number)
                proxy.disarm()
            assert wait_for_all(60)
            assert len(proxy.fired) >= commits // 2
        return said, unsaid

    def by_judge(start: int, judge: Judge) -> tuple[list[int], list[int]]:
        numbers = list(range(start, start + commits))
        for number in numbers:
            judge.append(number)
        return numbers, []

    plans = [[drawn.choice(FAULTS) for _ in range(commits)] for _ in range(writers)]
    with ExitStack() as stack:
        judges = [stack.enter_context(Judge(command, server, TABLE)) for _ in range(writers)]
        pool = stack.enter_context(ThreadPoolExecutor(2 * writers))
        done = [pool.submit(append, 1000 * n, plan) for n, plan in enumerate(plans)]
        done += [pool.submit(by_judge, 1000 * (writers + n), j) for n, j in enumerate(judges)]
        results = [each.result() for each in done]
        present = Counter(by_lakelog(server))
        assert judges[0].ids() == sorted(present.elements())
    assert server.table(TABLE).latest == sum(present.values())
    for said, unsaid in results:
        assert all(present[each] == 1 for each in said)
        assert all(present[each] <= 1 for each in unsaid)
        assert len(said) > commits // 2
    write_arrow(TABLE, {"id": [-1]}, mode="append", conf=server.conf())
    until(lambda: not unpublished(server), "all is published")


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
