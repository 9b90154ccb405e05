"""Which types turn into which without losing a value.

Four questions, four tables: what a writer casts on its own (`is_upcast`), what a table's column
may become without rewriting its files (`is_widening`, PROTOCOL.md "Type Widening"; `widens_unasked`
for what it may become merely because data has that type), the one case where no feature is needed
for that (`shares_int32`), and what every client writes as the same text (`is_plain_text`).
"""

from __future__ import annotations

from lakelog.core.schema.types import (
    YEAR_MONTH,
    DataType,
    DecimalType,
    PrimitiveType,
    StructType,
    is_variant_like,
)

_INTEGRAL_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
"""Digits that hold every value; the protocol asks 20 of `long`, one more than it needs."""
_INT32 = ("byte", "short", "integer")
_ORDER = {"byte": 0, "short": 1, "integer": 2, "long": 3}
_INTO_FLOATS = {
    ("byte", "float"),
    ("short", "float"),
    ("byte", "double"),
    ("short", "double"),
    ("integer", "double"),
    ("float", "double"),
}
_WIDENING_FLOATS = _INTO_FLOATS - {("byte", "float"), ("short", "float")}


def is_upcast(source: DataType, target: DataType) -> bool:
    """Whether every value of an atomic `source` is exactly a value of `target`.

    That is what a writer casts without asking: integers to wider ones, to floating point that
    holds them exactly and to decimals with room for them; float to double; decimals to decimals
    with no fewer digits on either side of the point; anything from `void`. Not `long` to `double`
    (rounds), not `date` or `timestamp_ntz` to `timestamp` (depends on a time zone), nothing to
    `string` (hides mistakes): those casts are left to the caller. `struct<metadata, value>` of
    binaries is how data without Spark holds a `variant`, and a whole number is how it holds months.
    """
    match source, target:
        case PrimitiveType("void"), _:
            return True
        case StructType(), PrimitiveType("variant"):
            return is_variant_like(source)
        case PrimitiveType(a), PrimitiveType() if target == YEAR_MONTH:
            return a in _INT32
        case PrimitiveType(a), PrimitiveType(b):
            grows = a in _ORDER and b in _ORDER and _ORDER[a] < _ORDER[b]
            return grows or (a, b) in _INTO_FLOATS
        case PrimitiveType(a), DecimalType(precision, scale):
            digits = _INTEGRAL_DIGITS.get(a)
            if digits is None:
                return False
            # 2**63 has 19 digits; the twentieth is only for the protocol's widening table.
            return precision - scale >= min(digits, 19)
        case DecimalType(), DecimalType():
            return source != target and _decimal_grows(source, target)
        case _:
            return False


def is_widening(source: DataType, target: DataType) -> bool:
    """Whether the protocol lets a column of type `source` become `target` in place."""
    match source, target:
        case PrimitiveType(a), PrimitiveType(b):
            grows = a in _ORDER and b in _ORDER and _ORDER[a] < _ORDER[b]
            return grows or (a, b) in _WIDENING_FLOATS or (a, b) == ("date", "timestamp_ntz")
        case PrimitiveType(a), DecimalType(precision, scale):
            # byte and short need the ten digits of an int too: they share its Parquet type.
            digits = {"byte": 10, "short": 10, "integer": 10, "long": 20}.get(a)
            return digits is not None and precision - scale >= digits
        case DecimalType(), DecimalType():
            return source != target and _decimal_grows(source, target)
        case _:
            return False


def widens_unasked(source: DataType, target: DataType) -> bool:
    """Whether a merge of schemas may widen a column: never an integer to another kind of number.

    A batch of data with fractions is more often a mistake than intended, and can't be undone; Delta
    requires `ALTER TABLE` there too.
    """
    integral = isinstance(source, PrimitiveType) and source.name in _ORDER
    stays = isinstance(target, PrimitiveType) and target.name in _ORDER
    return is_widening(source, target) and (stays or not integral)


def shares_int32(source: DataType, target: DataType) -> bool:
    """Whether both are among byte, short and int, which Parquet stores the same way, as INT32.

    Delta changes such a column's type in place without the type widening feature, since every
    reader already reads the old files.
    """
    match source, target:
        case PrimitiveType(a), PrimitiveType(b):
            return a in _INT32 and b in _INT32
        case _:
            return False


def is_plain_text(source: DataType) -> bool:
    """Whether a value has one text, whoever casts it to `string`, in whatever time zone."""
    return isinstance(source, PrimitiveType) and source.name in (*_ORDER, "boolean", "date")


def _decimal_grows(source: DecimalType, target: DecimalType) -> bool:
    whole = source.precision - source.scale <= target.precision - target.scale
    return whole and source.scale <= target.scale
