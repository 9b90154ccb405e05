"""DELETE and UPDATE cases played by lakelog on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.spark import DeltaTable

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from support.row_changes.cases import Step


def run_on_spark(spark: SparkSession, step: Step, path: Path) -> dict[str, Any]:
    """Do a step to the table at a path; it returns nothing."""
    table = DeltaTable.forPath(spark, str(path))
    if step.alias is not None:
        table = table.alias(step.alias)
    if step.values:
        table.update(step.condition, step.values)
    else:
        table.delete(step.condition)
    return {}
