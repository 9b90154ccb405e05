"""The errors of a write whose partition the log can't store as text, or is a link."""

from __future__ import annotations

import errno
import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.portable.made_files import LinkedFolderError
from lakelog.core.portable.partition_text import PartitionValueError

if TYPE_CHECKING:
    from collections.abc import Iterator

_IN_TASK_ERROR = re.compile(rf"{PartitionValueError.__name__}: (\[.*\])")
_LINK_IN_TASK = re.compile(rf"{LinkedFolderError.__name__}: \[Errno \d+\] (.*): '(.*)'")


@contextmanager
def partition_errors(table: str) -> Iterator[None]:
    """Turn the error for a partition value that the log can't hold into one that names the column.

    Args:
        table: its URI, or another name for it.

    Raises:
        DeltaAnalysisError: instead of `PartitionValueError`, also where that ended a task of
            Spark's and is a line of the text of what Spark raises.
        LinkedFolderError: as a task raised it.
    """
    try:
        yield
    except PartitionValueError as exc:
        raise _analysis_error(table, exc) from None
    except (DeltaAnalysisError, OSError):
        raise
    except Exception as exc:
        if linked := _LINK_IN_TASK.search(str(exc)):
            raise LinkedFolderError(errno.ELOOP, linked[1], linked[2]) from exc
        match = _IN_TASK_ERROR.search(str(exc))
        if match is None:
            raise
        raise _analysis_error(table, PartitionValueError(*json.loads(match[1]))) from exc


def _analysis_error(table: str, exc: PartitionValueError) -> DeltaAnalysisError:
    return DeltaAnalysisError(
        f"a row has the value {exc.value} in column {exc.column}, a partition column of {table}, "
        f"and that value {exc.why}: the log stores partition values as text and can't store it. "
        "Change the value, or partition by another column",
        column=exc.column,
        value=exc.value,
        table=table,
    )
