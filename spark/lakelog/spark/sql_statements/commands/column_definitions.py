"""Definitions of columns, as CREATE TABLE and ALTER TABLE have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.spark.table.table_builder import IdentityGenerator

if TYPE_CHECKING:
    from lakelog.spark.sql_statements.commands.context import CommandContext
    from lakelog.spark.sql_statements.text.cursor import Cursor
    from lakelog.spark.sql_statements.text.syntax_errors import SqlSyntaxError

_AFTER_TYPE = frozenset({"NOT", "NULL", "COMMENT", "GENERATED", "DEFAULT", "FIRST", "AFTER"})

_RULES = frozenset({"CONSTRAINT", "CHECK", "PRIMARY", "UNIQUE", "REFERENCES"})


@dataclass(slots=True)
class ColumnDefinition:
    """One column."""

    path: tuple[str, ...]
    kind: str
    """The type, as text."""
    at: int
    """Its first token."""
    nullable: bool = True
    comment: str | None = None
    default: str | None = None
    generated: str | None = None
    identity: IdentityGenerator | None = None
    by_default: bool = False
    place: tuple[str, str | None] | None = None
    """FIRST, or AFTER and which."""


def column_definition(s: CommandContext) -> ColumnDefinition:
    """Go past `name type [NOT NULL] [DEFAULT …] [GENERATED …] [COMMENT '…'] [FIRST|AFTER …]`."""
    c = s.cursor
    at, name = c.at, c.name()
    found = ColumnDefinition(name.parts, data_type(c), at)
    while c.word in _AFTER_TYPE:
        word = c.need_any(*_AFTER_TYPE)
        if word == "NOT":
            c.need("NULL")
            found.nullable = False
        elif word == "COMMENT":
            found.comment = text(s, "the comment")
        elif word == "DEFAULT":
            found.default = c.expression(",", *_AFTER_TYPE).text
        elif word == "GENERATED":
            _generated(s, found)
        elif word == "FIRST":
            found.place = "first", None
        elif word == "AFTER":
            found.place = "after", c.identifier()
    if c.word in _RULES:
        raise constraint_error(c)
    if c.word not in ("", ",", ")"):
        raise c.unexpected(",", ")")
    return found


def constraint_error(c: Cursor) -> SqlSyntaxError:
    """The error for a constraint among columns, which Delta has no more than delta-spark has."""
    return c.error(
        "[UNSUPPORTED_FEATURE.TABLE_OPERATION] The feature is not supported: a Delta table has no "
        f"{c.word} constraint where its columns are defined. For a rule that every row must keep, "
        "make the table first, then ALTER TABLE … ADD CONSTRAINT name CHECK (condition)"
    )


def data_type(c: Cursor) -> str:
    """Go past a type, and give its text."""
    first, depth = c.at, 0
    c.identifier()
    while c.token is not None:
        if c.token.text == "<":
            depth += 1
        elif c.token.text == ">":
            depth -= 1
        elif c.word == "(":
            c.skip_group()
            continue
        elif depth == 0 and not _goes_on(c):
            break
        c.at += 1
    return c.text(first, c.at)


def _goes_on(c: Cursor) -> bool:
    """Whether a type of several words goes on: `INTERVAL DAY TO SECOND`, `TIMESTAMP WITH …`."""
    if c.text(c.at - 1, c.at) == "<":
        return True
    before = c.tokens[c.at - 1].upper
    if before == "INTERVAL" or c.word == "TO" or before == "TO":
        return c.token is not None and c.token.kind == "word"
    return c.word in ("PRECISION", "COLLATE", "WITHOUT", "WITH", "<>") or before in (
        "COLLATE",
        "WITHOUT",
        "WITH",
        "LOCAL",
    )


def _generated(s: CommandContext, found: ColumnDefinition) -> None:
    c = s.cursor
    if c.took("BY"):
        c.need("DEFAULT")
        found.by_default = True
    else:
        c.need("ALWAYS")
    c.need("AS")
    if not c.took("IDENTITY"):
        if found.by_default:
            raise c.unexpected("IDENTITY")
        found.generated = c.group().text
        return
    start, step = 1, 1
    if c.took("("):
        while c.word != ")":
            if c.took("START"):
                c.need("WITH")
                start = _whole(c)
            else:
                c.need("INCREMENT", "BY")
                step = _whole(c)
            c.took(",")
        c.need(")")
    found.identity = IdentityGenerator(start, step)


def _whole(c: Cursor) -> int:
    sign = -1 if c.took("-") else 1
    token = c.token
    if token is None or not token.text.rstrip("Ll").isdecimal():
        raise c.unexpected("a whole number")
    c.at += 1
    return sign * int(token.text.rstrip("Ll"))


def position(c: Cursor) -> tuple[str, str | None] | None:
    """Go past FIRST or AFTER, if one is here."""
    if c.took("FIRST"):
        return "first", None
    return ("after", c.identifier()) if c.took("AFTER") else None


def text(s: CommandContext, what: str) -> str:
    """Go past a string, and give what it means."""
    first = s.cursor.at
    if s.cursor.string() is None:
        raise s.cursor.unexpected(f"{what} as a string")
    # Adjacent strings are one.
    while s.cursor.token is not None and s.cursor.token.kind == "string":
        s.cursor.at += 1
    return str(s.runner.value(s.cursor.text(first, s.cursor.at)))


def properties(s: CommandContext, *, values: bool = True) -> dict[str, str]:
    """Go past `('a.b' = 'c', d.e = 1)`.

    Args:
        s: the statement.
        values: whether there are values; as after UNSET there are none.
    """
    c = s.cursor
    c.need("(")
    found: dict[str, str] = {}
    while True:
        if c.token is not None and c.token.kind == "string":
            key = text(s, "the name of a property")
        else:
            key = ".".join(c.name().parts)
        value = ""
        if values:
            c.took("=")
            value = _property(s)
        found[key] = value
        if not c.took(","):
            break
    c.need(")")
    return found


def _property(s: CommandContext) -> str:
    c = s.cursor
    if c.word in ("TRUE", "FALSE"):
        return c.need_any("TRUE", "FALSE").lower()
    if c.token is not None and c.token.kind == "string":
        return text(s, "a value")
    first = c.at
    c.skip(",")
    if first == c.at:
        raise c.unexpected("a value")
    return (
        c.text(first, c.at).rstrip("Ll")
        if c.at - first <= 2
        else str(s.runner.value(c.text(first, c.at)))
    )
