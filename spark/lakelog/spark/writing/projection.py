"""Projections that give data exactly a table's columns: by name, in order, cast, without void.

The result is SQL text for `DataFrame.selectExpr`: one call to the JVM, where a Column object for
each piece costs ten, and the same text works on Spark Connect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.engine.schemas import same_type
from lakelog.core.schema import ArrayType, DataType, MapType, StructField, StructType
from lakelog.spark.types.path_forms import quoted, text_literal
from lakelog.spark.types.type_sql import type_sql

if TYPE_CHECKING:
    from collections.abc import Mapping


def projection(
    source: StructType, target: StructType, filled: Mapping[str, str] | None = None
) -> list[str] | None:
    """The expressions that turn rows of `source` into rows of `target`.

    Columns are found by name, ignoring case; one that `source` lacks is null, or what `filled`
    says. Both schemas must be compatible, as `lakelog.core.schema.schema_evolution` checks.

    Args:
        source: of the rows as they are.
        target: of the rows as they will be.
        filled: column of `target` -> SQL, for columns that `source` lacks.

    Returns:
        One expression a column of `target`, or `None` if `source` is the same already.
    """
    if same_type(source, target):
        return None
    given = filled or {}
    return [
        f"{given.get(each.name) or _field_sql(source, each)} AS {quoted(each.name)}"
        for each in target
    ]


def conform_sql(sql: str, source: DataType, target: DataType, depth: int = 0) -> str:
    """The expression that turns `sql`, of type `source`, into a value of type `target`."""
    if same_type(source, target):
        return sql
    item, inner = f"x{depth}", depth + 1
    match source, target:
        case StructType(), StructType():
            fields = ", ".join(
                f"{text_literal(each.name)}, {_field_sql(source, each, sql, depth)}"
                for each in target
            )
            return f"IF({sql} IS NULL, NULL, named_struct({fields}))"
        case ArrayType(), ArrayType():
            element = conform_sql(item, source.element_type, target.element_type, inner)
            return f"transform({sql}, {item} -> {element})"
        case MapType(), MapType():
            key = conform_sql(item, source.key_type, target.key_type, inner)
            value = conform_sql(f"v{depth}", source.value_type, target.value_type, inner)
            keys = sql if key == item else f"transform_keys({sql}, ({item}, v{depth}) -> {key})"
            if value == f"v{depth}":
                return keys
            return f"transform_values({keys}, ({item}, v{depth}) -> {value})"
    return f"CAST({sql} AS {type_sql(target)})"


def _field_sql(source: StructType, field: StructField, parent: str = "", depth: int = 0) -> str:
    """A field of `source` as the type of `field`; null where `source` has none of that name."""
    found = source.get(field.name)
    if found is None:
        return f"CAST(NULL AS {type_sql(field.data_type)})"
    sql = f"{parent}.{quoted(found.name)}" if parent else quoted(found.name)
    return conform_sql(sql, found.data_type, field.data_type, depth)
