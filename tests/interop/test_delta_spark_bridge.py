"""delta-spark commits by lakelog's stores, with nothing but its conf changed, beside lakelog.

On a local disk delta-spark alone replaces commits that another process makes at the same moment;
`test_three_writers.py` has what can be promised without the bridge.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.logstores.service import LogStoreService, bridge_jar
from support import appenders
from support.bridge_stores import CLASS, hooks
from support.delta_spark import PeerUnavailableError, cache_folder, exclusively, installed
from support.delta_spark_azure import abfs_conf, abfs_jars, abfs_root
from support.delta_spark_peer import DeltaSparkError, DeltaSparkPeer
from support.delta_spark_s3 import compiled, s3a_jars
from support.examples import SEED
from support.samples import ids

pytestmark = [
    pytest.mark.xdist_group("delta-spark by the bridge"),
    pytest.mark.needs("delta_spark", "s3a", "abfs", "minio", "azurite"),
]

SCHEMA = "id long, writer string"
IN_TASKS = "StoreInTasks"
JVMS, WRITERS = 2, 6
COMMITS = int(os.environ.get("LAKELOG_TEST_BRIDGE_COMMITS") or (25 if SEED else 4))
"""Of each JVM, which takes a second of CPU for one, and of each of lakelog's writers."""


