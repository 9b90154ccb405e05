"""Statistics that a footer lacks, read from the file's columns.

pyarrow leaves NaN out of the bounds that it writes, and INT96 timestamps have none. Both are common
in files that are converted to a table, and a file without the bounds of one column has none at all
(`stats`), so those columns are worth reading.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.compute import pc
from lakelog.core.portable.leaves import leaf_columns, leaves

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_Path = tuple[str, ...]
_BATCH_ROWS = 1 << 16
_UNIT = "us"
_CALENDARS_AGREE = -2_208_988_800 * 10**9
"""1900 in nanoseconds: of earlier INT96 values only Spark knows which calendar they are in."""


@dataclass(slots=True)
class Times:
    """The values of an INT96 column."""

    nulls: int = 0
    ends: tuple[int, int] | None = None
    """Least and greatest in nanoseconds; `None` where there are none, or they are uncertain."""

    def take(self, values: Any) -> None:
        """Add values, as timestamps of microseconds."""
        self.nulls += values.null_count
        found = pc.min_max(values.cast(pa.int64()))
        least, most = found["min"].as_py(), found["max"].as_py()
        if least is not None:
            known = self.ends or (least * 1000, most * 1000)
            self.ends = min(known[0], least * 1000), max(known[1], most * 1000)


@dataclass(slots=True)
class FooterGaps:
    """What was read. Paths are the file's."""

    nan_columns: Mapping[_Path, int | None] | None = None
    """Columns of floating point that hold a NaN -> how many nulls they hold; `None` where the
    columns were not read, since the footer shows NaN."""
    times: dict[_Path, Times] = field(default_factory=dict)
    """The values of INT96 columns."""


def read_gaps(source: Any, footer: Any, wanted: Collection[_Path]) -> FooterGaps:
    """Read the columns whose bounds a footer lacks, a piece at a time.

    Args:
        source: the file, open.
        footer: its `pyarrow.parquet.FileMetaData`.
        wanted: the columns that get statistics, in lower case.

    Returns:
        What was read; of a file by Spark, whose footer shows a NaN, INT96 columns alone.
    """
    import pyarrow.parquet as pq

    shows_nan = (footer.created_by or "").startswith("parquet-mr")
    floats, times = [], []
    for index, leaf in enumerate(leaves(footer.schema.to_arrow_schema())):
        if not leaf.plain or tuple(part.lower() for part in leaf.path) not in wanted:
            continue
        if pa.types.is_floating(leaf.type) and not shows_nan:
            floats.append(leaf.path)
        elif footer.schema.column(index).physical_type == "INT96":
            times.append(leaf.path)
    nans, found = set[_Path](), {path: Times() for path in times}
    nulls = dict.fromkeys(floats, 0)
    columns = [".".join(path) for path in (*floats, *times)]
    if columns:
        file = pq.ParquetFile(source, metadata=footer, coerce_int96_timestamp_unit=_UNIT)
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
            rows = pa.Table.from_batches([batch])
            for path, values in leaf_columns(rows, floats).items():
                nulls[path] += values.null_count
                if pc.any(pc.is_nan(values)).as_py():
                    nans.add(path)
            for path, values in leaf_columns(rows, times).items():
                found[path].take(values)
    for each in found.values():
        if each.ends and each.ends[0] < _CALENDARS_AGREE:
            each.ends = None
    return FooterGaps(None if shows_nan else {path: nulls[path] for path in nans}, found)
