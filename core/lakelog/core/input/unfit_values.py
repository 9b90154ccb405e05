"""Values of Python that don't fit a column: which one it is, where Arrow names only the type."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arguments import shown
from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from lakelog.core.schema import StructType


def typed_table(given: Any, schema: StructType) -> pa.Table:
    """Rows of Python as a table of a given schema; what a row lacks is null.

    Args:
        given: a dict of columns or a list of dicts, which may be empty.
        schema: their columns.

    Raises:
        DeltaAnalysisError: another form, a name that the schema does not have, or a value that does
            not fit; names the column and the row, counted from 0.
    """
    if isinstance(given, Mapping):
        names, columns = list(given), dict(given)
        count = max((len(each) for each in columns.values()), default=0)
    elif isinstance(given, Sequence) and all(isinstance(each, Mapping) for each in given):
        names = list(dict.fromkeys(name for row in given for name in row))
        columns = {name: [row.get(name) for row in given] for name in names}
        count = len(given)
    else:
        raise DeltaAnalysisError(
            "schema= says what a list of dicts or a dict of columns has; the data is of type "
            f"{type(given).__name__}, which has types of its own"
        )
    known = {field.name: field for field in to_arrow_schema(schema)}
    for name in names:
        if name not in known:
            raise DeltaAnalysisError(
                f"the rows have {name!r}, which the schema does not have; it has "
                f"{', '.join(known)}",
                column=str(name),
            )
    arrays = [
        _typed(name, columns[name], field.type) if name in columns else pa.nulls(count, field.type)
        for name, field in known.items()
    ]
    try:
        return pa.Table.from_arrays(arrays, schema=pa.schema(list(known.values())))
    except pa.ArrowInvalid as exc:
        raise DeltaAnalysisError(f"the columns are not of one length: {exc}") from exc


def _typed(name: str, values: Any, kind: pa.DataType) -> Any:
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as exc:
        at = _first_unfit(values, kind)
        where = "" if at is None else f" in row {at}: {shown(values[at])}"
        raise DeltaAnalysisError(
            f"the column {name} of type {kind} can't hold its value{where}: {exc}", column=name
        ) from exc


def unfit_value(data: Any) -> str | None:
    """Which value of columns of Python's objects does not fit those before it, as text."""
    for name, values in _object_columns(data):
        at = _first_unfit(values, None)
        if at is None:
            continue
        before = next((v for v in reversed(values[:at]) if v is not None), None)
        here = f"the column {name} has in row {at}, counted from 0, {shown(values[at])}"
        if before is None:
            return f"{here}, for which Arrow has no type; a large number may be a decimal.Decimal"
        return f"{here}, and before it {shown(before)}; make them of one type"
    return None


def _object_columns(data: Any) -> list[tuple[str, list[Any]]]:
    # Another thread may be importing it.
    frame = getattr(sys.modules.get("pandas"), "DataFrame", None)
    if frame is not None and isinstance(data, frame):
        objects = [at for at, kind in enumerate(data.dtypes) if str(kind) == "object"]
        columns = [data.iloc[:, at] for at in objects]
        # What pandas takes for missing is null.
        return [(str(c.name), c.astype(object).where(c.notna(), None).tolist()) for c in columns]
    if isinstance(data, Mapping):
        return [(str(name), each) for name, each in data.items() if isinstance(each, list)]
    if isinstance(data, Sequence):
        names = dict.fromkeys(name for row in data for name in row)
        return [(str(name), [row.get(name) for row in data]) for name in names]
    return []


def _first_unfit(values: Any, kind: pa.DataType | None) -> int | None:
    """The row from which on the values can't be converted: found by halves."""
    if not isinstance(values, list | tuple) or _fits(values, kind):
        return None
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(values[:middle], kind):
            low = middle
        else:
            high = middle
    return high - 1


def _fits(values: Any, kind: pa.DataType | None) -> bool:
    try:
        pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True
