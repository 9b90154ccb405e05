"""Spark's `_metadata` in the condition of a DELETE or UPDATE: which file a row is in.

Spark hides the column of its reader of files, and finds it by its name. The rows that a command
reads get it as a column of their own, where the condition has its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.dml.given_expressions import text_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakelog.core.schema import StructType

NAME = "_metadata"
_TYPE = (
    "struct<file_path: string, file_name: string, file_size: bigint, file_block_start: bigint, "
    "file_block_length: bigint, file_modification_time: timestamp>"
)


def may_ask(condition: str | Column | None, schema: StructType) -> bool:
    """Whether a condition has the name, and the table has no column of it."""
    asked = condition is not None and NAME in text_of(condition).lower()
    return asked and schema.get(NAME) is None


def with_file_metadata(rows: DataFrame, table: str, *, empty: bool) -> DataFrame:
    """The rows with `_metadata` after their columns.

    Args:
        rows: as they are read of files.
        table: for messages.
        empty: whether there are none, and so no reader that has the column.

    Raises:
        DeltaAnalysisError: Spark does not find the column.
    """
    if empty:
        return rows.withColumn(NAME, sf.lit(None).cast(_TYPE))
    try:
        found = rows.select("*", rows.metadataColumn(NAME).alias(NAME))
        _ = found.schema  # Connect asks Spark only now
    except AnalysisException:
        raise DeltaAnalysisError(
            f"{NAME} is a column of Spark's own reader of files, and the rows of {table} don't "
            "have it here: spark.lakelog.read.path is arrow, Spark's Hadoop can't open the "
            "storage, or Spark Connect does not find it behind mapped columns. Name rows by the "
            "table's columns",
            table=table,
        ) from None
    return found
