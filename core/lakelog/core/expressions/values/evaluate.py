"""Values of Spark's SQL on Arrow rows: what generated columns, defaults and CHECKs are made of.

The meaning is that of Spark in ANSI mode, its default: an overflow, a division by zero or a string
that is not a number is an error. Anything that may mean something else here than in Spark is
refused by name, so that a row never gets a value that Spark would not have given it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.coerce import NotInCoreError
from lakelog.core.expressions.context import DEFAULTS, EvalContext
from lakelog.core.expressions.nesting import explained_depth
from lakelog.core.expressions.parse.sql import parse_sql
from lakelog.core.expressions.tree import names
from lakelog.core.expressions.values.casts import assigned_value
from lakelog.core.expressions.values.explained import explained
from lakelog.core.expressions.values.typed import typed
from lakelog.core.expressions.values.value import array_for
from lakelog.core.schema import DataType, StructType

if TYPE_CHECKING:
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.expressions.values.value import Value

_AT_ANY_TIME: Final = EvalContext(now_ms=0)


@dataclass(frozen=True, slots=True)
class TypedText:
    """An expression that is typed once, for all the rows that it is evaluated for."""

    sql: str
    root: Expression = field(compare=False, repr=False)
    """What `sql` is the text of."""
    schema: StructType = field(compare=False, repr=False)
    """Of the rows."""
    context: EvalContext = field(compare=False, repr=False)
    _found: Value | NotInCoreError | pa.ArrowException = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        """Type it.

        Raises:
            InvalidPredicateError: an unknown column.
        """
        try:
            with explained_depth(self.sql):
                found: Any = typed(self.root, self.schema, self.context, sql=self.sql)
        except (NotInCoreError, pa.ArrowException) as exc:
            found = exc.with_traceback(None)
        object.__setattr__(self, "_found", found)

    @property
    def data_type(self) -> DataType | None:
        """By Spark's rules; `None` where only Spark knows it, or it has no value."""
        found = self._found
        return None if isinstance(found, Exception) or found.error else found.data_type

    def check(self, target: DataType) -> None:
        """Refuse what `evaluate` would refuse for any rows.

        Args:
            target: see `evaluate`.

        Raises:
            DeltaAnalysisError: see `evaluate_value`.
        """
        with explained(self.sql):
            error = self._assigned(target).error
            if error is not None:
                raise error

    def evaluate(self, rows: pa.Table, target: DataType) -> pa.ChunkedArray[Any]:
        """The value for every row; see `evaluate_value`."""
        with explained(self.sql):
            value = self._assigned(target)
            # Arrow cuts a table into batches column by column, which is wasted work for the others.
            named = (self.schema.get(each.path[0]) for each in names(self.root))
            used = list(dict.fromkeys(found.name for found in named if found is not None))
            batches = rows.select(used or rows.column_names[:1]).to_batches()
            found, arrow = (array_for(value, each) for each in batches), to_arrow_type(target)
            # Arrow's cast refuses a null struct whose part can't be null (a variant's), even to its
            # own type.
            fitted = [each if each.type.equals(arrow) else each.cast(arrow) for each in found]
            return pa.chunked_array(fitted, type=arrow)

    def _assigned(self, target: DataType) -> Value:
        if isinstance(self._found, Exception):
            raise self._found
        return assigned_value(self._found, target, self.context)


def evaluate_value(
    sql: str,
    rows: pa.Table,
    schema: StructType,
    target: DataType,
    context: EvalContext = DEFAULTS,
    *,
    root: Expression | None = None,
) -> pa.ChunkedArray[Any]:
    """The value of an expression for every row.

    Args:
        sql: the expression, in Spark's SQL.
        rows: columns with the names and Arrow types of the schema.
        schema: of the rows.
        target: the type that the values are cast to.
        context: of the evaluation; without a time, functions of the current one are refused.
        root: what `parse_sql` makes of it, from callers that ask for many expressions in turn.

    Returns:
        As many values as there are rows, of the Arrow type of `target`.

    Raises:
        InvalidPredicateError: it can't be parsed, names an unknown column, or holds a part that
            only Spark evaluates.
        DeltaAnalysisError: a row without a result, such as a division by zero.
    """
    root = parse_sql(sql) if root is None else root
    return TypedText(sql, root, schema, context).evaluate(rows, target)


def value_type(
    sql: str,
    schema: StructType,
    context: EvalContext = _AT_ANY_TIME,
    *,
    root: Expression | None = None,
) -> DataType | None:
    """The type of an expression by Spark's rules; `None` where only Spark knows.

    Raises:
        InvalidPredicateError: it can't be parsed, or names an unknown column.
    """
    root = parse_sql(sql) if root is None else root
    return TypedText(sql, root, schema, context).data_type


def constant_of(root: Expression, context: EvalContext) -> Value | None:
    """A tree without columns, where it has a value that can be computed here."""
    try:
        found = typed(root, StructType(()), context)
        found.of(None)
    except (NotInCoreError, InvalidPredicateError, pa.ArrowException):
        return None
    return found
