"""Tasks of lakelog's own, run by Spark's executors: one function, and its results."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, TypeVar

from lakelog.spark.workers.marked_errors import marked, unwrap_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["run_on_executors"]

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def run_on_executors(
    spark: SparkSession, run: Callable[[_Task], _Result], tasks: Sequence[_Task]
) -> list[_Result]:
    """Run a function on each task, in Python workers with lakelog; Spark may run a task twice.

    Args:
        spark: a session, classic or Connect.
        run: takes a task; is pickled with all tasks.
        tasks: picklable, as are the results.

    Returns:
        The results, in the order of the tasks.

    Raises:
        DeltaError: what a task raised.
        OSError: the same.
    """
    from lakelog.spark.workers.pyfiles import ship

    ship(spark)

    def numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as arrow

        with marked():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    found = pickle.dumps(run(tasks[number]))
                    yield arrow.record_batch(
                        [
                            arrow.array([number], arrow.int64()),
                            arrow.array([found], arrow.binary()),
                        ],
                        names=["number", "result"],
                    )

    numbers = spark.range(0, len(tasks), 1, len(tasks))
    try:
        found = numbers.mapInArrow(numbered, "number bigint, result binary").toArrow()
    except Exception as exc:
        error = unwrap_error(exc)
        if error is None:
            raise
        raise error from exc
    pairs = zip(found["number"].to_pylist(), found["result"].to_pylist(), strict=True)
    return [pickle.loads(each) for _, each in sorted(pairs)]
