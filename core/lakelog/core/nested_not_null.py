"""NOT NULL inside arrays and maps, which no expression of a row can check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.column_paths import dotted
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import ArrayType, DataType, MapType, StructField, StructType
from lakelog.core.schema_rules import as_nullable

if TYPE_CHECKING:
    from lakelog.core.conf import DeltaConf

__all__ = ["ALLOW", "enforceable"]

ALLOW = "constraints.allowUnenforcedNotNull.enabled"
"""The conf (under `spark.databricks.delta.`) that lets such marks be dropped in silence."""


def enforceable(schema: StructType, conf: DeltaConf) -> StructType:
    """The schema with no NOT NULL that could not be held.

    Whether an array or a map may itself hold nulls is kept: files say that.

    Args:
        schema: as somebody wants it for a table.
        conf: with `ALLOW`, what can't be held is dropped instead of refused.

    Raises:
        DeltaAnalysisError: something within an array or a map is NOT NULL; names the column.
    """
    allowed = conf.get_bool(ALLOW, False)
    checked = _checked(schema, (), allowed)
    assert isinstance(checked, StructType)  # a struct stays one
    return checked


def _checked(data_type: DataType, path: tuple[str, ...], allowed: bool) -> DataType:
    match data_type:
        case StructType():
            return StructType(
                tuple(
                    f.with_type(_checked(f.data_type, (*path, f.name), allowed)) for f in data_type
                )
            )
        case ArrayType(element, contains_null):
            return ArrayType(_loose(element, "element", path, allowed), contains_null)
        case MapType(key, value, value_contains_null):
            return MapType(
                _loose(key, "key", path, allowed),
                _loose(value, "value", path, allowed),
                value_contains_null,
            )
        case _:
            return data_type


def _loose(inner: DataType, part: str, path: tuple[str, ...], allowed: bool) -> DataType:
    loose = as_nullable(StructType((StructField(part, inner),))).fields[0].data_type
    if loose != inner and not allowed:
        raise DeltaAnalysisError(
            f"[DELTA_NESTED_NOT_NULL_CONSTRAINT] The {part} type of the column {dotted(path)} "
            f"({inner}) holds a NOT NULL. Delta can't hold NOT NULL within arrays and maps: let "
            f"it be null there, or set spark.databricks.delta.{ALLOW}=true to have such marks "
            "left out.",
            column=dotted(path),
        )
    return loose
