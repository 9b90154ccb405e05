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
from lakelog.core.expressions.parse.column_types import columns_of_text, type_of_text, unknown_type
from lakelog.core.plain_values import setting_text
from lakelog.core.schema import (
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from lakelog.core.schema.char_varchar import stored_as_string
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.types import SupportsArrowSchema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.schema import DataType

GivenType: TypeAlias = "DataType | SupportsArrowSchema | str"
"""A type of lakelog or Arrow, or SQL text: `bigint`, `array<struct<a: int>>`."""
GivenSchema: TypeAlias = (
    StructType
    | SupportsArrowSchema
    | Mapping[str, GivenType]
    | Iterable[StructField | SupportsArrowSchema]
    | str
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
    if hasattr(given, "__arrow_c_schema__"):
        try:
            return from_arrow_schema(pa.schema(given))
        except pa.ArrowInvalid as exc:
            raise _no_schema(given, what) from exc
    if isinstance(given, str):
        listed = columns_of_text(given)
        if listed is None:
            raise _no_schema(given, what)
        return _with_lengths(listed)
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
        raise unknown_type(given, path)
    return found


def _type(given: GivenType, path: Sequence[str]) -> DataType:
    if isinstance(given, _OURS):
        return given
    if hasattr(given, "__arrow_c_schema__"):
        return from_arrow_type(pa.field(given).type, path)
    if isinstance(given, str):
        return type_of_text(given, path)
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
    if hasattr(given, "__arrow_c_schema__"):
        return next(iter(from_arrow_schema(pa.schema([pa.field(given)]))))
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
