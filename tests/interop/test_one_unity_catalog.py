"""lakelog and delta-spark as clients of one Unity Catalog, in turns and at once.

The server is the tests' double of it. delta-spark is the released one with Unity Catalog's client
for Java: what each of the two commits the other one reads, publishes and goes on from.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import DeltaLog, delete_rows, optimize, read_arrow, update_rows, write_arrow
from lakelog.core.alter import set_properties
from lakelog.core.errors import TableNotFoundError, UnsupportedFeatureError
from support import appenders
from support.appenders import Appender
from support.delta_spark import PeerUnavailableError
from support.delta_spark_peer import DeltaSparkError, DeltaSparkPeer
from support.delta_spark_unity import WRITERS, unity_client
from support.fault_proxy import FaultProxy
from support.servers.standalone import until
from support.unity_faults import check_told, commit_by_lakelog, commit_through, plan
from support.unity_server import UnityServer, Ways, serving
from support.unity_tables import make_table, other_client_commits, rows_in_log

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.needs("delta_spark", "delta_spark_unity"),
    pytest.mark.xdist_group("unity catalog"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnityServer]:
    """A server that takes no report of a file that is not there, as none should."""
    root = tmp_path_factory.mktemp("unity")
    with serving(UnityServer(root, Ways(checks_published=True), token="t0ken")) as served:
        served.add_schema("lake", "s")
        yield served


@pytest.fixture(scope="module")
def proxy(server: UnityServer) -> Iterator[FaultProxy]:
    """What delta-spark reaches the catalog `far` through."""
    with FaultProxy(server.url) as between:
        yield between


@pytest.fixture(scope="module")
def jvm(server: UnityServer, proxy: FaultProxy) -> Iterator[DeltaSparkPeer]:
    try:
        client = unity_client()
    except PeerUnavailableError as exc:
        pytest.skip(str(exc))
    confs = server.conf() | server.conf("far") | {"spark.sql.catalog.far.uri": proxy.url}
    with DeltaSparkPeer(client, confs, timeout=600.0) as peer:
        yield peer


def made_by(jvm: DeltaSparkPeer, name: str) -> str:
    """An empty table of delta-spark's making."""
    table = f"lake.s.{name}"
    jvm.sql(f"CREATE TABLE {table} (id BIGINT, writer STRING) USING delta")
    return table


def by_lakelog(server: UnityServer, table: str) -> list[int]:
    conf = server.conf(table.partition(".")[0])
    return sorted(read_arrow(table, conf=conf)["id"].to_pylist())


def by_delta_spark(jvm: DeltaSparkPeer, table: str) -> list[int]:
    return [row["id"] for row in jvm.sql(f"SELECT id FROM {table} ORDER BY id")]


def log_of(server: UnityServer, table: str) -> Path:
    return Path(server.table(table).location.removeprefix("file://")) / "_delta_log"


def published(log: Path) -> list[int]:
    names = (each.name for each in log.glob("*.json"))
    return sorted(int(name[:20]) for name in names if name[20:] == ".json")


@pytest.mark.one_day_in(3, 2)
def test_what_delta_spark_made_is_read_and_written_by_both(
    server: UnityServer, jvm: DeltaSparkPeer
) -> None:
    table, conf = made_by(jvm, "turns"), server.conf()
    expected = []
    for number in (0, 2):
        write_arrow(table, appenders.row(number, "lakelog"), mode="append", conf=conf)
        jvm.sql(f"INSERT INTO {table} VALUES ({number + 1}, 'delta-spark')")
        expected += [number, number + 1]
        assert by_lakelog(server, table) == expected
    assert by_delta_spark(jvm, table) == expected
    delete_rows(table, "id = 1", conf=conf)
    jvm.sql(f"UPDATE {table} SET id = id + 100 WHERE id IN (0, 1, 2)")
    update_rows(table, {"id": "id + 100"}, "id = 3", conf=conf)
    assert by_lakelog(server, table) == by_delta_spark(jvm, table) == [100, 102, 103]
    history = jvm.sql(f"DESCRIBE HISTORY {table}")
    assert [row["version"] for row in history] == list(range(server.table(table).latest, -1, -1))
    assert by_delta_spark(jvm, f"{table} VERSION AS OF 2") == [0, 1]
    assert DeltaLog.for_table(table, conf).snapshot_at(version=2).to_arrow().num_rows == 2
    with pytest.raises(DeltaSparkError, match="UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"):
        jvm.sql(f"OPTIMIZE {table}")
    with pytest.raises(UnsupportedFeatureError, match="OPTIMIZE"):
        optimize(table, conf=conf)


