"""A standalone cluster of two workers: commands, deaths in the middle, copies of slow tasks.

Too long for CI: `make cluster`, which `make nightly` runs. Every table is read by deltalake, too.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from support.bare_python import OF_LAKELOG, bare_python
from support.cluster_driver import Driver, Stop, run_driver
from support.cluster_rows import FEW, ROWS, after
from support.servers.standalone import Cluster, run_standalone, until
from support.spark_java import submit_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.minio import S3Endpoint

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("cluster"), pytest.mark.timeout(280)]

DEMO = Path(__file__).parents[2] / "examples" / "flights" / "main.py"
PLACES = ["folder", "minio"]
# Command -> the Python function in whose tasks it is interrupted.
KILLED = {
    "append": "write_task",
    "replace": "given_rows",
    "delete": "answered",
    "update": "write_task",
    "merge": "write_task",
    "optimize": "answered",
    "zorder": "answered",
}
SQL = [
    f"INSERT INTO {{t}} SELECT id, id % 2, 0 FROM range({ROWS}, {ROWS + FEW})",
    "UPDATE {t} SET n = n + 1 WHERE id % 4 = 2",
    "DELETE FROM {t} WHERE id % 4 = 1",
    "OPTIMIZE {t}",
    "OPTIMIZE {t} ZORDER BY (id)",
    "ALTER TABLE {t} ADD CONSTRAINT few CHECK (id < 5000)",
    f"MERGE INTO {{t}} t USING (SELECT id FROM range({ROWS - FEW}, {ROWS + FEW})) s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET n = t.n + 1"
    " WHEN NOT MATCHED THEN INSERT (id, p, n) VALUES (s.id, s.id % 2, 7)"
    " WHEN NOT MATCHED BY SOURCE AND t.id < 3 THEN UPDATE SET n = t.n + 5",
]
SQL_MEANS = ("create", "append", "update", "delete", "merge")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with run_standalone(cores=4) as cluster:
        yield cluster
        print(f"the workers that were killed took {cluster.cpu:.1f} s of CPU")


@pytest.fixture
def workers(cluster: Cluster) -> Cluster:
    """The cluster with both of its workers."""
    cluster.fill_up()
    return cluster


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python without lakelog, as the workers have."""
    return bare_python(tmp_path_factory.mktemp("python"), *OF_LAKELOG, "orjson", "sqlglot")


@pytest.fixture(scope="module")
def conf(cluster: Cluster, minio: S3Endpoint) -> dict[str, str]:
    return {"spark.master": cluster.url, **minio.conf}


@pytest.fixture(scope="module")
def driver(conf: dict[str, str], bare: str) -> Iterator[Driver]:
    """A driver for commands, each of which it has to outlive."""
    with run_driver(conf, bare) as driver:
        yield driver


@pytest.fixture
def uri(place: str, s3_bucket: str, tmp_path: Path) -> str:
    """Where tables are, in the place that the test's parameter names."""
    return str(tmp_path) if place == "folder" else f"s3a://{s3_bucket}/{tmp_path.name}"


@pytest.fixture
def rows(minio: S3Endpoint) -> Any:
    """What deltalake reads of a table: `id` -> `n`, each once."""
    options = {
        "endpoint": minio.url,
        "access_key_id": minio.access_key,
        "secret_access_key": minio.secret_key,
        "region": minio.region,
        "allow_http": "true",
    }

    def read(uri: str) -> dict[int, int]:
        on_s3 = uri.startswith("s3a:")
        table = DeltaTable(uri.replace("s3a:", "s3:"), storage_options=options if on_s3 else None)
        found = table.to_pyarrow_table().to_pydict()
        assert len(found["id"]) == len(set(found["id"]))
        return dict(zip(found["id"], found["n"], strict=True))

    return read


def _summary(found: dict[int, int]) -> list[int]:
    return [len(found), sum(found), sum(found.values())]


@pytest.mark.parametrize("place", PLACES)
def test_every_command(workers: Cluster, driver: Driver, uri: str, rows: Any) -> None:
    path, done = f"{uri}/t", ["create"]
    driver.do("create", path)
    for command in ("append", "update", "delete", "merge", "optimize", "zorder", "replace"):
        driver.do(command, path)
        done.append(command)
        assert driver.do("count", path) == _summary(after(*done)), command
    assert rows(path) == after(*done)


