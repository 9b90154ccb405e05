"""Tasks of lakelog's own on the executors: each travels alone.

What runs there is defined within the tests: a function of this module would be looked up by its
name, and a server of Spark Connect has workers that do not know the module.
"""

from __future__ import annotations

import os
from operator import itemgetter
from typing import TYPE_CHECKING

import pytest
from pyspark import cloudpickle

from lakelog.core.errors import DataFileMissingError
from lakelog.spark.workers.executor_tasks import run_on_executors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASK_BYTES = 1 << 20


@pytest.mark.connect
def test_what_every_task_receives_does_not_grow_with_the_tasks(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    frames = type(spark.range(1))
    real = frames.mapInArrow

    def measured(self, func, *args, **kwargs):
        sizes.append(len(cloudpickle.dumps(func)))
        return real(self, func, *args, **kwargs)

    monkeypatch.setattr(frames, "mapInArrow", measured)
    for count in (1, 12):
        tasks = [(number, os.urandom(TASK_BYTES)) for number in range(count)]
        assert run_on_executors(spark, itemgetter(0), tasks) == list(range(count))
    few, many = sizes
    assert few == many < TASK_BYTES


@pytest.mark.connect
def test_each_task_has_a_partition_of_its_own(spark: SparkSession) -> None:
    def partition(_: int) -> int:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        return context.partitionId()

    assert run_on_executors(spark, partition, range(25)) == list(range(25))


@pytest.mark.connect
def test_an_error_of_a_task_comes_back_as_it_was(spark: SparkSession) -> None:
    def missing(task: int) -> int:
        if task == 1:
            raise DataFileMissingError("the data file p is missing", path="p")
        return task

    with pytest.raises(DataFileMissingError, match="the data file p is missing") as caught:
        run_on_executors(spark, missing, range(3))
    assert caught.value.fields == {"path": "p"}