def test_what_lakelog_made_is_read_and_written_by_both(
    server: UnityServer, jvm: DeltaSparkPeer
) -> None:
    table, conf = "lake.s.ours", server.conf()
    write_arrow(table, appenders.row(0, "lakelog"), conf=conf)
    jvm.sql(f"INSERT INTO {table} VALUES (1, 'delta-spark')")
    write_arrow(table, appenders.row(2, "lakelog"), mode="append", conf=conf)
    assert by_lakelog(server, table) == by_delta_spark(jvm, table) == [0, 1, 2]
    jvm.sql(f"DELETE FROM {table} WHERE id = 1")
    jvm.sql(f"CREATE OR REPLACE TABLE {table} USING delta AS SELECT 7L AS id, 'x' AS writer")
    assert by_lakelog(server, table) == [7]
    write_arrow(table, appenders.row(8, "lakelog"), mode="overwrite", conf=conf)
    assert by_lakelog(server, table) == by_delta_spark(jvm, table) == [8]
    jvm.sql(f"DROP TABLE {table}")
    with pytest.raises(TableNotFoundError):
        read_arrow(table, conf=conf)


def test_changes_of_metadata_by_each_are_known_to_the_other_and_to_the_server(
    server: UnityServer, jvm: DeltaSparkPeer
) -> None:
    table, conf = made_by(jvm, "metadata"), server.conf()
    jvm.sql(f"ALTER TABLE {table} ADD COLUMN (more BIGINT)")
    jvm.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('x.theirs' = '1')")
    log = DeltaLog.for_table(table, conf)
    set_properties(log, {"x.ours": "2"})
    write_arrow(
        table, {"id": [1], "writer": ["l"], "more": [2], "last": [3]},
        mode="append", schema_mode="merge", conf=conf,
    )  # fmt: skip
    known = server.table(table)
    assert [each["name"] for each in known.columns["fields"]] == ["id", "writer", "more", "last"]
    assert {"x.theirs": "1", "x.ours": "2"}.items() <= known.properties.items()
    assert known.columns == json.loads(log.update().metadata.schema_string)
    shown = {row["key"]: row["value"] for row in jvm.sql(f"SHOW TBLPROPERTIES {table}")}
    assert {"x.theirs": "1", "x.ours": "2"}.items() <= shown.items()
    (row,) = jvm.sql(f"SELECT * FROM {table}")
    assert row == {"id": 1, "writer": "l", "more": 2, "last": 3}


def test_unpublished_commits_of_each_are_read_and_published_by_the_other(
    server: UnityServer, jvm: DeltaSparkPeer
) -> None:
    table = "lake.s.unpublished"
    log = make_table(server, table) / "_delta_log"
    jvm.sql(f"INSERT INTO {table} VALUES (1)")
    until(lambda: published(log) == [0, 1], "delta-spark publishes")
    # As if it had died before it published: the server still has the record.
    assert sorted(server.table(table).commits) == [1]
    (log / "00000000000000000001.json").unlink()
    assert by_lakelog(server, table) == [1]
    write_arrow(table, {"id": [2]}, mode="append", conf=server.conf())
    until(lambda: published(log) == [0, 1, 2], "lakelog publishes both")
    for number in range(3, 6):
        other_client_commits(server, log.parent, number, name=table)
    assert published(log) == [0, 1, 2]
    assert by_delta_spark(jvm, table) == [1, 2, 3, 4, 5]
    jvm.sql(f"INSERT INTO {table} VALUES (6)")
    until(lambda: published(log) == list(range(7)), "delta-spark publishes all")
    assert by_lakelog(server, table) == [1, 2, 3, 4, 5, 6]


