"""What `enable` does to `SparkSession.sql`."""

from __future__ import annotations

from functools import partial
from typing import Any

from lakelog.spark.format.claims import is_ours
from lakelog.spark.names.plain import ORIGINAL
from lakelog.spark.sql_statements.front import may_be_ours, run


def _sql(original: Any) -> Any:
    def sql(self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:  # noqa: N803
        # Where a session has delta-spark's jar, its statements are that one's.
        if not may_be_ours(sqlQuery) or not is_ours(self, "delta"):
            return original(self, sqlQuery, args, **kwargs)
        return run(self, partial(original, self), sqlQuery, args, kwargs)

    setattr(sql, ORIGINAL, original)
    return sql


SESSION = {"sql": _sql}
"""Method -> what wraps PySpark's own."""
