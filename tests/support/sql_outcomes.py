"""What a statement of SQL answers, by delta-spark or by us, in a form that can be compared."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from lakelog.core.errors import DeltaError, TableExistsError
from support.delta_spark_peer import DeltaSparkError

if TYPE_CHECKING:
    from collections.abc import Callable

NUMBERS = re.compile(r"size|Ms$|Bytes|^path$|metrics", re.IGNORECASE)
"""Columns that tell sizes and times, which differ, or where a table is."""
CONDITIONS: dict[type[Exception], str] = {
    TableExistsError: "TABLE_OR_VIEW_ALREADY_EXISTS",
}
"""What our classes mean that have no condition in their message."""


def outcome(run: Callable[[str], list[dict[str, Any]]], sql: str) -> Any:
    """The rows of an answer, or the condition of an error."""
    try:
        rows = run(sql)
    except (DeltaSparkError, DeltaError, PySparkException) as exc:
        found = re.search(r"\[([A-Z][A-Z_]+)", str(exc))
        return found[1] if found else CONDITIONS.get(type(exc), "an error")
    return [{k: _plain(v) for k, v in row.items() if not NUMBERS.search(k)} for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.isoformat() if isinstance(value, datetime.date) else value
