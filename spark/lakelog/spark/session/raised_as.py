"""lakelog's errors as instances of PySpark's classes as well, so that scripts catch either.

`except AnalysisException` and `except TableNotFoundError` both catch what `DeltaTable.forPath` says
of a folder without a table. Of each class of `lakelog.core.errors` there is one subclass for each
class of PySpark's that delta-spark raises for the same: which, the error's condition says, the
`[DELTA_…]` in its message, and where it has none, lakelog's class. No error of the JVM is behind
it: what PySpark's methods answer comes from lakelog's message and fields. Sessions of either kind,
classic and Connect, raise the same.
"""

from __future__ import annotations

import functools
import re
import sys
from typing import TYPE_CHECKING, Any

from lakelog.spark.session.error_conditions import kind_of, sql_state

if TYPE_CHECKING:
    from lakelog.core.errors import DeltaError

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z][A-Z0-9_]*)*)\]")
_CONDITIONS = {
    "AppendOnlyError": "DELTA_CANNOT_MODIFY_APPEND_ONLY",
    "DataFileMissingError": "FAILED_READ_FILE.FILE_NOT_EXIST",
    "MaxCommitAttemptsExceededError": "DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
    "SchemaMismatchError": "DELTA_METADATA_MISMATCH",
    "SqlSyntaxError": "PARSE_SYNTAX_ERROR",
    "TableExistsError": "DELTA_PATH_EXISTS",
    "TableNotFoundError": "DELTA_TABLE_NOT_FOUND",
    "VersionNotFoundError": "DELTA_VERSION_NOT_FOUND",
}
"""lakelog's class -> the condition of an error that names none."""
_KINDS = {
    "ConstraintViolationError": "DeltaInvariantViolationException",
    "DeltaAnalysisError": "AnalysisException",
}
"""lakelog's class -> PySpark's, for errors without a condition; any other: PySparkException."""
_INVARIANT = "org.apache.spark.sql.delta.schema.DeltaInvariantViolationException"


def error_class(cls: type[DeltaError], message: str) -> type[DeltaError]:
    """The class for an error that is to be raised: a subclass of lakelog's and of PySpark's.

    Args:
        cls: lakelog's.
        message: begins with the condition, if the error has one.
    """
    condition = _condition(cls, message)
    kind = None if condition is None else kind_of(condition)
    if kind is None:
        kind = next((_KINDS[c.__name__] for c in cls.__mro__ if c.__name__ in _KINDS), "")
    own: Any = own_class(cls)
    both: type[DeltaError] = _both(own, kind or "PySparkException", _delta_sparks(own))
    return both


def own_class(cls: type[Any]) -> type[Any]:
    """The class of lakelog's own that `error_class` gave a class for."""
    return next(each for each in cls.__mro__ if not issubclass(each, _AsPySpark))


class _AsPySpark:
    """What PySpark's errors can be asked."""

    args: tuple[Any, ...]
    fields: dict[str, Any]

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def getCondition(self) -> str | None:  # noqa: N802  # PySpark's name
        """delta-spark's or Spark's condition: `DELTA_MISSING_DELTA_TABLE`; `None` without one."""
        found = _condition(type(self), _AsPySpark.__str__(self))
        sub = self.fields.get("sub_condition")
        return found if found is None or sub is None or "." in found else f"{found}.{sub}"

    def getErrorClass(self) -> str | None:  # noqa: N802  # PySpark's name
        """The condition, by its former name."""
        return self.getCondition()

    def getSqlState(self) -> str | None:  # noqa: N802  # PySpark's name
        """The SQLSTATE of the condition."""
        condition = self.getCondition()
        return None if condition is None else sql_state(condition)

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802  # PySpark's name
        """The error's fields, as text; they have lakelog's names."""
        return {name: str(value) for name, value in self.fields.items() if value is not None}

    def getMessage(self) -> str:  # noqa: N802  # PySpark's name
        """The message, which begins with the condition."""
        return str(self)

    def getQueryContext(self) -> list[Any]:  # noqa: N802  # PySpark's name
        """None: a place in a statement is part of the message."""
        return []

    def getBreakingChangeInfo(self) -> None:  # noqa: N802  # PySpark's name
        """None."""


class DeltaInvariantViolationException(_AsPySpark):  # Delta's name
    """Rows break NOT NULL, a CHECK constraint or a limit of length.

    PySpark has no class for delta-spark's error, so that scripts look for its name in the text of
    what they catch, or of one of its causes; both are here.
    """

    def __str__(self) -> str:
        said = super().__str__()
        # An error that came from a worker has the name already.
        return said if _INVARIANT in said else f"{said}\n({_INVARIANT})"


def _condition(cls: type[Any], message: str) -> str | None:
    found = _CONDITION.match(message)
    if found:
        return found[1]
    of_class = (_CONDITIONS.get(each.__name__) for each in cls.__mro__)
    return getattr(cls, "condition", "") or next(filter(None, of_class), None)


def _delta_sparks(cls: type[Any]) -> Any:
    """The class of the name in delta-spark's Python package, if a script has imported that."""
    found = getattr(sys.modules.get("delta.exceptions"), cls.__name__, None)
    return found if isinstance(found, type) and not issubclass(cls, found) else None


@functools.cache
def _both(cls: Any, kind: str, delta_sparks: Any) -> Any:
    from pyspark import errors

    first: type[Any] = _AsPySpark
    if kind == DeltaInvariantViolationException.__name__:
        first, kind = DeltaInvariantViolationException, "PySparkException"
    theirs = getattr(errors, kind) if delta_sparks is None else delta_sparks
    names = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__reduce__": _reduced,
    }
    # What a script's own subclass says of itself goes before what is said here.
    return type(cls.__name__, (cls, first, theirs), names)


def _reduced(error: Any) -> tuple[Any, ...]:
    """What pickling keeps: names of lakelog's own class; the other class is rebuilt there."""
    made = type(error)
    own: Any = own_class(made)
    call, arguments, *state = own.__reduce__(error)
    arguments = tuple(own if each is made else each for each in arguments)
    return (own if call is made else call, arguments, *state)