@pytest.mark.parametrize("place", PLACES)
def test_every_statement(workers: Cluster, driver: Driver, uri: str, rows: Any) -> None:
    path = f"{uri}/t"
    driver.do("create", path)
    for text in SQL:
        driver.do("sql", path, text=text)
    assert rows(path) == after(*SQL_MEANS)
    counted = driver.do("sql", path, text="SELECT count(*), sum(id), sum(n) FROM {t}")
    assert counted == [[str(each) for each in _summary(after(*SQL_MEANS))]]
    driver.do("sql", path, text="RESTORE TABLE {t} TO VERSION AS OF 1")
    assert rows(path) == after("create", "append")
    history = driver.do("sql", path, text="DESCRIBE HISTORY {t}")
    assert [row[4] for row in history] == [
        *("RESTORE", "MERGE", "ADD CONSTRAINT", "OPTIMIZE", "OPTIMIZE", "DELETE", "UPDATE"),
        *("WRITE", "WRITE"),
    ]
    driver.do("sql", path, text="VACUUM {t}")
    assert driver.do("count", path) == _summary(after("create", "append"))


def test_executors_that_have_lakelog(workers: Cluster, conf: dict[str, str], tmp_path: Path,
                                     rows: Any) -> None:  # fmt: skip
    path = str(tmp_path / "t")
    with run_driver(conf) as driver:
        driver.do("create", path)
        for command in ("merge", "optimize"):
            driver.do(command, path)
    assert rows(path) == after("create", "merge")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", KILLED)
def test_a_worker_dies_in_the_middle(
    workers: Cluster, driver: Driver, uri: str, tmp_path: Path, rows: Any, command: str
) -> None:
    path, stop = f"{uri}/t", Stop(tmp_path, KILLED[command])
    driver.do("create", path)
    driver.begin(command, path, stop)
    assert workers.kill(workers.worker_of(driver.stopped(stop))) > 1
    stop.go()
    driver.gave()
    assert rows(path) == after("create", command)
    assert driver.do("count", path) == _summary(after("create", command))


@pytest.mark.parametrize("place", PLACES)
def test_a_worker_dies_in_the_middle_of_a_stream(
    workers: Cluster, driver: Driver, uri: str, tmp_path: Path, rows: Any
) -> None:
    source, path, stop = f"{uri}/s", f"{uri}/t", Stop(tmp_path, "write_task")
    more: dict[str, Any] = {"source": source, "checkpoint": str(tmp_path / "checkpoint")}
    driver.do("create", source)
    driver.do("append", source)
    driver.begin("stream", path, stop, **more)
    workers.kill(workers.worker_of(driver.stopped(stop)))
    stop.go()
    driver.gave()
    driver.do("stream", path, **more)
    assert rows(path) == after("create", "append")


@pytest.mark.parametrize("command", ["append", "merge", "optimize"])
def test_each_task_fails_once(
    workers: Cluster, driver: Driver, tmp_path: Path, rows: Any, command: str
) -> None:
    path = str(tmp_path / "t")
    driver.do("create", path)
    driver.do(command, path, Stop(tmp_path, KILLED[command], (("fail", True),)))
    assert rows(path) == after("create", command)


def test_a_slow_task_has_a_copy(
    workers: Cluster, conf: dict[str, str], bare: str, tmp_path: Path, rows: Any
) -> None:
    """The first attempt stops, and nothing lets it go on: only its copy can end the command."""
    speculation = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.minTaskRuntime": "100ms",
        "spark.speculation.task.duration.threshold": "500ms",
    }
    with run_driver({**conf, **speculation}, bare) as driver:
        for command in ("append", "update", "merge", "optimize"):
            folder = tmp_path / command
            folder.mkdir()
            path, stop = str(folder / "t"), Stop(folder, KILLED[command], (("partition", 0),))
            driver.do("create", path)
            driver.do(command, path, stop)
            assert len(stop.pids()) == 1
            assert rows(path) == after("create", command)


