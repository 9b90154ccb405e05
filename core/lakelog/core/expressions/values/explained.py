"""Errors of an expression, as its user sees them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError
from lakelog.core.expressions.coerce import NotInCoreError
from lakelog.core.expressions.nesting import explained_depth

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def explained(sql: str) -> Iterator[None]:
    """Say of which expression an error is.

    Args:
        sql: the expression.

    Raises:
        InvalidPredicateError: a part that only Spark evaluates.
        DeltaAnalysisError: a row without a result.
    """
    try:
        with explained_depth(sql):
            yield
    except NotInCoreError as exc:
        raise InvalidPredicateError(
            f"the expression {sql!r} needs {exc}, which only Spark evaluates",
            sql=sql,
            part=str(exc),
        ) from None
    except pa.ArrowException as exc:
        raise DeltaAnalysisError(
            f"the expression {sql!r} has no result for some row: {exc} (Spark's ANSI rules apply "
            "here, whatever spark.sql.ansi.enabled says)",
            sql=sql,
        ) from exc
