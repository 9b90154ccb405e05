"""Values of Python that don't fit a column: which one it is, where Arrow names only the type."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.arguments import shown
from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.compute import pc
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.input.iso_texts import read_texts

if TYPE_CHECKING:
    from lakelog.core.schema import StructType


def typed_table(given: Any, schema: StructType) -> pa.Table:
    """Rows of Python as a table of a given schema; what a row lacks is null.

    A text of ISO 8601 is a time or a day where the schema has one.

    Args:
        given: a dict of columns or a list of dicts, which may be empty.
        schema: their columns.

    Raises:
        DeltaAnalysisError: another form, a name that the schema does not have, or a value that does
            not fit; names the column and the row, counted from 0.
    """
    if isinstance(given, Mapping):
        columns = checked_columns(given)
        names = list(columns)
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


def checked_columns(given: Mapping[Any, Any]) -> dict[Any, Any]:
    """A dict of columns, each with a length.

    Raises:
        DeltaAnalysisError: one has no list of values but a single one, as in a dict that was meant
            for a row: of a text Arrow would make a row for each character.
    """
    return {name: _as_column(name, values) for name, values in given.items()}


def _as_column(name: Any, values: Any) -> Any:
    if not isinstance(values, str | bytes | bytearray | memoryview | Mapping):
        try:
            len(values)
        except TypeError:
            with suppress(TypeError):
                return list(values)
        else:
            return values
    raise DeltaAnalysisError(
        f"a dict has the values of each column as a list, and the column {name!r} has "
        f"{shown(values)}; one row is a list of one dict: [{{…}}]",
        column=str(name),
    )


def _typed(name: str, values: Any, kind: pa.DataType) -> Any:
    values = read_texts(values, kind)
    try:
        _refuse_losses(values, kind)
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, ArithmeticError) as exc:
        at = _first_unfit(values, kind)
        where = "" if at is None else f" in row {at}: {shown(values[at])}"
        raise DeltaAnalysisError(
            f"the column {name} of type {kind} can't hold its value{where}: {exc}",
            column=name,
            row=at,
        ) from exc


def _refuse_losses(values: Any, kind: pa.DataType) -> None:
    """Refuse what Arrow would change without a word, to make it fit, at any depth.

    Raises:
        ValueError: a value that would become another one, or a field that the type does not have.
    """
    typed = getattr(values, "dtype", "O") != "O" or isinstance(values, pa.Array | pa.ChunkedArray)
    if typed and (_may_lose(kind) or pa.types.is_boolean(kind)):
        _refuse_typed(values, kind)
    if typed or not _may_lose(kind):
        return
    given = [each for each in values if each is not None]
    if pa.types.is_struct(kind):
        for each in given:
            if not isinstance(each, Mapping | tuple):
                raise ValueError(f"{shown(each)} is no struct")
        names = [field.name for field in kind]
        rows = [
            each if isinstance(each, Mapping) else dict(zip(names, each, strict=True))
            for each in given
        ]
        for name in dict.fromkeys(name for row in rows for name in row):
            if name not in names:
                raise ValueError(f"it has {name!r}, which {kind} does not have")
        for field in kind:
            _refuse_losses([row.get(field.name) for row in rows], field.type)
    elif pa.types.is_map(kind):
        _refuse_texts(given, "map")
        pairs = [
            pair for each in given for pair in (each.items() if isinstance(each, Mapping) else each)
        ]
        _refuse_losses([key for key, _ in pairs], kind.key_type)
        _refuse_losses([item for _, item in pairs], kind.item_type)
    elif _is_list(kind):
        _refuse_texts(given, "list")
        _refuse_losses([item for each in given for item in each], kind.value_type)
    elif not {*map(type, given)} <= _harmless(kind):
        for each in given:
            if (why := _loss(each, kind)) is not None:
                raise ValueError(f"{shown(each)} {why}")


def _refuse_texts(given: Sequence[Any], what: str) -> None:
    for each in given:
        if isinstance(each, str | bytes | bytearray):
            raise ValueError(f"{shown(each)} is no {what}")


def _refuse_typed(values: Any, kind: pa.DataType) -> None:
    """The same for values that have one type; that no part of a number is lost Arrow checks."""
    types, array = pa.types, pa.array(values)
    own = array.type
    why = None
    if (types.is_boolean(own) or _is_time(own)) and _is_number(kind):
        why = _NO_NUMBER
    elif _is_number(own) and _is_time(kind):
        why = _NO_TIME
    elif types.is_timestamp(own) and types.is_timestamp(kind) and own.tz and not kind.tz:
        why = _ZONE
    elif types.is_timestamp(own) and types.is_date(kind) and not _are_days(array):
        why = "would lose a part"
    elif _is_number(own) and types.is_boolean(kind) and not _are_truths(array):
        why = "is neither true nor false"
    if why is not None:
        raise ValueError(f"a value of type {own} {why}")
    if types.is_float64(own) and types.is_float32(kind):
        _refuse_losses(array.to_pylist(), kind)


def _are_days(times: Any) -> bool:
    local = pc.local_timestamp(times) if times.type.tz else times
    days = pc.floor_temporal(local, unit="day")
    return pc.all(pc.equal(local, days)).as_py() is not False


def _are_truths(numbers: Any) -> bool:
    truths = pa.array([0, 1], numbers.type)
    return pc.all(pc.is_in(pc.drop_null(numbers), value_set=truths)).as_py() is not False


_NO_NUMBER: Final = "is no number"
_NO_ISO: Final = "is no text of ISO 8601 of such a time, to the microsecond"
_NO_TIME: Final = "is no time: a number has no unit"
_ZONE: Final = "has a time zone, for which the type has no place: give the time of the clock alone"
_LARGEST_FLOAT: Final = 3.4028235677973366e38
"""What is not smaller becomes infinite in 32 bits."""


def _may_lose(kind: pa.DataType) -> bool:
    types = pa.types
    if _is_list(kind) or types.is_map(kind) or types.is_struct(kind) or types.is_binary(kind):
        return True
    return _is_number(kind) or _is_time(kind)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_time(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_date(kind) or types.is_timestamp(kind) or types.is_duration(kind))


def _harmless(kind: pa.DataType) -> set[type]:
    """The types of values that Arrow takes as they are, or refuses."""
    if pa.types.is_timestamp(kind):
        return {datetime} if kind.tz else set()
    if pa.types.is_date(kind):
        return {date}
    if pa.types.is_binary(kind):
        return {bytes, str}
    if pa.types.is_float64(kind):
        return {int, float}
    return {int} if pa.types.is_integer(kind) else set()


def _loss(value: Any, kind: pa.DataType) -> str | None:
    """What is wrong with a value that Arrow would take for another one."""
    if pa.types.is_binary(kind):
        return None if isinstance(value, bytes | bytearray | memoryview | str) else "is no bytes"
    if value != value:
        # NaN and NaT are left to Arrow, which takes them for the first of all days.
        return _NO_TIME if pa.types.is_date(kind) else None
    name = type(value).__name__
    is_bool = name in ("bool", "bool_")  # NumPy's too
    # Arrow counts whatever has an `__int__`, as fractions and UUIDs do, and NumPy's times.
    is_numpy_time = name in ("datetime64", "timedelta64")
    is_number = hasattr(value, "__int__") and not is_numpy_time
    cut = "would lose a part"
    if _is_time(kind):
        if isinstance(value, str):
            return _NO_ISO
        if is_bool or is_number or name == "timedelta64":
            return _NO_TIME
        if pa.types.is_timestamp(kind) and not kind.tz and getattr(value, "tzinfo", None):
            return _ZONE
        if pa.types.is_date(kind) and name == "datetime64":
            return "is no day: Arrow would count its nanoseconds"
        if pa.types.is_date(kind) and isinstance(value, datetime) and value.time() != time():
            return cut
        smallest = getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0)
        return cut if smallest > 0 else None
    if is_bool or is_numpy_time:
        return _NO_NUMBER
    if pa.types.is_integer(kind):
        return cut if is_number and int(value) != value else None
    is_large = is_number and _LARGEST_FLOAT <= abs(float(value)) < float("inf")
    # Of NumPy's whole numbers without a sign, Arrow takes the largest for negative ones.
    is_unsigned = name == "uint64" and value >= 1 << 63
    is_more = is_unsigned or (pa.types.is_float32(kind) and is_large)
    return "is more than the type holds" if is_more else None


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
    except (pa.ArrowException, TypeError, ValueError, ArithmeticError):
        return False
    return True
