"""Queries that the log answers: `SELECT count(*), min(c), max(c) FROM t`, with a WHERE or without.

Only the plainest form is looked for, the whole statement and no more. Where one file's statistics
leave an answer open, or the text has anything else in it, the query is Spark's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lakelog.core import keys
from lakelog.core.engine.conditions import (
    EvalContext,
    Literal,
    known_count,
    known_extreme,
    normalize_filter,
)
from lakelog.core.errors import InvalidPredicateError
from lakelog.core.schema import PrimitiveType
from lakelog.spark.types.path_forms import quoted, text_literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from lakelog.core import Expression, Snapshot
    from lakelog.core.schema import DataType, StructField
    from lakelog.spark.sql_statements.text.references import Reference
    from lakelog.spark.sql_statements.text.tokens import Token

_TYPES: Final[dict[DataType, str]] = {
    PrimitiveType("byte"): "TINYINT",
    PrimitiveType("short"): "SMALLINT",
    PrimitiveType("integer"): "INT",
    PrimitiveType("long"): "BIGINT",
    PrimitiveType("date"): "DATE",
}
"""Of these, bounds in the log are the values themselves."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One item of the SELECT."""

    function: str
    """`COUNT`, `MIN` or `MAX`."""
    column: str | None
    """Of the last two."""
    name: str
    """Of the column of the answer, as Spark names it."""


def wanted(tokens: Sequence[Token], reference: Reference) -> list[Aggregate] | None:
    """What a statement asks for; `None` if it is of another form.

    Args:
        tokens: those of the statement.
        reference: its only table.
    """
    if not tokens or tokens[0].upper != "SELECT" or reference.is_call:
        return None
    last = reference.first - 1
    found: list[Aggregate] = []
    at = 1
    while at < last:
        item, at = _item(tokens, at, last)
        if item is None:
            return None
        found.append(item)
        if at < last:
            if tokens[at].text != ",":
                return None
            at += 1
            if at == last:
                return None
    return found if found and _ends(tokens, reference) else None


def _item(tokens: Sequence[Token], at: int, end: int) -> tuple[Aggregate | None, int]:
    if at + 4 > end or tokens[at + 1].text != "(" or tokens[at + 3].text != ")":
        return None, at
    function, argument = tokens[at].upper, tokens[at + 2]
    if function == "COUNT":
        if argument.text not in ("*", "1"):
            return None, at
        column, name = None, "count(1)"
    elif function in ("MIN", "MAX") and argument.name is not None:
        column, name = argument.name, f"{function.lower()}({argument.name})"
    else:
        return None, at
    at += 4
    if at < end and tokens[at].upper == "AS":
        at += 1
        if at == end or tokens[at].name is None:
            return None, at
    if at < end and (alias := tokens[at].name) is not None:
        return Aggregate(function, column, alias), at + 1
    return Aggregate(function, column, name), at


def _ends(tokens: Sequence[Token], reference: Reference) -> bool:
    """Whether nothing follows the table but its alias and the condition that it has."""
    if tokens[reference.first - 1].upper != "FROM":
        return False
    begin, end = reference.where
    if begin:
        return end == len(tokens)
    rest = tokens[reference.end :]
    if rest and rest[0].upper == "AS":
        rest = rest[1:]
    # A word that is no alias belongs to something else, and has an alias' place before it.
    return not rest or (len(rest) == 1 and reference.alias_at is None and rest[0].name is not None)


def answer(snapshot: Snapshot, where: str | None, items: Sequence[Aggregate]) -> str | None:
    """A query without a table that gives the answers; `None` where a file would have to be read.

    Args:
        snapshot: the version.
        where: the condition, which may name the table's columns alone.
        items: what is asked for.
    """
    if not snapshot.conf.read(keys.OPTIMIZE_METADATA_QUERY):
        return None
    fields = {each.column: _field(snapshot, each.column) for each in items if each.column}
    if None in fields.values():
        return None
    expression: Expression | None = None
    if where is not None:
        try:
            context = EvalContext.of(snapshot.conf, snapshot.clock.now_ms())
            expression = normalize_filter(where, snapshot.read_schema, context)
        except InvalidPredicateError:
            return None
        if isinstance(expression, Literal) and expression.value is None:
            return None  # to Spark, a null without a type is not a condition
    files = snapshot.file_table_for(expression)
    values = []
    for each in items:
        value = _value(snapshot, files, expression, each, fields.get(each.column or ""))
        if value is None:
            return None
        values.append(f"{value} AS {quoted(each.name)}")
    return "SELECT " + ", ".join(values)


def _field(snapshot: Snapshot, column: str) -> StructField | None:
    """A column whose bounds answer for it; what another spelling means is up to the session."""
    field = snapshot.read_schema.get(column)
    fits = field is not None and field.name == column and field.data_type in _TYPES
    return field if fits else None


def _value(
    snapshot: Snapshot,
    files: pa.Table,
    where: Expression | None,
    item: Aggregate,
    field: StructField | None,
) -> str | None:
    if field is None:
        count = known_count(snapshot, files, where)
        return None if count is None else f"CAST({count} AS BIGINT)"
    known = known_extreme(snapshot, files, where, field, item.function.lower())
    if known is None:
        return None
    value = known.as_py()
    text = "NULL" if value is None else text_literal(str(value))
    return f"CAST({text} AS {_TYPES[field.data_type]})"