@pytest.mark.one_day_in(3, 1)
@pytest.mark.parametrize(
    ("writers", "commits"),
    [(2, 5), pytest.param(4, 25, marks=[pytest.mark.nightly, pytest.mark.timeout(900)])],
    ids=["4 writers", "8 writers"],
)
def test_at_once_none_is_lost_and_none_doubled(
    server: UnityServer, jvm: DeltaSparkPeer, writers: int, commits: int
) -> None:
    table = made_by(jvm, f"crowd_{writers}")
    given = (table, str(writers), "1000", str(commits))
    with ThreadPoolExecutor(1) as pool, ExitStack() as stack:
        appending = [
            stack.enter_context(
                Appender("write_arrow", table, 100_000 + 1000 * each, commits, server.conf())
            )
            for each in range(writers)
        ]
        for each in appending:
            each.ready()
        jvms = pool.submit(jvm.script, WRITERS, "append_at_once", *given)
        for each in appending:
            each.go()
        for each in appending:
            each.finish_round()
        by_jvm: list[int] = jvms.result()
    ours: list[dict[str, Any]] = [one for each in appending for one in each.acknowledged]
    assert len(ours) == len(by_jvm) == writers * commits
    expected = sorted([*by_jvm, *(each["id"] for each in ours)])
    assert by_lakelog(server, table) == by_delta_spark(jvm, table) == expected
    known, log = server.table(table), log_of(server, table)
    assert known.latest == len(expected)
    # One commit a version, the same by either name; ours are where they were said to be.
    write_arrow(table, appenders.row(0, "the last one"), mode="append", conf=server.conf())
    until(lambda: published(log) == list(range(len(expected) + 2)), "all is published")
    infos = {}
    for version in published(log)[1:]:
        data = (log / f"{version:020d}.json").read_bytes()
        infos[version] = json.loads(data.splitlines()[0])["commitInfo"]
        staged = [each.read_bytes() for each in (log / "_staged_commits").glob(f"{version:020d}.*")]
        assert data in staged, version
    assert len({info["txnId"] for info in infos.values()}) == len(infos)
    del infos[known.latest]
    by_engine = {v for v, info in infos.items() if info["engineInfo"].startswith("lakelog")}
    assert by_engine == {each["version"] for each in ours}


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2))
def test_faults_before_lakelog_lose_and_double_nothing(
    server: UnityServer, jvm: DeltaSparkPeer, seed: int
) -> None:
    """Every other commit of lakelog's meets a fault, while delta-spark commits beside it."""
    table, writers, commits = f"lake.s.faults_{seed}", 4, 25
    folder, drawn = make_table(server, table), random.Random(seed)
    plans = [plan(drawn, commits) for _ in range(writers)]
    given = (table, str(writers), str(1000 * writers), str(commits))
    with ThreadPoolExecutor(writers + 1) as pool:
        jvms = pool.submit(jvm.script, WRITERS, "append_at_once", *given)
        ours = [
            pool.submit(commit_by_lakelog, server, table, 1000 * n, each)
            for n, each in enumerate(plans)
        ]
        by_jvm, told = jvms.result(), [each.result() for each in ours]
    present = Counter(by_lakelog(server, table))
    assert by_delta_spark(jvm, table) == sorted(present.elements())
    check_told(told, present)
    assert all(len(each.met) >= commits // 2 < len(each.said) for each in told)
    assert all(present[each] == 1 for each in by_jvm)
    check_log(server, table, folder, present)


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2))
def test_faults_before_both_lose_and_double_nothing_of_lakelogs(
    server: UnityServer, jvm: DeltaSparkPeer, proxy: FaultProxy, seed: int
) -> None:
    """Every other commit of each meets a fault; what delta-spark doubles is its own.

    A commit that was taken although its reply said "conflict" it sends once more, as another one.
    """
    table, writers, commits = f"far.s.faults_{seed}", 4, 25
    folder, drawn = make_table(server, table), random.Random(seed)
    plans = [plan(drawn, commits) for _ in range(writers + 1)]

    def append(number: int) -> None:
        jvm.script(WRITERS, "append_at_once", table, "1", str(number), "1")

    with ThreadPoolExecutor(writers + 1) as pool:
        jvms = pool.submit(commit_through, proxy, 1000 * writers, plans.pop(), append)
        ours = [
            pool.submit(commit_by_lakelog, server, table, 1000 * n, each)
            for n, each in enumerate(plans)
        ]
        by_jvm, told = jvms.result(), [each.result() for each in ours]
    present = Counter(by_lakelog(server, table))
    assert by_delta_spark(jvm, table) == sorted(present.elements())
    check_told(told, present)
    assert all(len(each.met) >= commits // 2 < len(each.said) for each in told)
    assert all(present[each] for each in by_jvm.said)
    doubled = {each for each in by_jvm.met if present[each] > 1}
    assert {by_jvm.met[each] for each in doubled} <= {"tell:409"}
    assert present.total() == len(present) + len(doubled)
    check_log(server, table, folder, present)


def check_log(server: UnityServer, table: str, folder: Path, rows: Counter[int]) -> None:
    """Once all is published, the log's files hold these rows, one commit each."""
    write_arrow(table, {"id": [-1]}, mode="append", conf=server.conf(table.partition(".")[0]))
    versions = list(range(server.table(table).latest + 1))
    until(lambda: published(folder / "_delta_log") == versions, "all is published")
    found = rows_in_log(folder)
    assert found == rows + Counter([-1])
    assert found.total() == versions[-1]
