"""Tasks of lakelog's own, run by Spark's executors: a function and its results, or rows."""

from __future__ import annotations

import logging
import pickle
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import pyarrow as pa

from lakelog.core.engine.values import array_of
from lakelog.spark.workers.marked_errors import lacks_pyarrow, marked, unwrap_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

logger: logging.Logger = logging.getLogger("lakelog")
_MOST_COUNTED: Final = 1 << 31
_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def run_on_executors(
    spark: SparkSession, run: Callable[[_Task], _Result], tasks: Sequence[_Task]
) -> list[_Result] | None:
    """Run a function on each task, in Python workers with lakelog; Spark may run a task twice.

    Each task is a row in a partition of its own, so a worker receives its task and no other.

    Args:
        spark: a session, classic or Connect.
        run: takes a task.
        tasks: picklable, as are the results; at least one.

    Returns:
        The results, in the order of the tasks; `None`, with a warning, where the executors' Python
        has no pyarrow, and this process is to do them.

    Raises:
        DeltaError: what a task raised.
        OSError: the same.
    """
    from pyspark import cloudpickle

    from lakelog.spark.workers.pyfiles import ship

    ship(spark)
    # Not by the closure, whose modules are imported before `lakelog.spark`, which has what stands
    # in for a package that a worker lacks.
    sent = cloudpickle.dumps(run)  # type: ignore[no-untyped-call]  # PySpark

    def answered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with marked():
            work = pickle.loads(sent)
            for batch in batches:
                for number, task in zip(*(each.to_pylist() for each in batch.columns), strict=True):
                    found = pickle.dumps(work(pickle.loads(task)))
                    yield pa.record_batch(
                        [
                            array_of([number], pa.int64()),
                            array_of([found], pa.binary()),
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
        if error is not None:
            raise error from exc
        if not lacks_pyarrow(exc):
            raise
        logger.warning(
            "The executors' Python has no pyarrow that Spark can use, so the driver does %d tasks "
            "of theirs. Set PYSPARK_PYTHON to a Python with pyarrow, or install it there.",
            len(tasks),
        )
        return None
    pairs = zip(found["number"].to_pylist(), found["result"].to_pylist(), strict=True)
    return [pickle.loads(each) for _, each in sorted(pairs)]


class RowTasks(Protocol):
    """Tasks whose results are rows: too many to be brought here, or to be made before they are
    needed.
    """

    def batches(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        ...


def rows_on_executors(numbers: DataFrame, tasks: RowTasks, schema: StructType | str) -> DataFrame:
    """The rows of tasks, made in Python workers with lakelog when the DataFrame runs.

    Args:
        numbers: of the tasks, as `task_numbers` gives them.
        tasks: picklable; sent to the executors whole.
        schema: of the rows.
    """

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with marked():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from tasks.batches(number)

    return numbers.mapInArrow(rows, schema)


def task_numbers(spark: SparkSession, tasks: int, size: int) -> DataFrame:
    """The numbers of some tasks, each in a partition of its own, for executors that have lakelog.

    Args:
        spark: a session, classic or Connect.
        tasks: how many.
        size: bytes of what the tasks read.
    """
    from lakelog.spark.workers.pyfiles import ship

    ship(spark)
    # Spark guesses the size of the result by that of the input. Task numbers alone would be
    # so small that a join broadcasts a table of any size; so each is at the end of a run
    # of numbers, made and dropped within the JVM, that weighs about what the files do.
    run = max(1, min(size // 8, _MOST_COUNTED) // tasks)
    numbers = spark.range(0, tasks * run, 1, tasks).where(f"id % {run} = 0")
    return numbers.selectExpr(f"id DIV {run}")
