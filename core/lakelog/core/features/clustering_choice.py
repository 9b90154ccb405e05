"""Which columns a table can be clustered by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from lakelog.core.arguments import refusal
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.table_properties import FEATURE_PREFIX
from lakelog.core.schema import DecimalType, PrimitiveType
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.edits import column_path, nearest_field

if TYPE_CHECKING:
    from lakelog.core.schema import DataType, StructType
    from lakelog.core.schema.edits import ColumnPath

CLUSTERING: Final = {f"{FEATURE_PREFIX}clustering": "supported"}
"""The property that gives a table the feature."""
_MOST: Final = 4
_SORTED: Final = frozenset(
    {
        *("byte", "short", "integer", "long", "float", "double"),
        *("date", "timestamp", "timestamp_ntz", "string"),
    }
)


def checked_columns(
    schema: StructType, columns: str | Iterable[ColumnPath]
) -> list[tuple[str, ...]]:
    """The paths of clustering columns as the schema spells them.

    Args:
        schema: the table's.
        columns: as the user gives them.

    Raises:
        DeltaAnalysisError: columns that a table can't be clustered by.
    """
    found: dict[tuple[str, ...], None] = {}
    given_columns = [columns] if isinstance(columns, str) else columns
    if not isinstance(given_columns, Iterable):
        raise refusal(columns, "cluster_by", "names of columns")
    for each in given_columns:
        given = column_path(each)
        path, field = nearest_field(schema, given)
        if len(path) < len(given) or not _has_order(field.data_type):
            raise DeltaAnalysisError(
                "[DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED] CLUSTER BY is not supported "
                f"because the column {dotted(given)} of type {field.data_type} has no minimum and "
                "maximum. Choose a column of numbers, strings, dates or timestamps.",
                column=dotted(given),
            )
        if path in found:
            raise DeltaAnalysisError(
                "[DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY] CLUSTER BY names the column "
                f"{dotted(path)} twice. Name each column once.",
                column=dotted(path),
            )
        found[path] = None
    if len(found) > _MOST:
        raise DeltaAnalysisError(
            f"[DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS] CLUSTER BY supports up to {_MOST} clustering "
            f"columns, but {len(found)} are given: {', '.join(map(dotted, found))}. Choose those "
            "that most queries filter by.",
            columns=[dotted(path) for path in found],
        )
    return list(found)


def _has_order(kind: DataType) -> bool:
    if isinstance(kind, DecimalType):
        return True
    return isinstance(kind, PrimitiveType) and kind.name in _SORTED
