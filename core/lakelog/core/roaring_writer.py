"""Rows of a file to the bytes of a deletion bitmap: the counterpart of `roaring`.

The set comes as an Arrow bitmap of the file's rows, and a bitmap container of Roaring has the
same bits in the same order: those bytes are copied, not built. So pyarrow does the work, and no
library with a set type of its own is needed.
"""

from __future__ import annotations

import struct
import sys
from array import array
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.compute import pc
from lakelog.core.roaring import (
    ARRAY_UP_TO,
    BITMAP_BYTES,
    OFFSETS_FROM,
    PLAIN_COOKIE,
    PORTABLE,
    RUN_COOKIE,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Container", "bitmap_of", "joined_containers"]

_CONTAINER_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class Container:
    """Up to 65536 neighbouring rows."""

    index: int
    """The high bits of its rows: row >> 16."""
    count: int
    content: bytes
    is_run: bool


def bitmap_of(marks: pa.BooleanArray) -> bytes:
    """The portable form of a set of rows, with its magic number.

    Args:
        marks: for each row of the file, by position, whether it is in the set; no nulls.
    """
    return joined_containers(_containers(marks))


def joined_containers(containers: Iterable[Container]) -> bytes:
    """The 64-bit bitmap of containers that come by ascending index, with its magic number."""
    bitmaps: dict[int, list[Container]] = {}
    for each in containers:
        bitmaps.setdefault(each.index >> 16, []).append(each)
    parts = [struct.pack("<iq", PORTABLE, len(bitmaps))]
    for key, found in bitmaps.items():
        parts += (struct.pack("<i", key), _bitmap(found))
    return b"".join(parts)


def _bitmap(containers: list[Container]) -> bytes:
    """A 32-bit bitmap in Roaring's own format."""
    size = len(containers)
    flags = sum(1 << i for i, each in enumerate(containers) if each.is_run)
    if flags:
        head = struct.pack("<I", size - 1 << 16 | RUN_COOKIE)
        head += flags.to_bytes((size + 7) // 8, "little")
    else:
        head = struct.pack("<II", PLAIN_COOKIE, size)
    for each in containers:
        head += struct.pack("<HH", each.index & 0xFFFF, each.count - 1)
    if not flags or size >= OFFSETS_FROM:
        lengths = (len(each.content) for each in containers[:-1])
        starts = accumulate(lengths, initial=len(head) + 4 * size)
        head += struct.pack(f"<{size}I", *starts)
    return head + b"".join(each.content for each in containers)


def _containers(marks: pa.BooleanArray) -> Iterator[Container]:
    # Joined with nothing it begins at a byte, wherever it was cut from.
    bits: Any = pa.concat_arrays([marks, pa.array([], pa.bool_())])
    for start in range(0, len(bits), _CONTAINER_ROWS):
        part = bits.slice(start, _CONTAINER_ROWS)
        count = part.true_count
        if count:
            yield Container(start // _CONTAINER_ROWS, count, *_smallest(part, count))


def _smallest(part: Any, count: int) -> tuple[bytes, bool]:
    """The content in the form that takes the fewest bytes, and whether that is a list of runs."""
    plain = 2 * count if count <= ARRAY_UP_TO else BITMAP_BYTES
    encoded = pc.run_end_encode(part)
    if 2 + 4 * encoded.values.true_count < plain:
        return _runs(encoded), True
    if count <= ARRAY_UP_TO:
        return _shorts(pc.indices_nonzero(part).to_pylist()), False
    start = part.offset // 8
    bits = part.buffers()[1][start : start + (len(part) + 7) // 8].to_pybytes()
    if len(part) % 8:
        # What stands behind the last row is nobody's, and need not be zero.
        bits = bits[:-1] + bytes([bits[-1] & (1 << len(part) % 8) - 1])
    return bits.ljust(BITMAP_BYTES, b"\0"), False


def _runs(encoded: Any) -> bytes:
    """The number of runs, then for each its first row and how many follow."""
    numbers, start = [encoded.values.true_count], 0
    for end, marked in zip(encoded.run_ends.to_pylist(), encoded.values.to_pylist(), strict=True):
        if marked:
            numbers += (start, end - start - 1)
        start = end
    return _shorts(numbers)


def _shorts(values: list[int]) -> bytes:
    found = array("H", values)
    if sys.byteorder == "big":
        found.byteswap()
    return found.tobytes()
