"""CAST as Spark does it in ANSI mode, on Arrow arrays.

A value that the target can't hold is an error, as in Spark, never null. Casts whose result Arrow
would format or round differently from Spark raise `NotInCoreError`.
"""

from __future__ import annotations

import contextlib
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.arrow.time_zones import clocks_at, instants_of, is_decided_at, zone_of
from lakelog.core.compute import pc
from lakelog.core.expressions.coerce import INTEGERS, NotInCoreError, common_type
from lakelog.core.expressions.values.value import computed
from lakelog.core.schema import DataType, DecimalType, PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.core.expressions.context import EvalContext
    from lakelog.core.expressions.values.value import Value

_BLANKS: Final = "".join(map(chr, range(33)))
"""What Java cuts off at both ends of a text; other spaces are no part of a number or a time."""
_WHOLE = r"^[+-]?[0-9]+$"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$|^NaN$|^-?Infinity$"
_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T].*)?$"
_REACH = (-11_000_000, 11_000_000)
"""Days from 1970, thirty thousand years in both directions."""
_DAY_MICROS = 86_400_000_000
_TRUTH = r"(?i)^(?:t|true|y|yes|1|f|false|n|no|0)$"
_PERHAPS_NUMBER = (
    r"(?i)^[+-]?(?:(?:[0-9.]+(?:e[+-]?[0-9]+)?|0x[0-9a-f.]+p[+-]?[0-9]+)[df]?|inf|infinity|nan)$"
)
_PERHAPS_FINITE = r"^[+-]?[\p{Nd}.]+(?:[eE][+-]?\p{Nd}+)?$"
_PERHAPS_DAY = r"^[+-]?[0-9]{4,7}(?:-|$)"
_PERHAPS_MOMENT = r"^[+-]?T?[0-9]"
"""What Spark may read; no other text is one to it either."""
_FINITE = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?$"
_ONLY_DAY = r"^[0-9]{4}(?:-[0-9]{1,2}(?:-[0-9]{1,2})?)?$"
_SHORT_DAY = r"^[0-9]{4}(?:-[0-9]{1,2}(?:-[0-9]{1,2}(?:[ T].*)?)?)?$"
_WIDE = Context(prec=200)
_TIMESTAMP = PrimitiveType("timestamp")
_CLOCKLESS = frozenset(map(PrimitiveType, ("string", "date", "timestamp_ntz")))
"""What is a timestamp, and the other way round, by the clock of a zone."""
_NARROW = tuple(map(PrimitiveType, INTEGERS[:3]))
_MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?$"
_AT_FIRST_SIGHT = {
    "long": r"^[+-]?0*[0-9]{1,19}$",
    "boolean": _TRUTH,
    "decimal": _PERHAPS_FINITE,
    **dict.fromkeys(("float", "double"), _PERHAPS_NUMBER),
    "date": _PERHAPS_DAY,
    **dict.fromkeys(("timestamp", "timestamp_ntz"), _PERHAPS_MOMENT),
}
"""Type -> what a text looks like that may be one of its values."""


def cast_value(value: Value, target: DataType, context: EvalContext) -> Value:
    """The value as another type.

    Args:
        value: what to cast.
        target: the type.
        context: in whose time zone a timestamp has a date.

    Raises:
        NotInCoreError: a pair of types that is left to Spark.
    """
    if value.data_type == target:
        return value
    return computed(target, _caster(value.data_type, target, context.session_tz), value)


def cast_data(data: Any, source: DataType, target: DataType, zone: str) -> Any:
    """Data of one type as those of another; see `cast_value`.

    Raises:
        NotInCoreError: a pair of types, or a format of a string, that is left to Spark.
        pyarrow.ArrowInvalid: a value that the target can't hold.
    """
    return data if source == target else _caster(source, target, zone)(data)


def _caster(source: DataType, target: DataType, zone: str) -> Callable[[Any], Any]:
    arrow = to_arrow_type(target)
    if source == PrimitiveType("void"):
        return lambda _: scalar_of(None, arrow)
    cast = _cast_for(source, target)
    if cast is None:
        raise NotInCoreError(f"CAST of {source} to {target}")
    if _TIMESTAMP in (source, target) and not _CLOCKLESS.isdisjoint((source, target)):
        check_zone(zone)
    return lambda data: _as(cast(data, zone), arrow)


