"""The Spark part that the writers share: a session, and the wide table of a month."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from settings import Settings

# Six sessions share a small machine: one core and a small heap each, and neither the optimizing
# compiler nor the parallel collector, which pay off only in longer jobs.
_SESSION = {
    "spark.master": "local[1]",
    "spark.driver.memory": "768m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
}


def start_session(settings: Settings, name: str) -> SparkSession:
    """A session of its own, with the user's confs; commits leave events in a file."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    conf = {
        **_SESSION,
        "spark.app.name": f"lakelog flights: {name}",
        "spark.lakelog.commitEvents.path": str(settings.events / f"{name.replace(' ', '-')}.jsonl"),
        # An overwrite then refuses to pass over an append that it did not see; Delta's default
        # lets the two pass each other, and the late rows would stay.
        "spark.databricks.delta.properties.defaults.isolationLevel": "Serializable",
        **settings.conf,
    }
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    # A first job loads most of Spark; without it the processes would not meet at the start.
    spark.range(100).groupBy((f.col("id") % 3).alias("id")).count().collect()
    return spark


def wide(spark: SparkSession, settings: Settings, flights: Path) -> DataFrame:
    """Flights with their airline, plane, destination and weather; as many rows as flights.

    Left joins on keys that `source.prepare` found unique: none adds a row or loses one.
    """
    from pyspark.sql import functions as f

    def load(name: str) -> DataFrame:
        return spark.read.parquet(str(settings.source / f"{name}.parquet"))

    airlines = load("airlines").withColumnRenamed("name", "airline")
    planes = load("planes").select(
        "tailnum",
        f.col("year").alias("plane_year"),
        "manufacturer",
        "model",
        "engines",
        "seats",
    )
    airports = load("airports").select(
        f.col("faa").alias("dest"),
        f.col("name").alias("dest_name"),
        f.col("lat").alias("dest_lat"),
        f.col("lon").alias("dest_lon"),
    )
    weather = load("weather").drop("year", "month", "day", "hour")
    return (
        spark.read.parquet(str(flights))
        .join(f.broadcast(airlines), "carrier", "left")
        .join(f.broadcast(planes), "tailnum", "left")
        .join(f.broadcast(airports), "dest", "left")
        .join(f.broadcast(weather), ["origin", "time_hour"], "left")
    )
