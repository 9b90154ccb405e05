"""New values for columns of rows: the SET of an UPDATE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrow_types import cast_table, to_arrow_type
from lakelog.core.columns import identity_of
from lakelog.core.compute import pc
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.row_checks import check_table_rules
from lakelog.core.row_filling import regenerated
from lakelog.core.schema_rules import without_void

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.schema import StructField
    from lakelog.core.snapshot import Snapshot

__all__ = ["assigned", "resolve_assignments"]


def resolve_assignments(values: Mapping[str, Any], snapshot: Snapshot) -> dict[str, Any]:
    """The columns as the schema spells them -> an `Expression`, or a scalar of the column's type.

    Raises:
        DeltaAnalysisError: no column at all, an unknown one, one twice, or a value that does not
            fit its column.
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
        found[field.name] = value if isinstance(value, pc.Expression) else _scalar(value, field)
    return found


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
    columns = {name: _column(rows, name, values[name], snapshot) for name in values}
    for name, column in columns.items():
        rows = rows.set_column(rows.column_names.index(name), name, column)
    schema = without_void(snapshot.schema)
    new = cast_table(rows.select(schema.names), schema)
    zone = snapshot.conf.get_str("spark.sql.session.timeZone", "UTC")
    new = regenerated(new, schema, values, snapshot.table, session_tz=zone)
    check_table_rules(new, snapshot.metadata, schema, snapshot.table, session_tz=zone)
    return new


def _scalar(value: Any, field: StructField) -> pa.Scalar[Any]:
    kind = to_arrow_type(field.data_type)
    try:
        return value.cast(kind) if isinstance(value, pa.Scalar) else pa.scalar(value, kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as exc:
        raise _misfit(field, repr(value), exc) from exc


def _column(rows: pa.Table, name: str, value: Any, snapshot: Snapshot) -> Any:
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, rows.num_rows)
    field = next(each for each in snapshot.schema if each.name == name)
    try:
        found = _evaluated(rows, value)
        return found.cast(to_arrow_type(field.data_type))
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as exc:
        raise _misfit(field, str(value), exc) from exc


def _evaluated(rows: pa.Table, expression: Any) -> Any:
    import pyarrow.dataset

    dataset: Any = pyarrow.dataset
    scanner = dataset.dataset(rows).scanner(columns={"value": expression}, use_threads=False)
    return scanner.to_table().column("value")


def _misfit(field: StructField, value: str, exc: Exception) -> DeltaAnalysisError:
    return DeltaAnalysisError(
        f"the column {field.name} of type {field.data_type} can't be set to {value}: {exc}",
        column=field.name,
    )
