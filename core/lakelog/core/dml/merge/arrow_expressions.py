"""Expressions of pyarrow as conditions and values: they mean what pyarrow means by them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrow.arrow_types import to_arrow_field
from lakelog.core.compute import pc
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.expressions.arrow.given import named_columns
from lakelog.core.expressions.values.by_arrow import arrow_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.schema import StructField


@dataclass(frozen=True, slots=True)
class ArrowBound:
    """An expression of pyarrow, and the columns of `Sides.schema` that it uses."""

    expression: Any
    columns: Mapping[str, str]
    """What it calls a column -> the column."""
    type: pa.DataType
    names: frozenset[str] = field(init=False)
    """The columns that it uses."""

    def __post_init__(self) -> None:
        """Collect the names."""
        object.__setattr__(self, "names", frozenset(self.columns.values()))

    @property
    def shown(self) -> str:
        """As pyarrow writes it."""
        return str(self.expression)

    def values(self, rows: pa.Table) -> pa.Array[Any]:
        """What it gives for rows that have its columns.

        Raises:
            DeltaAnalysisError: a row for which it has no result.
        """
        used: dict[str, Any] = {name: rows[column] for name, column in self.columns.items()}
        if not used:
            used[""] = pa.nulls(rows.num_rows)
        try:
            return arrow_value(self.expression, pa.table(used))
        except pa.ArrowException as exc:
            raise DeltaAnalysisError(
                f"{self.shown} has no result for some row: {exc}", sql=self.shown
            ) from exc

    def true_for(self, rows: pa.Table) -> pa.ChunkedArray[Any]:
        """For each row whether the condition is true; where it is null it is not."""
        return pc.fill_null(pa.chunked_array([self.values(rows)]), False)


class ArrowNames:
    """What expressions of pyarrow may call the columns, and these."""

    def __init__(self, columns: Mapping[str, StructField]) -> None:
        """Take what each name means."""
        self.columns = columns
        fields = [pa.field(name, to_arrow_field(each).type) for name, each in columns.items()]
        self.schema: pa.Schema = pa.schema(fields)


def arrow_bound(expression: Any, names: ArrowNames, what: str, *, condition: bool) -> ArrowBound:
    """Find out what an expression uses.

    Args:
        expression: a `pyarrow.compute.Expression`.
        names: of the columns.
        what: where it stands, for messages.
        condition: whether it must be true, false or null.

    Raises:
        DeltaAnalysisError: it does not fit the columns, or a condition is not boolean.
    """
    columns = names.columns
    try:
        used, found = named_columns(expression, names.schema)
    except (pa.ArrowException, TypeError, ValueError) as exc:
        raise DeltaAnalysisError(
            f"the {what} {expression} does not fit the columns {', '.join(columns)}: {exc}. "
            "An expression of pyarrow spells them exactly so.",
            known=list(columns),
        ) from exc
    if condition and found != pa.bool_():
        raise DeltaAnalysisError(f"the {what} {expression} is of type {found}, not a condition")
    return ArrowBound(expression, {name: columns[name].name for name in used}, found)
