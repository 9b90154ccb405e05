"""Checking the bytes of variants against Parquet's variant encoding.

Nothing between a writer and a reader checks them: a file holds any bytes, and a reader that
asks for a field of them later fails, or is given another one.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any, NoReturn

from lakelog.core.arrow.variant_values import FIXED_SIZES

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_BYTES = 128 << 20
"""Of metadata or value; Spark 4 reads no more."""
_MOST_DIGITS = {8: 9, 9: 18, 10: 38}
_VERSION = 1


def check_variants(array: Any) -> None:
    """Check every variant that is not null.

    Args:
        array: of type `ARROW_VARIANT`.

    Raises:
        ValueError: one is malformed; the second argument is its position in the array.
    """
    valid = array.is_valid().to_pylist()
    halves = (array.field(0).to_pylist(), array.field(1).to_pylist())
    for row, (there, metadata, value) in enumerate(zip(valid, *halves, strict=True)):
        if not there:
            continue
        try:
            if max(len(metadata), len(value)) > _MOST_BYTES:
                _refuse(f"it has more than {_MOST_BYTES} bytes")
            names = _names(metadata)
            end = _checked(value, 0, len(value), names)
            if end != len(value):
                _refuse(f"its value ends after {end} of {len(value)} bytes")
        except (ValueError, IndexError, RecursionError) as exc:
            why = "it nests too deeply" if isinstance(exc, RecursionError) else str(exc)
            raise ValueError(why, row) from None


@functools.lru_cache(maxsize=256)
def _names(metadata: bytes) -> Sequence[bytes]:
    if not metadata or metadata[0] & 0x0F != _VERSION:
        _refuse("its metadata has an unknown version")
    size = (metadata[0] >> 6) + 1
    count = _number(metadata, 1, size)
    start = 1 + size * (count + 2)
    if start > len(metadata):
        _refuse("its metadata ends before its names")
    ends = [_number(metadata, 1 + size * (i + 1), size) for i in range(count + 1)]
    if ends != sorted(ends) or ends[0] or start + ends[-1] != len(metadata):
        _refuse("its metadata has names that are not where it says")
    names = [metadata[start + a : start + b] for a, b in itertools.pairwise(ends)]
    for each in names:
        _text(each, "a name")
    if len(set(names)) < count:
        _refuse("its metadata has a name twice")
    return names


def _checked(data: bytes, start: int, end: int, names: Sequence[bytes]) -> int:
    """Check the value at a position, and return where it ends."""
    if start >= end:
        _refuse("a value is empty")
    header, basic = data[start] >> 2, data[start] & 3
    if basic == 1:
        _text(_bytes(data, start + 1, header, end), "a text")
        return start + 1 + header
    if basic:
        return _container(data, start, end, names)
    if header in (15, 16):
        size = _number(data, start + 1, 4, end)
        held = _bytes(data, start + 5, size, end)
        if header == 16:
            _text(held, "a text")
        return start + 5 + size
    if header not in FIXED_SIZES:
        _refuse(f"it holds a value of the unknown type {header}")
    held = _bytes(data, start + 1, FIXED_SIZES[header], end)
    if header in _MOST_DIGITS:
        digits = _MOST_DIGITS[header]
        unscaled = int.from_bytes(held[1:], "little", signed=True)
        if held[0] > digits or abs(unscaled) >= 10**digits:
            _refuse(f"a decimal has more than {digits} digits")
    return start + 1 + FIXED_SIZES[header]


def _container(data: bytes, start: int, end: int, names: Sequence[bytes]) -> int:
    """Check an object or an array, and return where it ends."""
    header, is_object = data[start] >> 2, data[start] & 3 == 2
    size = (header & 3) + 1
    id_size = (header >> 2 & 3) + 1 if is_object else 0
    count_size = 4 if header >> (4 if is_object else 2) & 1 else 1
    count = _number(data, start + 1, count_size, end)
    ids = start + 1 + count_size
    offsets = ids + count * id_size
    values = offsets + (count + 1) * size
    if values > end:
        _refuse("an object or array ends before its values")
    last = values + _number(data, offsets + count * size, size)
    if last > end:
        _refuse("an object or array ends before its values")
    if is_object:
        _check_keys([_number(data, ids + i * id_size, id_size) for i in range(count)], names)
    starts = [_number(data, offsets + i * size, size) for i in range(count)]
    if not is_object and starts != sorted(starts):
        _refuse("the elements of an array are not one after the other")
    for each in starts:
        _checked(data, values + each, last, names)
    return last


def _check_keys(ids: Sequence[int], names: Sequence[bytes]) -> None:
    if max(ids, default=-1) >= len(names):
        _refuse("an object has a field whose name is not in its metadata")
    found = [names[each] for each in ids]
    # Readers find a field by binary search. The encoding orders names by their bytes, Java by
    # UTF-16.
    if found not in (sorted(set(found)), sorted(set(found), key=_by_utf16)):
        _refuse("the fields of an object are not in the order of their names")


def _by_utf16(name: bytes) -> bytes:
    return name.decode().encode("utf-16-be")


def _bytes(data: bytes, start: int, size: int, end: int) -> bytes:
    if start + size > end:
        _refuse("a value is cut short")
    return data[start : start + size]


def _number(data: bytes, start: int, size: int, end: int | None = None) -> int:
    held = _bytes(data, start, size, len(data) if end is None else end)
    return int.from_bytes(held, "little")


def _text(held: bytes, what: str) -> None:
    try:
        held.decode()
    except UnicodeDecodeError:
        _refuse(f"{what} in it is not UTF-8")


def _refuse(why: str) -> NoReturn:
    raise ValueError(why)
