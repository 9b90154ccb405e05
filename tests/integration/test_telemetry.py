"""The spans of a Spark job, of all its processes, as a collector gets them."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from support.otlp_collector import collecting

if TYPE_CHECKING:
    from pathlib import Path

JOB = """
    import sys
    from pyspark.sql import SparkSession
    import lakelog.spark as delta

    folder = sys.argv[1]
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "1")
    spark = builder.config("spark.lakelog.telemetry", "otel").getOrCreate()
    frame = spark.createDataFrame([(1, "a"), (2, "b")], "id long, p string")
    delta.write(frame).save(f"{folder}/t")  # sets up what the variables name

    from opentelemetry import trace
    with trace.get_tracer("job").start_as_current_span("job"):
        delta.write(frame.repartition(1)).mode("append").partitionBy("p").save(f"{folder}/p")
        table = delta.DeltaTable.forPath(spark, f"{folder}/t")
        new = spark.createDataFrame([(2, "c"), (3, "d")], "id long, p string")
        merge = table.alias("t").merge(new.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        table.delete("id = 1")
        delta.sql(spark, f"UPDATE delta.`{folder}/t` SET p = 'e' WHERE id = 2")
        delta.sql(spark, f"SELECT count(*) FROM delta.`{folder}/t`").collect()
        delta.register(spark)
        frame.write.format("lakelog").mode("append").save(f"{folder}/t")
        frame.write.mode("append").parquet(f"{folder}/source")
        rows = spark.readStream.schema("id long, p string").parquet(f"{folder}/source")
        stream = delta.write_stream(rows).option("checkpointLocation", f"{folder}/checkpoint")
        query = stream.trigger(availableNow=True).start(f"{folder}/t")
    query.awaitTermination()

    def modules(batches):
        import sys, threading
        for batch in batches:
            names = [each for each in sys.modules if "opentelemetry" in each]
            names += [each.name for each in threading.enumerate() if "Otel" in each.name]
            yield batch.replace_schema_metadata({}).slice(0, 1) if names else batch.slice(0, 0)

    worst = delta.read(spark).load(f"{folder}/t").mapInArrow(modules, "id long, p string")
    assert worst.count() == 0, "an executor has a part of OpenTelemetry"
    spark.stop()
"""


@pytest.mark.one_day_in(3, 1)
def test_the_spans_of_a_job_have_their_parents_across_threads_jobs_and_processes(
    tmp_path: Path,
) -> None:
    with collecting() as collector:
        env = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
        env |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(
            [sys.executable, "-c", dedent(JOB), str(tmp_path)],
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        assert done.returncode == 0, done.stderr[-3000:]
    tree = collector.tree()
    for command in ("write", "merge", "delete"):
        assert f"job > {command} > commit" in tree, "\n".join(tree)
    assert "job > statement > update > commit" in tree, "\n".join(tree)
    assert tree.count("job > statement") == 1
    assert tree.count("job > write > commit") == 1, "\n".join(tree)
    # That of `delta.write` before, and of the process in which `format("lakelog")` commits.
    assert tree.count("write > commit") == 2
    assert "stream.batch > commit" in tree
    (job,) = [each for each in collector.spans if each.name == "job"]
    (batch,) = [each for each in collector.spans if each.name == "lakelog.stream.batch"]
    assert batch.links == (job.span_id,)
    roots = [
        each for each in collector.spans if each.name == "lakelog.command" and not each.parent_id
    ]
    assert [each.links for each in roots if each.links] == [(job.span_id,)]
    assert not [each for each in tree if each.startswith("another")]
    assert {"lakelog.command.duration", "lakelog.stream.batch.duration"} <= collector.metrics
