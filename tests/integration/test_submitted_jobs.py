"""Jobs that `spark-submit` takes to a cluster, by the lines of docs/deploying.md.

Too long for CI: `make cluster`. On a standalone cluster, and on YARN, which alone of the two has a
cluster mode for Python.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest
from deltalake import DeltaTable

from support.servers.standalone import run_standalone, spark_program
from support.servers.yarn import run_yarn
from support.spark_java import submit_options

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("cluster"), pytest.mark.timeout(280)]

ROOT = Path(__file__).parents[2]
JARS = Path(pyspark.__path__[0]) / "jars"
JOB = """
import sys

from pyspark.sql import SparkSession

import lakelog.spark as delta
from lakelog.spark.replay import bins

spark = SparkSession.builder.getOrCreate()
delta.enable(spark)
bins._HERE_BYTES = -1
path = sys.argv[1]
rows = spark.range(0, 1000, 1, 2).selectExpr("id", "id % 2 AS p")
rows.write.format("delta").partitionBy("p").save(path)
spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 10")
spark.sql(f"OPTIMIZE delta.`{path}`")
assert spark.read.format("delta").load(path).count() == 990
stream = spark.readStream.format("delta").load(path).writeStream.format("delta")
stream = stream.option("checkpointLocation", f"{path}.checkpoint").trigger(availableNow=True)
stream.start(f"{path}.copy").awaitTermination()
assert spark.read.format("delta").load(f"{path}.copy").count() == 990


def prefixes(batches):
    import pyarrow as pa

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"prefix": [sys.prefix]})


executors = spark.range(0, 2, 1, 2).mapInArrow(prefixes, "prefix string").distinct().collect()
with open(f"{path}.said", "w") as said:
    print(delta.__file__, sys.prefix, *(row.prefix for row in executors), sep="\\n", file=said)
spark.stop()
"""
SMALL = {
    "spark.driver.memory": "700m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.executor.instances": "2",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}


def _environment(folder: Path, *packages: str) -> Path:
    made: Path = importlib.import_module("environments").environment(
        folder, sys.executable, *packages
    )
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("dist")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(ROOT)], check=True, timeout=200)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "scripts")
        yield next(folder.iterdir())


@pytest.fixture(scope="module")
def packed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive that venv-pack made, of an environment with lakelog."""
    home = tmp_path_factory.mktemp("packed")
    _environment(home / "lakelog_env", str(wheel), "pandas>=2.2,<3")
    archive = home / "lakelog_env.tar.gz"
    pack = [str(Path(sys.executable).with_name("venv-pack")), "--compress-level", "1"]
    pack += ["--prefix", str(home / "lakelog_env"), "--output", str(archive)]
    subprocess.run(pack, check=True, timeout=200)
    return archive


@pytest.fixture(scope="module")
def master() -> Iterator[str]:
    with run_standalone() as cluster:
        yield cluster.url


@pytest.fixture(scope="module")
def yarn() -> Iterator[Path]:
    with run_yarn() as conf:
        yield conf


def _submit(
    folder: Path, *options: str, conf: dict[str, str] | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    (folder / "job.py").write_text(JOB)
    confs = {**SMALL, **(conf or {})}
    argv = [spark_program("spark-submit"), *options]
    for key, value in confs.items():
        argv += ["--conf", f"{key}={value}"]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    env |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_SUBMIT_OPTS": submit_options()} | variables
    return subprocess.run(
        [*argv, str(folder / "job.py"), str(folder / "t")],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=270,
        check=False,
    )


def _judge(done: subprocess.CompletedProcess[str], folder: Path) -> list[str]:
    """Where lakelog was, the driver's prefix, and those of the executors."""
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    found = DeltaTable(str(folder / "t")).to_pyarrow_table()["id"].to_pylist()
    assert sorted(found) == list(range(10, 1000))
    return (folder / "t.said").read_text().splitlines()


def test_py_files_in_client_mode(wheel: Path, master: str, tmp_path: Path) -> None:
    """Neither the driver's Python nor the executors' has lakelog."""
    needed = ("pyarrow>=17", "pandas>=2.2,<3", "orjson", "sqlglot>=30.24,<31")
    python = _environment(tmp_path / "env", *needed)
    this = [sys.executable, "-m"]
    for step in (
        [*this, "pip", "install", "--quiet", "--no-deps", "--target", "lakelog_files", str(wheel)],
        [*this, "zipfile", "-c", "lakelog.zip", "lakelog_files/lakelog"],
    ):
        subprocess.run(step, cwd=tmp_path, check=True, timeout=100)
    done = _submit(
        tmp_path, "--master", master, "--py-files", "lakelog.zip", PYSPARK_PYTHON=str(python)
    )
    where, *prefixes = _judge(done, tmp_path)
    assert ".zip/lakelog/" in where
    assert set(prefixes) == {str(tmp_path / "env")}


def test_archives_in_client_mode(packed: Path, master: str, tmp_path: Path) -> None:
    _unpack(packed, tmp_path)
    done = _submit(
        tmp_path,
        *("--master", master, "--archives", f"{packed}#environment"),
        PYSPARK_PYTHON="./environment/bin/python",
    )
    _judge_of_archives(_judge(done, tmp_path), tmp_path, "client")


def _unpack(packed: Path, folder: Path) -> None:
    """In client mode the driver, and what plans its streams, find it where they run."""
    (folder / "environment").mkdir()
    tar = ["tar", "xzf", str(packed), "-C", "environment"]
    subprocess.run(tar, cwd=folder, check=True, timeout=100)


def _judge_of_archives(said: list[str], folder: Path, mode: str) -> None:
    where, driver, *executors = said
    assert where.startswith(driver)
    assert (driver == str(folder / "environment")) == (mode == "client")
    for each in (driver, *executors):
        assert each.endswith("/environment")
    assert driver not in executors or mode == "cluster"


def test_standalone_has_no_cluster_mode_for_python(master: str, tmp_path: Path) -> None:
    done = _submit(tmp_path, "--master", master, "--deploy-mode", "cluster")
    assert done.returncode != 0
    assert "not supported for python applications on standalone clusters" in done.stderr


@pytest.mark.needs("yarn")
@pytest.mark.parametrize("mode", ["cluster", "client"])
def test_archives_on_yarn(packed: Path, yarn: Path, tmp_path: Path, mode: str) -> None:
    if mode == "client":
        _unpack(packed, tmp_path)
    options = ["--master", "yarn", "--deploy-mode", mode, "--archives", f"{packed}#environment"]
    # On one machine the jars need not be sent.
    conf = {
        "spark.yarn.jars": f"local:{JARS}/*",
        "spark.yarn.stagingDir": str(tmp_path),
        "spark.yarn.am.memory": "512m",
    }
    done = _submit(
        tmp_path,
        *options,
        conf=conf,
        HADOOP_CONF_DIR=str(yarn),
        PYSPARK_PYTHON="./environment/bin/python",
    )
    _judge_of_archives(_judge(done, tmp_path), tmp_path, mode)
