"""Values of Python that don't fit a column: which one it is, where Arrow names only the type."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, time
from decimal import Decimal
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
        _refuse_losses(values, kind)
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as exc:
        at = _first_unfit(values, kind)
        where = "" if at is None else f" in row {at}: {shown(values[at])}"
        raise DeltaAnalysisError(
            f"the column {name} of type {kind} can't hold its value{where}: {exc}", column=name
        ) from exc


def _refuse_losses(values: Iterable[Any], kind: pa.DataType) -> None:
    """Refuse what Arrow would cut without a word, to make it fit, at any depth.

    Raises:
        ValueError: a part of a number or of a time, or a field that the type does not have.
    """
    if not _may_lose(kind) or getattr(values, "dtype", "O") != "O":
        return  # what has a type is checked by Arrow
    given = [each for each in values if each is not None]
    if pa.types.is_struct(kind):
        rows = [each for each in given if isinstance(each, Mapping)]
        names = {field.name for field in kind}
        for name in dict.fromkeys(name for row in rows for name in row):
            if name not in names:
                raise ValueError(f"it has {name!r}, which {kind} does not have")
        for field in kind:
            _refuse_losses([row.get(field.name) for row in rows], field.type)
    elif pa.types.is_map(kind):
        pairs = [
            pair for each in given for pair in (each.items() if isinstance(each, Mapping) else each)
        ]
        _refuse_losses([key for key, _ in pairs], kind.key_type)
        _refuse_losses([item for _, item in pairs], kind.item_type)
    elif _is_list(kind):
        _refuse_losses([item for each in given for item in each], kind.value_type)
    elif any(each is not int for each in set(map(type, given))):
        for each in given:
            if _is_cut(each, kind):
                raise ValueError(f"a part of {shown(each)} would be lost")


def _may_lose(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_map(kind):
        return _may_lose(kind.key_type) or _may_lose(kind.item_type)
    if _is_list(kind):
        return _may_lose(kind.value_type)
    is_cut = types.is_integer(kind) or types.is_date(kind) or types.is_timestamp(kind)
    return bool(is_cut or types.is_struct(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_cut(value: Any, kind: pa.DataType) -> bool:
    if pa.types.is_integer(kind):
        # NaN is not equal to itself, and left to Arrow; so is NaT.
        has_parts = isinstance(value, Decimal) or hasattr(value, "is_integer")
        return has_parts and bool(value == value and int(value) != value)
    if pa.types.is_date(kind):
        return isinstance(value, datetime) and value == value and value.time() != time()
    return bool(getattr(value, "nanosecond", 0) > 0)


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
        if kind is not None:
            _refuse_losses(values, kind)
        pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True
