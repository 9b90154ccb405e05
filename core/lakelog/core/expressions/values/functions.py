"""The functions of Spark's SQL that the core evaluates itself, by name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.compute import pc
from lakelog.core.expressions.coerce import NotInCoreError
from lakelog.core.expressions.values.by_rows import plain
from lakelog.core.expressions.values.casts import cast_value
from lakelog.core.expressions.values.collections import COLLECTIONS
from lakelog.core.expressions.values.hashes import HASHES
from lakelog.core.expressions.values.numbers import NUMBERS
from lakelog.core.expressions.values.texts import TEXTS
from lakelog.core.expressions.values.time_patterns import TIME_PATTERNS
from lakelog.core.expressions.values.times import TIMES
from lakelog.core.expressions.values.value import computed
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.expressions.context import EvalContext
    from lakelog.core.expressions.values.value import Rule, Value

_STRING, _INTEGER = PrimitiveType("string"), PrimitiveType("integer")
_BOOLEAN, _DOUBLE = PrimitiveType("boolean"), PrimitiveType("double")


def as_text(value: Value, context: EvalContext) -> Value:
    """A value as a string, as `concat` takes it."""
    return cast_value(value, _STRING, context)


def _concat(context: EvalContext, *values: Value) -> Value:
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
    def apply(context: EvalContext, value: Value) -> Value:
        return computed(_STRING, function, as_text(value, context))

    return apply


def _trimmed(function: str) -> Rule:
    return _of_text(lambda text: getattr(pc, function)(text, characters=" "))


def _length(_: EvalContext, value: Value) -> Value:
    if value.data_type != _STRING:
        raise NotInCoreError(f"length of {value.data_type}")
    return computed(_INTEGER, pc.utf8_length, value)


def _sliced(text: Value, begin: int, stop: int | None, context: EvalContext) -> Value:
    return computed(
        _STRING, lambda data: pc.utf8_slice_codeunits(data, begin, stop), as_text(text, context)
    )


def _substring(
    context: EvalContext, text: Value, first: Value, count: Value | None = None
) -> Value:
    start, length = plain(first, int), plain(count, int)
    if length is not None and length <= 0:
        return _sliced(text, 0, 0, context)
    begin = start - 1 if start > 0 else start
    stop = None if length is None else begin + length
    if begin < 0 and stop is not None and stop >= 0:
        stop = None
    return _sliced(text, begin, stop, context)


def _left(context: EvalContext, text: Value, count: Value) -> Value:
    return _sliced(text, 0, max(plain(count, int), 0), context)


def _right(context: EvalContext, text: Value, length: Value) -> Value:
    count = plain(length, int)
    begin, stop = (-count, None) if count > 0 else (0, 0)
    return _sliced(text, begin, stop, context)


def _replace(context: EvalContext, value: Value, part: Value, by: Value | None = None) -> Value:
    text, old, new = as_text(value, context), plain(part, str), plain(by, str, "")
    if not old:
        return text
    return computed(
        _STRING, lambda data: pc.replace_substring(data, pattern=old, replacement=new), text
    )


def _cast(kind: PrimitiveType, context: EvalContext, value: Value) -> Value:
    return cast_value(value, kind, context)


_OWN = ("binary", "boolean", "date", "double", "float", "string", "timestamp")
_CASTS = {"bigint": "long", "int": "integer", "smallint": "short", "tinyint": "byte"} | dict(
    zip(_OWN, _OWN, strict=True)
)
GROUPS: dict[str, dict[str, Rule]] = {
    "numbers": NUMBERS,
    "text": {
        **TEXTS,
        **dict.fromkeys(("btrim", "trim"), _trimmed("utf8_trim")),
        **dict.fromkeys(("char_length", "character_length", "len", "length"), _length),
        "concat": _concat,
        **dict.fromkeys(("lcase", "lower"), _cased("lower")),
        "left": _left,
        "ltrim": _trimmed("utf8_ltrim"),
        "replace": _replace,
        "right": _right,
        "rtrim": _trimmed("utf8_rtrim"),
        **dict.fromkeys(("substr", "substring"), _substring),
        **dict.fromkeys(("ucase", "upper"), _cased("upper")),
    },
    "dates and times": {**TIMES, **TIME_PATTERNS},
    "arrays and maps": COLLECTIONS,
    "any values": HASHES,
    "casts": {sql: partial(_cast, PrimitiveType(name)) for sql, name in _CASTS.items()},
}
"""By what they are about: name in lower case -> the rule."""
FUNCTIONS = {name: function for group in GROUPS.values() for name, function in group.items()}
