"""`CHAR(n)` and `VARCHAR(n)`: strings in the table, with metadata that limits their length.

Delta's schema has no such types. Spark keeps them as the text of the type in the metadata of the
top-level column, and enforces the length whenever rows are written, where
a `CHAR(n)` is filled up with spaces. Readers fill up what other writers left shorter.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import orjson

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema.column_paths import quoted, sql_path
from lakelog.core.schema.types import ArrayType, MapType, PrimitiveType, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakelog.core.schema.types import DataType, StructField

MARK = "__CHAR_VARCHAR_TYPE_STRING"
"""The key in a column's metadata; the value is the type as SQL, `varchar(5)`."""
_LIMITED = re.compile(r"\s*(?:var)?char\(\s*(\d+)\s*\)\s*", re.IGNORECASE)
_LIMITS = re.compile(r"\b(?:var)?char\s*\(\s*\d+\s*\)", re.IGNORECASE)
_BEFORE_SPACE = re.compile(r"[\x00-\x1f]")
_BEFORE = {"<": "<", "<=": "<", ">": ">=", ">=": ">="}
_VOID = re.compile(r"(?<=[:,<])\s*void(?=\s*[,>])", re.IGNORECASE)
_CHAR = re.compile(r"\bchar\s*\(", re.IGNORECASE)
_SQL_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


class Limit(NamedTuple):
    """The limit of a column that is a string itself."""

    pads: bool
    """Whether it is a `CHAR`."""
    length: int
    """In characters."""

    @property
    def sql(self) -> str:
        """The type, as a mark has it."""
        return f"{'char' if self.pads else 'varchar'}({self.length})"

    def padded(self, text: str) -> str:
        """As it is stored."""
        return text.ljust(self.length) if self.pads else text

    def compared(self, op: str, text: str) -> tuple[str, str]:
        """What stored values of a `CHAR` are compared with, and how: both are filled up to the
        length of the longer one.
        """
        start, rest = text[: self.length], text[self.length :].rstrip(" ")
        if rest < " " * len(rest) and op in _BEFORE:
            # What fills up the value is greater than the rest of the text.
            return _BEFORE[op], start
        return op, self.padded(start + rest)

    def range_of(self, least: str, greatest: str) -> tuple[str, str]:
        """Between what texts of a range are when they are filled up.

        What fills up a text makes it greater than one that goes on with a character before the
        space.
        """
        most = _BEFORE_SPACE.sub(" ", greatest).ljust(self.length)
        return least.rstrip(" ")[: self.length], most


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
            "rows with mode 'overwrite' and schema_mode 'overwrite' (Spark's option "
            "overwriteSchema=true).",
            column=shown,
        )
    return replace(field, metadata={**field.metadata, MARK: f"varchar({length})"})


def stored_sql(field: StructField) -> str | None:
    """Spark's SQL for the column as it is stored; `None` where that is the column as it is.

    What is too long stays so, for the rule to refuse it.
    """
    kind, column = padding_of(field), sql_path([field.name])
    if kind is None:
        return None
    found = _stored(kind, field.data_type, column, 0)
    return None if found == column else found


def padding_of(field: StructField) -> Any:
    """The type of a column with a `CHAR` in it, as sqlglot has it; `None` of any other column."""
    text = _current_mark(field)
    return _parsed(text) if text is not None and _CHAR.search(text) else None


def limits_within(field: StructField) -> Any:
    """The type of a column that has limits within, as `padding_of` gives it; `None` of others."""
    text = _current_mark(field)
    return _parsed(text) if text is not None and _LIMITS.search(text) else None


@functools.lru_cache(maxsize=256)
def _parsed(text: str) -> Any:
    from sqlglot import errors, exp

    try:
        # sqlglot has no name for void, and gives no field of a struct with one.
        return exp.DataType.build(_VOID.sub("int", text), dialect="spark")
    except errors.SqlglotError:
        return None


def limit_itself(kind: Any) -> Limit | None:
    """The limit, where a part of what `padding_of` gives is a limited string itself."""
    name = kind.this.value.upper()
    if name not in ("CHAR", "VARCHAR") or not kind.expressions:
        return None
    return Limit(name == "CHAR", int(kind.expressions[0].name))


def fields_within(kind: Any) -> dict[str, Any]:
    """The types of a struct's fields, as far as a part of `padding_of` tells, by lower case."""
    from sqlglot import exp

    if kind.this.value.upper() != "STRUCT":
        return {}
    return {e.name.lower(): e.kind for e in kind.expressions if isinstance(e, exp.ColumnDef)}


def items_within(kind: Any, name: str, count: int) -> list[Any] | None:
    """The types in an array or a map, where a part of `padding_of` is one."""
    found = kind.expressions
    return list(found) if kind.this.value.upper() == name and len(found) == count else None


