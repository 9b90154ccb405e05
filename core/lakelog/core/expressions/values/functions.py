"""The functions of Spark's SQL that the core evaluates itself, by name."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.compute import pc
from lakelog.core.expressions.coerce import INTEGERS, NotInCoreError, common_type
from lakelog.core.expressions.values.by_rows import plain
from lakelog.core.expressions.values.casts import Value, cast_value
from lakelog.core.expressions.values.collections import COLLECTIONS
from lakelog.core.expressions.values.hashes import HASHES
from lakelog.core.expressions.values.numbers import (
    binary_digits,
    cube_root,
    factorial,
    greatest,
    least,
    negative,
    rounded,
    sign,
    square_root,
    stepped,
)
from lakelog.core.expressions.values.texts import TEXTS
from lakelog.core.expressions.values.time_patterns import TIME_PATTERNS
from lakelog.core.expressions.values.times import (
    PARTS,
    TIMES,
    date_trunc,
    day_shift,
    extracted,
    part_of,
    trunc,
)
from lakelog.core.schema import DataType, DecimalType, PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_DATE, _STRING = PrimitiveType("date"), PrimitiveType("string")
_INTEGER, _LONG = PrimitiveType("integer"), PrimitiveType("long")
_BOOLEAN = PrimitiveType("boolean")
_DOUBLE, _VOID = PrimitiveType("double"), PrimitiveType("void")
_TIMESTAMP, _NTZ = PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz")
_FLOATS = {PrimitiveType("float"), _DOUBLE}
_WHOLE = dict(zip(map(PrimitiveType, INTEGERS), (3, 5, 10, 20), strict=True))
"""Integers, and the digits of the decimals that hold them."""


def conjoined(values: Sequence[Value], zone: str) -> tuple[list[Any], DataType]:
    """The data of values in their common type."""
    kind = common_type([each.data_type for each in values])
    return [cast_value(v, kind, zone).data for v in values], kind


def as_text(value: Value, zone: str) -> Any:
    """A value as a string, as `concat` takes it."""
    return cast_value(value, _STRING, zone).data


def remainder(left: Any, right: Any) -> Any:
    """`%`, with the sign of the dividend.

    Raises:
        pyarrow.ArrowInvalid: a divisor of zero, as in Spark's ANSI mode.
    """
    # The remainder by -1 is 0, as by 1, and the smallest integer divided by -1 overflows.
    right = pc.if_else(pc.equal(right, -1), scalar_of(1, right.type), right)
    return pc.subtract(left, pc.multiply(pc.divide_checked(left, right), right))


def _pmod(values: Sequence[Value], zone: str) -> Value:
    (left, right), kind = conjoined(values, zone)
    _integral(kind, "pmod")
    rest = remainder(left, right)
    moved = remainder(pc.add_checked(rest, right), right)
    return Value(pc.if_else(pc.less(rest, 0), moved, rest), kind)


def _mod(values: Sequence[Value], zone: str) -> Value:
    (left, right), kind = conjoined(values, zone)
    _integral(kind, "mod")
    return Value(remainder(left, right), kind)


def _integral(kind: DataType, name: str) -> None:
    if not isinstance(kind, PrimitiveType) or kind.name not in INTEGERS:
        raise NotInCoreError(f"{name} of {kind}")


def _abs(values: Sequence[Value], _: str) -> Value:
    (value,) = values
    if value.data_type not in _FLOATS and not isinstance(value.data_type, DecimalType):
        _integral(value.data_type, "abs")
    return Value(pc.abs_checked(value.data), value.data_type)


def _concat(values: Sequence[Value], zone: str) -> Value:
    texts = [as_text(v, zone) for v in values]
    return Value(pc.binary_join_element_wise(*texts, "", null_handling="emit_null"), _STRING)


def _cased(function: str) -> Callable[[Sequence[Value], str], Value]:
    """Arrow's own tables differ from Java's beyond ASCII; Python's are the same."""

    def apply(values: Sequence[Value], zone: str) -> Value:
        (value,) = values
        text = as_text(value, zone)
        if isinstance(text, pa.Scalar):
            plain = text.as_py()
            return Value(scalar_of(plain and getattr(plain, function)(), pa.string()), _STRING)
        if pc.all(pc.string_is_ascii(text), min_count=0).as_py() is False:
            changed = [each and getattr(each, function)() for each in text.to_pylist()]
            return Value(array_of(changed, pa.string()), _STRING)
        return Value(getattr(pc, f"ascii_{function}")(text), _STRING)

    return apply


def _trimmed(function: str) -> Callable[[Sequence[Value], str], Value]:
    def apply(values: Sequence[Value], zone: str) -> Value:
        (value,) = values
        return Value(getattr(pc, function)(as_text(value, zone), characters=" "), _STRING)

    return apply


def _length(values: Sequence[Value], _: str) -> Value:
    (value,) = values
    if value.data_type != _STRING:
        raise NotInCoreError(f"length of {value.data_type}")
    return Value(pc.utf8_length(value.data), _INTEGER)


