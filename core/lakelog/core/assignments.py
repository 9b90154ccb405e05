"""New values for columns of rows: the SET of an UPDATE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrow_types import cast_table
from lakelog.core.columns import identity_of
from lakelog.core.compute import pc
from lakelog.core.errors import (
    ConstraintViolationError,
    DeltaAnalysisError,
    InvalidPredicateError,
)
from lakelog.core.exact_values import exact_array, exact_scalar
from lakelog.core.expressions import Literal
from lakelog.core.repeated import repeated
from lakelog.core.row_checks import check_table_rules
from lakelog.core.row_filling import regenerated
from lakelog.core.shown_values import python_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.schema import StructField
    from lakelog.core.snapshot import Snapshot

__all__ = ["assigned", "resolve_assignments"]


@dataclass(frozen=True, slots=True)
class _Sql:
    """An expression in Spark's SQL over the columns of the old row."""

    text: str
    now_ms: int
    """The time of the update, the same for all of its rows."""


def resolve_assignments(
    values: Mapping[str, Any], snapshot: Snapshot, *, now_ms: int
) -> dict[str, Any]:
    """What each column is set to, in a form that `assigned` takes; columns as the schema spells.

    Args:
        values: as a user gave them: text is SQL, the others are values or pyarrow's expressions.
        snapshot: has schema and conf.
        now_ms: what `current_timestamp()` gives.

    Raises:
        DeltaAnalysisError: no column at all, an unknown one, one twice, a value that its column
            does not hold exactly, or SQL that can't be evaluated here.
    """
    if not values:
        raise DeltaAnalysisError("an update sets one column at least")
    found: dict[str, Any] = {}
    for name, value in values.items():
        field = snapshot.schema.get(name)
        if field is None:
            raise DeltaAnalysisError(
                f"{snapshot.table} has no column {name!r}; it has "
                f"{', '.join(snapshot.schema.names)}",
                table=snapshot.table,
                column=name,
            )
        if field.name in found:
            raise DeltaAnalysisError(
                f"the column {name!r} is set twice", table=snapshot.table, column=name
            )
        if identity_of(field) is not None:
            raise DeltaAnalysisError(
                "[DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED] UPDATE on IDENTITY column "
                f"{field.name} is not supported.",
                table=snapshot.table,
                column=field.name,
            )
        found[field.name] = _resolved(value, field, snapshot, now_ms)
    return found


def _resolved(value: Any, field: StructField, snapshot: Snapshot, now_ms: int) -> Any:
    zone = _zone(snapshot)
    if isinstance(value, pc.Expression):
        return value
    if isinstance(value, str):
        _check_sql(value, field, snapshot, now_ms)
        return _Sql(value, now_ms)
    given = value.value if isinstance(value, Literal) else value
    try:
        return exact_scalar(given, field.data_type, session_tz=zone)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as exc:
        raise _misfit(field, _shown(given), exc) from exc


def _shown(value: Any) -> str:
    return repr(python_value(value) if isinstance(value, pa.Scalar) else value)


def _check_sql(sql: str, field: StructField, snapshot: Snapshot, now_ms: int) -> None:
    from lakelog.core.sql_values import check_value

    schema = snapshot.schema
    try:
        check_value(sql, schema, field.data_type, session_tz=_zone(snapshot), now_ms=now_ms)
    except InvalidPredicateError as exc:
        # A text is a value elsewhere in Python, so that whoever means one has to be told.
        raise InvalidPredicateError(
            f"the column {field.name} can't be set to the SQL {sql!r}: {exc}. The text itself, as "
            f"a value, is lit({sql!r}).",
            column=field.name,
            sql=sql,
        ) from exc


def _zone(snapshot: Snapshot) -> str:
    return snapshot.conf.session_tz


def assigned(rows: pa.Table, values: Mapping[str, Any], snapshot: Snapshot) -> pa.Table:
    """The rows with new values, checked against the table's rules.

    Args:
        rows: every column of the table.
        values: from `resolve_assignments`.
        snapshot: has schema and rules.

    Raises:
        ConstraintViolationError: new rows break a rule.
        DeltaAnalysisError: an expression that can't be evaluated, or values that do not fit.
    """
    # Several of one update see the same old row, whatever their order.
    rows = _replaced(rows, _columns(rows, values, snapshot))
    schema = snapshot.schema
    new = cast_table(rows.select(schema.names), schema)
    zone = _zone(snapshot)
    new = regenerated(new, schema, values, snapshot.table, session_tz=zone)
    check_table_rules(new, snapshot.metadata, schema, snapshot.table, session_tz=zone)
    return new


def _columns(rows: pa.Table, values: Mapping[str, Any], snapshot: Snapshot) -> dict[str, Any]:
    fields = {field.name: field for field in snapshot.schema}
    expressions = {name: e for name, e in values.items() if isinstance(e, pc.Expression)}
    evaluated = _all_evaluated(rows, expressions) if len(expressions) > 1 else None
    shown = rows.select(list(fields))
    columns: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, pa.Scalar):
            columns[name] = repeated(value, rows.num_rows)
        elif isinstance(value, _Sql):
            columns[name] = _evaluated_sql(shown, value, fields[name], snapshot)
        else:
            found = None if evaluated is None else evaluated.column(name)
            columns[name] = _exactly(rows, value, found, fields[name], snapshot)
    return columns


def _replaced(rows: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
    """The rows with some columns replaced, all at once: each change alone copies all columns."""
    kept = zip(rows.schema, rows.columns, strict=True)
    pairs = [
        (pa.field(f.name, columns[f.name].type), columns[f.name]) if f.name in columns else (f, old)
        for f, old in kept
    ]
    return pa.table([column for _, column in pairs], pa.schema([field for field, _ in pairs]))


def _exactly(
    rows: pa.Table, expression: Any, found: Any, field: StructField, snapshot: Snapshot
) -> Any:
    """The values of an expression, which may be found already, in the type of its column."""
    try:
        found = _evaluated(rows, {"value": expression}).column("value") if found is None else found
        return exact_array(found, field.data_type, session_tz=_zone(snapshot))
    except ConstraintViolationError:
        raise
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as exc:
        raise _misfit(field, str(expression), exc) from exc


def _evaluated_sql(rows: pa.Table, value: _Sql, field: StructField, snapshot: Snapshot) -> Any:
    from lakelog.core.sql_values import evaluate_value

    return evaluate_value(
        value.text,
        rows,
        snapshot.schema,
        field.data_type,
        session_tz=_zone(snapshot),
        now_ms=value.now_ms,
    )


def _all_evaluated(rows: pa.Table, expressions: Mapping[str, Any]) -> pa.Table | None:
    """The values of all expressions; None where one fails, which one by one is then told.

    Together, since Arrow looks at all columns of the rows for each evaluation.
    """
    try:
        return _evaluated(rows, expressions)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None


def _evaluated(rows: pa.Table, expressions: Mapping[str, Any]) -> pa.Table:
    import pyarrow.dataset

    dataset: Any = pyarrow.dataset
    scanner = dataset.dataset(rows).scanner(columns=dict(expressions), use_threads=False)
    return scanner.to_table()


def _misfit(field: StructField, value: str, exc: Exception) -> DeltaAnalysisError:
    return DeltaAnalysisError(
        f"the column {field.name} of type {field.data_type} can't be set to {value}: {exc}",
        column=field.name,
    )