class LengthRule(NamedTuple):
    """How long the strings of a column may be."""

    column: str
    sql: str
    """SQL that is true for rows that satisfy the rule."""


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


def with_current_marks(schema: StructType) -> StructType:
    """The schema with marks of the types that its columns have now.

    A mark tells of the type that a column once had. Spark takes the fields of a struct from there.
    """
    fields = tuple(map(_with_current_mark, schema))
    return schema if fields == schema.fields else StructType(fields)


def _with_current_mark(field: StructField) -> StructField:
    mark = _current_mark(field)
    return field if mark is None else replace(field, metadata={**field.metadata, MARK: mark})


def _current_mark(field: StructField) -> str | None:
    """The mark by the type that the column has now; `None` where there is none to be read."""
    text = field.metadata.get(MARK)
    if not isinstance(text, str) or _LIMITED.fullmatch(text):
        return text if isinstance(text, str) else None
    kind = _parsed(text)
    return None if kind is None else _sql_type(_limited_json(kind, field.data_type))


def _limited_json(kind: Any, of: DataType) -> Any:
    """A type as JSON, with the limits of strings that a mark knows."""
    if kind is None:
        return of.json_value()
    match of:
        case StructType(fields):
            known = fields_within(kind)
            names = [each.name.lower() for each in fields]
            if len(known) == len(names) and known.keys().isdisjoint(names):
                known = dict(zip(names, known.values(), strict=True))  # other names for the same
            inner = [
                {"name": each.name, "type": _limited_json(known.get(name), each.data_type)}
                for each, name in zip(fields, names, strict=True)
            ]
            return {"type": "struct", "fields": inner}
        case ArrayType(element):
            (item,) = items_within(kind, "ARRAY", 1) or [None]
            return {"type": "array", "elementType": _limited_json(item, element)}
        case MapType(key, held):
            first, second = items_within(kind, "MAP", 2) or [None, None]
            named, value = _limited_json(first, key), _limited_json(second, held)
            return {"type": "map", "keyType": named, "valueType": value}
    limit = limit_itself(kind) if of == PrimitiveType("string") else None
    return of.json_value() if limit is None else limit.sql


def length_rules(schema: StructType) -> Iterator[LengthRule]:
    """The rules of columns with a length limit, in schema order."""
    for field in schema:
        column, limit = sql_path([field.name]), limit_of(field)
        if limit is not None:
            yield LengthRule(field.name, _fits(column, limit.length))
        elif (kind := limits_within(field)) is not None and (sql := _condition(kind, column, 0)):
            yield LengthRule(field.name, sql)


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


def _stored(kind: Any, of: DataType, value: str, depth: int) -> str:
    """SQL for a value as it is stored, by its type and by what the mark says of it.

    The mark may be older than the type: a field that it does not know stays.
    """
    inner, item, other = depth + 1, f"x{depth}", f"v{depth}"
    match of:
        case StructType(fields):
            known = fields_within(kind)
            paths = [f"{value}.{sql_path([each.name])}" for each in fields]
            stored = [
                _stored(known[each.name.lower()], each.data_type, path, depth)
                if each.name.lower() in known
                else path
                for each, path in zip(fields, paths, strict=True)
            ]
            if stored == paths:
                return value
            parts = (f"{_text(each.name)}, {sql}" for each, sql in zip(fields, stored, strict=True))
            return f"IF({value} IS NULL, NULL, named_struct({', '.join(parts)}))"
        case ArrayType(element):
            within = items_within(kind, "ARRAY", 1)
            sql = item if within is None else _stored(within[0], element, item, inner)
            return value if sql == item else f"transform({value}, {item} -> {sql})"
        case MapType(key, held):
            within = items_within(kind, "MAP", 2)
            if within is None:
                return value
            name, text = (
                _stored(within[0], key, item, inner),
                _stored(within[1], held, other, inner),
            )
            if name != item:
                value = f"transform_keys({value}, ({item}, {other}) -> {name})"
            if text != other:
                value = f"transform_values({value}, ({item}, {other}) -> {text})"
            return value
    limit = limit_itself(kind) if of == PrimitiveType("string") else None
    if limit is None or not limit.pads:
        return value
    return f"IF(length({value}) <= {limit.length}, rpad({value}, {limit.length}, ' '), {value})"


def _text(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _condition(kind: Any, value: str, depth: int) -> str | None:
    """SQL for a type as sqlglot has it; `None` where nothing in it is limited."""
    from sqlglot import exp

    name, limit = kind.this.value.upper(), limit_itself(kind)
    if limit is not None:
        return _fits(value, limit.length)
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
