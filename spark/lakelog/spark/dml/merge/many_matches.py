"""Rows of the table that several rows of the source match."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pyspark.sql import functions as sf

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.dml.merge.numbered_source import NUMBER, source_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.spark.dml.merge.changed_positions import ManyMatches
    from lakelog.spark.dml.merge.numbered_source import MergeSource


def refuse_many_matches(
    many: ManyMatches, source: MergeSource, keys: Sequence[str], table: str
) -> NoReturn:
    """Refuse pairs that do not say which source row changes a row.

    Args:
        many: the rows that are in several pairs.
        source: has the rows with their numbers.
        keys: its columns to show; all where there are none.
        table: the table's URI.

    Raises:
        DeltaAnalysisError: always; shows the source's rows.
    """
    names = list(keys) or source.schema.names
    columns = [source_column(source.schema, name).alias(name) for name in names]
    rows = source.df.where(sf.col(NUMBER).isin(many.numbers)).select(*columns).collect()
    shown = [", ".join(f"{n} = {v!r}" for n, v in zip(names, row, strict=True)) for row in rows]
    raise DeltaAnalysisError(
        "[DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE] Cannot perform Merge as multiple "
        "source rows matched and attempted to modify the same target row in the Delta table in "
        f"possibly conflicting ways: {many.rows} rows of {table} are matched more than once, "
        f"among them by the source rows with {'; '.join(shown)}. Keep one source row for each "
        "row of the table before the merge.",
        table=table,
        rows=many.rows,
        keys=shown,
    )