def _substring(values: Sequence[Value], zone: str) -> Value:
    text, start = as_text(values[0], zone), plain(values[1], int)
    length = plain(values[2], int) if len(values) > 2 else None
    if length is not None and length <= 0:
        return Value(pc.utf8_slice_codeunits(text, 0, 0), _STRING)
    begin = start - 1 if start > 0 else start
    stop = None if length is None else begin + length
    if begin < 0 and stop is not None and stop >= 0:
        stop = None
    return Value(pc.utf8_slice_codeunits(text, begin, stop), _STRING)


def _left(values: Sequence[Value], zone: str) -> Value:
    count = max(plain(values[1], int), 0)
    return Value(pc.utf8_slice_codeunits(as_text(values[0], zone), 0, count), _STRING)


def _right(values: Sequence[Value], zone: str) -> Value:
    text, count = as_text(values[0], zone), plain(values[1], int)
    if count <= 0:
        return Value(pc.utf8_slice_codeunits(text, 0, 0), _STRING)
    return Value(pc.utf8_slice_codeunits(text, -count, None), _STRING)


def _replace(values: Sequence[Value], zone: str) -> Value:
    text, old = as_text(values[0], zone), plain(values[1], str)
    new = plain(values[2], str) if len(values) > 2 else ""
    if not old:
        return Value(text, _STRING)
    return Value(pc.replace_substring(text, pattern=old, replacement=new), _STRING)


def _part(name: str) -> Callable[[Sequence[Value], str], Value]:
    def apply(values: Sequence[Value], zone: str) -> Value:
        (value,) = values
        return part_of(name, value, zone)

    return apply


def _date_diff(values: Sequence[Value], zone: str) -> Value:
    end, start = (pc.cast(cast_value(v, _DATE, zone).data, pa.int32()) for v in values)
    return Value(pc.subtract_checked(end, start), _INTEGER)


def _is_nan(values: Sequence[Value], zone: str) -> Value:
    """Null is not NaN, as in Spark."""
    (value,) = values
    data = value.data if value.data_type in _FLOATS else cast_value(value, _DOUBLE, zone).data
    return Value(pc.fill_null(pc.is_nan(data), False), _BOOLEAN)


def _casting(name: str) -> Callable[[Sequence[Value], str], Value]:
    def apply(values: Sequence[Value], zone: str) -> Value:
        (value,) = values
        return cast_value(value, PrimitiveType(name), zone)

    return apply


_CASTS = {
    "bigint": "long",
    "binary": "binary",
    "boolean": "boolean",
    "date": "date",
    "double": "double",
    "float": "float",
    "int": "integer",
    "smallint": "short",
    "string": "string",
    "timestamp": "timestamp",
    "tinyint": "byte",
}
GROUPS: dict[str, dict[str, Callable[[Sequence[Value], str], Value]]] = {
    "numbers": {
        "abs": _abs,
        "bin": binary_digits,
        "bround": rounded(ROUND_HALF_EVEN),
        "cbrt": cube_root,
        "ceil": stepped(ROUND_CEILING),
        "ceiling": stepped(ROUND_CEILING),
        "factorial": factorial,
        "floor": stepped(ROUND_FLOOR),
        "greatest": lambda v, zone: greatest(*conjoined(v, zone)),
        "isnan": _is_nan,
        "least": lambda v, zone: least(*conjoined(v, zone)),
        "mod": _mod,
        "negative": negative,
        "pmod": _pmod,
        "round": rounded(ROUND_HALF_UP),
        "sign": sign,
        "signum": sign,
        "sqrt": square_root,
    },
    "text": {
        **TEXTS,
        "btrim": _trimmed("utf8_trim"),
        "char_length": _length,
        "character_length": _length,
        "concat": _concat,
        "lcase": _cased("lower"),
        "left": _left,
        "len": _length,
        "length": _length,
        "lower": _cased("lower"),
        "ltrim": _trimmed("utf8_ltrim"),
        "replace": _replace,
        "right": _right,
        "rtrim": _trimmed("utf8_rtrim"),
        "substr": _substring,
        "substring": _substring,
        "trim": _trimmed("utf8_trim"),
        "ucase": _cased("upper"),
        "upper": _cased("upper"),
    },
    "dates and times": {
        **{name: _part(name) for name in PARTS},
        **TIMES,
        **TIME_PATTERNS,
        "date_add": lambda v, zone: day_shift(v[0], v[1], zone),
        "date_diff": _date_diff,
        "date_part": lambda v, zone: extracted(plain(v[0], str), v[1], zone),
        "date_sub": lambda v, zone: day_shift(v[0], v[1], zone, -1),
        "date_trunc": lambda v, zone: date_trunc(plain(v[0], str), v[1], zone),
        "dateadd": lambda v, zone: day_shift(v[0], v[1], zone),
        "datediff": _date_diff,
        "datepart": lambda v, zone: extracted(plain(v[0], str), v[1], zone),
        "trunc": lambda v, zone: trunc(v[0], plain(v[1], str), zone),
    },
    "arrays and maps": COLLECTIONS,
    "any values": HASHES,
    "casts": {sql: _casting(name) for sql, name in _CASTS.items()},
}
"""By what they are about: name in lower case -> what computes the result from arguments and zone.
"""
FUNCTIONS = {name: function for group in GROUPS.values() for name, function in group.items()}
