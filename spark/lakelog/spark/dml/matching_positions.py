"""The rows for which a condition is true, by file and position: a job that returns bitmaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from lakelog.core.engine.log import to_add_files
from lakelog.core.engine.values import pc
from lakelog.spark.reading.row_positions import FILE, ROW
from lakelog.spark.session.unlogged import analyse
from lakelog.spark.types.path_forms import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from lakelog.core import Snapshot

_BUCKET_ROWS = 1 << 15
"""Bits of one of Spark's bitmaps."""
_NUMBER = "__lakelog_number"


def hit_positions(rows: DataFrame, numbers: Mapping[str, int]) -> dict[int, dict[int, bytes]]:
    """Where some rows are: number of the file -> first position -> bits of the rows from there.

    Args:
        rows: have `FILE` and `ROW`.
        numbers: of the files, by the values of `FILE`.
    """
    found = bitmaps(rows.select(FILE, ROW)).toArrow()
    hits: dict[int, dict[int, bytes]] = {}
    for file, start, bits in zip(*(each.to_pylist() for each in found.columns), strict=True):
        hits.setdefault(numbers[file], {})[start] = bits
    return hits


def bitmaps(rows: DataFrame, keys: Sequence[str] = (), counts: Sequence[Column] = ()) -> DataFrame:
    """Where some rows are, as bitmaps of 32,768 rows each: few, however many rows there are.

    Columns: `FILE`, `keys`, the position of the bitmap's first row, `counts`, and the bits.

    Args:
        rows: have `FILE`, `ROW` and `keys`; one that is there twice is one bit.
        keys: columns whose values have bitmaps of their own.
        counts: other aggregates of each bitmap's rows.
    """
    # Spark counts from 1 here: bucket 1 has the numbers from 1 to 32768.
    number = f"({ROW} + 1)"
    start = f"(bitmap_bucket_number({number}) - 1) * {_BUCKET_ROWS} AS __lakelog_start"
    bits = f"bitmap_construct_agg(bitmap_bit_position({number})) AS __lakelog_bits"
    return rows.groupBy(FILE, *keys, sf.expr(start)).agg(*counts, sf.expr(bits))


def partitions_matching(
    spark: SparkSession, snapshot: Snapshot, files: pa.Table, condition: Column, alias: str | None
) -> pa.Array[Any] | None:
    """For each file whether every row of it meets a condition on partition columns.

    Args:
        spark: a session, classic or Connect.
        snapshot: the version.
        files: rows of its `file_table`.
        condition: of the user.
        alias: what the condition calls the table.

    Returns:
        `None` where the condition needs other columns.

    Raises:
        CorruptLogError: a partition value can't be read.
    """
    from pyspark.errors import AnalysisException

    from lakelog.core.engine.scan import readable_partitions
    from lakelog.spark.types.spark_types import to_spark_schema

    if not snapshot.partition_columns:
        return None
    schema = to_spark_schema(snapshot.partition_schema)
    empty = spark.createDataFrame([], schema)
    try:
        analyse((empty if alias is None else empty.alias(alias)).where(condition))
    except AnalysisException:
        return None
    import pyarrow as pa

    if not files.num_rows:  # of which Spark Connect makes no frame
        return pa.nulls(0, pa.bool_())
    values = readable_partitions(snapshot, files).select(snapshot.partition_columns)
    numbers = pa.array(range(files.num_rows), pa.int64())
    frame = spark.createDataFrame(values.append_column(_NUMBER, numbers))
    # The same types as those of the rows; Arrow has a zone for timestamps.
    own = (sf.col(quoted(f.name)).alias(f.name, metadata=f.metadata) for f in schema)
    typed = frame.select(*own, _NUMBER)
    found = (typed if alias is None else typed.alias(alias)).where(condition).select(_NUMBER)
    return pc.is_in(numbers, value_set=found.toArrow()[_NUMBER].combine_chunks())


def row_width(files: pa.Table) -> float:
    """Bytes of a row of some files, as far as their statistics say; of 100 where they do not."""
    adds = list(to_add_files(files))
    counts = [(add.size, add.num_records) for add in adds if add.num_records]
    rows = sum(count for _, count in counts if count)
    return sum(size for size, _ in counts) / rows if rows else 100.0
