"""Executors whose Python has PySpark and pyarrow, and no lakelog, orjson or sqlglot."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from support.bare_python import OF_LAKELOG, bare_python
from support.connect_port import connect_port

if TYPE_CHECKING:
    from pathlib import Path

JOB = """
import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lakelog.spark as delta
from lakelog.core.errors import TableNotFoundError

kind, path = sys.argv[1:]
builder = SparkSession.builder
if kind == "connect":
    spark = builder.remote("local[2]").getOrCreate()
else:
    builder = builder.master("local[2]")
    spark = builder.config("spark.driver.memory", "1g").getOrCreate()


def probe(batches):
    import pyarrow as pa

    for _ in batches:
        try:
            import lakelog.core
        except ImportError as exc:
            yield pa.RecordBatch.from_pydict({"text": [str(exc)]})


assert "lakelog" in spark.range(1, numPartitions=1).mapInArrow(probe, "text string").first().text

rows = spark.range(0, 1000, 1, 2).selectExpr("id", "id % 3 AS p")
delta.write(rows).partitionBy("p").save(path)
assert delta.read(spark).where("p = 1").load(path).count() == 333
spark.conf.set("spark.lakelog.read.path", "arrow")
assert delta.read(spark).where("p = 1").load(path).count() == 333
spark.conf.unset("spark.lakelog.read.path")
spark.conf.set("spark.lakelog.replay", "spark")
assert delta.read(spark).where("p = 1 AND id < 9").load(path).count() == 3
spark.conf.unset("spark.lakelog.replay")

delta.register(spark)
rows.write.format("lakelog").mode("append").save(path)
assert spark.read.format("lakelog").load(path).where("p = 0").count() == 668
try:
    spark.read.format("lakelog").load(path + "/none").count()
except PySparkException as exc:
    assert isinstance(delta.unwrap_error(exc), TableNotFoundError), exc
else:
    raise AssertionError("a missing table was read")

stream = delta.read_stream(spark).load(path)
writer = delta.write_stream(stream).trigger(availableNow=True)
writer = writer.option("checkpointLocation", path + "-checkpoint")
try:
    writer.start(path + "-copy").awaitTermination()
except PySparkException as exc:
    # What plans a stream's batches on a server has nothing that a client sent.
    assert kind == "connect", exc
    assert "No module named 'lakelog'" in str(exc), exc
else:
    assert kind == "classic"
    assert delta.read(spark).load(path + "-copy").count() == 2000
print("both surfaces work")
spark.stop()
"""


@pytest.mark.soak
@pytest.mark.timeout(280)
@pytest.mark.parametrize("kind", ["classic", "connect"])
@pytest.mark.one_day_in(6, 2)
def test_workers_without_lakelog_are_served(tmp_path: Path, kind: str) -> None:
    python = bare_python(tmp_path, *OF_LAKELOG, "orjson", "sqlglot")
    script = tmp_path / "job.py"
    script.write_text(textwrap.dedent(JOB))
    # PySpark passes its own choice on to children; they are to make their own.
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    env |= {"PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"}
    env["SPARK_SUBMIT_OPTS"] = os.environ["SPARK_SUBMIT_OPTS"]
    with connect_port() if kind == "connect" else contextlib.nullcontext():
        done = subprocess.run(
            [sys.executable, str(script), kind, str(tmp_path / "t")],
            env=env,
            capture_output=True,
            text=True,
            timeout=260,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "both surfaces work" in done.stdout
