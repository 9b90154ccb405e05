"""SHOW CATALOGS, SHOW SCHEMAS and SHOW TABLES, of catalogs that lakelog asks by itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakelog.core.engine.tables import known_catalogs, schemas_in, tables_in
from lakelog.spark.names.lookup import chosen_namespace, is_sparks_catalog
from lakelog.spark.names.provider import accepts_delta
from lakelog.spark.session.session import session_conf, set_confs
from lakelog.spark.sql_statements.commands.column_definitions import text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

    from lakelog.spark.sql_statements.commands.context import Command, CommandContext


def show_catalogs(s: CommandContext) -> Command | None:
    """`SHOW CATALOGS [[LIKE] 'pattern']`: Spark's own, and those of the conf."""
    c = s.cursor
    c.need("SHOW", "CATALOGS")
    ours = _ours(s)
    if not ours:
        return None
    pattern = _pattern(s)

    def run() -> DataFrame:
        of_spark = {row[0] for row in s.runner.plain("SHOW CATALOGS").collect()}
        return _rows(s, "catalog string", ((each,) for each in sorted(of_spark | ours)), pattern)

    return run


def show_schemas(s: CommandContext) -> Command | None:
    """`SHOW SCHEMAS|DATABASES|NAMESPACES [FROM|IN catalog] [[LIKE] 'pattern']`."""
    c = s.cursor
    c.need("SHOW")
    c.need_any("SCHEMAS", "DATABASES", "NAMESPACES")
    ours = _ours(s)
    if not ours:
        return None
    current = chosen_namespace(s.spark)
    named = _of(s) or (current or ())[:1]
    if len(named) != 1 or named[0] not in ours:
        return None
    pattern = _pattern(s)

    def run() -> DataFrame:
        names = schemas_in(named[0], session_conf(s.spark))
        return _rows(s, "namespace string", ((each,) for each in names), pattern)

    return run


def show_tables(s: CommandContext) -> Command | None:
    """`SHOW TABLES [FROM|IN [catalog.]schema] [[LIKE] 'pattern']`."""
    c = s.cursor
    c.need("SHOW", "TABLES")
    ours = _ours(s)
    if not ours:
        return None
    of, current = _of(s), chosen_namespace(s.spark)
    if len(of) == 1 and of[0] in ours:
        s.is_ours = True
        raise c.error(
            f"[REQUIRES_SINGLE_PART_NAMESPACE] {of[0]} is a catalog, whose tables are in schemas: "
            f"SHOW TABLES IN {of[0]}.schema; SHOW SCHEMAS IN {of[0]} lists them"
        )
    if current is not None and not (of and is_sparks_catalog(s.spark, of[0])):
        of = (*current[: max(2 - len(of), 0)], *of)
    if len(of) != 2 or of[0] not in ours:
        return None
    catalog, schema = of
    pattern = _pattern(s)

    def run() -> DataFrame:
        names = tables_in(catalog, schema, session_conf(s.spark))
        rows = ((schema, each.table, False) for each in names)
        return _rows(s, "namespace string, tableName string, isTemporary boolean", rows, pattern, 1)

    return run


def _ours(s: CommandContext) -> frozenset[str]:
    """The catalogs of the conf that are lakelog's to ask, in this session."""
    found = known_catalogs(set_confs(s.spark))
    return found if found and accepts_delta(s.spark) else frozenset()


def _of(s: CommandContext) -> tuple[str, ...]:
    """Go past `FROM name` or `IN name`."""
    c = s.cursor
    return c.name().parts if c.took("FROM") or c.took("IN") else ()


def _pattern(s: CommandContext) -> str | None:
    """Go past the pattern at the end."""
    c = s.cursor
    liked = c.took("LIKE")
    pattern = text(s, "a pattern") if liked or c.token is not None else None
    c.end()
    return pattern


def _rows(
    s: CommandContext,
    schema: str,
    rows: Iterable[tuple[object, ...]],
    pattern: str | None,
    named_by: int = 0,
) -> DataFrame:
    """The rows whose name matches a pattern as Spark's SHOW reads one: `*`, `|`, in any case."""
    if pattern is None:
        return s.answer(schema, *rows)
    wanted = [each.strip().replace("*", ".*") for each in pattern.split("|")]
    try:
        parts = [re.compile(each, re.IGNORECASE) for each in wanted]
    except re.error:
        parts = []  # as in Spark, which passes such a part over
    return s.answer(
        schema, *(row for row in rows if any(p.fullmatch(str(row[named_by])) for p in parts))
    )
