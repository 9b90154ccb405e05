"""The rows of a table that tracks rows, with delta-spark's `_metadata`: Spark's, and the row ids.

A row's own file may carry its id and the version that it is of; else both follow from the file's
entry in the log and the row's position in it (PROTOCOL.md, "Row Tracking").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from lakelog.core.engine.rows import MovedRowIds
from lakelog.core.schema import StructType
from lakelog.spark.reading.read_files import positioned_df
from lakelog.spark.reading.row_positions import FILE, ROW
from lakelog.spark.types.path_forms import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelog.core import Snapshot

ROW_FIELDS = ("row_id", "base_row_id", "default_row_commit_version", "row_commit_version")
"""What `_metadata` has besides the fields that it has of every file."""
_METADATA, _OF_FILE = "_metadata", "__lakelog_metadata"
_KNOWN, _BASE, _VERSION = "__lakelog_known", "__lakelog_base", "__lakelog_version"


def with_row_ids(spark: SparkSession, snapshot: Snapshot) -> DataFrame | None:
    """All rows of a version, with `_metadata` at their end.

    Args:
        spark: a session, classic or Connect.
        snapshot: the version.

    Returns:
        `None` where the table does not track rows, or its files are not read by Spark's reader.
    """
    ids = MovedRowIds.from_snapshot(snapshot)
    if ids is None:
        return None
    files, schema = snapshot.file_table, snapshot.schema
    found = positioned_df(spark, snapshot, files, schema=ids.add_id_columns(schema))
    try:
        placed = found.df.select("*", found.df.metadataColumn(_METADATA).alias(_OF_FILE))
        names = placed.select(f"{_OF_FILE}.*").columns
    except AnalysisException:
        return None
    import pyarrow as pa

    numbers = pa.array(list(found.numbers.values()), pa.int64())
    known = pa.table(
        {
            _KNOWN: pa.array(list(found.numbers), pa.string()),
            _BASE: files["base_row_id"].take(numbers),
            _VERSION: files["default_row_commit_version"].take(numbers),
        }
    )
    right = sf.broadcast(spark.createDataFrame(known))
    own_id, own_version = (sf.col(quoted(f.name)) for f in ids.add_id_columns(StructType()))
    row_id = sf.coalesce(own_id, sf.col(_BASE) + sf.col(ROW))
    values = row_id, sf.col(_BASE), sf.col(_VERSION), sf.coalesce(own_version, sf.col(_VERSION))
    shown = sf.struct(
        *(sf.col(f"{_OF_FILE}.{name}").alias(name) for name in names),
        *(each.alias(name) for each, name in zip(values, ROW_FIELDS, strict=True)),
    )
    rows = placed.join(right, sf.col(FILE) == sf.col(_KNOWN), "left")
    return rows.select(*(sf.col(quoted(f.name)) for f in schema), shown.alias(_METADATA))
