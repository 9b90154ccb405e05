"""The examples in PySpark's own readers and writers give what they gave, after `enable`."""

from __future__ import annotations

import doctest
import threading
import time
from typing import TYPE_CHECKING

import pyspark.sql.readwriter
import pyspark.sql.streaming.readwriter
import pytest

import lakelog.spark as delta

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from pyspark.sql import SparkSession

PASSING = {"batch": 25, "streams": 22}
"""How many docstrings of each module must say what is written there; later versions have more."""
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run(
    module: ModuleType, spark: SparkSession, wanted: set[str] | None = None
) -> tuple[int, dict[str, str]]:
    """How many docstrings passed, and what the others said that was not written there."""
    found: dict[str, str] = {}
    passed = 0
    names = {**vars(module), "spark": spark}
    for each in doctest.DocTestFinder().find(module, globs=names):
        if not each.examples or (wanted is not None and each.name not in wanted):
            continue
        said: list[str] = []
        doctest.DocTestRunner(optionflags=_FLAGS).run(each, out=said.append)
        if said:
            found[each.name] = "".join(said)
        passed += not said
    return passed, found


@pytest.mark.parametrize(
    ("name", "module"),
    [("batch", pyspark.sql.readwriter), ("streams", pyspark.sql.streaming.readwriter)],
)
@pytest.mark.one_day_in(4)
def test_other_formats_are_as_without_us(
    classic_spark: SparkSession,
    tmp_path: Path,
    name: str,
    module: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spark = classic_spark
    of_examples, really = threading.get_ident(), time.sleep

    def sleep(seconds: float) -> None:
        """Not for the examples of streams, which let each query run for three seconds."""
        if threading.get_ident() != of_examples:
            really(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    spark.sql(f"CREATE DATABASE doctests LOCATION '{tmp_path}'")
    spark.catalog.setCurrentDatabase("doctests")
    try:
        delta.enable(spark)
        try:
            passed, ours = run(module, spark)
        finally:
            delta.disable(spark)
        # What fails in this session is left, such as an example that takes a parser to be there.
        plain = run(module, spark, set(ours))[1] if ours else {}
    finally:
        for query in spark.streams.active:  # an example that fails leaves its query
            query.stop()
        spark.catalog.setCurrentDatabase("default")
        spark.sql("DROP DATABASE doctests CASCADE")
    assert passed >= PASSING[name]
    assert set(ours) == set(plain), "\n".join(ours[each] for each in set(ours) - set(plain))
