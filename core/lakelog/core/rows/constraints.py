"""The rules that every row of a table must satisfy: NOT NULL, invariants, lengths, CHECK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import orjson

from lakelog.core.errors import CorruptLogError
from lakelog.core.features.table_properties import TableProperties
from lakelog.core.schema import ArrayType, MapType, StructType
from lakelog.core.schema.char_varchar import length_rules
from lakelog.core.schema.column_paths import dotted, split_path, sql_path, walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakelog.core.actions import Metadata
    from lakelog.core.schema import DataType


class Constraint(NamedTuple):
    """A rule: an SQL expression that must be true, neither false nor null, for every row."""

    name: str
    """Of a CHECK: its own. Of the others: the column's path."""
    sql: str
    kind: Literal["check", "invariant", "not_null", "length"] = "check"


def required_columns(schema: StructType) -> list[str]:
    """The paths of the columns that are NOT NULL, fields of structs included, in schema order.

    A field of a struct is required where the struct itself exists. What is inside arrays and
    maps is not listed: `table_constraints` has a rule for each array and map.
    """
    return [dotted(path) for path, field in walk(schema, containers=False) if not field.nullable]


def not_null_sql(schema: StructType, path: str) -> str:
    """SQL that is true for rows that satisfy NOT NULL at a path of `required_columns`."""
    parts = split_path(path)
    found = {names: field.nullable for names, field in walk(schema, containers=False)}
    parents = [parts[:depth] for depth in range(1, len(parts)) if found[parts[:depth]]]
    terms = [f"{sql_path(parent)} IS NULL" for parent in parents]
    return " OR ".join([*terms, f"{sql_path(parts)} IS NOT NULL"])


def _no_nulls_within(schema: StructType) -> list[Constraint]:
    """A rule for each array and map that must not have nulls, at any depth."""
    rules = []
    for path, field in walk(schema, containers=False):
        sql = sql_path(path)
        kind = field.data_type
        found = None if isinstance(kind, StructType) else _within(kind, sql)
        if found is not None:
            rules.append(Constraint(dotted(path), f"{sql} IS NULL OR {found}", "not_null"))
    return rules


def _within(kind: DataType, sql: str, depth: int = 0) -> str | None:
    """SQL that is true for a value with no null where its type allows none."""
    match kind:
        case ArrayType(element, contains_null):
            return _for_all_items(sql, element, contains_null, depth)
        case MapType(key, value, contains_null):
            keys = _for_all_items(f"map_keys({sql})", key, True, depth)
            values = _for_all_items(f"map_values({sql})", value, contains_null, depth)
            return _all_of([keys, values])
        case StructType():
            return _all_of(
                _value(each.data_type, each.nullable, f"{sql}.{sql_path([each.name])}", depth)
                for each in kind
            )
    return None


def _for_all_items(sql: str, kind: DataType, nullable: bool, depth: int) -> str | None:
    found = _value(kind, nullable, f"x{depth}", depth + 1)
    return None if found is None else f"forall({sql}, x{depth} -> {found})"


def _value(kind: DataType, nullable: bool, sql: str, depth: int) -> str | None:
    within = _within(kind, sql, depth)
    if not nullable:
        return _all_of([f"{sql} IS NOT NULL", within])
    return None if within is None else f"({sql} IS NULL OR {within})"


def _all_of(terms: Iterable[str | None]) -> str | None:
    return " AND ".join(each for each in terms if each is not None) or None


def table_constraints(metadata: Metadata, schema: StructType | None = None) -> list[Constraint]:
    """Every rule of a table: NOT NULL, invariants, lengths of CHAR and VARCHAR, then CHECK by name.

    Args:
        metadata: the table's.
        schema: what the metadata's text says, where it was parsed already.

    Raises:
        CorruptLogError: an invariant that can't be read.
    """
    if schema is None:
        schema = StructType.from_json(metadata.schema_string)
    rules = [
        Constraint(path, not_null_sql(schema, path), "not_null")
        for path in required_columns(schema)
    ]
    rules += _no_nulls_within(schema)
    for path, field in walk(schema):
        text = field.metadata.get("delta.invariants")
        if text is not None:
            rules.append(Constraint(dotted(path), _expression(dotted(path), text), "invariant"))
    rules += [Constraint(dotted([c]), sql, "length") for c, sql in length_rules(schema)]
    checks = TableProperties(metadata.configuration).constraints
    return rules + [Constraint(name, sql) for name, sql in checks.items()]


def _expression(column: str, text: object) -> str:
    """The SQL within `{"expression":{"expression":"x > 3"}}`."""
    try:
        parsed = orjson.loads(text) if isinstance(text, str | bytes) else text
        sql = parsed["expression"]["expression"]  # type: ignore[index]  # any JSON; caught below
    except (orjson.JSONDecodeError, KeyError, TypeError):
        sql = None
    if not isinstance(sql, str):
        raise CorruptLogError(
            f"Column {column} has an invariant that can't be read: {text!r}. Rewrite the table's "
            "schema with a client that understands it."
        )
    return sql
