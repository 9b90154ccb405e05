"""Which names `enable` takes over: of Delta tables in catalogs that lakelog asks, and paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.format.claims import is_ours
from lakelog.spark.names.identifiers import parse, path_in
from lakelog.spark.names.lookup import find

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_our_name(spark: SparkSession, name: object) -> bool:
    """Whether a name means a Delta table that this session leaves to lakelog.

    Args:
        spark: the session, whose catalog is asked where the answer is not known.
        name: what a script passes; text that is not a name is left to Spark, which says so.
    """
    if not isinstance(name, str):
        return False
    try:
        parts = parse(name)
    except DeltaAnalysisError:
        return False
    if path_in(parts) is not None:
        return is_ours(spark, parts[-2])
    entry = find(spark, parts)
    return entry is not None and entry.is_delta and is_ours(spark, entry.provider)


def is_governed_name(spark: SparkSession, name: object) -> bool:
    """Whether a name is one of a catalog that is not Spark's own, and left to lakelog.

    Args:
        spark: see `is_our_name`.
        name: see `is_our_name`.
    """
    if not is_our_name(spark, name):
        return False
    parts = parse(str(name))
    entry = None if path_in(parts) is not None else find(spark, parts)
    return entry is not None and entry.is_governed


def is_our_view(spark: SparkSession, name: object) -> bool:
    """Whether a name means a view that may read Delta tables which this session leaves to lakelog.

    Args:
        spark: see `is_our_name`.
        name: see `is_our_name`.
    """
    if not isinstance(name, str) or not is_ours(spark, "delta"):
        return False
    try:
        parts = parse(name)
    except DeltaAnalysisError:
        return False
    entry = None if path_in(parts) is not None else find(spark, parts)
    return entry is not None and entry.view is not None
