"""The functions of Spark's SQL that the core evaluates itself, by name."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.compute import pc
from lakelog.core.expressions.coerce import NotInCoreError
from lakelog.core.expressions.values.by_rows import plain
from lakelog.core.expressions.values.casts import cast_value
from lakelog.core.expressions.values.collections import COLLECTIONS
from lakelog.core.expressions.values.hashes import HASHES
from lakelog.core.expressions.values.numbers import (
    FLOATS,
    absolute,
    binary_digits,
    cube_root,
    extreme,
    factorial,
    modulo,
    negative,
    positive_modulo,
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
    days_of,
    extracted,
    part_of,
    trunc,
)
from lakelog.core.expressions.values.value import computed
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.core.expressions.context import EvalContext
    from lakelog.core.expressions.values.value import Rule, Value

_STRING, _INTEGER = PrimitiveType("string"), PrimitiveType("integer")
_BOOLEAN, _DOUBLE = PrimitiveType("boolean"), PrimitiveType("double")


def as_text(value: Value, context: EvalContext) -> Value:
    """A value as a string, as `concat` takes it."""
    return cast_value(value, _STRING, context)


def _concat(values: Sequence[Value], context: EvalContext) -> Value:
    def joined(*texts: Any) -> Any:
        return pc.binary_join_element_wise(*texts, "", null_handling="emit_null")

    return computed(_STRING, joined, *(as_text(each, context) for each in values))


def _cased(function: str) -> Rule:
    """Arrow's own tables differ from Java's beyond ASCII; Python's are the same."""

    def cased(text: Any) -> Any:
        if isinstance(text, pa.Scalar):
            plain = text.as_py()
            return scalar_of(plain and getattr(plain, function)(), pa.string())
        if pc.all(pc.string_is_ascii(text), min_count=0).as_py() is False:
            changed = [each and getattr(each, function)() for each in text.to_pylist()]
            return array_of(changed, pa.string())
        return getattr(pc, f"ascii_{function}")(text)

    return _of_text(cased)


def _of_text(function: Callable[[Any], Any]) -> Rule:
    def apply(values: Sequence[Value], context: EvalContext) -> Value:
        (value,) = values
        return computed(_STRING, function, as_text(value, context))

    return apply


def _trimmed(function: str) -> Rule:
    return _of_text(lambda text: getattr(pc, function)(text, characters=" "))


def _length(values: Sequence[Value], _: EvalContext) -> Value:
    (value,) = values
    if value.data_type != _STRING:
        raise NotInCoreError(f"length of {value.data_type}")
    return computed(_INTEGER, pc.utf8_length, value)


def _sliced(text: Value, begin: int, stop: int | None, context: EvalContext) -> Value:
    return computed(
        _STRING, lambda data: pc.utf8_slice_codeunits(data, begin, stop), as_text(text, context)
    )


def _substring(values: Sequence[Value], context: EvalContext) -> Value:
    start = plain(values[1], int)
    length = plain(values[2], int) if len(values) > 2 else None
    if length is not None and length <= 0:
        return _sliced(values[0], 0, 0, context)
    begin = start - 1 if start > 0 else start
    stop = None if length is None else begin + length
    if begin < 0 and stop is not None and stop >= 0:
        stop = None
    return _sliced(values[0], begin, stop, context)


def _left(values: Sequence[Value], context: EvalContext) -> Value:
    return _sliced(values[0], 0, max(plain(values[1], int), 0), context)


def _right(values: Sequence[Value], context: EvalContext) -> Value:
    count = plain(values[1], int)
    return (
        _sliced(values[0], -count, None, context)
        if count > 0
        else _sliced(values[0], 0, 0, context)
    )


def _replace(values: Sequence[Value], context: EvalContext) -> Value:
    text, old = as_text(values[0], context), plain(values[1], str)
    new = plain(values[2], str) if len(values) > 2 else ""
    if not old:
        return text
    return computed(
        _STRING, lambda data: pc.replace_substring(data, pattern=old, replacement=new), text
    )


def _part(name: str) -> Rule:
    def apply(values: Sequence[Value], context: EvalContext) -> Value:
        (value,) = values
        return part_of(name, value, context)

    return apply


def _date_diff(values: Sequence[Value], context: EvalContext) -> Value:
    end, start = (days_of(each, context) for each in values)
    return computed(_INTEGER, pc.subtract_checked, end, start)


def _is_nan(values: Sequence[Value], context: EvalContext) -> Value:
    """Null is not NaN, as in Spark."""
    (value,) = values
    number = value if value.data_type in FLOATS else cast_value(value, _DOUBLE, context)
    return computed(
        _BOOLEAN, lambda data: pc.fill_null(pc.is_nan(data), False), number, nullable=False
    )


def _casting(name: str) -> Rule:
    def apply(values: Sequence[Value], context: EvalContext) -> Value:
        (value,) = values
        return cast_value(value, PrimitiveType(name), context)

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
GROUPS: dict[str, dict[str, Rule]] = {
    "numbers": {
        "abs": absolute,
        "bin": binary_digits,
        "bround": rounded(ROUND_HALF_EVEN),
        "cbrt": cube_root,
        "ceil": stepped(ROUND_CEILING),
        "ceiling": stepped(ROUND_CEILING),
        "factorial": factorial,
        "floor": stepped(ROUND_FLOOR),
        "greatest": extreme(">"),
        "isnan": _is_nan,
        "least": extreme("<"),
        "mod": modulo,
        "negative": negative,
        "pmod": positive_modulo,
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
        "date_add": lambda v, context: day_shift(v[0], v[1], context),
        "date_diff": _date_diff,
        "date_part": lambda v, context: extracted(plain(v[0], str), v[1], context),
        "date_sub": lambda v, context: day_shift(v[0], v[1], context, -1),
        "date_trunc": lambda v, context: date_trunc(plain(v[0], str), v[1], context),
        "dateadd": lambda v, context: day_shift(v[0], v[1], context),
        "datediff": _date_diff,
        "datepart": lambda v, context: extracted(plain(v[0], str), v[1], context),
        "trunc": lambda v, context: trunc(v[0], plain(v[1], str), context),
    },
    "arrays and maps": COLLECTIONS,
    "any values": HASHES,
    "casts": {sql: _casting(name) for sql, name in _CASTS.items()},
}
"""By what they are about: name in lower case -> the rule."""
FUNCTIONS = {name: function for group in GROUPS.values() for name, function in group.items()}
