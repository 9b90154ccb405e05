"""Decimals by Spark's rules: the type of a result, and its digits.

A result that would need more than 38 digits gives up some of its scale, but keeps six digits of it.
In a session with `spark.sql.decimalOperations.allowPrecisionLoss=false` it gives up digits before
the point instead, and a quotient both.
"""

from __future__ import annotations

import decimal
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.compute import pc
from lakelog.core.expressions.values.by_rows import row_results
from lakelog.core.expressions.values.value import computed
from lakelog.core.schema import DecimalType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.core.expressions.context import EvalContext
    from lakelog.core.expressions.values.value import Value

_MOST: Final = 38
_LEAST_SCALE: Final = 6
_WIDE: Final = decimal.Context(prec=200, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def _adjusted(precision: int, scale: int) -> DecimalType:
    """`DecimalType.adjustPrecisionScale`."""
    if precision <= _MOST:
        return DecimalType(precision, scale)
    whole = precision - scale
    return DecimalType(_MOST, max(_MOST - whole, min(scale, _LEAST_SCALE)))


def _bounded(precision: int, scale: int) -> DecimalType:
    """`DecimalType.bounded`."""
    return DecimalType(min(precision, _MOST), min(scale, _MOST))


def _result(kind: str, left: DecimalType, right: DecimalType, *, loses: bool) -> DecimalType:
    fitted = _adjusted if loses else _bounded
    scale = max(left.scale, right.scale)
    whole = (left.precision - left.scale, right.precision - right.scale)
    if kind in ("+", "-"):
        return fitted(max(whole) + scale + 1, scale)
    if kind == "*":
        return fitted(left.precision + right.precision + 1, left.scale + right.scale)
    if kind == "/":
        scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
        digits = whole[0] + right.scale
        if not loses:
            # Both sides of the point give up half of what is too much.
            digits, scale = min(digits, _MOST), min(scale, _MOST)
            over = digits + scale - _MOST
            if over > 0:
                scale -= over // 2 + 1
                digits = _MOST - scale
        return fitted(digits + scale, scale)
    return fitted(min(whole) + scale, scale)  # %


def rounded_type(kind: DecimalType, scale: int) -> DecimalType:
    """The type of `round(x, scale)` and its like."""
    least = kind.precision - kind.scale + 1
    if scale < 0:
        return DecimalType(min(max(least, 1 - scale), _MOST), 0)
    kept = min(scale, kind.scale)
    return DecimalType(min(least + kept, _MOST), kept)


def arithmetic(kind: str, sides: Sequence[Value], context: EvalContext) -> Value:
    """`+`, `-`, `*`, `/` or `%` of two decimals.

    Args:
        kind: which of them.
        sides: what is on the left, and on the right.
        context: of the evaluation.
    """
    left, right = sides
    assert isinstance(left.data_type, DecimalType)
    assert isinstance(right.data_type, DecimalType)
    result = _result(kind, left.data_type, right.data_type, loses=context.precision_loss)
    quick = {"+": "add", "-": "subtract", "*": "multiply"}.get(kind)
    if quick is not None:
        scale = left.data_type.scale + right.data_type.scale if kind == "*" else result.scale
        if result.precision < _MOST and result.scale == scale:
            # Arrow has the same types for them, and no digit is lost.
            join, arrow = getattr(pc, quick), to_arrow_type(result)
            return computed(result, lambda a, b: pc.cast(join(a, b), arrow), left, right)
    return exactly(_OPERATIONS[kind], result, left, right)


def exactly(function: Callable[..., Decimal], result: DecimalType, *values: Value) -> Value:
    """What a function of Python's decimals gives, rounded half up to the scale of a type.

    A row has no value where a result has too many digits, or the function says so.

    Args:
        function: gets a value of each; none of them is null.
        result: the type.
        values: numbers.
    """
    unit, arrow = Decimal(1).scaleb(-result.scale), to_arrow_type(result)

    def fitted(*row: Decimal) -> Decimal:
        return _fitted(function(*row), unit, result)

    def compute(*data: Any) -> Any:
        with decimal.localcontext(_WIDE):
            return row_results(fitted, arrow, data)

    return computed(result, compute, *values)


def _fitted(number: Decimal, unit: Decimal, kind: DecimalType) -> Decimal:
    fitted = number.quantize(unit, ROUND_HALF_UP)
    if fitted and fitted.adjusted() >= kind.precision - kind.scale:
        raise pa.ArrowInvalid(f"{number} does not fit {kind}")
    return fitted


def _divided(a: Decimal, b: Decimal) -> Decimal:
    _refuse_zero(b)
    return a / b


def _rest(a: Decimal, b: Decimal) -> Decimal:
    _refuse_zero(b)
    times = (a / b).to_integral_value(ROUND_DOWN)
    if len(times.normalize().as_tuple().digits) > _MOST + 1:
        raise pa.ArrowInvalid(f"{a} % {b}: division impossible")
    return a - b * times


def _refuse_zero(number: Decimal) -> None:
    if not number:
        raise pa.ArrowInvalid("divide by zero")


_OPERATIONS: Final[dict[str, Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divided,
    "%": _rest,
}
