"""The arguments of `DeltaTable.convertToDelta`, translated for the core."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import StructType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType as SparkStructType

_PARQUET = re.compile(r"parquet\.`([^`]+)`", re.IGNORECASE)
_OTHER_FORMAT = re.compile(r"\w+\.`[^`]*/[^`]*`")


def parquet_folder(identifier: str) -> str:
    """The folder that an identifier as ``parquet.`/path` `` names.

    Raises:
        DeltaAnalysisError: a name in a catalog, or another format.
    """
    found = _PARQUET.fullmatch(identifier.strip())
    if found is None:
        other = _OTHER_FORMAT.fullmatch(identifier.strip())
        condition = "CONVERT_NON_PARQUET_TABLE" if other else "MISSING_PROVIDER_FOR_CONVERT"
        raise DeltaAnalysisError(
            f"[DELTA_{condition}] {identifier!r} does not name a folder of "
            "Parquet files. Write parquet.`/path/of/the/folder`; lakelog can't convert catalog "
            "tables or other formats.",
            identifier=identifier,
        )
    return found[1]


def partition_schema(spark: SparkSession, given: str | SparkStructType | None) -> StructType | None:
    """The partition columns, as DDL (`day DATE, n INT`) or as PySpark's schema."""
    if given is None:
        return None
    if isinstance(given, str):
        given = spark.createDataFrame([], given).schema
    return StructType.from_json(given.json())
