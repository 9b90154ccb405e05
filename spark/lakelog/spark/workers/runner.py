"""Tasks of lakelog's own, run by Spark's executors: one function, and its results."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from lakelog.spark.workers.marked_errors import marked, unwrap_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

__all__ = ["run_on_executors"]

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def run_on_executors(
    spark: SparkSession, run: Callable[[_Task], _Result], tasks: Sequence[_Task]
) -> list[_Result]:
    """Run a function on each task, in Python workers with lakelog; Spark may run a task twice.

    Each task is a row in a partition of its own, so a worker receives its task and no other.

    Args:
        spark: a session, classic or Connect.
        run: takes a task.
        tasks: picklable, as are the results; at least one.

    Returns:
        The results, in the order of the tasks.

    Raises:
        DeltaError: what a task raised.
        OSError: the same.
    """
    from lakelog.spark.workers.pyfiles import ship

    ship(spark)

    def answered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with marked():
            for batch in batches:
                for number, task in zip(*(each.to_pylist() for each in batch.columns), strict=True):
                    found = pickle.dumps(run(pickle.loads(task)))
                    yield pa.record_batch(
                        [
                            pa.array([number], pa.int64()),
                            pa.array([found], pa.binary()),
                        ],
                        names=["number", "result"],
                    )

    columns = {"number": range(len(tasks)), "task": [pickle.dumps(each) for each in tasks]}
    rows = spark.createDataFrame(pa.table(columns))
    # By range and not by hash: Spark samples so few numbers in full, and cuts between each two.
    rows = rows.repartitionByRange(len(tasks), "number")
    try:
        found = rows.mapInArrow(answered, "number bigint, result binary").toArrow()
    except Exception as exc:
        error = unwrap_error(exc)
        if error is None:
            raise
        raise error from exc
    pairs = zip(found["number"].to_pylist(), found["result"].to_pylist(), strict=True)
    return [pickle.loads(each) for _, each in sorted(pairs)]
