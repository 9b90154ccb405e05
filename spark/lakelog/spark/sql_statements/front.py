"""`sql`: `SparkSession.sql` with the statements of Delta."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, ParseException

from lakelog.core.engine.commit import STATEMENT, observing
from lakelog.core.engine.tables import one_call
from lakelog.logstores.keys import TELEMETRY
from lakelog.spark.names.identifiers import parse
from lakelog.spark.names.lookup import forget
from lakelog.spark.names.plain import plain_method
from lakelog.spark.names.provider import using_delta
from lakelog.spark.sql_statements.commands.dispatch import command_of
from lakelog.spark.sql_statements.commands.insert import check_insert
from lakelog.spark.sql_statements.forms.execute_immediate import read_immediate
from lakelog.spark.sql_statements.forms.from_first import inserts_first, target_at
from lakelog.spark.sql_statements.forms.identifier_clause import written_out
from lakelog.spark.sql_statements.forms.insert_values import inserted_values
from lakelog.spark.sql_statements.forms.parameters import Parameters
from lakelog.spark.sql_statements.queries.query_runner import QueryRunner
from lakelog.spark.sql_statements.queries.sparks_own import refuse_sparks, with_current
from lakelog.spark.sql_statements.queries.written_views import may_mean_table, refused_by_spark
from lakelog.spark.sql_statements.text.cursor import Cursor
from lakelog.spark.sql_statements.text.placed_errors import placed_by_words
from lakelog.spark.sql_statements.text.references import after_ctes
from lakelog.spark.sql_statements.text.statement import Statement
from lakelog.spark.sql_statements.text.syntax_errors import NoDeltaTableError, SqlSyntaxError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

_MAY_NAME_TABLES = re.compile(
    r"\b(?:FROM|JOIN|TABLE|UPDATE|INTO|OVERWRITE|OPTIMIZE|VACUUM|DESC|DESCRIBE|SHOW|DELTA|LAKELOG|USE|DROP|CREATE|SET|REFRESH|EXECUTE|RESTORE|COMMENT|CLEAR|VIEW|CURRENT_CATALOG|CURRENT_SCHEMA|CURRENT_DATABASE)\b",
    re.IGNORECASE,
)
_CHANGE_NAMES = frozenset({"CREATE", "REPLACE", "DROP", "ALTER", "USE", "SET", "REFRESH", "MSCK"})
"""A name may mean something else after these."""
_CHANGE_ROWS = ("DELETE", "UPDATE", "MERGE")


def sql(spark: SparkSession, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803
    """Run a statement, as `SparkSession.sql` does, with Delta tables in it.

        lakelog.spark.sql(spark, "DELETE FROM delta.`/lake/flights` WHERE delay > :d", {"d": 900})
        lakelog.spark.sql(spark, "SELECT count(*) FROM delta.`/lake/flights` VERSION AS OF 3")

    Delta's statements are run by lakelog, as they are when they name a Delta table; tables that
    queries name are read by it. Any other statement goes to Spark unchanged. docs/sql.md lists the
    statements. After `enable`, `spark.sql` does the same.

    Args:
        spark: a session, classic or Connect.
        sqlQuery: one statement.
        args: values of its parameters: a dict for `:name`, or a list for `?`.
        kwargs: what `{name}` in the text stands for, as for `SparkSession.sql`.

    Returns:
        The rows of a query, or the answer of a command in the columns of delta-spark.

    Raises:
        SqlSyntaxError: a statement of Delta's that can't be read; shows the place.
        DeltaError: what the command raises as a method of `DeltaTable`.
        PySparkException: what Spark raises.
    """
    return run(spark, plain_method(spark, "sql"), sqlQuery, args, kwargs)


def may_be_ours(text: object) -> bool:
    """Whether a text may name a table of ours, at first sight."""
    return isinstance(text, str) and _MAY_NAME_TABLES.search(text) is not None


def run(
    spark: SparkSession,
    plain: Callable[..., DataFrame],
    text: Any,
    args: Any,
    kwargs: dict[str, Any],
) -> DataFrame:
    """Run a statement; see `sql`.

    Args:
        spark: the session.
        plain: Spark's own `sql`, for what is not ours.
        text: the statement.
        args: values of parameters.
        kwargs: values of placeholders.
    """
    if not isinstance(text, str):
        return plain(text, args, **kwargs)
    return run_statement(spark, plain, Statement(text), args, kwargs)


def run_statement(
    spark: SparkSession,
    plain: Callable[..., DataFrame],
    statement: Statement,
    args: Any,
    kwargs: dict[str, Any],
) -> DataFrame:
    """Run a statement whose tokens may be known already; see `run`."""
    text = statement.text
    if not may_be_ours(text) or _are_plain_values(spark, text):
        return plain(text, args, **kwargs)
    asked = with_current(spark, statement)
    otherwise = partial(using_delta, spark, partial(plain, asked.text, args, **kwargs))
    with one_call():
        return _run(spark, plain, asked, args, kwargs, otherwise)


def _are_plain_values(spark: SparkSession, text: str) -> bool:
    """Whether a text is `INSERT INTO t VALUES …`, and neither `t` nor anything else is ours."""
    name = inserted_values(text)
    return name is not None and not may_mean_table(spark, parse(name))


def _run(
    spark: SparkSession,
    plain: Callable[..., DataFrame],
    statement: Statement,
    args: Any,
    kwargs: dict[str, Any],
    otherwise: Callable[[], DataFrame],
) -> DataFrame:
    """Run a statement, which the user may have written in another form.

    Args:
        spark: see `run`.
        plain: see `run`.
        statement: the text, as it is by now.
        args: see `run`.
        kwargs: see `run`.
        otherwise: what to do if no table of ours is in it: runs it as it was written.
    """
    statement = statement.without_semicolons()
    runner = QueryRunner(spark, plain)
    parameters = Parameters(spark, statement, args)
    # In this order: the text of an EXECUTE IMMEDIATE may have an IDENTIFIER(…), and that may be the
    # target of an INSERT. Whatever is written out, `otherwise` keeps the text as the user wrote it:
    # Spark reads more forms than are known here, and its errors show that text.
    immediate = read_immediate(parameters, plain)
    if immediate is not None:
        return _run(spark, plain, immediate.statement, immediate.args, {}, otherwise)
    named = written_out(parameters, runner.value)
    if named is not None:
        return _run(spark, plain, *named, kwargs, otherwise)
    # Parameters without names would change their order.
    turned = [] if isinstance(args, list) else inserts_first(statement)
    if len(turned) == 1:
        return _run(spark, plain, turned[0], args, kwargs, otherwise)
    if any(_inserts_into_ours(spark, each) for each in turned):
        return _run_each(spark, plain, turned, args, kwargs)
    changes_names = any(each.upper in _CHANGE_NAMES for each in statement.tokens[:1])
    try:
        command = command_of(parameters, kwargs, runner)
        if command is not None:
            return _observed(spark, statement, partial(_placing, command, statement.text))
        refuse_sparks(spark, statement)
        return _in_words(spark, statement, lambda: runner.run(parameters, kwargs, otherwise))
    except NoDeltaTableError as exc:
        return _by_an_extension(otherwise, exc)
    finally:
        # Even after an error: a name may have been changed before it was raised.
        runner.close()
        if changes_names:
            forget()


def _by_an_extension(otherwise: Callable[[], DataFrame], error: NoDeltaTableError) -> DataFrame:
    """Let Spark run a statement that it has itself by none but an extension."""
    try:
        return otherwise()
    except AnalysisException as exc:
        # DESCRIBE HISTORY t is about a table HISTORY for Spark.
        missing = (exc.getCondition() or "").startswith("TABLE_OR_VIEW_NOT_FOUND")
        if not missing and not isinstance(exc, ParseException):
            raise
    raise error


def _in_words(spark: SparkSession, statement: Statement, run: Callable[[], DataFrame]) -> DataFrame:
    """Run what is Spark's, which ends a change of rows of a temporary view in an internal error."""
    tokens = statement.tokens
    at = next((n for n, each in enumerate(tokens) if each.upper in _CHANGE_ROWS), None)
    if at is None or tokens[0].upper not in (*_CHANGE_ROWS, "WITH"):
        return run()
    try:
        return run()
    except Exception as exc:
        cursor = Cursor(statement)
        verb = tokens[at].upper
        cursor.at = at + 1
        cursor.took("WITH", "SCHEMA", "EVOLUTION")
        if not cursor.took("INTO"):
            cursor.took("FROM")
        try:
            found = refused_by_spark(spark, cursor.name().parts, verb, exc)
        except SqlSyntaxError:
            found = None
        if found is None:
            raise
        raise found from exc


