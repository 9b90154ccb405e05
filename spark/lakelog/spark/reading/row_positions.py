"""Rows with their places: the file that each row is in, and its position there.

Commands that change rows find them by a DataFrame and then say, by file and position, which rows
are meant (PROTOCOL.md, "Deletion Vectors": positions count all rows of a file, deleted ones too).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

FILE = "__lakelog_file"
"""The column that says which file a row is in, by a key of `PositionedRows.numbers`."""

ROW = "__lakelog_row"
"""The column of positions, from 0."""

SIZE = "__lakelog_size"
"""The column of the size in bytes of the file that each row is in."""

METADATA = "_metadata"
"""What Spark calls the struct of facts about the file of each row."""
METADATA_TYPE = StructType(
    [
        StructField("file_path", StringType()),
        StructField("file_name", StringType()),
        StructField("file_size", LongType()),
        StructField("file_block_start", LongType()),
        StructField("file_block_length", LongType()),
        StructField("file_modification_time", TimestampType()),
        StructField("row_index", LongType()),
    ]
)
"""What Spark's Parquet reader has in it."""

PLACE_FIELDS = (StructField(FILE, StringType()), StructField(ROW, LongType()))


@dataclass(frozen=True, slots=True)
class PositionedRows:
    """The rows of some files of a snapshot, without those that deletion vectors removed."""

    df: DataFrame
    """The table's columns, `FILE` and `ROW`; `METADATA`, where it was asked for."""
    numbers: Mapping[str, int]
    """A value of `FILE` -> the number of the file, as a row of the file table that was read."""


def with_places(schema: StructType, *, metadata: bool = False) -> StructType:
    """A schema with `FILE` and `ROW`, and perhaps `METADATA`, after its columns."""
    more = [StructField(METADATA, METADATA_TYPE)] if metadata else []
    return StructType([*schema.fields, *PLACE_FIELDS, *more])
