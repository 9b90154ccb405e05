"""Schemas, types and properties in any form that callers have, converted to ours.

A caller that creates a table may have its schema in one of several forms: ours, Arrow's, a dict of
names and types, the text of a column list. All of them are accepted wherever a schema is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from lakelog.core.arguments import check_texts
from lakelog.core.arrow.arrow_types import from_arrow_schema, from_arrow_type
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.expressions.parse.tree_shapes import is_read
from lakelog.core.expressions.parse.type_names import SQL_TYPES
from lakelog.core.plain_values import setting_text
from lakelog.core.schema import (
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    type_from_json_value,
)
from lakelog.core.schema.char_varchar import stored_as_string
from lakelog.core.schema.column_paths import dotted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.schema import DataType

GivenType: TypeAlias = "DataType | pa.DataType | str"
"""A type of lakelog or Arrow, or SQL text: `bigint`, `array<struct<a: int>>`."""
GivenSchema: TypeAlias = (
    "StructType | pa.Schema | Mapping[str, GivenType] | Iterable[StructField | pa.Field] | str"
)
"""A schema of lakelog or Arrow, names with their types, a list of fields, or SQL's list of
columns: `id bigint NOT NULL, name string COMMENT 'of whom'`."""

_OURS = (PrimitiveType, DecimalType, ArrayType, MapType, StructType)


def schema_from(given: GivenSchema | None, what: str = "the schema") -> StructType:
    """The schema that a caller means; an empty one for `None`.

    Args:
        given: in any of the forms that `GivenSchema` names.
        what: what messages call it.

    Raises:
        DeltaAnalysisError: no such form, or a type that Delta does not have; names the column.
    """
    if given is None:
        return StructType()
    if isinstance(given, StructType):
        if all(isinstance(each.data_type, _OURS) for each in given):
            return given
        return StructType(tuple(_field(each, what) for each in given))
    if isinstance(given, pa.Schema):
        return from_arrow_schema(given)
    if isinstance(given, str):
        return _with_lengths(_columns(given, what))
    if isinstance(given, Mapping):
        named = [(_name(name, what), kind) for name, kind in given.items()]
        return _with_lengths(StructType(tuple(StructField(n, _type(t, (n,))) for n, t in named)))
    if isinstance(given, Iterable):
        return _with_lengths(StructType(tuple(_field(each, what) for each in given)))
    raise _no_schema(given, what)


def _with_lengths(schema: StructType) -> StructType:
    """The same with `char(n)` and `varchar(n)` as the log has them: strings, and marks."""
    text = schema.to_json()
    marked = stored_as_string(text)
    return schema if marked is text else StructType.from_json(marked)


def type_from(given: GivenType, path: Sequence[str] = ()) -> DataType:
    """The type that a caller means.

    Args:
        given: in any of the forms that `GivenType` names.
        path: the column, for messages.

    Raises:
        DeltaAnalysisError: no such form, or a type that Delta does not have.
    """
    found = _type(given, path)
    if isinstance(given, str) and "char(" in str(found):
        # The limit belongs to a column, not to its type.
        raise _unknown(given, path)
    return found


def _type(given: GivenType, path: Sequence[str]) -> DataType:
    if isinstance(given, _OURS):
        return given
    if isinstance(given, pa.DataType):
        return from_arrow_type(given, path)
    if isinstance(given, str):
        return _type_of_text(given, path)
    raise DeltaAnalysisError(
        f"the type of the column {dotted(path) or '(the value)'} must be a type from lakelog.core "
        f"or pyarrow, or a SQL name such as bigint; it is {given!r}",
        column=dotted(path),
    )


def property_texts(given: Mapping[str, Any] | None) -> dict[str, str]:
    """Properties as the log has them: a bool is `true` or `false`, a whole number its digits.

    Raises:
        DeltaAnalysisError: not a mapping, or a value that is neither a string, a bool nor an
            integer.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise DeltaAnalysisError(f"properties must be a dict of names and values, not {given!r}")
    texts = {key: _property_text(key, value) for key, value in given.items()}
    check_texts(texts, "properties")
    return texts


