"""The error of a write that has a partition value of which the log has no text."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.partition_text import PartitionValueError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["partition_errors"]

_OF_A_TASK = re.compile(rf"{PartitionValueError.__name__}: (\[.*\])")


@contextmanager
def partition_errors(table: str) -> Iterator[None]:
    """Have writers of rows name the column and the value that the log can't hold.

    Args:
        table: its URI, or whatever tells it.

    Raises:
        DeltaAnalysisError: instead of `PartitionValueError`, also where that ended a task of
            Spark's and is a line of the text of what Spark raises.
    """
    try:
        yield
    except PartitionValueError as exc:
        raise _told(table, exc) from None
    except (DeltaAnalysisError, OSError):
        raise
    except Exception as exc:
        match = _OF_A_TASK.search(str(exc))
        if match is None:
            raise
        raise _told(table, PartitionValueError(*json.loads(match[1]))) from exc


def _told(table: str, exc: PartitionValueError) -> DeltaAnalysisError:
    return DeltaAnalysisError(
        f"a row has the value {exc.value} in column {exc.column}, by which {table} is partitioned, "
        f"and that value {exc.why}: the log keeps partition values as text and has none for it. "
        "Change the value, or partition by another column",
        column=exc.column,
        value=exc.value,
        table=table,
    )
