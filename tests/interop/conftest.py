"""A Spark of our own, beside the peer's."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

import pytest

from support.spark_python import WORKERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

os.environ.setdefault("PYSPARK_PYTHON", WORKERS)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A classic session for `lakelog.spark`, without any jar of Delta's."""
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .appName("lakelog-interop")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
    )
    with warnings.catch_warnings():
        # PySpark's own: sockets and log streams that it leaves to the garbage collector.
        warnings.simplefilter("ignore")
        session = builder.getOrCreate()
    yield session
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.stop()
