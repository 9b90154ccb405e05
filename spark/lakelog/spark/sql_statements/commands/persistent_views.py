"""The text of a persistent view: tables of ours as any session of Spark's can read them.

Spark does not tell a source in Python where a named table is, so the view says it, by the option
`path`. The columns are those of the catalog's entry, which has none until a view needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.spark.names.identifiers import quoted_name
from lakelog.spark.names.plain import plain_table
from lakelog.spark.names.provider import run_using_delta
from lakelog.spark.sql_statements.queries.named_tables import place_of
from lakelog.spark.sql_statements.text.statement import rewritten
from lakelog.spark.sql_statements.text.syntax_errors import located
from lakelog.spark.types.path_forms import hadoop_path, quoted
from lakelog.spark.types.spark_types import to_delta_schema
from lakelog.spark.types.type_sql import type_sql

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from lakelog.spark.sql_statements.commands.context import CommandContext
    from lakelog.spark.sql_statements.queries.named_tables import Place
    from lakelog.spark.sql_statements.text.references import Reference
    from lakelog.spark.sql_statements.text.statement import Edit, Statement


def by_options(s: CommandContext, query: Statement, at: int) -> Callable[[], str] | None:
    """What gives the query of a persistent view.

    Args:
        s: the statement.
        query: as the user wrote it.
        at: where it begins in the statement.

    Returns:
        `None` if the query names no table of ours. Otherwise what gives the catalog the columns of
        the tables, and returns the text.

    Raises:
        SqlSyntaxError: a table that no session can read without lakelog's front.
    """
    places: list[Place] = []
    edits: list[Edit] = []
    for each in query.references:
        place = None if each.is_call else place_of(s.spark, each.parts)
        if each.is_call and s.runner.names_ours(query, each):
            raise _refused(s, at, query, each, "table_changes")
        if place is None or each.options[1]:
            continue
        if not place.in_catalog:
            raise _refused(s, at, query, each, "a path")
        if place.is_governed:
            raise _refused(s, at, query, each, "a name of another catalog than Spark's own")
        places.append(place)
        edits.append(_edit(s, at, query, each, place))
    if not places:
        return None

    def run() -> str:
        for each in places:
            _show_columns(s.spark, each, s.runner.newest(each).schema)
        return rewritten(query.text, edits)

    return run


def _edit(s: CommandContext, at: int, query: Statement, each: Reference, place: Place) -> Edit:
    tokens = query.tokens
    path = hadoop_path(place.path)
    if each.travel is not None:
        begin, end = each.when
        if end != begin + 1:
            raise _refused(s, at, query, each, "an AS OF that is not a plain value")
        frame, version = s.runner.older(place, each.travel, tokens[begin].text)
        # The entry in the catalog has the columns of now, and Spark reads by those.
        if frame.dtypes != s.runner.newest(place).dtypes:
            raise _refused(s, at, query, each, "a version that had other columns than it has now")
        path += f"@v{version}"
    options = f"`path` = {_literal(path)}"
    start, stop = tokens[each.first].start, tokens[each.end - 1].end
    name = query.text[start : tokens[each.name_end - 1].end]
    if tokens[each.first - 1].upper == "TABLE" and each.first:
        return tokens[each.first - 1].start, stop, f"SELECT * FROM {name} WITH ({options})"
    return start, stop, f"{name} WITH ({options})"


def _literal(text: str) -> str:
    """A string as options have it, which are no expressions."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _refused(s: CommandContext, at: int, query: Statement, each: Reference, what: str) -> Exception:
    s.is_ours = True
    return located(
        s.cursor.statement.text,
        at + query.tokens[each.first].start,
        "[UNSUPPORTED_FEATURE] a persistent view can't read a Delta table by "
        f"{what}: other sessions would evaluate it without lakelog. Name the table (CREATE TABLE "
        "name USING delta LOCATION '/its/path') and read the name, or make a TEMPORARY VIEW",
    )


def _show_columns(spark: SparkSession, place: Place, schema: StructType) -> None:
    """Give a table's entry in the catalog the columns of the table, if it has others or none."""
    name = quoted_name(place.whole)
    known = plain_table(spark, name).schema
    if [(f.name, f.dataType) for f in known] == [(f.name, f.dataType) for f in schema]:
        return
    columns = ", ".join(
        f"{quoted(each.name)} {type_sql(each.data_type)}" for each in to_delta_schema(schema)
    )
    run_using_delta(spark, f"ALTER TABLE {name} REPLACE COLUMNS ({columns})")