def try_cast_value(value: Value, target: DataType, context: EvalContext) -> Value:
    """The value as another type, as TRY_CAST has it: null where the target can't hold it.

    Raises:
        NotInCoreError: see `cast_value`.
    """
    source, zone = value.data_type, context.session_tz
    if source == target:
        return value
    _caster(source, target, zone)
    return computed(
        target, lambda data: _try_cast(data, source, target, zone), value, nullable=True
    )


def _try_cast(data: Any, source: DataType, target: DataType, zone: str) -> Any:
    with contextlib.suppress(pa.ArrowInvalid):
        return cast_data(data, source, target, zone)
    if isinstance(data, pa.Scalar):
        return scalar_of(None, to_arrow_type(target))
    if source == PrimitiveType("string") and target in _NARROW:
        longs = _try_cast(data, source, PrimitiveType("long"), zone)
        return _try_cast(longs, PrimitiveType("long"), target, zone)
    # The rest is tried by halves, which is slow where many distinct values can't be cast.
    distinct = _hopeful(data, source, target).dictionary_encode()
    found = pa.concat_arrays(_tried(distinct.dictionary, source, target, zone))
    return found.take(distinct.indices)


def _hopeful(data: Any, source: DataType, target: DataType) -> Any:
    """The values, with null for those that obviously can't be cast to the target."""
    name = target.name if isinstance(target, PrimitiveType) else "decimal"
    if source == PrimitiveType("string") and name in _AT_FIRST_SIGHT:
        good = pc.match_substring_regex(_trimmed(data), _AT_FIRST_SIGHT[name])
    elif _family(source) == "number" and (name in INTEGERS or isinstance(target, DecimalType)):
        if isinstance(target, DecimalType):
            most = 10.0 ** (target.precision - target.scale)
        else:
            most = 2.0 ** (to_arrow_type(target).bit_width - 1) + 1
        size = pc.abs(pc.cast(data, pa.float64(), safe=False))
        good = pc.less_equal(size, scalar_of(most, pa.float64()))
    else:
        return data
    return pc.if_else(good, data, scalar_of(None, data.type))


def _tried(data: Any, source: DataType, target: DataType, zone: str) -> list[Any]:
    """The halves of the halves that can be cast as a whole, and nulls where no value can."""
    with contextlib.suppress(pa.ArrowInvalid):
        return [cast_data(data, source, target, zone)]
    if len(data) == 1:
        return [pa.nulls(1, to_arrow_type(target))]
    middle = len(data) // 2
    halves = (data.slice(0, middle), data.slice(middle))
    return [part for half in halves for part in _tried(half, source, target, zone)]


def assigned_value(value: Value, target: DataType, context: EvalContext) -> Value:
    """The value as what is to be stored in a column of another type, without a CAST in the text.

    Raises:
        NotInCoreError: see `cast_value`; or Spark wants the CAST to be written.
    """
    pair = (_family(value.data_type), _family(target))
    if pair in _WRITTEN:
        raise NotInCoreError(f"CAST of {value.data_type} to {target}")
    return cast_value(value, target, context)


def conjoined(values: Sequence[Value], context: EvalContext) -> tuple[list[Value], DataType]:
    """Values in their common type.

    Raises:
        NotInCoreError: they have none here.
    """
    kind = common_type(each.data_type for each in values)
    return [cast_value(each, kind, context) for each in values], kind


def _family(kind: DataType) -> str:
    name = kind.name if isinstance(kind, PrimitiveType) else ""
    is_number = isinstance(kind, DecimalType) or name in (*INTEGERS, "float", "double")
    return "number" if is_number else name


_WRITTEN = {
    ("number", "boolean"),
    ("string", "boolean"),
    ("string", "binary"),
}