def test_executors_come_and_go(
    workers: Cluster, conf: dict[str, str], bare: str, tmp_path: Path, rows: Any
) -> None:
    allocation = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.executorIdleTimeout": "1s",
        "spark.dynamicAllocation.cachedExecutorIdleTimeout": "15s",
        "spark.dynamicAllocation.shuffleTracking.timeout": "1s",
    }
    path, done = str(tmp_path / "t"), list[str]()
    with run_driver({**conf, **allocation}, bare) as driver:
        for command in ("create", "append", "update", "merge", "optimize"):
            driver.do(command, path)
            done.append(command)
            assert driver.do("count", path) == _summary(after(*done))
            until(lambda: driver.do("executors", path) == 0, "no executor is left")
    assert rows(path) == after(*done)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", ["append", "merge", "optimize", "stream"])
def test_a_job_whose_driver_died_runs_again(
    workers: Cluster,
    conf: dict[str, str],
    bare: str,
    uri: str,
    tmp_path: Path,
    rows: Any,
    command: str,
) -> None:
    path = f"{uri}/t"
    more: dict[str, Any] = {}
    if command == "stream":
        more = {"source": f"{uri}/s", "checkpoint": str(tmp_path / "checkpoint")}
    done = after("create", "append" if more else command)
    stop = Stop(tmp_path, KILLED.get(command, "write_task"))
    with run_driver(conf, bare) as driver:
        for each in ("create", "append") if more else ("create",):
            driver.do(each, more.get("source", path))
        driver.begin(command, path, stop, **more)
        driver.stopped(stop)
        driver.kill()
    stop.go()
    if command != "stream":
        assert rows(path) == after("create")
    with run_driver(conf, bare) as driver:
        driver.do(command, path, **more)
        if command == "append":  # which has a number, so a second run adds nothing
            driver.do(command, path)
        assert driver.do("count", path) == _summary(done)
    assert rows(path) == done


def test_workers_without_pyarrow(
    workers: Cluster, conf: dict[str, str], tmp_path: Path, rows: Any
) -> None:
    path, done = str(tmp_path / "t"), list[str]()
    python = bare_python(tmp_path, *OF_LAKELOG, "pyarrow", "pandas", "numpy", "orjson", "sqlglot")
    with run_driver(conf, python) as driver:
        for command in ("create", "append", "update", "delete", "merge", "zorder", "optimize"):
            driver.do(command, path)
            done.append(command)
            assert driver.do("count", path) == _summary(after(*done)), command
    assert rows(path) == after(*done)


def test_workers_of_another_python(
    workers: Cluster,
    conf: dict[str, str],
    tmp_path: Path,
    rows: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(DEMO.parents[2] / "scripts")
    interpreters = importlib.import_module("interpreters")
    minor = next(m for m in interpreters.minors() if not sys.version.startswith(f"{m}."))
    other = importlib.import_module("environments").environment(
        tmp_path / "other", interpreters.interpreter(minor), "pyarrow>=17", "pandas>=2.2,<3"
    )
    path = str(tmp_path / "t")
    with run_driver(conf) as driver:
        driver.do("create", path)
    with run_driver(conf, str(other)) as driver:
        for command in ("append", "update", "merge", "optimize"):
            driver.begin(command, path)
            error = driver.answer()["error"]
            assert "PYTHON_VERSION_MISMATCH" in error, error
            assert "PYSPARK_PYTHON" in error
            assert "is as it was, at version 0" in error, error
            assert rows(path) == after("create")
        assert driver.do("count", path) == _summary(after("create"))


@pytest.mark.parametrize("place", PLACES)
def test_the_demo(
    workers: Cluster, conf: dict[str, str], bare: str, uri: str, tmp_path: Path
) -> None:
    sizes = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.cores.max": "1"}
    argv = [sys.executable, str(DEMO), "--folder", str(tmp_path / "demo")]
    argv += ["--table", f"{uri}/flights", "--months", "2", "--rows-per-month", "500"]
    for key, value in {**conf, **sizes}.items():
        argv += ["--conf", f"{key}={value}"]
    env = {**os.environ, "PYSPARK_PYTHON": bare, "SPARK_SUBMIT_OPTS": submit_options()}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=270, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "exact match: 1,000 rows in 2 months" in done.stdout
