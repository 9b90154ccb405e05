"""A query that runs to its end, however busy the machine is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from collections.abc import Callable

TOO_SLOW = "failed to connect back"
TRIES = 4


def to_end(start: Callable[[], Any]) -> Any:
    """Run a query to its end, and give it.

    Spark gives each of its Python processes ten seconds to begin, which no conf can change. A query
    that ends for that reason, or over Connect does not start, is started again, and goes on from
    its checkpoint.

    Args:
        start: starts the query.
    """
    for left in reversed(range(TRIES)):
        try:
            query = start()
            query.awaitTermination()
        except PySparkException as exc:
            if not left or TOO_SLOW not in str(exc):
                raise
        else:
            return query
    raise AssertionError("unreachable")