def _observed(spark: SparkSession, statement: Statement, run: Callable[[], DataFrame]) -> DataFrame:
    """Run a statement of ours in a span."""
    tokens = statement.tokens
    word = tokens[after_ctes(tokens)].upper
    # The one key alone: to ask for all of a session's conf takes longer.
    conf = {TELEMETRY.name: spark.conf.get(TELEMETRY.name, TELEMETRY.default) or TELEMETRY.default}
    return observing(conf, STATEMENT, None, lambda _: run(), statement=word)


def _placing(command: Callable[[], DataFrame], text: str) -> DataFrame:
    """Run a command whose errors about an expression show it in the statement."""
    try:
        return command()
    except AnalysisException as exc:
        found = placed_by_words(exc, text)
        if found is exc:
            raise
        raise found from exc


def _inserts_into_ours(spark: SparkSession, statement: Statement) -> bool:
    cursor = Cursor(statement)
    cursor.at = target_at(statement.tokens)
    try:
        return may_mean_table(spark, cursor.name().parts)
    except SqlSyntaxError:
        return False  # a folder, or nothing that can be read


def _run_each(
    spark: SparkSession,
    plain: Callable[..., DataFrame],
    statements: Sequence[Statement],
    args: Any,
    kwargs: dict[str, Any],
) -> DataFrame:
    """Run INSERTs one after another, each of which sees what those before it wrote.

    All of them are read, and their rows are looked at, before the first one is run.
    """
    runner = QueryRunner(spark, plain)
    try:
        # No commit spans two tables, so that what can be refused is refused before the first one.
        for each in statements:
            command = command_of(Parameters(spark, each, args), kwargs, runner)
            if command is not None:
                check_insert(command)
    finally:
        runner.close()
    # Not one of them has its table in the middle: each is run as the statement that it is.
    others = (partial(plain, each.text, args, **kwargs) for each in statements)
    pairs = zip(statements, others, strict=True)
    return [_run(spark, plain, each, args, kwargs, other) for each, other in pairs][-1]
