"""`CHAR(n)` and `VARCHAR(n)`: strings in the table, with metadata that limits their length.

Delta's schema has no such types. Spark keeps them as the text of the type in the metadata of the
top-level column, and enforces the length whenever rows are written, where
a `CHAR(n)` is filled up with spaces. Readers fill up what other writers left shorter.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import orjson

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema.column_paths import quoted, sql_path
from lakelog.core.schema.types import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakelog.core.schema.types import StructField, StructType

__all__ = [
    "MARK",
    "length_rules",
    "limit_of",
    "relimited",
    "stored_as_string",
    "stored_sql",
    "without_limits",
]

MARK = "__CHAR_VARCHAR_TYPE_STRING"
"""The key in a column's metadata; the value is the type as SQL, `varchar(5)`."""
_LIMITED = re.compile(r"\s*(?:var)?char\(\s*(\d+)\s*\)\s*", re.IGNORECASE)
_LIMITS = re.compile(r"\b(?:var)?char\s*\(\s*\d+\s*\)", re.IGNORECASE)
_SQL_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


class Limit(NamedTuple):
    """The limit of a column that is a string itself."""

    pads: bool
    """Whether it is a `CHAR`."""
    length: int
    """In characters."""

    def padded(self, text: str) -> str:
        """As it is stored."""
        return text.ljust(self.length) if self.pads else text

    def compared(self, text: str) -> str:
        """As stored values compare with it: spaces at the end count for nothing."""
        return (
            self.padded(text[: self.length] + text[self.length :].rstrip(" "))
            if self.pads
            else text
        )


class _Marked(Protocol):
    @property
    def metadata(self) -> Mapping[str, Any]: ...


def limit_of(field: _Marked | None) -> Limit | None:
    """The limit of a top-level column; `None` where it has none, or within its strings only."""
    text = None if field is None else field.metadata.get(MARK)
    match = _LIMITED.fullmatch(text) if isinstance(text, str) else None
    return Limit("var" not in match[0].lower(), int(match[1])) if match else None


def relimited(field: StructField, kind: object, shown: str) -> StructField | None:
    """A string column with another limit, as ALTER COLUMN gives it; `None` where there is none.

    Args:
        field: the column, at any depth; the limit of one within a struct is its column's.
        kind: the type that it is to have. Text is its name in SQL.
        shown: the column's path, for messages.

    Raises:
        DeltaAnalysisError: the type would not take every value that is there as it is.
    """
    limit, new = limit_of(field), _LIMITED.fullmatch(kind) if isinstance(kind, str) else None
    if new is None:
        if limit is None or kind not in ("string", "STRING", PrimitiveType("string")):
            return None
        return replace(field, metadata={k: v for k, v in field.metadata.items() if k != MARK})
    assert isinstance(kind, str)
    pads, length = "var" not in kind.lower(), int(new[1])
    if limit == (pads, length):
        return field
    if limit is None or pads or length < limit.length:
        was = field.metadata.get(MARK, field.data_type)
        raise DeltaAnalysisError(
            f"[NOT_SUPPORTED_CHANGE_COLUMN] ALTER TABLE ALTER/CHANGE COLUMN is not supported for "
            f"changing the column {shown} from {was} to {kind.strip()}: a CHAR or VARCHAR can "
            "become a VARCHAR of at least its length, or STRING. For another type rewrite the "
            "rows with mode 'overwrite' and overwriteSchema=true.",
            column=shown,
        )
    return replace(field, metadata={**field.metadata, MARK: f"varchar({length})"})


def stored_sql(field: StructField) -> str | None:
    """Spark's SQL for the column as it is stored; `None` where that is the column as it is.

    What is too long stays so, for the rule to refuse it.
    """
    from sqlglot import errors, exp

    text, column = field.metadata.get(MARK), sql_path([field.name])
    if not isinstance(text, str):
        return None
    try:
        found = _stored(exp.DataType.build(text, dialect="spark"), column, 0)
    except errors.SqlglotError:
        return None
    return None if found == column else found


class LengthRule(NamedTuple):
    """How long the strings of a column may be."""

    column: str
    sql: str
    """SQL that is true for rows that satisfy the rule."""
    limit: int | None
    """Characters, where the column itself is the string; `None` where strings are within it."""


def without_limits(sql: str) -> tuple[str, dict[str, str]]:
    """A type of Spark's SQL with plain strings, and the metadata that keeps their limits.

    Args:
        sql: `char(3)`, `struct<a: varchar(3)>`, or any other type.
    """
    plain = _LIMITS.sub("string", sql)
    if plain == sql:
        return sql, {}
    top = _LIMITED.fullmatch(sql)
    return plain, {MARK: "".join(sql.split()).lower() if top else sql}


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


def _stored(kind: Any, value: str, depth: int) -> str:
    """SQL for a value as it is stored, by its type as sqlglot has it."""
    from sqlglot import exp

    name, inner = kind.this.value.upper(), depth + 1
    item, other = f"x{depth}", f"v{depth}"
    if name == "CHAR" and kind.expressions:
        limit = kind.expressions[0].name
        return f"IF(length({value}) <= {limit}, rpad({value}, {limit}, ' '), {value})"
    if name == "STRUCT":
        fields = [each for each in kind.expressions if isinstance(each, exp.ColumnDef)]
        paths = [f"{value}.{sql_path([each.name])}" for each in fields]
        stored = [_stored(each.kind, path, depth) for each, path in zip(fields, paths, strict=True)]
        if stored == paths:
            return value
        parts = (f"{_text(each.name)}, {sql}" for each, sql in zip(fields, stored, strict=True))
        return f"IF({value} IS NULL, NULL, named_struct({', '.join(parts)}))"
    if name == "ARRAY":
        element = _stored(kind.expressions[0], item, inner)
        return value if element == item else f"transform({value}, {item} -> {element})"
    if name == "MAP":
        key, held = (
            _stored(each, of, inner)
            for each, of in zip(kind.expressions, (item, other), strict=True)
        )
        keys = value
        if key != item:
            keys = f"transform_keys({value}, ({item}, {other}) -> {key})"
        return keys if held == other else f"transform_values({keys}, ({item}, {other}) -> {held})"
    return value


def _text(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


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
