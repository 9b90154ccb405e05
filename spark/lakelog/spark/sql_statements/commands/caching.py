"""CACHE TABLE, which has no meaning for a table of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.spark.sql_statements.views import NO_CACHE

if TYPE_CHECKING:
    from lakelog.spark.sql_statements.commands.base import Statement

__all__ = ["refuse_cache"]


def refuse_cache(s: Statement) -> None:
    """Refuse `CACHE [LAZY] TABLE t` of a table of ours; with a query it is left to the query.

    Raises:
        SqlSyntaxError: it is one; the message says what to do instead.
    """
    c = s.cursor
    c.need("CACHE")
    c.took("LAZY")
    c.need("TABLE")
    first = c.at
    if s.place() is not None and (c.token is None or c.word == "OPTIONS"):
        raise c.error(
            f"[UNSUPPORTED_FEATURE] Spark would read the Delta table again by itself: {NO_CACHE}",
            first,
        )
