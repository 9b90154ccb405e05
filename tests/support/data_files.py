"""Data files written in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.data.file_writer import DataFileWriter

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.core.actions import AddFile
    from lakelog.core.portable.hive_writer import WritePlan
    from lakelog.core.schema import StructType
    from lakelog.core.stats.collect import StatsConfig


def write_table(
    data: pa.Table,
    plan: WritePlan,
    schema: StructType,
    *,
    stats: StatsConfig | None = None,
) -> list[AddFile]:
    """Write one Arrow table; see `DataFileWriter`. On any failure no file is left."""
    with DataFileWriter(plan, schema, stats=stats) as writer:
        writer.write(data)
        return writer.close()
