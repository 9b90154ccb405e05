"""Where rows that stay are copied: in threads of this process, or on the executors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.engine.dml import Copied, CopyTask, run_in_threads
from lakelog.spark.workers.executor_tasks import run_on_executors
from lakelog.spark.workers.filesystems import for_workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyarrow.fs import FileSystem
    from pyspark.sql import SparkSession

_HERE_BYTES = 256 << 20
"""Up to so much of data files is copied here, where no Python worker has to start."""


def copied_by_spark(spark: SparkSession, tasks: Sequence[CopyTask]) -> Iterable[Copied]:
    """Run tasks that copy rows; see `RowRewrite`.

    Args:
        spark: a session, classic or Connect.
        tasks: what to copy.
    """
    size = sum(file.add.size for task in tasks for file in task.files)
    filesystem = tasks[0].way.data.filesystem
    in_process = filesystem is not None and filesystem.type_name.endswith("memory")
    if size <= _HERE_BYTES or in_process:
        return run_in_threads(tasks)
    copied = run_on_executors(spark, CopyTask.run, _sent(tasks))
    return run_in_threads(tasks) if copied is None else copied


def _sent(tasks: Sequence[CopyTask]) -> list[CopyTask]:
    """The tasks with file systems that can travel, each of them once."""
    sent: dict[int, FileSystem] = {}

    def travelling(filesystem: FileSystem) -> FileSystem:
        return sent.setdefault(id(filesystem), for_workers(filesystem))

    way = tasks[0].way
    data, changes = (
        None
        if plan is None or plan.filesystem is None
        else replace(plan, filesystem=travelling(plan.filesystem))
        for plan in (way.data, way.changes)
    )
    way = replace(way, data=data or way.data, changes=changes or way.changes)
    return [
        CopyTask(
            way,
            [replace(file, filesystem=travelling(file.filesystem)) for file in task.files],
            task.number,
        )
        for task in tasks
    ]
