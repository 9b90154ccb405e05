"""Values of Spark's SQL on Arrow rows: what generated columns, defaults and CHECKs are made of.

The meaning is that of Spark in ANSI mode, its default: an overflow, a division by zero or a string
that is not a number is an error. Anything that may mean something else here than in Spark is
refused by name, so that a row never gets a value that Spark would not have given it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError
from lakelog.core.expressions.coerce import NotInCoreError
from lakelog.core.expressions.nesting import explained_depth
from lakelog.core.expressions.parse.sql import parse_sql
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import Opaque, names, walk
from lakelog.core.expressions.values.casts import Value, assigned_value
from lakelog.core.expressions.values.evaluator import Evaluator
from lakelog.core.schema import DataType, PrimitiveType, StructType

if TYPE_CHECKING:
    from lakelog.core.expressions.tree import Expression

_BOOLEAN = PrimitiveType("boolean")


def evaluate_value(
    sql: str,
    rows: pa.Table,
    schema: StructType,
    target: DataType,
    *,
    session_tz: str = "UTC",
    now_ms: int | None = None,
    root: Expression | None = None,
) -> pa.ChunkedArray:
    """The value of an expression for every row.

    Args:
        sql: the expression, in Spark's SQL.
        rows: columns with the names and Arrow types of the schema.
        schema: of the rows.
        target: the type that the values are cast to.
        session_tz: the time zone in which timestamps have dates.
        now_ms: what `current_timestamp()` gives; `None` refuses functions of the current time.
        root: what `parse_sql` makes of it, from callers that ask for many expressions in turn.

    Returns:
        As many values as there are rows, of the Arrow type of `target`.

    Raises:
        InvalidPredicateError: it can't be parsed, names an unknown column, or holds a part that
            only Spark evaluates.
        DeltaAnalysisError: a row without a result, such as a division by zero.
    """
    root = parse_sql(sql) if root is None else root
    _refuse_opaque(root, sql)
    arrow = to_arrow_type(target)
    chunks = []
    for batch in _used_columns(rows, root, schema).to_batches():
        evaluator = Evaluator(sql, batch, schema, session_tz, now_ms)
        found = _evaluated(evaluator, root, target, sql, session_tz)
        if isinstance(found, pa.Scalar):
            found = pa.repeat(found, batch.num_rows)
        # Arrow's cast refuses a null struct whose part can't be null (a variant's), even to its own
        # type.
        chunks.append(found if found.type.equals(arrow) else found.cast(arrow))
    return pa.chunked_array(chunks, type=arrow)


def check_value(
    sql: str,
    schema: StructType,
    target: DataType,
    *,
    session_tz: str = "UTC",
    now_ms: int | None = None,
    root: Expression | None = None,
) -> None:
    """Refuse an expression that `evaluate_value` would refuse for any rows.

    Args:
        sql: see `evaluate_value`, and so the rest.
        schema: of the rows to come.
        target: the type that the values are cast to.
        session_tz: the time zone in which timestamps have dates.
        now_ms: what `current_timestamp()` gives.
        root: what `parse_sql` makes of it, where that is known.

    Raises:
        DeltaAnalysisError: see `evaluate_value`.
    """
    root = parse_sql(sql) if root is None else root
    _refuse_opaque(root, sql)
    evaluator = Evaluator(sql, None, schema, session_tz, now_ms)
    _evaluated(evaluator, root, target, sql, session_tz)


def _used_columns(rows: pa.Table, root: Expression, schema: StructType) -> pa.Table:
    """The columns that an expression names, or one that carries the number of rows.

    Arrow cuts a table into batches column by column, which is wasted work for unused columns.
    """
    named = (schema.get(each.path[0]) for each in names(root))
    used = list(dict.fromkeys(field.name for field in named if field is not None))
    return rows.select(used or rows.column_names[:1])


def _evaluated(
    evaluator: Evaluator, root: Expression, target: DataType, sql: str, zone: str
) -> Any:
    try:
        with explained_depth(sql):
            return assigned_value(evaluator.value(root), target, zone).data
    except NotInCoreError as exc:
        raise _only_spark(sql, str(exc)) from None
    except pa.ArrowException as exc:
        raise DeltaAnalysisError(
            f"the expression {sql!r} has no result for some row: {exc} (Spark's ANSI rules apply "
            "here, whatever spark.sql.ansi.enabled says)",
            sql=sql,
        ) from exc


def value_type(
    sql: str,
    schema: StructType,
    *,
    session_tz: str = "UTC",
    now_ms: int | None = 0,
    root: Expression | None = None,
) -> DataType | None:
    """The type of an expression by Spark's rules; `None` where only Spark knows.

    Raises:
        InvalidPredicateError: it can't be parsed, or names an unknown column.
    """
    root = parse_sql(sql) if root is None else root
    if _opaque(root) is not None:
        return None
    try:
        with explained_depth(sql):
            return Evaluator(sql, None, schema, session_tz, now_ms).value(root).data_type
    except (NotInCoreError, pa.ArrowException):
        return None


def true_for(
    sql: str,
    root: Expression,
    batch: pa.RecordBatch,
    schema: StructType,
    *,
    session_tz: str,
    now_ms: int | None,
) -> Any:
    """A condition for each row of a batch: true, false or null.

    Raises:
        InvalidPredicateError: a part that only Spark evaluates, for the values of these rows.
        DeltaAnalysisError: a row for which it has no result.
    """
    evaluator = Evaluator(sql, batch, schema, session_tz, now_ms)
    _refuse_opaque(root, sql)
    found = _evaluated(evaluator, root, _BOOLEAN, sql, session_tz)
    return pa.repeat(found, batch.num_rows) if isinstance(found, pa.Scalar) else found


def constant_of(root: Expression, *, session_tz: str, now_ms: int | None) -> Value | None:
    """The value of a tree without columns; `None` where it can't be computed here."""
    if _opaque(root) is not None:
        return None
    row = pa.record_batch({"": pa.nulls(1)})
    try:
        found = Evaluator("", row, StructType(()), session_tz, now_ms).value(root)
    except (NotInCoreError, InvalidPredicateError, pa.ArrowException):
        return None
    data = found.data if isinstance(found.data, pa.Scalar) else found.data[0]
    return Value(data, found.data_type)


def _opaque(root: Expression) -> Opaque | None:
    return next((each for each in walk(root) if isinstance(each, Opaque)), None)


def _refuse_opaque(root: Expression, sql: str) -> None:
    """Leave to Spark what has a part that is not understood, even where no row needs it."""
    part = _opaque(root)
    if part is not None:
        raise _only_spark(sql, part.why or to_sql(part))


def _only_spark(sql: str, part: str) -> InvalidPredicateError:
    return InvalidPredicateError(
        f"the expression {sql!r} needs {part}, which only Spark evaluates", sql=sql, part=part
    )
