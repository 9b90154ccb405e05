from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.spark_java import archived_classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.needs("spark_classes")
def test_classic_only_a_session_maps_the_archive_of_classes(classic_spark: SparkSession) -> None:
    """Java says nothing where it leaves the archive out, and every session would start slower."""
    jvm: Any = classic_spark.sparkContext._jvm
    pid = jvm.java.lang.ProcessHandle.current().pid()
    assert str(archived_classes()) in Path(f"/proc/{pid}/maps").read_text()
