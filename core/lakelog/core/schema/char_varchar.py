"""`CHAR(n)` and `VARCHAR(n)`: strings in the table, with metadata that limits their length.

Delta's schema has no such types. Spark keeps them as the text of the type in the metadata of the
top-level column, and enforces the length whenever rows are written.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from lakelog.core.schema.column_paths import quoted, sql_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.core.schema.types import StructType

__all__ = ["MARK", "length_rules", "stored_as_string"]

MARK = "__CHAR_VARCHAR_TYPE_STRING"
"""The key in a column's metadata; the value is the type as SQL, `varchar(5)`."""
_LIMITED = re.compile(r"\s*(?:var)?char\(\s*(\d+)\s*\)\s*", re.IGNORECASE)
_SQL_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


class LengthRule(NamedTuple):
    """How long the strings of a column may be."""

    column: str
    sql: str
    """SQL that is true for rows that satisfy the rule."""
    limit: int | None
    """Characters, where the column itself is the string; `None` where strings are within it."""


def stored_as_string(schema_string: str) -> str:
    """The text of a schema with `char(n)` and `varchar(n)` as marked strings.

    Any other text is returned unchanged, even one that is not a schema.
    """
    if "char(" not in schema_string:
        return schema_string
    try:
        schema = orjson.loads(schema_string)
        fields = [_as_limited_string(field) for field in schema["fields"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        return schema_string
    if fields == schema["fields"]:
        return schema_string
    return orjson.dumps({**schema, "fields": fields}).decode()


def length_rules(schema: StructType) -> Iterator[LengthRule]:
    """The rules of columns with a length limit, in schema order."""
    for field in schema:
        text = field.metadata.get(MARK)
        if not isinstance(text, str):
            continue
        column = sql_path([field.name])
        if match := _LIMITED.fullmatch(text):
            yield LengthRule(field.name, _fits(column, int(match[1])), int(match[1]))
        elif sql := _nested(text, column):
            yield LengthRule(field.name, sql, None)


def _as_limited_string(field: dict[str, Any]) -> dict[str, Any]:
    plain = _plain(field["type"])
    if plain == field["type"]:
        return field
    marks = {**(field.get("metadata") or {}), MARK: _sql_type(field["type"])}
    return {**field, "type": plain, "metadata": marks}


def _plain(kind: Any) -> Any:
    if isinstance(kind, str):
        return "string" if _LIMITED.fullmatch(kind) else kind
    match kind["type"]:
        case "struct":
            inner = [{**field, "type": _plain(field["type"])} for field in kind["fields"]]
            return {**kind, "fields": inner}
        case "array":
            return {**kind, "elementType": _plain(kind["elementType"])}
        case "map":
            key, value = _plain(kind["keyType"]), _plain(kind["valueType"])
            return {**kind, "keyType": key, "valueType": value}
        case _:
            return kind


def _sql_type(kind: Any) -> str:
    if isinstance(kind, str):
        return _SQL_NAMES.get(kind, kind)
    match kind["type"]:
        case "struct":
            inner = (f"{quoted(f['name'])}:{_sql_type(f['type'])}" for f in kind["fields"])
            return f"struct<{','.join(inner)}>"
        case "array":
            return f"array<{_sql_type(kind['elementType'])}>"
        case _:
            return f"map<{_sql_type(kind['keyType'])},{_sql_type(kind['valueType'])}>"


def _fits(value: str, limit: int) -> str:
    return f"{value} IS NULL OR length({value}) <= {limit}"


def _nested(text: str, column: str) -> str | None:
    from sqlglot import errors, exp

    try:
        return _condition(exp.DataType.build(text, dialect="spark"), column, 0)
    except errors.SqlglotError:
        return None


def _condition(kind: Any, value: str, depth: int) -> str | None:
    """SQL for a type as sqlglot has it; `None` where nothing in it is limited."""
    from sqlglot import exp

    name = kind.this.value.upper()
    if name in ("VARCHAR", "CHAR") and kind.expressions:
        return _fits(value, int(kind.expressions[0].name))
    if name == "STRUCT":
        parts = [
            _condition(each.kind, f"{value}.{sql_path([each.name])}", depth)
            for each in kind.expressions
            if isinstance(each, exp.ColumnDef)
        ]
    elif name == "ARRAY":
        parts = [_for_all(kind.expressions[0], value, depth)]
    elif name == "MAP":
        key, inner = kind.expressions
        parts = [
            _for_all(key, f"map_keys({value})", depth),
            _for_all(inner, f"map_values({value})", depth),
        ]
    else:
        return None
    found = [f"({part})" for part in parts if part]
    return f"{value} IS NULL OR ({' AND '.join(found)})" if found else None


def _for_all(kind: Any, values: str, depth: int) -> str | None:
    variable = f"x{depth}"
    inner = _condition(kind, variable, depth + 1)
    return f"forall({values}, {variable} -> {inner})" if inner else None
