"""The types of columns, from SQL text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.expressions.parse.tree_shapes import is_read
from lakelog.core.expressions.parse.type_names import SQL_TYPES, decimal_type, size_of
from lakelog.core.schema import (
    ArrayType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    type_from_json_value,
)
from lakelog.core.schema.column_paths import dotted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.schema import DataType


def type_of_text(text: str, path: Sequence[str]) -> DataType:
    """The type that text names.

    Args:
        text: of a type, in SQL or as the log has it.
        path: of the column, for messages.

    Raises:
        DeltaAnalysisError: Delta has no such type.
    """
    try:
        # The names of the log's own JSON: `long`, `void`.
        return type_from_json_value(text.strip().lower())
    except ValueError:
        pass
    import sqlglot
    from sqlglot import errors

    try:
        # As the type of a column: of a type that stands alone, sqlglot drops what follows it.
        root: Any = sqlglot.parse_one(f"CREATE TABLE t (x {text})", dialect="spark")
        (column,) = root.this.expressions
        if column.constraints or not is_read(column):
            raise unknown_type(text, path)
        return _type_of_node(column.kind, path)
    except (errors.SqlglotError, AttributeError, ValueError):
        raise unknown_type(text, path) from None


def columns_of_text(text: str) -> StructType | None:
    """The columns of a list such as `id bigint NOT NULL, name string`; `None` for other text.

    Raises:
        DeltaAnalysisError: a type that Delta does not have, or more than NOT NULL and a COMMENT.
    """
    import sqlglot
    from sqlglot import errors, exp

    try:
        root = sqlglot.parse_one(f"CREATE TABLE t ({text})", dialect="spark")
    except errors.SqlglotError:
        return None
    found = root.this
    if not isinstance(root, exp.Create) or not isinstance(found, exp.Schema):
        return None
    return StructType(tuple(_field_of_node(each, text, ()) for each in found.expressions))


def _field_of_node(node: Any, text: str, above: Sequence[str]) -> StructField:
    from sqlglot import exp

    if not isinstance(node, exp.ColumnDef) or node.kind is None or not is_read(node):
        raise unknown_type(text, above)
    path = (*above, node.name)
    nullable, metadata = True, {}
    for each in node.constraints:
        match each.kind:
            case exp.NotNullColumnConstraint() as constraint:
                nullable = bool(constraint.args.get("allow_null"))
            case exp.CommentColumnConstraint() as comment:
                metadata["comment"] = comment.this.name
            case _:
                raise DeltaAnalysisError(
                    f"the column {dotted(path)} of {text!r} has more than a type, NOT NULL and a "
                    "COMMENT; use generated, identity and with_default for columns that fill "
                    "themselves",
                    column=dotted(path),
                )
    return StructField(node.name, _type_of_node(node.kind, path), nullable, metadata)


def _type_of_node(node: Any, path: Sequence[str]) -> DataType:
    from sqlglot import exp

    if isinstance(node.this, exp.Interval):
        try:
            return type_from_json_value(node.sql("spark").lower())
        except ValueError:
            raise unknown_type(node.sql(), path) from None
    name, inner = node.this.name, node.expressions
    if not is_read(node):
        raise unknown_type(node.sql(), path)
    if name in SQL_TYPES and not inner:
        return PrimitiveType(SQL_TYPES[name])
    if name == "DECIMAL" and (found := decimal_type(inner)) is not None:
        return found
    if name == "ARRAY" and len(inner) == 1:
        return ArrayType(_type_of_node(inner[0], (*path, "element")))
    if name == "MAP" and len(inner) == 2:
        key = _type_of_node(inner[0], (*path, "key"))
        return MapType(key, _type_of_node(inner[1], (*path, "value")))
    if name == "STRUCT" and inner:
        return StructType(tuple(_field_of_node(each, node.sql(), path) for each in inner))
    if (
        name in ("CHAR", "VARCHAR")
        and len(inner) == 1
        and (length := size_of(inner[0])) is not None
    ):
        return PrimitiveType(f"{name.lower()}({length})")
    raise unknown_type(node.sql(), path)


def unknown_type(text: str, path: Sequence[str]) -> DeltaAnalysisError:
    """The error for a type that Delta does not have."""
    return DeltaAnalysisError(
        f"the column {dotted(path) or '(the value)'} can't be of type {text!r}, which Delta does "
        "not have; write types as in Spark SQL: bigint, decimal(9,2), varchar(20), array<string>, "
        "struct<a: int>",
        column=dotted(path),
        type=text,
    )
