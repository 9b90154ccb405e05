"""Rows of the table that several rows of the source match."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pyspark.sql import functions as sf

from lakelog.core.compute import pc
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.dml.source import NUMBER, source_column
from lakelog.spark.reading.positions import FILE, ROW

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from lakelog.spark.dml.source import MergeSource

__all__ = ["refuse_many_matches"]

_SHOWN = 5


def refuse_many_matches(
    pairs: pa.Table, source: MergeSource, keys: Sequence[str], table: str
) -> None:
    """Refuse pairs that do not say which source row changes a row.

    Args:
        pairs: `FILE`, `ROW` and `NUMBER` of rows that match and matter.
        source: has the rows with these numbers.
        keys: its columns to show; all where there are none.
        table: the table's URI.

    Raises:
        DeltaAnalysisError: a row is in several pairs; shows the source's rows.
    """
    if pairs.num_rows < 2:
        return
    counts = pairs.group_by([FILE, ROW]).aggregate([(NUMBER, "count"), (NUMBER, "min")])
    many = counts.filter(pc.greater(counts[f"{NUMBER}_count"], 1))
    if many.num_rows:
        _refuse(many, source, keys, table)


def _refuse(many: pa.Table, source: MergeSource, keys: Sequence[str], table: str) -> NoReturn:
    names = list(keys) or source.schema.names
    first = pc.unique(many[f"{NUMBER}_min"])[:_SHOWN].to_pylist()
    columns = [source_column(source.schema, name).alias(name) for name in names]
    rows = source.df.where(sf.col(NUMBER).isin(first)).select(*columns).collect()
    shown = [", ".join(f"{n} = {v!r}" for n, v in zip(names, row, strict=True)) for row in rows]
    raise DeltaAnalysisError(
        "[DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE] Cannot perform Merge as multiple "
        "source rows matched and attempted to modify the same target row in the Delta table in "
        f"possibly conflicting ways: {many.num_rows} rows of {table} are matched more than once, "
        f"among them by the source rows with {'; '.join(shown)}. Keep one source row for each "
        "row of the table before the merge.",
        table=table,
        rows=many.num_rows,
        keys=shown,
    )
