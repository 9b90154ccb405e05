"""MERGE cases played by lakelog on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.spark import DeltaTable
from support.merges.kinds import arrow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from support.merges.cases import MergeCase


def run_on_spark(spark: SparkSession, case: MergeCase, path: Path) -> dict[str, Any]:
    """Run the MERGE of a case on the table at a path; returns what it returns."""
    rows = arrow(case.source, case.source_schema())
    source = spark.createDataFrame(rows).alias("s")
    builder = DeltaTable.forPath(spark, str(path)).alias("t").merge(source, case.condition)
    if case.evolution:
        builder = builder.withSchemaEvolution()
    whens = {"matched": "Matched", "not_matched": "NotMatched", "by_source": "NotMatchedBySource"}
    actions = {
        "update": "Update",
        "update_all": "UpdateAll",
        "delete": "Delete",
        "insert": "Insert",
        "insert_all": "InsertAll",
    }
    for each in case.clauses:
        add = getattr(builder, f"when{whens[each.kind]}{actions[each.action]}")
        match each.action:
            case "update":
                builder = add(each.condition, set=each.values)
            case "insert":
                builder = add(each.condition, values=each.values)
            case _:
                builder = add(each.condition)
    return builder.execute().collect()[0].asDict()
