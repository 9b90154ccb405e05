"""Numbers of many live files at once, by columns."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

from lakelog.core.engine.log import read_stats
from lakelog.core.engine.values import pc

if TYPE_CHECKING:
    import pyarrow as pa


_counted: Final[dict[int, tuple[weakref.ref[Any], Any]]] = {}
"""By the `id` of a table of files, while that table lives: its row counts."""


def row_counts(files: pa.Table) -> Any:
    """The live rows of each file, null where its statistics do not say.

    Args:
        files: rows of `FILE_SCHEMA`.
    """
    # To parse the statistics of a million files takes a second, and what is shown of a version
    # asks for its counts in many places.
    key = id(files)
    held = _counted.get(key)
    if held is not None and held[0]() is files:
        return held[1]
    counts = _row_counts(files)
    gone = weakref.ref(files, lambda ref: _forget(key, ref))
    _counted[key] = gone, counts
    return counts


def _forget(key: int, ref: weakref.ref[Any]) -> None:
    # Another table may have the same address by now.
    held = _counted.get(key)
    if held is not None and held[0] is ref:
        del _counted[key]


def _row_counts(files: pa.Table) -> Any:
    counts = read_stats(files["stats"], {}).num_records
    # Statistics also count the rows that a deletion vector takes out of a file.
    deleted = pc.struct_field(files["deletion_vector"], "cardinality")
    return pc.subtract(counts, pc.fill_null(deleted, 0).combine_chunks())


def total(counts: Any) -> tuple[int | None, int]:
    """The sum, and how many are unknown; no sum where all are."""
    unknown = int(counts.null_count)
    if unknown == len(counts) and unknown:
        return None, unknown
    return int(pc.sum(counts).as_py() or 0), unknown
