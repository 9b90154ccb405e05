"""Which statement a text is, by its first words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from lakelog.spark.sql_statements.commands.alter_table import alter, comment_on, comment_on_column
from lakelog.spark.sql_statements.commands.caching import cache, clear_cache, drop, uncache
from lakelog.spark.sql_statements.commands.catalog_lists import (
    show_catalogs,
    show_schemas,
    show_tables,
)
from lakelog.spark.sql_statements.commands.cloning import convert
from lakelog.spark.sql_statements.commands.context import CommandContext
from lakelog.spark.sql_statements.commands.create_table import create
from lakelog.spark.sql_statements.commands.create_view import alter_view, create_view
from lakelog.spark.sql_statements.commands.describe import describe, describe_table
from lakelog.spark.sql_statements.commands.explain import explain
from lakelog.spark.sql_statements.commands.insert import insert
from lakelog.spark.sql_statements.commands.merge_statement import merge
from lakelog.spark.sql_statements.commands.restore_table import restore
from lakelog.spark.sql_statements.commands.row_changes import delete, truncate, update
from lakelog.spark.sql_statements.commands.show import (
    show_columns,
    show_create,
    show_partitions,
    show_properties,
)
from lakelog.spark.sql_statements.commands.table_maintenance import (
    fsck,
    generate,
    optimize,
    reorg,
    vacuum,
)
from lakelog.spark.sql_statements.commands.use import set_catalog, show_current, use
from lakelog.spark.sql_statements.forms.parameters import Parameters
from lakelog.spark.sql_statements.forms.placeholders import Placeholders
from lakelog.spark.sql_statements.queries.written_views import refreshed
from lakelog.spark.sql_statements.text.cursor import Cursor
from lakelog.spark.sql_statements.text.references import after_ctes
from lakelog.spark.sql_statements.text.statement import Statement
from lakelog.spark.sql_statements.text.syntax_errors import SqlSyntaxError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from lakelog.spark.sql_statements.commands.context import Command
    from lakelog.spark.sql_statements.queries.named_tables import Place
    from lakelog.spark.sql_statements.queries.query_runner import QueryRunner
    from lakelog.spark.sql_statements.text.tokens import Token

_Reader: TypeAlias = "Callable[[CommandContext], Command | None]"


def _create(s: CommandContext) -> Command | None:
    """CREATE of a table or of a view."""
    begin = s.cursor.at
    command = create(s)
    if command is None:
        s.cursor.at = begin
        command = create_view(s)
    return command


STATEMENTS: Mapping[str, Sequence[tuple[tuple[str, ...], Any]]] = {
    "DELETE": [(("DELETE", "FROM"), delete)],
    "UPDATE": [(("UPDATE",), update)],
    "MERGE": [(("MERGE", "INTO"), merge), (("MERGE", "WITH"), merge)],
    "INSERT": [(("INSERT",), insert)],
    "TRUNCATE": [(("TRUNCATE", "TABLE"), truncate)],
    "OPTIMIZE": [(("OPTIMIZE",), optimize)],
    "REORG": [(("REORG", "TABLE"), reorg)],
    "VACUUM": [(("VACUUM",), vacuum)],
    "FSCK": [(("FSCK", "REPAIR", "TABLE"), fsck)],
    "GENERATE": [(("GENERATE",), generate)],
    "RESTORE": [(("RESTORE",), restore)],
    "CONVERT": [(("CONVERT", "TO", "DELTA"), convert)],
    # The longer beginning comes first: after DESCRIBE alone any word may be the name of a table.
    "DESCRIBE": [
        (("DESCRIBE", "HISTORY"), describe),
        (("DESCRIBE", "DETAIL"), describe),
        (("DESCRIBE",), describe_table),
    ],
    "DESC": [
        (("DESC", "HISTORY"), describe),
        (("DESC", "DETAIL"), describe),
        (("DESC",), describe_table),
    ],
    "CREATE": [(("CREATE",), _create)],
    "REPLACE": [(("REPLACE", "TABLE"), create)],
    "ALTER": [(("ALTER", "TABLE"), alter), (("ALTER", "VIEW"), alter_view)],
    "COMMENT": [
        (("COMMENT", "ON", "TABLE"), comment_on),
        (("COMMENT", "ON", "COLUMN"), comment_on_column),
    ],
    "EXPLAIN": [(("EXPLAIN",), explain)],
    "CACHE": [(("CACHE",), cache)],
    "UNCACHE": [(("UNCACHE", "TABLE"), uncache)],
    "CLEAR": [(("CLEAR", "CACHE"), clear_cache)],
    "DROP": [(("DROP", "TABLE"), drop), (("DROP", "VIEW"), drop)],
    "USE": [(("USE",), use)],
    "SET": [(("SET", "CATALOG"), set_catalog)],
    "SHOW": [
        (("SHOW", "CATALOGS"), show_catalogs),
        *((("SHOW", each), show_schemas) for each in ("SCHEMAS", "DATABASES", "NAMESPACES")),
        (("SHOW", "TABLES"), show_tables),
        (("SHOW", "CURRENT"), show_current),
        (("SHOW", "COLUMNS"), show_columns),
        (("SHOW", "TBLPROPERTIES"), show_properties),
        (("SHOW", "PARTITIONS"), show_partitions),
        (("SHOW", "CREATE", "TABLE"), show_create),
    ],
}
"""First word -> the words that a statement begins with, and what reads it."""


def command_of(
    parameters: Parameters, kwargs: dict[str, Any], runner: QueryRunner
) -> Command | None:
    """The command that a text is, read to its end; `None` if it is not ours.

    Args:
        parameters: the text with its parameters.
        kwargs: what `{…}` in it stands for.
        runner: runs the queries in it.

    Raises:
        SqlSyntaxError: it is ours, and can't be read.
    """
    spark, statement = parameters.spark, parameters.statement
    start = after_ctes(statement.tokens)
    read = _reader_of(statement.tokens, start)
    if read is None:
        return None
    placeholders = Placeholders(spark, kwargs)
    if kwargs:
        statement = Statement(placeholders.filled(statement.text)).without_semicolons()
        parameters = Parameters(spark, statement, parameters.args)
        start = after_ctes(statement.tokens)
    cursor = Cursor(statement, parameters.piece)
    cursor.at = start
    context = CommandContext(spark, cursor, runner, parameters.text(0, start))
    context.frames = tuple(placeholders.frames)
    try:
        command = read(context)
    except SqlSyntaxError:
        # Spark, or an extension of it, may have a form of the statement that is not known here. The
        # error is ours only where the table is known to be one of Delta.
        if context.is_ours:
            raise
        return None
    if command is None:
        return None
    through = context.through
    if through is not None and statement.tokens[start].upper != "EXPLAIN":
        command = _through(spark, through, command)
    if not placeholders.frames:
        return command
    done = command
    return lambda: placeholders.during(done)


def _through(spark: SparkSession, place: Place, command: Command) -> Command:
    """A command that is given a view of a DataFrame, which shows the newest rows from then on."""

    def run() -> DataFrame:
        # The statement's own queries may read the view.
        refreshed(spark, place)
        answer = command()
        refreshed(spark, place)
        return answer

    return run


def _reader_of(tokens: Sequence[Token], start: int) -> _Reader | None:
    if start >= len(tokens):
        return None
    for words, read in STATEMENTS.get(tokens[start].upper, ()):
        following = tokens[start : start + len(words)]
        if tuple(each.upper for each in following) == words:
            found: _Reader = read
            return found
    return None
