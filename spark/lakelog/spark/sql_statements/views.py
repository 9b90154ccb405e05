"""Statements that keep a query for later: a view can't keep a table that has no name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.spark.sql_statements.errors import located

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.spark.sql_statements.references import Reference
    from lakelog.spark.sql_statements.tokens import Token

__all__ = ["NO_CACHE", "refuse_lasting"]


NO_CACHE = "use df = spark.sql('SELECT …'), df.createTempView(name) and df.cache()"
"""What to do instead of CACHE TABLE."""


def refuse_lasting(sql: str, tokens: Sequence[Token], reference: Reference) -> None:
    """Refuse `CREATE VIEW`, `ALTER VIEW … AS` and `CACHE TABLE … AS` over a table of ours.

    Spark keeps their text, and evaluates it again where lakelog does not see it.

    Args:
        sql: the statement.
        tokens: its tokens.
        reference: the first table of ours in it.

    Raises:
        SqlSyntaxError: it is one; the message says what to do instead.
    """
    words = [each.upper for each in tokens[:8]]
    is_view = words[:1] in (["CREATE"], ["ALTER"]) and "VIEW" in words
    if not is_view and words[:2] != ["CACHE", "TABLE"] and words[:2] != ["CACHE", "LAZY"]:
        return
    if is_view:
        advice = (
            "Spark would evaluate its text without lakelog. For this session use "
            "spark.sql('SELECT …').createOrReplaceTempView(name), which stays at the version that "
            "it was made from, or CREATE TEMPORARY VIEW … USING lakelog OPTIONS (path '…') after "
            "lakelog.spark.register(spark), which always shows the newest"
        )
    else:
        advice = NO_CACHE
    raise located(
        sql,
        tokens[reference.first].start,
        "[UNSUPPORTED_FEATURE] this statement keeps its query for later, and the query reads a "
        f"Delta table: {advice}",
    )
