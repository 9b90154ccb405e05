"""Statements that are Spark's, while the current catalog is one that Spark does not know.

Spark reads names in its own current schema. Where `USE` made a catalog of lakelog's the current
one, a statement that Spark runs would mean another table than its text says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.engine.schemas import dotted
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.names.identifiers import SESSION_CATALOG
from lakelog.spark.names.lookup import chosen_namespace
from lakelog.spark.sql_statements.queries.named_tables import entry_of
from lakelog.spark.types.path_forms import text_literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from lakelog.spark.sql_statements.text.statement import Statement
    from lakelog.spark.sql_statements.text.tokens import Token

_BY_NAME = frozenset(
    {
        *("ALTER", "ANALYZE", "COMMENT", "CREATE", "DELETE", "DESC", "DESCRIBE", "DROP"),
        *("INSERT", "LOAD", "MERGE", "MSCK", "REFRESH", "REPAIR", "REPLACE", "SHOW"),
        *("TRUNCATE", "UPDATE"),
    }
)
"""What begins a statement whose names, of tables and of schemas, are looked up."""
_WITHOUT = frozenset({"TEMP", "TEMPORARY", "FUNCTION", "FUNCTIONS", "CATALOGS", "QUERY"})
"""Words of those that name none of them, or of what lies in no catalog."""
_MAKE = frozenset({"CREATE", "REPLACE", "DROP"})
_BEFORE = frozenset(
    {
        *("OR", "EXTERNAL", "TABLE", "VIEW", "SCHEMA", "DATABASE", "NAMESPACE"),
        *("IF", "NOT", "EXISTS"),
    }
)
"""Words between those and the name."""
_CURRENT = ("CURRENT_CATALOG", "CURRENT_DATABASE", "CURRENT_SCHEMA")


def refuse_sparks(spark: SparkSession, statement: Statement) -> None:
    """Refuse a statement by which Spark would change or show something of its own catalog.

    Args:
        spark: the session.
        statement: one that Spark is about to run.

    Raises:
        DeltaAnalysisError: the current catalog is lakelog's, and the names are not whole.
    """
    current = chosen_namespace(spark)
    tokens = statement.tokens
    if current is None or not tokens or tokens[0].upper not in _BY_NAME:
        return
    if any(each.upper in _WITHOUT for each in tokens[:5]):
        return
    about, may_be_view = _about(tokens)
    for each in about:
        name = each.name
        if name is None:
            continue
        if name.lower() == SESSION_CATALOG or "/" in name:
            return
        if may_be_view and _is_temporary(spark, name):
            return
    words = " ".join(each.text for each in tokens[:2])
    raise DeltaAnalysisError(
        f"[UNSUPPORTED_FEATURE] {words} … is Spark's own, and the current catalog, "
        f"{dotted(current)}, is one that Spark does not know: it would take the names for those "
        f"of its own. Name what is Spark's with its catalog, as {SESSION_CATALOG}.default.t, or "
        f"go back with USE {SESSION_CATALOG}; a Delta table of {current[0]} is named "
        f"{dotted((*current, 't'))}",
    )


def _about(tokens: Sequence[Token]) -> tuple[Sequence[Token], bool]:
    """What says whose a statement is, and whether a temporary view does.

    Of one that makes or drops something, only the name of that: what its query reads may be of
    another catalog.
    """
    if tokens[0].upper not in _MAKE:
        return tokens[1:], True
    words = _MAKE | _BEFORE
    at = next((n for n, each in enumerate(tokens) if each.upper not in words), len(tokens))
    is_view = [each.upper for each in tokens[:2]] == ["DROP", "VIEW"]
    is_long = [each.text for each in tokens[at + 1 : at + 2]] == ["."]
    return tokens[at : at + 3 if is_long else at + 1], is_view


def _is_temporary(spark: SparkSession, name: str) -> bool:
    entry = entry_of(spark, (name,))
    return entry is not None and entry.kind == "temporary view"


def with_current(spark: SparkSession, statement: Statement) -> Statement:
    """A statement with the catalog and the schema that are the current ones, where it asks.

    Args:
        spark: the session.
        statement: may call `current_catalog()`, `current_schema()` or `current_database()`.
    """
    current = chosen_namespace(spark)
    if current is None:
        return statement
    tokens = statement.tokens
    calls = [
        (number, each.upper)
        for number, each in enumerate(tokens)
        if each.upper in _CURRENT
        and [t.text for t in tokens[number + 1 : number + 3]] == ["(", ")"]
    ]
    edits = [
        (
            tokens[number].start,
            tokens[number + 2].end,
            text_literal(current[0] if word == _CURRENT[0] else current[1]),
        )
        for number, word in calls
    ]
    return statement.replaced(edits) if edits else statement
