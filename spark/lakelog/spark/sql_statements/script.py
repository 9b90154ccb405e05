"""`sql_script`: several statements in one text, and the cell magic that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.spark.names.plain import plain_method
from lakelog.spark.sql_statements.front import run_statement
from lakelog.spark.sql_statements.text.statement import Statement
from lakelog.spark.sql_statements.text.syntax_errors import located

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def sql_script(
    spark: SparkSession, text: str, args: dict[str, Any] | None = None
) -> DataFrame | None:
    '''Run the statements of a text, which semicolons separate, one after another.

        lakelog.spark.sql_script(spark, """
            DELETE FROM flights WHERE delay > :d;
            OPTIMIZE flights;
            SELECT count(*) FROM flights
        """, {"d": 900})

    Each is run as by `lakelog.spark.sql`, and is a commit of its own: where one fails, those before
    it stay done. A text that begins with `BEGIN` is a script of Spark's own, and goes to Spark as
    it is.

    Args:
        spark: a session, classic or Connect.
        text: the statements; comments and empty statements are passed over.
        args: values of the parameters `:name` of all of them.

    Returns:
        What the last statement returns; `None` if there is none.

    Raises:
        SqlSyntaxError: a script of Spark's own comes after another statement. Nothing was run.
        DeltaError: what a statement raises, and so PySparkException.
    '''
    answer = None
    for each in statements(text):
        answer = run_statement(spark, plain_method(spark, "sql"), each, args, {})
    return answer


def statements(text: str) -> list[Statement]:
    """The statements of a text, without the semicolons between them.

    Raises:
        SqlSyntaxError: a script of Spark's own (`BEGIN … END`) comes after another statement.
    """
    whole = Statement(text)
    tokens = whole.tokens
    found: list[Statement] = []
    begin, first = 0, 0
    for at, token in enumerate(tokens):
        if token.text != ";":
            if at == first and token.upper == "BEGIN":
                if not found:
                    return [whole]
                raise located(
                    text,
                    token.start,
                    "[PARSE_SYNTAX_ERROR] A script of Spark's own, BEGIN … END, can't stand among "
                    "other statements: run it alone",
                )
            continue
        if first < at:
            found.append(_stripped(whole, first, at, begin, token.start))
        begin, first = token.end, at + 1
    if first < len(tokens):
        found.append(_stripped(whole, first, len(tokens), begin, len(text)))
    return found


def _stripped(whole: Statement, first: int, end: int, begin: int, stop: int) -> Statement:
    """A part without white space around it; comments stay."""
    text = whole.text[begin:stop]
    begin += len(text) - len(text.lstrip())
    return whole.part(first, end, begin, begin + len(text.strip()))


def add_magic(ipython: Any) -> None:
    """Make the cell magic `%%lakelog`, which runs its cell as `sql_script` in the active session.

    Args:
        ipython: the shell, as IPython hands it to extensions.
    """
    from pyspark.sql import SparkSession

    def lakelog(_: str, cell: str) -> Any:
        """Run the cell's statements."""
        return sql_script(SparkSession.active(), cell)

    ipython.register_magic_function(lakelog, "cell", "lakelog")
