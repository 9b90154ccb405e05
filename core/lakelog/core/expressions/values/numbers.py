"""Functions of Spark's SQL that round, choose and count numbers."""

from __future__ import annotations

import math
import struct
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.arrays import scalar_of
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.arrow.comparing import compare
from lakelog.core.compute import pc
from lakelog.core.expressions.coerce import INTEGERS, NotInCoreError, common_type, has_order
from lakelog.core.expressions.values.by_rows import by_rows, plain
from lakelog.core.expressions.values.casts import cast_value, conjoined
from lakelog.core.expressions.values.decimals import exactly, rounded_type
from lakelog.core.expressions.values.value import computed
from lakelog.core.schema import DataType, DecimalType, PrimitiveType
from lakelog.core.schema.types import DAY_TIME, YEAR_MONTH

if TYPE_CHECKING:
    from lakelog.core.expressions.context import EvalContext
    from lakelog.core.expressions.values.value import Rule, Value

_MOST_SCALE = 38
_WIDE = Context(prec=400)
"""Digits enough for the largest double."""
_ALL_BITS = (1 << 64) - 1
_MOST_FACTORIAL = 20
_INTEGER, _LONG = PrimitiveType("integer"), PrimitiveType("long")
_DOUBLE, _BOOLEAN = PrimitiveType("double"), PrimitiveType("boolean")
_FLOATS = (PrimitiveType("float"), _DOUBLE)


def _rounded(mode: str) -> Rule:
    """`round` or `bround`, by how a half is rounded.

    Args:
        mode: of `decimal`.
    """

    def apply(_: EvalContext, value: Value, scale: Value | None = None) -> Value:
        return _at_scale(value, plain(scale, int, 0), mode)

    return apply


def _stepped(mode: str) -> Rule:
    """`ceil` or `floor`.

    Args:
        mode: of `decimal`.
    """

    def apply(context: EvalContext, value: Value) -> Value:
        if isinstance(value.data_type, DecimalType):
            kind = value.data_type
            if kind.scale == 0:
                return value
            kind = rounded_type(kind, 0)
            return exactly(lambda number: number.to_integral_value(mode), kind, value)
        if value.data_type in _FLOATS:
            function = pc.ceil if mode == ROUND_CEILING else pc.floor
            number = cast_value(value, _DOUBLE, context)
            whole = computed(_DOUBLE, lambda data: _within_longs(function(data)), number)
            return cast_value(whole, _LONG, context)
        _integral(value.data_type, "ceil" if mode == ROUND_CEILING else "floor")
        return computed(_LONG, lambda data: pc.cast(data, pa.int64()), value)

    return apply


def _within_longs(data: Any) -> Any:
    """Doubles as Java's cast has them: the nearest one that a long holds, and 0 for NaN."""
    zero, least, most = (scalar_of(each, pa.float64()) for each in (0.0, -(2.0**63), 2.0**63))
    data = pc.if_else(pc.is_nan(data), zero, data)
    data = pc.min_element_wise(data, most, skip_nulls=False)
    return pc.max_element_wise(data, least, skip_nulls=False)


def _at_scale(value: Value, scale: int, mode: str) -> Value:
    kind = value.data_type
    if abs(scale) > _MOST_SCALE:
        raise NotInCoreError(f"rounding to {scale} digits")
    unit = Decimal(1).scaleb(-scale)
    if isinstance(kind, DecimalType):
        result = rounded_type(kind, scale)
        return exactly(lambda number: number.quantize(unit, mode), result, value)
    if kind == _DOUBLE:

        def shortest(number: float) -> float:
            if not math.isfinite(number):
                return number
            # As Java writes it, which is what Spark rounds; its decimals know no -0.
            return float(Decimal(repr(number)).quantize(unit, mode, _WIDE)) + 0.0

        return by_rows(shortest, _DOUBLE, value)
    _integral(kind, "round")
    if scale >= 0:
        return value
    return by_rows(lambda number: int(Decimal(number).quantize(unit, mode)), kind, value)


def _integral(kind: DataType, name: str) -> None:
    if not isinstance(kind, PrimitiveType) or kind.name not in INTEGERS:
        raise NotInCoreError(f"{name} of {kind}")


def _extreme(op: str) -> Rule:
    """`greatest` or `least`: nulls are passed over, and NaN is above all.

    Args:
        op: by which one value is better than another.
    """

    def apply(context: EvalContext, *values: Value) -> Value:
        found, kind = conjoined(values, context)
        if not has_order(kind) or len(found) < 2:
            raise NotInCoreError(f"the greatest or least of {kind}")
        nans = kind in _FLOATS

        def best_of(best: Any, *others: Any) -> Any:
            for each in others:
                better = compare(op, each, best, nans=nans, b_nan=None)
                best = pc.if_else(pc.fill_null(better, False), each, pc.coalesce(best, each))
            return best

        return computed(kind, best_of, *found, nullable=all(each.nullable for each in found))

    return apply


def _sign(context: EvalContext, value: Value) -> Value:
    """`sign` and `signum`: -1.0, 0.0 or 1.0."""
    return by_rows(
        lambda x: x if math.isnan(x) or not x else math.copysign(1.0, x),
        _DOUBLE,
        cast_value(value, _DOUBLE, context),
    )


