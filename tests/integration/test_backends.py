"""The flights job on every storage, by conf alone: the same functions that the demo runs.

Writers commit at once; the result is read by lakelog in Spark, by lakelog without Spark, and by
deltalake.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import lakelog.spark as delta
from lakelog.core import DeltaLog
from lakelog.core.errors import DeltaConcurrentModificationException
from support import appenders
from support.backends import BACKENDS, backend_of

DEMO = Path(__file__).parents[2] / "examples" / "flights"
MONTHS = (1, 2, 3)


@pytest.fixture(scope="module")
def flights(tmp_path_factory):
    """The demo's own modules, and its source on a slice of the data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DEMO))
        pipeline, settings, source, reader = map(
            importlib.import_module, ("pipeline", "settings", "source", "reader")
        )
    folder = tmp_path_factory.mktemp("flights")
    made = settings.Settings(str(folder), "", months=MONTHS, rows_per_month=60, correct=True)
    made.source.mkdir()
    source.prepare(made)
    return _Flights(made, pipeline, source, reader)


class _Flights:
    def __init__(self, settings, pipeline, source, reader):
        self.settings = settings
        self._pipeline = pipeline
        self._reader = reader
        self.parts = importlib.import_module("settings").PARTS
        found = source.expectation(settings)
        self.expected = {month: (each["rows"], each["miles"]) for month, each in found.items()}

    def delivered(self, spark, month):
        path = self.settings.source / "deliveries" / f"{month}.parquet"
        return self._pipeline.wide(spark, self.settings, path)

    def correct(self, spark, month):
        path = self.settings.source / "flights" / f"{month}.parquet"
        return self._pipeline.wide(spark, self.settings, path)

    def counts(self, frame):
        return self._reader.counts_by_month(frame)


@pytest.fixture(params=BACKENDS)
def backend(request):
    return backend_of(request.param, request)


@pytest.fixture
def session(classic_spark, backend):
    """A session whose conf alone says which storage it is."""
    with backend.chosen(classic_spark):
        yield classic_spark


def again_until_committed(job):
    for _ in range(20):
        try:
            return job()
        except DeltaConcurrentModificationException:
            continue
    return job()


def write_month(flights, spark, table, month):
    rows = flights.delivered(spark, month)
    for part in flights.parts:
        half = rows.where("day <= 15" if part == 1 else "day > 15")
        job = delta.write(half).mode("append").partitionBy("month")
        job = job.option("txnAppId", f"month {month}").option("txnVersion", part)
        again_until_committed(partial(job.save, table))


def as_counter(rows):
    return Counter(json.dumps(row, sort_keys=True, default=str) for row in rows)


@pytest.mark.one_day_in(5, 2)
def test_the_flights_job_ends_with_an_exact_match(flights, session, backend):
    table = backend.uri("flights")

    with ThreadPoolExecutor(len(MONTHS)) as pool:
        jobs = [pool.submit(write_month, flights, session, table, month) for month in MONTHS]
        for each in jobs:
            each.result(timeout=240)
    faulty = flights.settings.faulty_month
    corrected = delta.write(flights.correct(session, faulty)).mode("overwrite")
    corrected.option("replaceWhere", f"month = {faulty}").save(table)

    frame = delta.read(session).load(table)
    log = DeltaLog.for_table(table, backend.conf)
    assert flights.counts(frame) == flights.expected
    assert log.snapshot.version == 2 * len(MONTHS), "six deliveries and a correction"
    first = delta.read(session).option("versionAsOf", 0).load(table).count()
    assert first == int(log.history()[-1].metrics["numOutputRows"])
    assert {add.path.split("/")[0] for add in log.snapshot.files()} == {
        f"month={month}" for month in MONTHS
    }
    rows = log.snapshot.to_arrow().to_pylist()
    assert as_counter(frame.toArrow().to_pylist()) == as_counter(rows)
    assert as_counter(backend.rows_by_deltalake("flights")) == as_counter(rows)


@pytest.mark.one_day_in(5, 2)
def test_spark_and_other_processes_append_at_once(session, backend):
    table = backend.uri("ids")
    schema = "id long, writer string"
    delta.write(session.createDataFrame([(0, "creator")], schema)).save(table)
    others: list[Any] = [
        subprocess.Popen(
            [sys.executable, appenders.__file__, "lakelog", table, str(first), "6"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {appenders.CONF_VARIABLE: json.dumps(backend.conf)},
        )
        for first in (1000, 2000)
    ]
    try:
        for number in (1, 2, 3):
            # More rows than the driver writes by itself: the executors upload.
            rows = session.range(number * 10_000, number * 10_000 + 2000, 1, 2)
            if number == 2:
                for each in others:
                    each.stdin.write("go\n")
                    each.stdin.flush()
            writer = delta.write(rows.selectExpr("id", "'spark' AS writer"))
            again_until_committed(partial(writer.mode("append").save, table))
        said = [each.communicate(timeout=240)[0] for each in others]
    finally:
        for each in others:
            each.kill()
            each.wait()

    appended = [commit["id"] for text in said for commit in json.loads(text.splitlines()[-1])]
    assert len(appended) == 12
    found = sorted(row.id for row in delta.read(session).load(table).select("id").collect())
    expected = [0, *appended, *(n * 10_000 + i for n in (1, 2, 3) for i in range(2000))]
    assert found == sorted(expected)
    assert DeltaLog.for_table(table, backend.conf).snapshot.version == 15
    assert sorted(row["id"] for row in backend.rows_by_deltalake("ids")) == found


@pytest.mark.needs("minio")
def test_the_data_source_and_pysparks_own_methods_reach_object_storage(classic_spark, request):
    backend, spark = backend_of("minio", request), classic_spark
    table = backend.uri("t")
    rows = spark.range(5000).selectExpr("id", "id % 3 AS p")
    with backend.chosen(spark):
        delta.enable(spark)
        try:
            rows.write.format("delta").partitionBy("p").save(table)
            assert spark.read.format("delta").load(table).count() == 5000
        finally:
            delta.disable(spark)
        delta.register(spark)
        rows.write.format("lakelog").mode("append").save(table)
        assert spark.read.format("lakelog").load(table).where("p = 1").count() == 2 * 1667
    options = {key.removeprefix("spark.hadoop."): value for key, value in backend.conf.items()}
    delta.register(spark)
    assert spark.read.format("lakelog").options(**options).load(table).count() == 10_000
    rows.write.format("lakelog").options(**options).mode("overwrite").save(table)
    assert delta.read(spark).options(**options).load(table).count() == 5000
    assert len(backend.rows_by_deltalake("t")) == 5000
