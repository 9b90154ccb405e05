"""Data files written by the executors' Python workers, straight into the table's Hive layout.

Spark's own partitioned write sorts every task's rows by partition; the writer in
`lakelog.core.portable.hive_writer` keeps a buffer per partition instead. The executors need pyarrow
but not lakelog: the writer's modules travel with the function, by value.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakelog.core.engine.write import PICKLED_BY_VALUE, RESULT_DDL, WritePlan, write_in_arrow
from lakelog.spark.session.session import spark_version
from lakelog.spark.session.temporary_confs import temporary_confs
from lakelog.spark.workers.filesystems import for_workers
from lakelog.spark.workers.marked_errors import unwrap_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_BYTES_OBEYED_SINCE = (4, 3)


def write_on_executors(frame: DataFrame, plan: WritePlan) -> list[tuple[Any, ...]]:
    """Write the rows of a DataFrame to their final place, each task its own files.

    A task that runs twice leaves files that are never reported; the table never refers to them.

    Args:
        frame: with the columns of `plan.schema`, in any order.
        plan: what to write where; its file system must be one that executors reach.

    Returns:
        One tuple a file, in the order of `RESULT_SCHEMA`.

    Raises:
        CatalogError: the credentials that a catalog vended ended before a task did.
        OSError: a task could not write.
    """
    _travel_by_value()
    is_explained = False
    if plan.filesystem is not None and plan.filesystem.type_name.startswith("py::"):
        # Python code of lakelog or of the store's author, which is pickled by name.
        from lakelog.spark.workers.pyfiles import ship

        ship(frame.sparkSession)
        plan = replace(plan, filesystem=for_workers(plan.filesystem))
        is_explained = True  # lakelog is there, to say what failed

    names = list(frame.columns)

    def write_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        named = (each.rename_columns(names) for each in batches)
        written = write_in_arrow(named, plan, part=context.partitionId() if context else 0)
        if not is_explained:
            yield from written
            return
        from lakelog.spark.workers.marked_errors import marked

        with marked():
            yield from written

    # PySpark's `mapInArrow` takes a dot in a column's name for a step into a struct.
    plain = frame.toDF(*(f"c{at}" for at in range(len(names))))
    with temporary_confs(frame.sparkSession, batch_confs(frame.sparkSession)):
        try:
            results = plain.mapInArrow(write_task, RESULT_DDL).toArrow()
        except Exception as exc:
            error = unwrap_error(exc)
            if error is not None:
                raise error from exc
            raise
    return list(zip(*(column.to_pylist() for column in results.columns), strict=True))


def batch_confs(spark: SparkSession) -> dict[str, str]:
    """Confs for larger batches on the way to Python than Spark's own, unless the user chose.

    Each batch is a hand-over between two processes, and a file takes many. What bounds wide rows
    is the limit of bytes, so a Spark that does not keep to one has its own number of rows.
    """
    if spark_version(spark) < _BYTES_OBEYED_SINCE or spark.conf.get(_ROWS, None) is not None:
        return {}
    confs = {_ROWS: "65536"}
    return confs if spark.conf.get(_BYTES, None) is not None else {**confs, _BYTES: "64m"}


def _travel_by_value() -> None:
    """Have cloudpickle send the writer's code along instead of the names of its modules."""
    from pyspark import cloudpickle

    for name in PICKLED_BY_VALUE:
        module = importlib.import_module(name)
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # PySpark
