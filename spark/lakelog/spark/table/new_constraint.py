"""Checking every row with Spark before a table gets a CHECK constraint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException

from lakelog.core.engine.conditions import check_stored
from lakelog.core.engine.tables import new_violation
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.reading.reader import snapshot_df

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakelog.core import OptimisticTransaction


def check_new_constraint(
    spark: SparkSession, txn: OptimisticTransaction, name: str, condition: str
) -> None:
    """Refuse a constraint that is not a condition, or that a row of the table breaks.

    Raises:
        ConstraintViolationError: it is false or null for some row.
        DeltaAnalysisError: Spark can't parse the text as a condition, or it calls what Spark is not
            to run for a table.
    """
    snapshot, table = txn.snapshot, txn.delta_log.table
    assert snapshot is not None
    # What is not run when rows are written can't be kept by any of them.
    check_stored(condition, f"the CHECK constraint {name} of {table}", txn.delta_log.conf)
    try:
        broken = snapshot_df(spark, snapshot).where(f"NOT (({condition}) <=> true)")
        count = broken.count()
    except (AnalysisException, ParseException) as exc:
        raise DeltaAnalysisError(
            f"the constraint {name} ({condition}) is not a condition on the rows of {table}: {exc}",
            constraint=name,
        ) from exc
    if count:
        first = broken.first()
        shown = "" if first is None else f", one of them {first.asDict(recursive=True)}"
        raise new_violation(table, name, condition, count, shown)
