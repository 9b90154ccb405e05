"""Errors that cross the boundary of a Python Data Source, where only their text survives.

Spark runs a data source in processes of its own and reports what they raise as an
`AnalysisException` or `PythonException` whose message is a traceback. So the error's class and
fields are put in the text, between two marks.
"""

from __future__ import annotations

import builtins
import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakelog.core import errors as core_errors
from lakelog.logstores import errors as store_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

# In two pieces: a traceback quotes the line that raises, which must not look like a marked error.
_OPEN, _CLOSE = "<lakelog-error ", " lakelog-error>"
_MARKED = re.compile(f"{_OPEN}(?P<body>{{.*?}}){_CLOSE}", re.DOTALL)
_NO_PYARROW = re.compile(
    r"No module named '(pyarrow|numpy|pandas)|PACKAGE_NOT_INSTALLED|UNSUPPORTED_PACKAGE_VERSION"
)


@contextmanager
def marked() -> Iterator[None]:
    """Add an error's class and fields to its text before it leaves the worker."""
    try:
        yield
    except (core_errors.DeltaError, store_errors.LogStoreError, OSError) as failed:
        exc = _meant(failed)
        fields = getattr(exc, "fields", None) or {}
        body = {
            "class": type(exc).__name__,
            "message": str(exc),
            "fields": json.loads(json.dumps(fields, default=str)),
        }
        if isinstance(exc, store_errors.CommitOutcomeUnknownError):
            body["arguments"] = [exc.path, exc.evidence]
        text = json.dumps(body)
        raise RuntimeError(f"{exc}\n{_OPEN}{text}{_CLOSE}") from failed


def _meant(failed: Exception) -> Exception:
    """What a task's failure comes from, where that is known here and is not what it says."""
    if not isinstance(failed, OSError):
        return failed
    from lakelog.core.engine.tables import ended_credentials

    return ended_credentials(failed) or failed


def lacks_pyarrow(exc: BaseException) -> bool:
    """Whether a job failed because the executors' Python has no pyarrow that Spark can use."""
    return _NO_PYARROW.search(str(exc)) is not None


def unwrap_error(exc: BaseException) -> Exception | None:
    """The lakelog error that a failed `format("lakelog")` query or write was about.

        except AnalysisException as exc:
            if isinstance(delta.unwrap_error(exc), ConcurrentAppendException): …

    Args:
        exc: what Spark raised.

    Returns:
        An error of the original class with its message and `fields`, or `exc` itself if it is one;
        `None` if the cause was something else.
    """
    if isinstance(exc, core_errors.DeltaError | store_errors.LogStoreError):
        return exc
    match = _MARKED.search(str(exc))
    if match is None:
        return None
    try:
        body = json.loads(match["body"])
    except ValueError:
        return None
    return _rebuilt(body)


def _rebuilt(body: dict[str, Any]) -> Exception | None:
    name = body["class"]
    for home in (core_errors, store_errors, builtins):
        cls = getattr(home, name, None)
        if not (isinstance(cls, type) and issubclass(cls, Exception)):
            continue
        if issubclass(cls, core_errors.DeltaError):
            return cls(body["message"], **body["fields"])
        arguments = body.get("arguments", [body["message"]])
        return cls(*arguments)
    return None
