"""A script written for delta-spark, run as it is in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
import sys
from delta import configure_spark_with_delta_pip
from delta.exceptions import ConcurrentAppendException, DeltaConcurrentModificationException
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr

folder = sys.argv[1]
builder = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.warehouse.dir", folder + "/warehouse")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()

spark.range(5).write.format("delta").save(folder + "/numbers")
table = DeltaTable.forPath(spark, folder + "/numbers")
table.update(expr("id % 2 = 0"), {"id": expr("id + 100")})
table.delete(col("id") == 1)
new = spark.range(20, 22).toDF("id")
table.alias("t").merge(new.alias("n"), "t.id = n.id").whenNotMatchedInsertAll().execute()
print(sorted(row.id for row in table.toDF().collect()))
print(spark.read.format("delta").option("versionAsOf", 0).load(folder + "/numbers").count())

spark.sql("CREATE TABLE names (id BIGINT, name STRING) USING delta")
spark.sql("INSERT INTO names VALUES (20, 'twenty')")
spark.sql("CREATE OR REPLACE TEMP VIEW both AS SELECT n.name FROM names n "
          f"JOIN delta.`{folder}/numbers` USING (id)")
print([row.name for row in spark.table("both").collect()])
print(spark.sql("DESCRIBE HISTORY names").count())
assert issubclass(ConcurrentAppendException, DeltaConcurrentModificationException)
spark.stop()
"""
RUN = """
import runpy, sys
import lakelog.spark.compat as compat
compat.install()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.one_day_in(3, 1)
def test_a_script_for_delta_spark_runs_without_a_change(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [
        "[3, 20, 21, 100, 102, 104]",
        "5",
        "['twenty']",
        "2",
    ]
