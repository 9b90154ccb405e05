"""Values of Spark's SQL on Arrow rows: what generated columns, defaults and CHECKs are made of.

The meaning is that of Spark in ANSI mode, its default: an overflow, a division by zero or a string
that is not a number is an error. Anything that may mean something else here than in Spark is
refused by name, so that a row never gets a value that Spark would not have given it.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError
from lakelog.core.expressions.coerce import NotInCoreError
from lakelog.core.expressions.context import DEFAULTS, EvalContext
from lakelog.core.expressions.nesting import explained_depth
from lakelog.core.expressions.parse.sql import parse_sql
from lakelog.core.expressions.tree import names
from lakelog.core.expressions.values.casts import assigned_value
from lakelog.core.expressions.values.typed import typed
from lakelog.core.schema import DataType, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.core.expressions.tree import Expression
    from lakelog.core.expressions.values.value import Value

_AT_ANY_TIME: Final = EvalContext(now_ms=0)


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
    with _explained(sql):
        value = _assigned(sql, root, schema, target, context)
        batches = _used_columns(rows, root, schema).to_batches()
        arrow = to_arrow_type(target)
        return pa.chunked_array([_data(value, each, arrow) for each in batches], type=arrow)


def check_value(
    sql: str,
    schema: StructType,
    target: DataType,
    context: EvalContext = DEFAULTS,
    *,
    root: Expression | None = None,
) -> None:
    """Refuse an expression that `evaluate_value` would refuse for any rows.

    Args:
        sql: see `evaluate_value`, and so the rest.
        schema: of the rows to come.
        target: the type that the values are cast to.
        context: of the evaluation.
        root: what `parse_sql` makes of it, where that is known.

    Raises:
        DeltaAnalysisError: see `evaluate_value`.
    """
    root = parse_sql(sql) if root is None else root
    with _explained(sql):
        value = _assigned(sql, root, schema, target, context)
        if value.error is not None:
            raise value.error


def _used_columns(rows: pa.Table, root: Expression, schema: StructType) -> pa.Table:
    """The columns that an expression names, or one that carries the number of rows.

    Arrow cuts a table into batches column by column, which is wasted work for unused columns.
    """
    named = (schema.get(each.path[0]) for each in names(root))
    used = list(dict.fromkeys(field.name for field in named if field is not None))
    return rows.select(used or rows.column_names[:1])


def _assigned(
    sql: str, root: Expression, schema: StructType, target: DataType, context: EvalContext
) -> Value:
    return assigned_value(typed(root, schema, context, sql=sql), target, context)


def _data(value: Value, batch: pa.RecordBatch, arrow: pa.DataType) -> Any:
    found = value.of(batch)
    if isinstance(found, pa.Scalar):
        found = pa.repeat(found, batch.num_rows)
    # Arrow's cast refuses a null struct whose part can't be null (a variant's), even to its own
    # type.
    return found if found.type.equals(arrow) else found.cast(arrow)


@contextlib.contextmanager
def _explained(sql: str) -> Iterator[None]:
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
    try:
        with explained_depth(sql):
            value = typed(root, schema, context, sql=sql)
    except (NotInCoreError, pa.ArrowException):
        return None
    return value.data_type if value.error is None else None


def constant_of(root: Expression, context: EvalContext) -> Value | None:
    """A tree without columns, where it has a value that can be computed here."""
    try:
        found = typed(root, StructType(()), context)
        found.of(None)
    except (NotInCoreError, InvalidPredicateError, pa.ArrowException):
        return None
    return found