@pytest.fixture(scope="module")
def jvms(tmp_path_factory, minio, azurite):
    """The first is begun by `lakelog.spark.bridge`, those after it by the lines of `serve`."""
    try:
        peer = installed()
        with exclusively(cache_folder() / "in-tasks.lock"):
            own = compiled(cache_folder() / "jars" / IN_TASKS, IN_TASKS, peer, (bridge_jar(),))
        peer = replace(peer, jars=(*peer.jars, *s3a_jars(), *abfs_jars(), own))
    except PeerUnavailableError as exc:
        pytest.skip(str(exc))
    confs = {
        **minio.conf,
        **azurite.conf,
        **abfs_conf(azurite),
        # What VACUUM lists by; thousands of tasks if nobody says.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
    with ExitStack() as stack:
        begun = [DeltaSparkPeer(peer, confs, timeout=500, bridged=True)]
        if JVMS > 1:
            file = tmp_path_factory.mktemp("service") / "bridge"
            bridge_conf = stack.enter_context(serving(file))
            jars = Path(bridge_conf.pop("spark.jars"))
            peer = replace(peer, jars=(*peer.jars, jars))
            begun += [
                DeltaSparkPeer(peer, confs | bridge_conf, timeout=500) for _ in range(JVMS - 1)
            ]
        yield [stack.enter_context(each) for each in begun]


@contextmanager
def serving(file):
    """`lakelog serve` as a process: the settings that it prints. It is killed at the end."""
    main = "from lakelog.cli import main; main()"
    command = [sys.executable, "-c", main, "serve", "--endpoint", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            first, *lines = islice(process.stdout or (), 4)
            assert first.startswith("# Serving")
            yield dict(line.rstrip("\n").split(" ", 1) for line in lines)
        finally:
            process.kill()


@contextmanager
def settings(jvm, **conf):
    """For the tables that the session opens within the block."""
    try:
        for key, value in conf.items():
            jvm.sql(f"SET {key}={value}")
        yield
    finally:
        for key in conf:
            jvm.sql(f"RESET {key}")


def write_at_once(jvms, table, conf):
    """Appends of one row each, by every JVM and by threads of ours; the ids that were written."""
    write_arrow(table, appenders.row(0, "creator"), conf=conf, mode="append")
    for jvm in jvms:
        assert jvm.count(table) == 1  # the session has begun, and the table is known
    begun = threading.Barrier(JVMS + WRITERS)

    def by_jvm(number):
        begun.wait()
        rows = [[[1000 * number + n, "delta-spark"]] for n in range(COMMITS)]
        jvms[number - 1].append_rows(table, SCHEMA, *rows)
        return [1000 * number + n for n in range(COMMITS)]

    def by_lakelog(number):
        begun.wait()
        for n in range(COMMITS):
            row = appenders.row(1000 * number + n, "lakelog")
            write_arrow(table, row, conf=conf, mode="append")
        return [1000 * number + n for n in range(COMMITS)]

    with ThreadPoolExecutor(JVMS + WRITERS) as pool:
        done = [
            pool.submit(by_jvm if number <= JVMS else by_lakelog, number)
            for number in range(1, JVMS + WRITERS + 1)
        ]
        return [0, *(each for one in done for each in one.result())]


def check_whole(jvm, log, expected):
    """Every row is there once, by both readers, and each version has one commit."""
    snapshot = log.update()
    assert ids(snapshot.to_arrow()) == sorted(expected)
    assert snapshot.version == len(expected) - 1
    assert [entry.version for entry in log.history()] == list(range(len(expected)))[::-1]
    assert jvm.count(log.table) == len(expected)
    assert jvm.version(log.table) == len(expected) - 1


@pytest.mark.one_day_in(3, 2)
def test_tasks_without_a_service_read_a_log_by_hadoop_and_write_nothing(jvms, tmp_path):
    jvm, table = jvms[0], tmp_path / "t"
    jvm.append_rows(table, SCHEMA, [[1, "a"]])
    jvm.java_function("by_store", f"lakelog.tests.{IN_TASKS}")
    first, none = table / "_delta_log" / f"{0:020d}.json", tmp_path / "no service"
    last = first.with_name("zzz")  # behind all that Delta puts there

    def said(asked, path, row="id", rows="range(1)"):
        ((answer,),) = (
            each.values()
            for each in jvm.sql(
                f"SELECT by_store({row}, '{asked}', '{none}', '{path}') FROM {rows}"
            )
        )
        return answer

    assert said("read", first) == "in a task: " + first.read_text().rstrip("\n")
    assert first.name in said("list", first).removeprefix("in a task: ").splitlines()
    assert said("list", last) == "in a task: "
    assert said("partial", first) == "in a task: true"
    assert said("write", last) == "in a task: NoServiceException"
    assert not last.exists()
    for asked in ("read", "list", "partial", "write"):
        here = said(asked, first, row="0L", rows="VALUES (1)")
        assert here == "on the driver: NoServiceException"


def test_files_that_tasks_list_are_converted(jvms, tmp_path):
    jvm, folder = jvms[0], tmp_path / "parquet"
    for month in (1, 2):
        (folder / f"month={month}").mkdir(parents=True)
        pq.write_table(appenders.row(month, "parquet"), folder / f"month={month}" / "0.parquet")
    jvm.sql(f"CONVERT TO DELTA parquet.`{folder}` PARTITIONED BY (month INT)")
    assert ids(DeltaLog.for_table(str(folder)).snapshot.to_arrow()) == [1, 2]
    assert [entry.operation for entry in DeltaLog.for_table(str(folder)).history()] == ["CONVERT"]


@pytest.mark.one_day_in(3)
@pytest.mark.soak
@pytest.mark.timeout(280)
def test_on_a_local_disk_nothing_is_lost_or_doubled(jvms, tmp_path):
    table = str(tmp_path / "a table")
    expected = write_at_once(jvms, table, {})
    check_whole(jvms[0], DeltaLog.for_table(table), expected)
    writers = [
        json.loads(line)["commitInfo"].get("engineInfo", "")
        for file in sorted(Path(table, "_delta_log").glob("*.json"))
        for line in file.read_text().splitlines()
        if line.startswith('{"commitInfo"')
    ]
    assert sum("Delta-Lake" in each for each in writers) == JVMS * COMMITS


@pytest.mark.one_day_in(3, 1)
@pytest.mark.soak
@pytest.mark.timeout(280)
def test_on_s3_nothing_is_lost_or_doubled(jvms, minio, s3_bucket):
    table = f"s3a://{s3_bucket}/{uuid.uuid4().hex}"
    expected = write_at_once(jvms, table, minio.conf)
    check_whole(jvms[0], DeltaLog.for_table(table, minio.conf), expected)


@pytest.mark.one_day_in(3, 2)
@pytest.mark.soak
@pytest.mark.timeout(280)
def test_on_azure_nothing_is_lost_or_doubled(jvms, azurite):
    container = f"bridge-{uuid.uuid4().hex[:12]}"
    with azurite.client() as client:
        client.create_container(container)
        table = f"{abfs_root(azurite, container)}/a table"
        expected = write_at_once(jvms, table, azurite.conf)
        check_whole(jvms[0], DeltaLog.for_table(table, azurite.conf), expected)
        client.delete_container(container)


@pytest.mark.one_day_in(3, 1)
def test_every_kind_of_command_commits_by_the_bridge(jvms, minio, s3_bucket, tmp_path):
    jvm, table = jvms[0], f"s3a://{s3_bucket}/{uuid.uuid4().hex}"
    jvm.sql(
        f"CREATE TABLE delta.`{table}` (id LONG, writer STRING) USING delta "
        "TBLPROPERTIES (delta.checkpointInterval = 2)"
    )
    jvm.append_rows(table, SCHEMA, *([[2 * n, "a"], [2 * n + 1, "a"]] for n in range(3)))
    jvm.sql(
        f"MERGE INTO delta.`{table}` t USING (SELECT id, 'b' writer FROM range(4, 8)) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    jvm.sql(f"DELETE FROM delta.`{table}` WHERE id = 1")
    jvm.sql(f"OPTIMIZE delta.`{table}`")
    jvm.stream(table, f"{table}-copy", str(tmp_path / "checkpoint"))
    jvm.sql(f"VACUUM delta.`{table}`")
    expected = [*((n, "a") for n in (0, 2, 3)), *((n, "b") for n in range(4, 8))]
    log = DeltaLog.for_table(table, minio.conf)
    operations = [entry.operation for entry in log.history()]
    assert {"CREATE TABLE", "WRITE", "MERGE", "DELETE", "OPTIMIZE"} <= set(operations)
    for each in (table, f"{table}-copy"):
        rows = DeltaLog.for_table(each, minio.conf).snapshot.to_arrow().to_pylist()
        assert sorted((row["id"], row["writer"]) for row in rows) == expected
        assert jvm.count(each) == len(expected)
    assert any("checkpoint" in each.name for each in log.store.list_from(f"{table}/_delta_log/"))


def test_in_a_bridged_session_lakelog_and_delta_spark_take_turns(jvms, tmp_path):
    jvm, table = jvms[0], str(tmp_path / "t")
    for turn in range(2):
        jvm.append_rows(table, SCHEMA, [[2 * turn, "delta-spark"]])
        jvm.append_rows_by_lakelog(table, SCHEMA, [[2 * turn + 1, "lakelog"]])
    check_whole(jvm, DeltaLog.for_table(table), range(4))


def test_a_table_s_path_may_have_any_character(jvms, tmp_path):
    jvm, table = jvms[0], str(tmp_path / "a:b *[c]{d}\\e\nf é中😀%20#?q=1+&'")
    jvm.append_rows(table, SCHEMA, [[0, "delta-spark"]])
    write_arrow(table, appenders.row(1, "lakelog"), mode="append")
    jvm.append_rows(table, SCHEMA, [[2, "delta-spark"]])
    check_whole(jvm, DeltaLog.for_table(table), range(3))


def test_beside_lakelog_serve_a_commit_fails_while_that_is_gone_and_works_when_it_is_back(
    jvms, tmp_path
):
    jvm, table, file = jvms[0], str(tmp_path / "t"), tmp_path / "bridge"
    with settings(jvm, **{"lakelog.bridge.endpoint": file}):
        with serving(file) as bridge_conf:
            assert bridge_conf["spark.hadoop.lakelog.bridge.endpoint"] == str(file)
            jvm.append_rows(table, SCHEMA, [[1, "a"]])
            assert jvm.count(table) == 1
        with pytest.raises(DeltaSparkError, match="has ended, or was killed") as gone:
            jvm.append_rows(table, SCHEMA, [[2, "lost"]])
        assert "`lakelog serve`" in str(gone.value)
        assert len(list(Path(table, "_delta_log").glob("*.json"))) == 1
        with serving(file):
            jvm.append_rows(table, SCHEMA, [[3, "b"]])
            assert jvm.count(table) == 2
    assert ids(DeltaLog.for_table(table).snapshot.to_arrow()) == [1, 3]


def test_a_session_says_which_store_its_delta_spark_commits_by(jvms, tmp_path):
    jvm, table, file = jvms[0], str(tmp_path / "t"), tmp_path / "bridge"
    came: list[str] = []
    with (
        LogStoreService(endpoint_file=file),
        settings(
            jvm, **{"lakelog.bridge.endpoint": file, "spark.lakelog.bridge.store.file": CLASS}
        ),
    ):
        for _ in range(2):
            hooks["before"] = came.append
            jvm.append_rows(table, SCHEMA, [[1, "a"]])
    assert [each.rpartition("/")[2] for each in came] == [f"{n:020d}.json" for n in range(2)]