def remainder(left: Any, right: Any) -> Any:
    """`%`, with the sign of the dividend.

    Raises:
        pyarrow.ArrowInvalid: a divisor of zero, as in Spark's ANSI mode.
    """
    # The remainder by -1 is 0, as by 1, and the smallest integer divided by -1 overflows.
    right = pc.if_else(pc.equal(right, -1), scalar_of(1, right.type), right)
    return pc.subtract(left, pc.multiply(pc.divide_checked(left, right), right))


def _modulo(context: EvalContext, dividend: Value, divisor: Value) -> Value:
    """`mod`, of integers alone."""
    (left, right), kind = conjoined([dividend, divisor], context)
    _integral(kind, "mod")
    return computed(kind, remainder, left, right)


def _positive_modulo(context: EvalContext, dividend: Value, divisor: Value) -> Value:
    """`pmod`, of integers alone: never negative for a positive divisor."""
    (left, right), kind = conjoined([dividend, divisor], context)
    _integral(kind, "pmod")
    arrow = to_arrow_type(kind)
    # Java adds as ints what is narrower, and lets longer ones overflow.
    added = common_type([kind, _INTEGER])

    def positive(left: Any, right: Any) -> Any:
        rest = remainder(left, right)
        moved = remainder(pc.add(rest, right), right)
        return pc.cast(pc.if_else(pc.less(rest, 0), moved, rest), arrow)

    return computed(kind, positive, *(cast_value(each, added, context) for each in (left, right)))


def _absolute(_: EvalContext, value: Value) -> Value:
    """`abs`."""
    if value.data_type not in _FLOATS and not isinstance(value.data_type, DecimalType):
        _integral(value.data_type, "abs")
    return computed(value.data_type, pc.abs_checked, value)


def _negative(_: EvalContext, value: Value) -> Value:
    """`-x`."""
    kind = value.data_type
    if kind == PrimitiveType("void"):
        return value
    if kind not in (*_FLOATS, DAY_TIME, YEAR_MONTH) and not isinstance(kind, DecimalType):
        _integral(kind, "negative")
    return computed(value.data_type, pc.negate_checked, value)


def _binary_digits(_: EvalContext, value: Value) -> Value:
    """`bin`: the bits of a long, of a negative one all 64."""
    _integral(value.data_type, "bin")
    return by_rows(lambda number: f"{number & _ALL_BITS:b}", PrimitiveType("string"), value)


def _factorial(context: EvalContext, value: Value) -> Value:
    """`factorial`: also null where a long can't hold it."""
    _integral(value.data_type, "factorial")
    return by_rows(
        lambda number: math.factorial(number) if 0 <= number <= _MOST_FACTORIAL else None,
        _LONG,
        cast_value(value, _INTEGER, context),
        nullable=True,
    )


def _square_root(context: EvalContext, value: Value) -> Value:
    """`sqrt`: of a negative number it is NaN."""
    return computed(_DOUBLE, pc.sqrt, cast_value(value, _DOUBLE, context))


def _cube_root(context: EvalContext, value: Value) -> Value:
    """`cbrt`, to the last bit that of Java's `StrictMath`."""
    return by_rows(_root, _DOUBLE, cast_value(value, _DOUBLE, context))


def _root(x: float) -> float:
    """As FdLibm has it: C's own is another neighbour of the true root for some numbers."""
    if not x or not math.isfinite(x):
        return x
    most = abs(x)
    if most < sys.float_info.min:
        high, low = _halves(most * 2.0**54)
        root = _joined(high // 3 + 696219795, low)
    else:
        root = _joined(_halves(most)[0] // 3 + 715094163, 0)
    s = 19 / 35 + root * root / most * root
    root *= 5 / 14 + (45 / 28) / (s + 99 / 70 + (-864 / 1225) / s)
    root = _joined(_halves(root)[0] + 1, 0)
    r = most / (root * root)
    r = (r - root) / (root + root + r)
    return math.copysign(root + root * r, x)


def _halves(x: float) -> tuple[int, int]:
    """The bits of a double, as two integers."""
    high, low = struct.unpack(">II", struct.pack(">d", x))
    return high, low


def _joined(high: int, low: int) -> float:
    return float(struct.unpack(">d", struct.pack(">II", high, low))[0])


def _is_nan(context: EvalContext, value: Value) -> Value:
    """Null is not NaN, as in Spark."""
    number = value if value.data_type in _FLOATS else cast_value(value, _DOUBLE, context)
    return computed(
        _BOOLEAN, lambda data: pc.fill_null(pc.is_nan(data), False), number, nullable=False
    )


NUMBERS: Final[dict[str, Rule]] = {
    "abs": _absolute,
    "bin": _binary_digits,
    "bround": _rounded(ROUND_HALF_EVEN),
    "cbrt": _cube_root,
    **dict.fromkeys(("ceil", "ceiling"), _stepped(ROUND_CEILING)),
    "factorial": _factorial,
    "floor": _stepped(ROUND_FLOOR),
    "greatest": _extreme(">"),
    "isnan": _is_nan,
    "least": _extreme("<"),
    "mod": _modulo,
    "negative": _negative,
    "pmod": _positive_modulo,
    "round": _rounded(ROUND_HALF_UP),
    **dict.fromkeys(("sign", "signum"), _sign),
    "sqrt": _square_root,
}
"""By name in lower case."""
