"""`hash` and `xxhash64` as Spark has them: MurmurHash3 of 32 bits, XXH64, both with the seed 42.

What a hash has made of one value is the seed of the next: of the next argument, field or element. A
null leaves it as it is.
"""

from __future__ import annotations

import functools
import operator
from decimal import Context
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.compute import pc
from lakelog.core.expressions.coerce import NotInCoreError
from lakelog.core.expressions.values.by_rows import by_columns
from lakelog.core.expressions.values.collections import elements_at
from lakelog.core.expressions.values.value import computed
from lakelog.core.schema import ArrayType, DataType, DecimalType, PrimitiveType, StructType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.core.expressions.context import EvalContext
    from lakelog.core.expressions.values.value import Rule, Value

_SEED: Final = 42
_LONG_DIGITS: Final = 18
"""Decimals of up to so many digits are longs to Spark."""
_EXACT: Final = Context(prec=100)
_INTEGERS: Final = ("boolean", "byte", "short", "integer", "date")
_LONGS: Final = ("long", "timestamp", "timestamp_ntz")
_HASHED: Final = tuple(
    map(PrimitiveType, (*_INTEGERS, *_LONGS, "float", "double", "string", "binary", "void"))
)


class _Column:
    """Unsigned integers, one a row, with the operators of Python's own: what is too large is cut.

    So that one text says what is computed, of a column and of a single number.
    """

    def __init__(self, data: Any) -> None:
        self.data = data

    def _with(self, function: str, other: _Column | int) -> _Column:
        operand = scalar_of(other, self.data.type) if isinstance(other, int) else other.data
        return _Column(getattr(pc, function)(self.data, operand))

    def __add__(self, other: _Column | int) -> _Column:
        return self._with("add", other)

    def __mul__(self, other: _Column | int) -> _Column:
        return self._with("multiply", other)

    def __and__(self, other: _Column | int) -> _Column:
        return self._with("bit_wise_and", other)

    def __or__(self, other: _Column | int) -> _Column:
        return self._with("bit_wise_or", other)

    def __xor__(self, other: _Column | int) -> _Column:
        return self._with("bit_wise_xor", other)

    def __lshift__(self, other: _Column | int) -> _Column:
        return self._with("shift_left", other)

    def __rshift__(self, other: _Column | int) -> _Column:
        return self._with("shift_right", other)


_Word = TypeVar("_Word", int, _Column)


class _Hash(NamedTuple):
    bits: pa.DataType
    """Of the seeds: as many as of the result, unsigned."""
    result: PrimitiveType
    of_integer: Callable[[_Column, _Column], _Column]
    of_long: Callable[[_Column, _Column], _Column]
    of_bytes: Callable[[bytes, int], int]


def _hashed(how: _Hash) -> Rule:
    def apply(_: EvalContext, *values: Value) -> Value:
        kinds = [each.data_type for each in values]
        for kind in kinds:
            _refuse_others(kind)

        def compute(*columns: Any) -> Any:
            seeds = pa.repeat(scalar_of(_SEED, how.bits), len(columns[0]))
            for column, kind in zip(columns, kinds, strict=True):
                seeds = _hashes(how, column, kind, seeds)
            return seeds.view(to_arrow_type(how.result))

        return computed(how.result, by_columns(compute), *values, nullable=False)

    return apply


def _refuse_others(kind: DataType) -> None:
    if isinstance(kind, StructType):
        for field in kind:
            _refuse_others(field.data_type)
    elif isinstance(kind, ArrayType):
        _refuse_others(kind.element_type)
    elif not isinstance(kind, DecimalType) and kind not in _HASHED:
        raise NotInCoreError(f"the hash of {kind}")


def _hashes(how: _Hash, data: Any, kind: DataType, seeds: Any) -> Any:
    """The hash of each value, begun with a seed of its own."""
    name = kind.name if isinstance(kind, PrimitiveType) else ""
    if name == "void":
        return seeds
    if isinstance(kind, StructType):
        for at, field in enumerate(kind):
            seeds = _hashes(how, pc.struct_field(data, [at]), field.data_type, seeds)
        return seeds
    if isinstance(kind, ArrayType):
        sizes = pc.list_value_length(data)
        for at in range(pc.max(sizes).as_py() or 0):
            place = scalar_of(at, pa.int32())
            places = pc.if_else(pc.less(place, sizes), place, scalar_of(None, pa.int32()))
            seeds = _hashes(how, elements_at(data, places), kind.element_type, seeds)
        return seeds
    if name in ("string", "binary"):
        found = _by_bytes(how, pc.cast(data, pa.binary()).to_pylist(), seeds)
    elif isinstance(kind, DecimalType) and kind.precision > _LONG_DIGITS:
        whole = [v if v is None else int(v.scaleb(kind.scale, _EXACT)) for v in data.to_pylist()]
        found = _by_bytes(how, [v if v is None else _bytes_of(v) for v in whole], seeds)
    elif name in _INTEGERS or name == "float":
        found = how.of_integer(_Column(_bits(data, name, pa.int32(), pa.uint32())), _Column(seeds))
    elif name in _LONGS or name == "double":
        found = how.of_long(_Column(_bits(data, name, pa.int64(), pa.uint64())), _Column(seeds))
    else:
        found = how.of_long(_Column(_unscaled(data)), _Column(seeds))
    return pc.coalesce(found.data, seeds)


def _by_bytes(how: _Hash, values: Sequence[bytes | None], seeds: Any) -> _Column:
    pairs = zip(values, seeds.to_pylist(), strict=True)
    found = [None if each is None else how.of_bytes(each, seed) for each, seed in pairs]
    return _Column(array_of(found, how.bits))


