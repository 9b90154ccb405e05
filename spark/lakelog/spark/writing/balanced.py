"""Optimized writes: rows are shuffled before they are written, so that few files come of them.

Without that each task writes a file for each partition that it has rows of. Delta's settings
decide: the option `optimizeWrite`, then `spark.databricks.delta.optimizeWrite.enabled`, then the
table's `delta.autoOptimize.optimizeWrite`. Spark's own REBALANCE does the work: it puts the rows of
a partition together, splits large ones and joins small ones, by their sizes at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.functions import col

from lakelog.core import keys
from lakelog.core.engine.schemas import sql_path
from lakelog.core.engine.write import byte_size
from lakelog.spark.session.temporary_confs import temporary_confs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame

    from lakelog.core import DeltaConf
    from lakelog.spark.writing.options import WriteOptions

_PROPERTIES = ("delta.autoOptimize", "delta.autoOptimize.optimizeWrite")
_SIZE = "spark.sql.adaptive.advisoryPartitionSizeInBytes"


def is_balanced(options: WriteOptions, conf: DeltaConf, properties: Mapping[str, str]) -> bool:
    """Whether rows are shuffled before they are written.

    Args:
        options: the write's.
        conf: the session's.
        properties: the table's.

    Raises:
        DeltaAnalysisError: the conf is neither true nor false.
    """
    if options.optimize_write is not None:
        return options.optimize_write
    of_conf = conf.read(keys.OPTIMIZE_WRITE)
    if of_conf is not None:
        return of_conf
    return any((properties.get(each) or "").strip().lower() == "true" for each in _PROPERTIES)


def balanced(frame: DataFrame, partition_columns: Sequence[str]) -> DataFrame:
    """The same rows, those of a table's partition in as few tasks as their size allows."""
    columns = [col(sql_path([name])) for name in partition_columns]
    return frame.hint("rebalance", *columns)


def together(frame: DataFrame, partition_columns: Sequence[str]) -> DataFrame:
    """The same rows, those of a table's partition in one task, however many there are."""
    if not partition_columns:
        return frame
    return frame.repartition(*(col(sql_path([name])) for name in partition_columns))


def bin_size(frame: DataFrame, conf: DeltaConf) -> AbstractContextManager[None]:
    """While a balanced frame is written, its tasks get as many bytes of a shuffle as Delta's do.

    Raises:
        DeltaAnalysisError: the conf is not a size.
    """
    text = conf.read(keys.OPTIMIZE_WRITE_BIN).strip()
    # A number alone is one of mebibytes, as in Delta.
    where = f"the conf {keys.OPTIMIZE_WRITE_BIN}"
    size = byte_size(f"{text}m" if text.isdecimal() else text, where)
    return temporary_confs(frame.sparkSession, {_SIZE: f"{size}b"})
