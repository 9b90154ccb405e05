"""What the caller of a MERGE asked for, whoever runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from lakelog.core import DeltaLog
    from lakelog.core.engine.merge import MergeClause
    from lakelog.spark.dml.given_frames import GivenFrames


@dataclass(frozen=True, slots=True)
class Merge:
    """One MERGE."""

    spark: SparkSession
    log: DeltaLog
    alias: str | None
    source: DataFrame
    condition: str | Column
    clauses: tuple[MergeClause, ...] = ()
    evolves: bool = False
    frames: GivenFrames | None = None
    """Whose columns the expressions may name."""
