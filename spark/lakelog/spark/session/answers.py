"""Answers of commands: DataFrames of few rows that are here, which a notebook shows as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.core.engine.shown import rows_page

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def answer(
    spark: SparkSession,
    schema: StructType,
    rows: Sequence[tuple[Any, ...]],
    shown: Callable[[], str] | None = None,
) -> DataFrame:
    """A DataFrame of rows that are here.

    Args:
        spark: a session.
        schema: of the rows.
        rows: all of them.
        shown: the HTML that a notebook shows; by default the rows as a table. What is made of the
            DataFrame is shown as Spark shows it.
    """
    frame = spark.createDataFrame(list(rows), schema)
    # Of this object, and not of its class: it stays a DataFrame of Spark in all else.
    vars(frame)["_repr_html_"] = shown or (lambda: rows_page(schema.names, rows))
    return frame
