"""USE, SET CATALOG and SHOW CURRENT, where the catalog is one that lakelog asks by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.engine.tables import known_catalogs, tables_in
from lakelog.core.errors import CatalogError, DeltaAnalysisError, TableNotFoundError
from lakelog.spark.names.identifiers import quoted_name
from lakelog.spark.names.lookup import (
    choose_namespace,
    chosen_namespace,
    is_sparks_catalog,
    is_watched,
)
from lakelog.spark.names.provider import accepts_delta
from lakelog.spark.session.session import session_conf, set_confs
from lakelog.spark.sql_statements.commands.column_definitions import text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from lakelog.spark.sql_statements.commands.context import Command, CommandContext

_WORDS = ("NAMESPACE", "DATABASE", "SCHEMA")
_FIRST_SCHEMA = "default"
"""The schema that Unity Catalog makes with each catalog."""


def use(s: CommandContext) -> Command | None:
    """`USE [NAMESPACE|DATABASE|SCHEMA] name`."""
    c = s.cursor
    c.need("USE")
    # A catalog or a schema may also have these names.
    within = c.word in _WORDS and c.at + 1 < len(c.tokens) and c.ahead(1) != "."
    if within:
        c.need_any(*_WORDS)
    parts = c.name().parts
    c.end()
    return _chosen(s, parts, within=within)


def set_catalog(s: CommandContext) -> Command | None:
    """`SET CATALOG name`, also as a string."""
    c = s.cursor
    c.need("SET", "CATALOG")
    is_text = c.token is not None and c.token.kind == "string"
    name = text(s, "a catalog") if is_text else c.identifier()
    c.end()
    if name not in known_catalogs(set_confs(s.spark)) and not is_sparks_catalog(s.spark, name):
        return None
    return _chosen(s, (name,), within=False)


def show_current(s: CommandContext) -> Command | None:
    """`SHOW CURRENT NAMESPACE|DATABASE|SCHEMA`."""
    c = s.cursor
    c.need("SHOW", "CURRENT")
    c.need_any(*_WORDS)
    c.end()
    chosen = chosen_namespace(s.spark)
    if chosen is None:
        return None
    return lambda: s.answer("catalog string, namespace string", chosen)


def _chosen(s: CommandContext, parts: Sequence[str], *, within: bool) -> Command | None:
    """What makes a catalog and a schema the current ones.

    Args:
        s: the statement.
        parts: of the name.
        within: whether it is one of a schema in the current catalog, and no catalog's.
    """
    spark, now = s.spark, chosen_namespace(s.spark)
    if not within and parts[0] in known_catalogs(set_confs(spark)):
        catalog, *schema = parts
    elif now is not None and (within or not is_sparks_catalog(spark, parts[0])):
        catalog, *schema = now[0], *parts
    elif now is None:
        return None
    else:
        return lambda: _back_to_spark(s)
    if not accepts_delta(spark):
        return None  # with delta-spark's jar names are that one's
    s.is_ours = True
    if not is_watched(spark):
        raise s.cursor.error(
            f"[UNSUPPORTED_FEATURE] Spark has no class for the catalog {catalog}, so that only "
            "lakelog can make it the current one: call lakelog.spark.enable(spark) first, or "
            f"write whole names, as {catalog}.schema.table"
        )
    if len(schema) > 1:
        raise s.cursor.error(
            f"[REQUIRES_SINGLE_PART_NAMESPACE] the catalog {catalog} has schemas and no schemas "
            f"in them: {quoted_name(schema)} is none. Write USE {catalog}.schema"
        )

    def run() -> DataFrame:
        if schema:
            _check_schema(spark, catalog, schema[0])
        choose_namespace(spark, (catalog, schema[0] if schema else _FIRST_SCHEMA))
        return s.nothing()

    return run


def _back_to_spark(s: CommandContext) -> DataFrame:
    answer = s.runner.plain(s.cursor.statement.text)
    choose_namespace(s.spark, None)
    return answer


def _check_schema(spark: SparkSession, catalog: str, schema: str) -> None:
    """Refuse a schema that the catalog does not have.

    Raises:
        DeltaAnalysisError: it has none of that name.
    """
    try:
        next(tables_in(catalog, schema, session_conf(spark)), None)
    except TableNotFoundError as exc:
        raise DeltaAnalysisError(
            f"[SCHEMA_NOT_FOUND] the schema {catalog}.{schema} can't be used: {exc}",
            schema=f"{catalog}.{schema}",
        ) from exc
    except CatalogError:
        # A class of the user's own may list nothing; and what is wrong with the server, each name
        # that is read from now on says.
        return