def _property_text(key: Any, value: Any) -> str:
    text = setting_text(value) if isinstance(key, str) else None
    if text is not None and not isinstance(value, float):
        return text
    raise DeltaAnalysisError(
        "a property's name must be a string, and its value a string, a bool or an integer; "
        f"{key!r} has the value {value!r}",
        property=str(key),
    )


def _field(given: Any, what: str) -> StructField:
    if isinstance(given, StructField):
        return replace(given, data_type=_type(given.data_type, (given.name,)))
    if isinstance(given, pa.Field):
        return next(iter(from_arrow_schema(pa.schema([given]))))
    raise _no_schema(given, what)


def _name(given: Any, what: str) -> str:
    if not isinstance(given, str):
        raise _no_schema(given, what)
    return given


def _no_schema(given: Any, what: str) -> DeltaAnalysisError:
    return DeltaAnalysisError(
        f"{what} must be a StructType of lakelog.core, a pyarrow.Schema, a dict such as "
        '{"id": "bigint"}, a list of fields, or a string such as "id bigint, name '
        f'string", not {given!r}'
    )


def _type_of_text(text: str, path: Sequence[str]) -> DataType:
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
            raise _unknown(text, path)
        return _type_of_node(column.kind, path)
    except (errors.SqlglotError, AttributeError, ValueError):
        raise _unknown(text, path) from None


def _columns(text: str, what: str) -> StructType:
    import sqlglot
    from sqlglot import errors, exp

    try:
        root = sqlglot.parse_one(f"CREATE TABLE t ({text})", dialect="spark")
    except errors.SqlglotError:
        raise _no_schema(text, what) from None
    found = root.this
    if not isinstance(root, exp.Create) or not isinstance(found, exp.Schema):
        raise _no_schema(text, what)
    return StructType(tuple(_field_of_node(each, text, ()) for each in found.expressions))


def _field_of_node(node: Any, text: str, above: Sequence[str]) -> StructField:
    from sqlglot import exp

    if not isinstance(node, exp.ColumnDef) or node.kind is None or not is_read(node):
        raise _unknown(text, above)
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
            raise _unknown(node.sql(), path) from None
    name, inner = node.this.name, node.expressions
    if not is_read(node):
        raise _unknown(node.sql(), path)
    if name in SQL_TYPES and not inner:
        return PrimitiveType(SQL_TYPES[name])
    if name == "DECIMAL":
        digits = [int(each.this.this) for each in inner]
        return DecimalType(*(digits + [10, 0][len(digits) :]))
    if name == "ARRAY" and len(inner) == 1:
        return ArrayType(_type_of_node(inner[0], (*path, "element")))
    if name == "MAP" and len(inner) == 2:
        key = _type_of_node(inner[0], (*path, "key"))
        return MapType(key, _type_of_node(inner[1], (*path, "value")))
    if name == "STRUCT" and inner:
        return StructType(tuple(_field_of_node(each, node.sql(), path) for each in inner))
    if name in ("CHAR", "VARCHAR") and len(inner) == 1 and _is_length(inner[0]):
        return PrimitiveType(f"{name.lower()}({int(inner[0].name)})")
    raise _unknown(node.sql(), path)


def _is_length(node: Any) -> bool:
    return bool(node.name.isdigit()) and node.args.get("expression") is None


def _unknown(text: str, path: Sequence[str]) -> DeltaAnalysisError:
    return DeltaAnalysisError(
        f"the column {dotted(path) or '(the value)'} can't be of type {text!r}, which Delta does "
        "not have; write types as in Spark SQL: bigint, decimal(9,2), varchar(20), array<string>, "
        "struct<a: int>",
        column=dotted(path),
        type=text,
    )
