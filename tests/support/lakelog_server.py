"""lakelog as a process: the commands of `delta_spark_server.py`, in a session after `enable`."""

from __future__ import annotations

from typing import Any

# A neighbour of this file, found because Python runs a script with its folder on the path.
import delta_spark_server  # type: ignore[import-not-found]  # no package, there


def _session(_jars: str, confs: dict[str, str], _how: list[str]) -> Any:
    from pyspark.sql import SparkSession

    import lakelog.spark

    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2")
    for key, value in confs.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    lakelog.spark.enable(spark)
    return spark


if __name__ == "__main__":
    delta_spark_server.main(_session)
