"""A Spark Connect server that is not Spark: what is written is there, and no read is wrong."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lakelog.core import read_arrow
from support.sail import sail_python

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [str(ROOT / name) for name in ("cli", "contrib", "core", "logstores", "spark")]

STORY = """
import sys

from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession

from lakelog.core import read_arrow
from lakelog.core.errors import UnsupportedFeatureError
from lakelog.spark import DeltaTable, enable, read

server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
spark = SparkSession.builder.remote("sc://%s:%d" % server.listening_address).getOrCreate()
enable(spark)
path = sys.argv[1]
rows = spark.createDataFrame([(1, "a"), (2, None), (3, "c")], "id long, p string")
rows.write.format("delta").partitionBy("p").save(path)
table = DeltaTable.forPath(spark, path)
table.delete("id = 1")  # by this process alone
ways = {
    "format": lambda: spark.read.format("delta").load(path).collect(),
    "read": lambda: read(spark).load(path).count(),
    "toDF": lambda: table.toDF().collect(),
    "SQL": lambda: spark.sql(f"SELECT * FROM delta.`{path}`").collect(),
    "INSERT": lambda: spark.sql(f"INSERT INTO delta.`{path}` SELECT * FROM delta.`{path}`"),
    "UPDATE": lambda: table.update("rand() < 2", {"id": "7"}),
}
for name, way in ways.items():
    try:
        print(name, "gave", way())
    except UnsupportedFeatureError as exc:
        print(name, "refused" if "not Apache Spark" in str(exc) else exc)
back = spark.createDataFrame(read_arrow(path))
print("back", sorted(row.id for row in back.collect()))
"""


@pytest.mark.needs("sail")
@pytest.mark.timeout(200)
def test_sail_takes_what_is_written_and_reads_are_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    done = subprocess.run(
        [str(sail_python()), "-c", STORY, path],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(PACKAGES)},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ways = ("format", "read", "toDF", "SQL", "INSERT", "UPDATE")
    assert done.stdout.splitlines() == [*(f"{way} refused" for way in ways), "back [2, 3]"]
    assert sorted(read_arrow(path).to_pylist(), key=lambda row: row["id"]) == [
        {"id": 2, "p": None},
        {"id": 3, "p": "c"},
    ]
