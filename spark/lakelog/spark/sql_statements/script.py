"""`sql_script`: several statements in one text, and the cell magic that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.spark.sql_statements.errors import located
from lakelog.spark.sql_statements.front import sql
from lakelog.spark.sql_statements.tokens import tokenize

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
        answer = sql(spark, each, args)
    return answer


def statements(text: str) -> list[str]:
    """The statements of a text, without the semicolons between them.

    Raises:
        SqlSyntaxError: a script of Spark's own (`BEGIN … END`) comes after another statement.
    """
    found: list[str] = []
    begin, first = 0, None
    for token in tokenize(text):
        if token.text != ";":
            first = first or token
            if token is first and token.upper == "BEGIN":
                if not found:
                    return [text]
                raise located(
                    text,
                    token.start,
                    "[PARSE_SYNTAX_ERROR] A script of Spark's own, BEGIN … END, can't stand among "
                    "other statements: run it alone",
                )
            continue
        if first is not None:
            found.append(text[begin : token.start].strip())
        begin, first = token.end, None
    if first is not None:
        found.append(text[begin:].strip())
    return found


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