def in_reach(data: Any) -> Any:
    """The dates or times, after checking that Arrow can compute the years of all of them.

    Arrow stores a year in 16 bits and shifts times without checking for overflow.

    Raises:
        NotInCoreError: one of them is too far away.
    """
    micros = 1 if pa.types.is_date32(data.type) else _DAY_MICROS
    least, most = (scalar_of(each * micros, _counts(data.type)) for each in _REACH)
    counts = pc.cast(data, least.type)
    beyond = pc.or_(pc.less(counts, least), pc.greater(counts, most))
    if pc.any(beyond, min_count=0).as_py():
        raise NotInCoreError("a time that is tens of thousands of years away")
    return data


def _counts(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if pa.types.is_date32(kind) else pa.int64()


def localized(data: Any, zone: str) -> Any:
    """The wall clock of instants, as timestamps without zone."""
    return _moved(clocks_at, data, zone, pa.timestamp("us"))


def instants(clock: Any, zone: str) -> Any:
    """The instants of a wall clock, as Java has them.

    That is the first one for an hour that occurs twice, and for one that is left out the time that
    the clock shows as long after it.
    """
    return _moved(instants_of, clock, zone, pa.timestamp("us", "UTC"))


def check_zone(zone: str) -> None:
    """Leave to Spark what needs a clock that is not known here, before any row is read.

    Raises:
        NotInCoreError: there is no such zone.
    """
    try:
        zone_of(zone)
    except ValueError:
        raise NotInCoreError(f"the time zone {zone!r}") from None


def _moved(move: Callable[[Any, str], Any], times: Any, zone: str, kind: pa.DataType) -> Any:
    """Times moved between UTC and the clock of a zone; Spark's where it may move them otherwise."""
    micros = pc.cast(in_reach(times), pa.int64())
    ends = {"min": micros, "max": micros} if isinstance(micros, pa.Scalar) else pc.min_max(micros)
    least, most = (ends[each].as_py() for each in ("min", "max"))
    try:
        if least is not None and not is_decided_at(zone, least, most):
            raise NotInCoreError(f"the rules of the time zone {zone} at such a time")
        return pc.cast(move(micros, zone), kind)
    except ValueError:
        raise NotInCoreError(f"the time zone {zone!r}") from None


def _as(data: Any, arrow: Any) -> Any:
    return data if data.type == arrow else pc.cast(data, arrow)


def _cast_for(source: DataType, target: DataType) -> Callable[[Any, str], Any] | None:
    if isinstance(target, DecimalType):
        return _to_decimal(source, target)
    if isinstance(source, DecimalType):
        return _from_decimal(target)
    if not isinstance(source, PrimitiveType) or not isinstance(target, PrimitiveType):
        return None
    if source.name in (*INTEGERS, "boolean") and target.name in INTEGERS:
        arrow = to_arrow_type(target)
        return lambda data, _: pc.cast(data, arrow)
    if source.name in INTEGERS and target.name in ("float", "double"):
        arrow = to_arrow_type(target)
        return lambda data, _: pc.cast(data, arrow, safe=False)
    if source.name in ("float", "double") and target.name in INTEGERS:
        return _whole_part
    if source.name == "string" and target.name in INTEGERS:
        return _text_to_integer
    return _CASTS.get((source.name, target.name))


def _from_decimal(target: DataType) -> Callable[[Any, str], Any] | None:
    name = target.name if isinstance(target, PrimitiveType) else ""
    if name in INTEGERS:
        # Arrow wants a digit before the point to round to.
        return lambda data, _: pc.trunc(pc.cast(data, pa.decimal256(76, data.type.scale)))
    if name in ("float", "double"):
        # Arrow's own cast is a digit off for some: 0.043 is not the double nearest to it.
        arrow = to_arrow_type(target)
        return lambda data, _: pc.cast(pc.cast(data, pa.string()), arrow)
    if name == "boolean":
        return lambda data, _: pc.not_equal(data, scalar_of(Decimal(0), data.type))
    if name == "string":
        return lambda data, _: _of_each(data, lambda number: f"{number:f}", pa.string())
    return None


def _to_decimal(source: DataType, target: DecimalType) -> Callable[[Any, str], Any] | None:
    if isinstance(source, PrimitiveType) and source.name in INTEGERS:
        # Arrow requires 19 digits for any int64; the values may have fewer.
        return lambda data, _: pc.cast(data, pa.decimal256(76, target.scale))
    if isinstance(source, DecimalType):
        # Arrow rounds within the digits of the type: 9.99 of three digits would be 0.
        wide = pa.decimal256(76, source.scale)
        return lambda data, _: pc.round(
            pc.cast(data, wide), target.scale, round_mode="half_towards_infinity"
        )
    if source == PrimitiveType("boolean"):
        return lambda data, _: pc.cast(pc.cast(data, pa.int8()), pa.decimal256(76, target.scale))
    if source == PrimitiveType("string"):
        unit = Decimal(1).scaleb(-target.scale)
        kind = to_arrow_type(target)

        def parsed(text: str) -> Decimal:
            try:
                return Decimal(text).quantize(unit, ROUND_HALF_UP, _WIDE)
            except InvalidOperation:
                raise pa.ArrowInvalid(f"a number that does not fit {target}") from None

        return lambda data, _: _of_each(_number_text(data), parsed, kind)
    return None


def _of_each(data: Any, function: Callable[[Any], Any], kind: pa.DataType) -> Any:
    """What Python makes of each value that is not null."""
    if isinstance(data, pa.Scalar):
        return scalar_of(None if not data.is_valid else function(data.as_py()), kind)
    return array_of([None if v is None else function(v) for v in data.to_pylist()], kind)


def _number_text(data: Any) -> Any:
    text = pc.utf8_trim(data, characters=_BLANKS)
    _require(text, _FINITE, _PERHAPS_FINITE, "a plain number")
    return text


def _text_to_integer(data: Any, _: str) -> Any:
    text = _trimmed(data)
    if not _all_match(text, _WHOLE):
        raise pa.ArrowInvalid("a string that is not an integer")
    return pc.cast(pc.replace_substring_regex(text, r"^\+", ""), pa.int64())


def _text_to_float(kind: pa.DataType) -> Callable[[Any, str], Any]:
    def cast(data: Any, _: str) -> Any:
        text = pc.utf8_trim(data, characters=_BLANKS)
        _require(text, _NUMBER, _PERHAPS_NUMBER, "a plain number")
        return pc.cast(text, kind)

    return cast


def _text_to_boolean(data: Any, _: str) -> Any:
    text = pc.ascii_lower(_trimmed(data))
    if not _all_match(text, _TRUTH):
        raise pa.ArrowInvalid("a string that is not a boolean")
    return pc.match_substring_regex(text, r"^(?:t|true|y|yes|1)$")


def _text_to_date(data: Any, _: str) -> Any:
    text = _trimmed(data)
    if not _all_match(text, _DAY):
        _require(text, _SHORT_DAY, _PERHAPS_DAY, "a date as yyyy-MM-dd")
        text = _of_each(text, _whole_day, pa.string())
    return pc.cast(pc.utf8_slice_codeunits(text, 0, 10), pa.date32())


def _whole_day(text: str) -> str:
    """`2024-1` as `2024-01-01`."""
    year, month, day = (*text[:10].replace("T", " ").split(" ")[0].split("-"), "1", "1")[:3]
    return f"{year}-{int(month):02}-{int(day):02}"


def _text_to_moment(data: Any, zone: str) -> Any:
    return instants(_text_to_wall_clock(data, zone), zone)


def _text_to_wall_clock(data: Any, zone: str) -> Any:
    text = _trimmed(data)
    if _all_match(text, _ONLY_DAY):
        return pc.cast(_text_to_date(text, zone), pa.timestamp("us"))
    _require(text, _MOMENT, _PERHAPS_MOMENT, "a timestamp as yyyy-MM-dd HH:mm:ss")
    return pc.cast(text, pa.timestamp("us"))


def _trimmed(data: Any) -> Any:
    return pc.utf8_trim(data, characters=f"{_BLANKS}\x7f")


def _require(text: Any, pattern: str, perhaps: str, what: str) -> None:
    """Spark accepts more formats than these and refuses others; anything unclear is left to it."""
    if not _all_match(text, pattern):
        if not _all_match(text, perhaps):
            raise pa.ArrowInvalid(f"a string that is not {what}")
        raise NotInCoreError(f"a string that is not {what}")


def _all_match(text: Any, pattern: str) -> bool:
    found = pc.match_substring_regex(text, pattern)
    return pc.all(found, min_count=0).as_py() is not False


def _day_of(data: Any, _: str = "") -> Any:
    return pc.cast(pc.floor_temporal(in_reach(data), unit="day"), pa.date32())


def _start_of_day(data: Any, zone: str) -> Any:
    midnight = pc.cast(data, pa.timestamp("us"))
    # Where the clock jumps over midnight the day starts when it lands, as in Java.
    return instants(midnight, zone)


def _date_text(data: Any, _: str) -> Any:
    _four_digit_years(data)
    return pc.cast(data, pa.string())


def _moment_text(data: Any, _: str = "") -> Any:
    """`2024-01-02 03:04:05.5`: as many digits of the second as are needed."""
    _four_digit_years(data)
    return pc.replace_substring_regex(pc.cast(data, pa.string()), r"\.?0+$", "")


def _four_digit_years(data: Any) -> None:
    years = pc.year(in_reach(data))
    inside = pc.and_(pc.greater_equal(years, 1), pc.less_equal(years, 9999))
    if pc.all(inside, min_count=0).as_py() is False:
        raise NotInCoreError("the string of a date beyond the years 1 to 9999")


def _seconds(data: Any, _: str) -> Any:
    whole = pc.cast(pc.floor_temporal(in_reach(data), unit="second"), pa.int64())
    return pc.divide(whole, 1_000_000)


def _whole_part(data: Any, _: str) -> Any:
    """The whole part, for 2⁶³ the largest long: Spark also compares with that as a double."""
    data = pc.trunc(data)
    most = scalar_of(2.0**63, data.type)
    is_most = pc.equal(data, most)
    if pc.any(is_most, min_count=0).as_py() is not True:
        return data
    whole = pc.cast(pc.if_else(is_most, scalar_of(0.0, data.type), data), pa.int64())
    return pc.if_else(is_most, scalar_of((1 << 63) - 1, pa.int64()), whole)


def _text(data: Any, _: str) -> Any:
    return pc.cast(data, pa.string())


_CASTS: dict[tuple[str, str], Callable[[Any, str], Any]] = {
    **{(name, "string"): _text for name in (*INTEGERS, "boolean")},
    ("float", "double"): lambda data, _: data,
    ("double", "float"): lambda data, _: pc.cast(data, pa.float32(), safe=False),
    ("string", "date"): _text_to_date,
    ("string", "binary"): lambda data, _: pc.cast(data, pa.binary()),
    ("string", "boolean"): _text_to_boolean,
    ("string", "double"): _text_to_float(pa.float64()),
    ("string", "float"): _text_to_float(pa.float32()),
    **{
        (name, "boolean"): lambda data, _: pc.not_equal(data, scalar_of(0, data.type))
        for name in INTEGERS
    },
    **{
        (name, "boolean"): lambda data, _: pc.not_equal(data, scalar_of(0.0, data.type))
        for name in ("float", "double")
    },
    ("boolean", "double"): lambda data, _: pc.cast(data, pa.float64()),
    ("boolean", "float"): lambda data, _: pc.cast(data, pa.float32()),
    ("string", "timestamp"): _text_to_moment,
    ("string", "timestamp_ntz"): _text_to_wall_clock,
    ("date", "string"): _date_text,
    ("date", "timestamp"): _start_of_day,
    ("date", "timestamp_ntz"): lambda data, _: data,
    ("timestamp", "date"): lambda data, zone: _day_of(localized(data, zone)),
    ("timestamp", "string"): lambda data, zone: _moment_text(localized(data, zone)),
    ("timestamp", "timestamp_ntz"): localized,
    ("timestamp", "long"): _seconds,
    ("timestamp_ntz", "date"): _day_of,
    ("timestamp_ntz", "string"): _moment_text,
    ("timestamp_ntz", "timestamp"): instants,
}
