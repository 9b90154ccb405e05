"""Variants as Python values, decoded independently of the code under test."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

_NUMBERS = {3: "<b", 4: "<h", 5: "<i", 6: "<q", 7: "<d", 14: "<f"}


def decoded(metadata: bytes, value: bytes) -> Any:
    """The value; whole numbers and decimals as numbers, temporal values as `(type, number)`."""
    width = (metadata[0] >> 6) + 1
    count = int.from_bytes(metadata[1 : 1 + width], "little")
    ends = [_int(metadata, 1 + width * (i + 1), width) for i in range(count + 1)]
    texts = metadata[1 + width * (count + 2) :]
    names = [texts[ends[i] : ends[i + 1]].decode() for i in range(count)]
    return _value(value, names)


def _value(data: bytes, names: list[str]) -> Any:
    header, basic = data[0] >> 2, data[0] & 3
    if basic == 1:
        return data[1 : 1 + header].decode()
    if basic == 2:
        offset, number, large = (header & 3) + 1, (header >> 2 & 3) + 1, header >> 4 & 1
    elif basic == 3:
        offset, number, large = (header & 3) + 1, 0, header >> 2 & 1
    else:
        return _primitive(header, data)
    count_width = 4 if large else 1
    count = _int(data, 1, count_width)
    ids = 1 + count_width
    starts = ids + count * number
    values = data[starts + (count + 1) * offset :]
    found = [_value(values[_int(data, starts + i * offset, offset) :], names) for i in range(count)]
    if basic == 3:
        return found
    keys = [names[_int(data, ids + i * number, number)] for i in range(count)]
    assert keys == sorted(keys)
    return dict(zip(keys, found, strict=True))


def _primitive(header: int, data: bytes) -> Any:
    if header in (0, 1, 2):
        return {0: None, 1: True, 2: False}[header]
    if header in _NUMBERS:
        return struct.unpack_from(_NUMBERS[header], data, 1)[0]
    if header in (8, 9, 10):
        size = {8: 4, 9: 8, 10: 16}[header]
        unscaled = int.from_bytes(data[2 : 2 + size], "little", signed=True)
        return Decimal(unscaled).scaleb(-data[1])
    if header in (15, 16):
        text = data[5 : 5 + _int(data, 1, 4)]
        return text.decode() if header == 16 else text
    if header == 20:
        return ("uuid", data[1:17])
    size = 4 if header == 11 else 8
    return (header, int.from_bytes(data[1 : 1 + size], "little", signed=True))


def _int(data: bytes, start: int, size: int) -> int:
    return int.from_bytes(data[start : start + size], "little")