def _bits(data: Any, name: str, signed: pa.DataType, bits: pa.DataType) -> Any:
    if name in ("float", "double"):
        # One zero and one NaN, as Java's `floatToIntBits` has one.
        data = pc.if_else(
            pc.equal(data, scalar_of(0.0, data.type)), scalar_of(0.0, data.type), data
        )
        data = pc.if_else(pc.is_nan(data), scalar_of(float("nan"), data.type), data)
        return data.view(bits)
    return (pc.cast(data, signed) if name in ("boolean", "byte", "short") else data).view(bits)


def _unscaled(data: Any) -> Any:
    """The digits of decimals that a long holds."""
    # Of each of Arrow's sixteen bytes the lower half.
    halves = [None, data.buffers()[1]]
    both = pa.Array.from_buffers(pa.uint64(), 2 * len(data), halves, offset=2 * data.offset)
    lower = both.take(array_of(range(0, 2 * len(data), 2), pa.int64()))
    return pc.if_else(pc.is_valid(data), lower, scalar_of(None, pa.uint64()))


def _bytes_of(number: int) -> bytes:
    """As few as hold it, as Java's `BigInteger.toByteArray`."""
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(size, "big", signed=True)


# MurmurHash3 --------------------------------------------------------------------------------------

_32: Final = (1 << 32) - 1
_64: Final = (1 << 64) - 1


def _rotated(word: _Word, by: int, most: int) -> _Word:
    return word << by & most | word >> most.bit_length() - by


def _murmured(seed: _Word, word: _Word) -> _Word:
    word = _rotated(word * 0xCC9E2D51 & _32, 15, _32) * 0x1B873593 & _32
    return _rotated(seed ^ word, 13, _32) * 5 + 0xE6546B64 & _32


def _murmur_end(found: _Word, size: int) -> _Word:
    found = found ^ size
    found = (found ^ found >> 16) * 0x85EBCA6B & _32
    found = (found ^ found >> 13) * 0xC2B2AE35 & _32
    return found ^ found >> 16


def _murmur_long(words: _Column, seeds: _Column) -> _Column:
    low, high = (_Column(pc.cast(each.data, pa.uint32())) for each in (words & _32, words >> 32))
    return _murmur_end(_murmured(_murmured(seeds, low), high), 8)


def _murmur_bytes(data: bytes, seed: int) -> int:
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        seed = _murmured(seed, int.from_bytes(data[at : at + 4], "little"))
    for each in data[whole:]:
        # Of each byte of the rest a whole word, with its sign: other MurmurHash3 are different.
        seed = _murmured(seed, each if each < 0x80 else each + 0xFFFFFF00)
    return _murmur_end(seed, len(data))


# XXH64 --------------------------------------------------------------------------------------------

_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _round(seed: _Word, word: _Word) -> _Word:
    return _rotated(seed + word * _P2 & _64, 31, _64) * _P1 & _64


def _with_8(found: _Word, word: _Word) -> _Word:
    mixed = _rotated(word * _P2 & _64, 31, _64) * _P1 & _64
    return _rotated(found ^ mixed, 27, _64) * _P1 + _P4 & _64


def _with_4(found: _Word, word: _Word) -> _Word:
    return _rotated(found ^ word * _P1 & _64, 23, _64) * _P2 + _P3 & _64


def _xx_end(found: _Word) -> _Word:
    found = (found ^ found >> 33) * _P2 & _64
    found = (found ^ found >> 29) * _P3 & _64
    return found ^ found >> 32


def _xx_integer(words: _Column, seeds: _Column) -> _Column:
    return _xx_end(_with_4(seeds + (_P5 + 4), _Column(pc.cast(words.data, pa.uint64()))))


def _xx_long(words: _Column, seeds: _Column) -> _Column:
    return _xx_end(_with_8(seeds + (_P5 + 8), words))


def _xx_bytes(data: bytes, seed: int) -> int:
    at, size = 0, len(data)
    if size < 32:
        found = seed + _P5
    else:
        lanes = [seed + _P1 + _P2 & _64, seed + _P2 & _64, seed, seed - _P1 & _64]
        while at <= size - 32:
            words = (int.from_bytes(data[i : i + 8], "little") for i in range(at, at + 32, 8))
            lanes = list(map(_round, lanes, words))
            at += 32
        turned = (_rotated(each, by, _64) for each, by in zip(lanes, (1, 7, 12, 18), strict=True))
        found = functools.reduce(operator.add, turned)
        for each in lanes:
            found = ((found ^ _round(0, each)) * _P1 + _P4) & _64
    found = found + size & _64
    while at <= size - 8:
        found, at = _with_8(found, int.from_bytes(data[at : at + 8], "little")), at + 8
    if at <= size - 4:
        found, at = _with_4(found, int.from_bytes(data[at : at + 4], "little")), at + 4
    for each in data[at:]:
        found = _rotated(found ^ each * _P5 & _64, 11, _64) * _P1 & _64
    return _xx_end(found)


HASHES: Final[dict[str, Rule]] = {
    "hash": _hashed(
        _Hash(
            pa.uint32(),
            PrimitiveType("integer"),
            lambda words, seeds: _murmur_end(_murmured(seeds, words), 4),
            _murmur_long,
            _murmur_bytes,
        )
    ),
    "xxhash64": _hashed(
        _Hash(pa.uint64(), PrimitiveType("long"), _xx_integer, _xx_long, _xx_bytes)
    ),
}
"""By name in lower case."""
