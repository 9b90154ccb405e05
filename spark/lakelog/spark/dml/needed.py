"""The columns of a table that some expressions need.

Spark's own reader takes these and no others whatever it is asked for. Where Arrow reads, as on
storage that the session's Hadoop can't open, what is asked for is fetched.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from lakelog.core.schema import StructType
from lakelog.spark.dml.given_expressions import text_of
from lakelog.spark.session.unlogged import analyse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import Column, DataFrame

_CUT = "..."
"""What Spark puts in place of what it leaves out."""


def columns_needed(
    schema: StructType,
    partition_columns: Sequence[str],
    given: Iterable[str | Column],
    tried: Callable[[StructType], DataFrame],
) -> StructType:
    """The columns whose names are in some expressions; all where that may not be enough.

    Args:
        schema: the table's.
        partition_columns: of these, which no file has; they are kept.
        given: the expressions.
        tried: applies them to rows that have only some columns; Spark's analysis has the last word
            on which are needed.
    """
    text = "\n".join(map(text_of, given)).lower()
    if _CUT in text:
        return schema
    free = set(partition_columns)
    found = StructType(tuple(f for f in schema if f.name in free or _is_in(f.name, text)))
    if not found.fields or len(found.fields) == len(schema.fields):
        return schema
    try:
        analyse(tried(found))
    except AnalysisException:
        return schema
    return found


def _is_in(name: str, text: str) -> bool:
    word = re.escape(name.lower().replace("`", "``"))
    return re.search(rf"(?<!\w){word}(?!\w)", text) is not None
