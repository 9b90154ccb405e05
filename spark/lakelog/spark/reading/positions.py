"""Rows with their places: the file that each row is in, and its position there.

Commands that change rows find them by a DataFrame and then say, by file and position, which rows
are meant (PROTOCOL.md, "Deletion Vectors": positions count all rows of a file, deleted ones too).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import LongType, StringType, StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

FILE = "__lakelog_file"
"""The column that says which file a row is in, by a key of `PositionedRows.numbers`."""

ROW = "__lakelog_row"
"""The column of positions, from 0."""

SIZE = "__lakelog_size"
"""The column of the size in bytes of the file that each row is in."""

PLACE_FIELDS = (StructField(FILE, StringType()), StructField(ROW, LongType()))


@dataclass(frozen=True, slots=True)
class PositionedRows:
    """The rows of some files of a snapshot, without those that deletion vectors removed."""

    df: DataFrame
    """The table's columns, `FILE` and `ROW`."""
    numbers: Mapping[str, int]
    """A value of `FILE` -> the number of the file, as a row of the file table that was read."""


def with_places(schema: StructType) -> StructType:
    """A schema with `FILE` and `ROW` after its columns."""
    return StructType([*schema.fields, *PLACE_FIELDS])
