"""Where files are compacted: in threads of this process, or on the executors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.engine.maintenance import BinTask
from lakelog.spark.session.job_errors import job_errors
from lakelog.spark.workers.executor_tasks import run_on_executors
from lakelog.spark.workers.filesystems import for_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pyarrow.fs import FileSystem
    from pyspark.sql import SparkSession

_HERE_BYTES = 1 << 30
"""Up to so much of data files is rewritten here, where no Python worker has to start."""


def rewritten_by_spark(
    spark: SparkSession, size: int, make: Callable[[], Sequence[BinTask]]
) -> list[list[tuple[Any, ...]]] | None:
    """Rewrite bins on the executors, one in each task.

    Args:
        spark: a session, classic or Connect.
        size: bytes of all files.
        make: gives the tasks.

    Returns:
        `None` where this process does it: there is little to do, or the executors can't.
    """
    if size <= _HERE_BYTES:
        return None
    tasks = make()
    filesystem = tasks[0].way.plan.filesystem
    if filesystem is not None and filesystem.type_name.endswith("memory"):
        return None
    way = tasks[0].way
    with job_errors(way.table, way.version):
        return run_on_executors(spark, BinTask.run, _sent(tasks))


def _sent(tasks: Sequence[BinTask]) -> list[BinTask]:
    """The tasks with file systems that can travel, each of them once."""
    sent: dict[int, FileSystem] = {}

    def travelling(filesystem: FileSystem) -> FileSystem:
        if id(filesystem) not in sent:
            sent[id(filesystem)] = for_workers(filesystem)
        return sent[id(filesystem)]

    way = tasks[0].way
    if way.plan.filesystem is not None:
        plan = replace(way.plan, filesystem=travelling(way.plan.filesystem))
        way = replace(way, plan=plan)
    return [
        replace(
            task,
            way=way,
            files=[
                replace(
                    file,
                    filesystem=travelling(file.filesystem),
                    vectors=travelling(file.vectors),
                )
                for file in task.files
            ],
        )
        for task in tasks
    ]
