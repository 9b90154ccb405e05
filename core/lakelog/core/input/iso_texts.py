"""Texts of times and days, as JSON has them, for columns that hold times and days."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, Final, TypeAlias

import pyarrow as pa

_BELOW_MICROSECONDS: Final = re.compile(r"[.,]\d{6}0*[1-9]")
_Reader: TypeAlias = Callable[[Any], Any]


def read_texts(values: Any, kind: pa.DataType) -> Any:
    """Values of a column with each text of ISO 8601 as the time or day that it says, at any depth.

    What is no such text stays as it is, to be refused where it does not fit; also one of a time
    with parts below a microsecond, which the column would lose.

    Args:
        values: Python's, or of one type, which stay.
        kind: of the column.
    """
    read = _reader(kind)
    if read is None or getattr(values, "dtype", "O") != "O":
        return values
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if not pa.types.is_nested(kind) and not any(isinstance(each, str) for each in values):
        return values
    return [*map(read, values)]


def _reader(kind: pa.DataType) -> _Reader | None:
    """What reads a value; `None` where there is nothing to read."""
    types = pa.types
    if types.is_timestamp(kind):
        return _time
    if types.is_date(kind):
        return _day
    if types.is_struct(kind):
        return _struct_reader({each.name: _reader(each.type) for each in kind})
    if types.is_map(kind):
        return _map_reader(_reader(kind.key_type), _reader(kind.item_type))
    if types.is_list(kind) or types.is_large_list(kind):
        return _list_reader(_reader(kind.value_type))
    return None


def _list_reader(read: _Reader | None) -> _Reader | None:
    if read is None:
        return None
    return lambda found: [*map(read, found)] if isinstance(found, list | tuple) else found


def _map_reader(key: _Reader | None, item: _Reader | None) -> _Reader | None:
    if key is None and item is None:
        return None

    def read(found: Any) -> Any:
        if isinstance(found, Mapping):
            found = list(found.items())
        if not isinstance(found, list | tuple) or not all(map(_is_pair, found)):
            return found
        return [(key(k) if key else k, item(v) if item else v) for k, v in found]

    return read


def _is_pair(found: Any) -> bool:
    return isinstance(found, list | tuple) and len(found) == 2


def _struct_reader(fields: Mapping[str, _Reader | None]) -> _Reader | None:
    readers = {name: read for name, read in fields.items() if read is not None}
    if not readers:
        return None

    def read(found: Any) -> Any:
        if isinstance(found, Mapping):
            return {
                name: readers[name](each) if name in readers else each
                for name, each in found.items()
            }
        if isinstance(found, tuple) and len(found) == len(fields):
            return tuple(
                each if reading is None else reading(each)
                for each, reading in zip(found, fields.values(), strict=True)
            )
        return found

    return read


def _time(found: Any) -> Any:
    if not isinstance(found, str) or _BELOW_MICROSECONDS.search(found):
        return found
    try:
        return datetime.fromisoformat(found)
    except ValueError:
        return found


def _day(found: Any) -> Any:
    if not isinstance(found, str):
        return found
    try:
        return date.fromisoformat(found)
    except ValueError:
        return found
