"""A Spark whose Hadoop opens `s3a://`: lakelog takes Spark's own reader there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap

import pytest

from lakelog.core import DeltaLog
from support.backends import backend_of
from support.delta_spark import PeerUnavailableError
from support.delta_spark_s3 import s3a_jars
from support.fault_proxy import FaultProxy
from support.samples import ids
from support.spark_python import WORKERS

JOB = """
    import json
    import os
    import sys

    from pyspark.sql import SparkSession

    import lakelog.spark as delta

    jars, table = sys.argv[1:]
    builder = SparkSession.builder.master("local[2]")
    builder = builder.config("spark.driver.memory", "1g").config("spark.jars", jars)
    for key, value in json.loads(os.environ["CONF"]).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()

    rows = spark.range(0, 4000, 1, 2).selectExpr("id", "id % 3 AS p")
    delta.write(rows).partitionBy("p").save(table)
    frame = delta.read(spark).load(table)
    plan = frame._jdf.queryExecution().toString()
    assert "MapInArrow" not in plan and "parquet" in plan, plan
    assert frame.where("p = 1").count() == 1333

    spark.conf.set("spark.lakelog.write.path", "native")
    more = delta.write(rows.selectExpr("id + 4000 AS id", "p")).mode("append")
    try:
        more.save(table)
    except OSError as exc:
        assert "Spark wrote 4000 rows" in str(exc), exc
    else:
        raise AssertionError("a lost file was committed")
    assert delta.read(spark).load(table).count() == 4000
    more.save(table)
    assert delta.read(spark).load(table).count() == 8000
    spark.conf.set("spark.lakelog.read.path", "arrow")
    assert delta.read(spark).load(table).count() == 8000
    spark.conf.set("spark.lakelog.write.path", "arrow")
    lost = delta.write(rows).mode("append")
    try:
        lost.save(table + "-arrow")
    except Exception as exc:
        assert "written and acknowledged" in str(exc), exc
    else:
        raise AssertionError("a lost file of the executors' was committed")
    lost.save(table + "-arrow")
    assert delta.read(spark).load(table + "-arrow").count() == 4000
    print("native and arrow agree")
    spark.stop()
"""


@pytest.mark.xdist_group("s3 and dynamodb on the jvm")
@pytest.mark.needs("minio", "s3a")
@pytest.mark.one_day_in(6, 3)
def test_auto_reads_natively_where_the_connector_is_there(request, tmp_path):
    backend = backend_of("minio", request)
    try:
        jars = ",".join(map(str, s3a_jars()))
    except PeerUnavailableError as exc:
        pytest.skip(str(exc))
    script = tmp_path / "job.py"
    script.write_text(textwrap.dedent(JOB))
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    env |= {"PYSPARK_PYTHON": WORKERS, "SPARK_LOCAL_IP": "127.0.0.1"}
    env["SPARK_SUBMIT_OPTS"] = os.environ["SPARK_SUBMIT_OPTS"]
    endpoint = "spark.hadoop.fs.s3a.endpoint"
    with FaultProxy(backend.conf[endpoint]) as proxy:
        # Of what Spark's own writer sends, one file does not arrive.
        proxy.arm("html:200", re.compile(rb"^PUT [^ ]*/write-[^ ]*/part-"))
        proxy.arm("html:200", re.compile(rb"^PUT [^ ]*/t-arrow/part-"))
        done = subprocess.run(
            [sys.executable, str(script), jars, backend.uri("t")],
            env=env | {"CONF": json.dumps({**backend.conf, endpoint: proxy.url})},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert len(proxy.fired) == 2
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    assert "native and arrow agree" in done.stdout
    assert "can't open" not in done.stderr
    log = DeltaLog.for_table(backend.uri("t"), backend.conf)
    assert ids(log.snapshot.to_arrow()) == list(range(8000))
