"""A script written for delta-spark, run by `lakelog run` as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakelog.core import DeltaLog, read_arrow

pytest.importorskip("pyspark")

JOB = """\
import sys

from delta import configure_spark_with_delta_pip
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

builder = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
spark = (configure_spark_with_delta_pip(builder) if "pip" in sys.argv else builder).getOrCreate()
path = sys.argv[1]
spark.range(3).write.format("delta").save(path)
DeltaTable.forPath(spark, path).delete("id = 1")
spark.sql(f"UPDATE delta.`{path}` SET id = 5 WHERE id = 2")
"""


@pytest.mark.one_day_in(4, 1)
@pytest.mark.parametrize("way", ["script", "pip", "variable", "submit"])
def test_sessions_of_a_program_are_enabled(tmp_path: Path, way: str) -> None:
    job, table = tmp_path / "job.py", tmp_path / "table"
    job.write_text(JOB)
    lakelog = str(Path(sys.executable).with_name("lakelog"))
    command, environment = [lakelog, "run"], dict(os.environ)
    if way == "variable":
        folder = subprocess.check_output([lakelog, "run", "--path"], text=True).strip()
        command, environment = [sys.executable], {**os.environ, "PYTHONPATH": folder}
    if way == "submit":
        command.append(str(Path(sys.executable).with_name("spark-submit")))
        environment["PYSPARK_PYTHON"] = sys.executable
    done = subprocess.run(
        [*command, str(job), str(table), way],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert read_arrow(table).column("id").to_pylist() == [0, 5]
    operations = [each.operation for each in DeltaLog.for_table(table).history()]
    assert operations == ["UPDATE", "DELETE", "WRITE"]


TYPED = """\
path = {path!r}
spark.range(3).write.format("delta").save(path)
from delta.tables import DeltaTable
DeltaTable.forPath(spark, path).delete("id = 1")
spark.sql(f"UPDATE delta.`{{path}}` SET id = 5 WHERE id = 2")
"""


@pytest.mark.one_day_in(3, 2)
def test_the_session_of_the_pyspark_shell_is_enabled(tmp_path: Path) -> None:
    shell, table = str(Path(sys.executable).with_name("pyspark")), tmp_path / "table"
    # Without -i Python takes what comes by a pipe for a script, in which the shell defines nothing.
    environment = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON_OPTS": "-i"}
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lakelog")), "run", shell, "--master", "local[1]"],
        cwd=tmp_path,
        env=os.environ | environment,
        input=TYPED.format(path=str(table)),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert read_arrow(table).column("id").to_pylist() == [0, 5], done.stderr
    operations = [each.operation for each in DeltaLog.for_table(table).history()]
    assert operations == ["UPDATE", "DELETE", "WRITE"]
