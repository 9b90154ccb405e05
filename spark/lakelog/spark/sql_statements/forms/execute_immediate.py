"""`EXECUTE IMMEDIATE`: a statement whose text is a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.sql_statements.text.cursor import Cursor
from lakelog.spark.sql_statements.text.statement import Statement

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from lakelog.spark.sql_statements.forms.parameters import Parameters


@dataclass(frozen=True, slots=True)
class Immediate:
    """What an `EXECUTE IMMEDIATE` runs."""

    statement: Statement
    args: Any
    """Values of its parameters: by name, by position, or `None`."""


def read_immediate(parameters: Parameters, plain: Callable[..., DataFrame]) -> Immediate | None:
    """Read `EXECUTE IMMEDIATE text [INTO variables] [USING values]`.

    A query INTO variables becomes the `SET VAR` that says the same.

    Args:
        parameters: the statement with its own parameters.
        plain: Spark's own `sql`, which evaluates the text and the values.

    Returns:
        `None` if it is another statement, or can't be read or evaluated: it is Spark's then.
    """
    cursor = Cursor(parameters.statement, parameters.piece)
    if not cursor.took("EXECUTE", "IMMEDIATE"):
        return None
    try:
        text = cursor.expression("INTO", "USING").text
        into = _variables(cursor) if cursor.took("INTO") else ""
        values = _values(cursor) if cursor.took("USING") else []
        cursor.end()
        # One query for all: a value that is another one each time is asked for once.
        columns = [f"CAST(({text}\n) AS STRING)", *(f"({each}\n)" for each, _ in values)]
        row = plain(f"SELECT {', '.join(columns)}").first()
    except (DeltaAnalysisError, PySparkException):
        return None
    if row is None or row[0] is None:
        return None
    inner = str(row[0]).rstrip().rstrip(";")
    names = [name for _, name in values]
    if None not in names:
        args: Any = dict(zip(names, row[1:], strict=True)) or None
    elif any(names):
        return None  # some with names, and some without
    else:
        args = list(row[1:])
    return Immediate(Statement(f"SET VAR ({into}) = ({inner}\n)" if into else inner), args)


def _variables(cursor: Cursor) -> str:
    names = [cursor.name().text]
    while cursor.took(","):
        names.append(cursor.name().text)
    return ", ".join(names)


def _values(cursor: Cursor) -> list[tuple[str, str | None]]:
    """The values, each with the name that it has."""
    wrapped = cursor.took("(")
    found = []
    while True:
        value = cursor.expression(",", "AS").text
        found.append((value, cursor.identifier() if cursor.took("AS") else None))
        if not cursor.took(","):
            break
    if wrapped:
        cursor.need(")")
    return found
