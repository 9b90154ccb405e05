"""The rules that every row of a table must satisfy: NOT NULL, invariants, lengths, CHECK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import orjson

from lakelog.core.errors import CorruptLogError
from lakelog.core.features.properties import TableProperties
from lakelog.core.schema import StructType
from lakelog.core.schema.char_varchar import length_rules
from lakelog.core.schema.column_paths import dotted, split_path, sql_path, walk

if TYPE_CHECKING:
    from lakelog.core.actions import Metadata

__all__ = ["Constraint", "required_columns", "table_constraints"]


class Constraint(NamedTuple):
    """A rule: an SQL expression that must be true, neither false nor null, for every row."""

    name: str
    """Of a CHECK: its own. Of the others: the column's path."""
    sql: str
    kind: Literal["check", "invariant", "not_null", "length"] = "check"
    limit: int | None = None
    """The limit in characters, where the rule is a length."""


def required_columns(schema: StructType) -> list[str]:
    """The paths of the columns that are NOT NULL, fields of structs included, in schema order.

    A field of a struct is required where the struct itself exists. What is inside arrays and
    maps is not listed: no expression on a row can express it.
    """
    return [dotted(path) for path, field in walk(schema, containers=False) if not field.nullable]


def not_null_sql(schema: StructType, path: str) -> str:
    """SQL that is true for rows that satisfy NOT NULL at a path of `required_columns`."""
    parts = split_path(path)
    found = {names: field.nullable for names, field in walk(schema, containers=False)}
    parents = [parts[:depth] for depth in range(1, len(parts)) if found[parts[:depth]]]
    terms = [f"{sql_path(parent)} IS NULL" for parent in parents]
    return " OR ".join([*terms, f"{sql_path(parts)} IS NOT NULL"])


def table_constraints(metadata: Metadata) -> list[Constraint]:
    """Every rule of a table: NOT NULL, invariants, lengths of CHAR and VARCHAR, then CHECK by name.

    Raises:
        CorruptLogError: an invariant that can't be read.
    """
    schema = StructType.from_json(metadata.schema_string)
    rules = [
        Constraint(path, not_null_sql(schema, path), "not_null")
        for path in required_columns(schema)
    ]
    for path, field in walk(schema):
        text = field.metadata.get("delta.invariants")
        if text is not None:
            rules.append(Constraint(dotted(path), _expression(dotted(path), text), "invariant"))
    rules += [Constraint(dotted([c]), sql, "length", n) for c, sql, n in length_rules(schema)]
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
