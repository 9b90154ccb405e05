"""Deletion bitmaps as the log has them: 64-bit Roaring bitmaps after one of two magic numbers.

Layout: PROTOCOL.md, "Deletion Vector Format", and the Roaring format specification
(github.com/RoaringBitmap/RoaringFormatSpec). The set is never built: its containers go straight
into an Arrow bitmap of the file's rows, which needs pyarrow alone, as the engines' workers that
read files have nothing else.
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

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PORTABLE = 1681511377
"""Number of 32-bit bitmaps, then for each its high 32 bits and itself."""

_NATIVE = 1681511376
"""Number of 32-bit bitmaps, then for each, in order from high bits 0, its length and itself."""

PLAIN_COOKIE = 12346

RUN_COOKIE = 12347

OFFSETS_FROM = 4
"""With runs, so many containers have a table of their offsets."""

ARRAY_UP_TO = 4096

BITMAP_BYTES = 8192


def rows_marked(data: bytes, rows: int) -> tuple[pa.BooleanArray, int]:
    """Which rows of a file a bitmap has, and how many.

    Args:
        data: the magic number and all that follows.
        rows: how many rows the file has.

    Raises:
        ValueError: not such a bitmap, or one with a row that the file does not have.
    """
    marks = _Marks(rows)
    reader = _Reader(data)
    magic = reader.number("<i")
    if magic == PORTABLE:
        for _ in range(_count(reader.number("<q"))):
            _mark_bitmap(reader, marks, _count(reader.number("<i")) << 32)
    elif magic == _NATIVE:
        for index in range(_count(reader.number("<i"))):
            end = _count(reader.number("<i")) + reader.position
            _mark_bitmap(reader, marks, index << 32)
            if reader.position != end:
                raise ValueError("a bitmap is not as long as it says")
    else:
        raise ValueError(f"it begins with {magic}, which is neither {PORTABLE} nor {_NATIVE}")
    if reader.position != len(data):
        raise ValueError(f"{len(data) - reader.position} bytes too many")
    return marks.to_arrow(), marks.count()


def _mark_bitmap(reader: _Reader, marks: _Marks, base: int) -> None:
    """Take over a 32-bit bitmap, in Roaring's own format."""
    cookie = reader.number("<I")
    if cookie & 0xFFFF == RUN_COOKIE:
        size = (cookie >> 16) + 1
        flags = int.from_bytes(reader.bytes((size + 7) // 8), "little")
        has_offsets = size >= OFFSETS_FROM
    elif cookie == PLAIN_COOKIE:
        size, flags, has_offsets = reader.number("<I"), 0, True
    else:
        raise ValueError(f"{cookie} is not the cookie of a Roaring bitmap")
    if size > 1 << 16:
        raise ValueError(f"{size} containers, and a bitmap has 65536 at most")
    header = reader.shorts(2 * size)
    if has_offsets:
        # The containers follow one another in any case.
        reader.bytes(4 * size)
    for index in range(size):
        start = base + (header[2 * index] << 16)
        count = header[2 * index + 1] + 1
        if flags >> index & 1:
            runs = reader.shorts(2 * reader.number("<H"))
            for first, more in zip(runs[::2], runs[1::2], strict=True):
                marks.add_run(start + first, start + first + more + 1)
        elif count <= ARRAY_UP_TO:
            marks.add_values(start, reader.shorts(count))
        else:
            marks.add_bits(start, reader.bytes(BITMAP_BYTES))


class _Marks:
    """One bit per row, in Arrow's order, which is also that of Roaring's bitmap containers."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._bits = bytearray((rows + 7) // 8)

    def add_values(self, start: int, values: array[int]) -> None:
        self._check(start + max(values))
        bits = self._bits
        for value in values:
            row = start + value
            bits[row >> 3] |= 1 << (row & 7)

    def add_bits(self, start: int, more: bytes) -> None:
        used = more.rstrip(b"\0")
        if used:
            self._check(start + 8 * len(used) - 9 + used[-1].bit_length())
            at = start >> 3
            self._bits[at : at + len(used)] = used

    def add_run(self, first: int, end: int) -> None:
        self._check(end - 1)
        bits = self._bits
        low, high = (first + 7) >> 3, end >> 3
        if low > high:
            bits[high] |= (0xFF << (first & 7)) & ((1 << (end & 7)) - 1)
            return
        if first & 7:
            bits[low - 1] |= 0xFF << (first & 7) & 0xFF
        bits[low:high] = b"\xff" * (high - low)
        if end & 7:
            bits[high] |= (1 << (end & 7)) - 1

    def _check(self, last: int) -> None:
        if last >= self._rows:
            raise ValueError(f"it has row {last}, but the file has {self._rows} rows")

    def count(self) -> int:
        return int.from_bytes(self._bits, "little").bit_count()

    def to_arrow(self) -> pa.BooleanArray:
        buffers = [None, pa.py_buffer(bytes(self._bits))]
        return pa.Array.from_buffers(pa.bool_(), self._rows, buffers)


class _Reader:
    """Takes pieces off the front of some bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def bytes(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self._data):
            raise ValueError(f"it ends after {len(self._data)} bytes, within a bitmap")
        piece = self._data[self.position : end]
        self.position = end
        return piece

    def number(self, form: str) -> int:
        (value,) = struct.unpack(form, self.bytes(struct.calcsize(form)))
        return int(value)

    def shorts(self, count: int) -> array[int]:
        values = array("H", self.bytes(2 * count))
        if sys.byteorder == "big":
            values.byteswap()
        return values


def _count(number: int) -> int:
    if number < 0:
        raise ValueError(f"{number} can't be a count")
    return number


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
    bits: Any = pa.concat_arrays([marks, pa.nulls(0, pa.bool_())])
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
        # The bits after the last row have no meaning, and need not be zero.
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
