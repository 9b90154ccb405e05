"""Python and Arrow values converted to a column's type, exactly or not at all.

What SQL would silently round, cut off or shift is refused here: a value that the caller gave
is what the table holds afterwards. Only floating point is rounded, to the nearest value.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import one_array, scalar_of
from lakelog.core.arrow.arrow_casts import cast_table
from lakelog.core.arrow.arrow_types import is_list, to_arrow_type
from lakelog.core.arrow.encodings import bounded, decoded, is_encoded, without_views
from lakelog.core.arrow.time_zones import zone_of
from lakelog.core.compute import pc
from lakelog.core.expressions.coerce import INTEGERS, NotInCoreError
from lakelog.core.expressions.values.casts import cast_data
from lakelog.core.plain_values import MISSING
from lakelog.core.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from lakelog.core.schema.column_paths import dotted

if TYPE_CHECKING:
    from collections.abc import Iterable

_DATE, _TIMESTAMP = PrimitiveType("date"), PrimitiveType("timestamp")
_NTZ = PrimitiveType("timestamp_ntz")
_FLOATS = ("float", "double")


def exact_scalar(value: Any, target: DataType, *, session_tz: str = "UTC") -> pa.Scalar[Any]:
    """A value converted to a column's type.

    Args:
        value: of Python, numpy or pandas, or an Arrow scalar. A struct is a mapping with every
            field, `None` for null; a map is one too, or a list of pairs.
        target: the column's type.
        session_tz: the zone of times without one, where the column has instants.

    Raises:
        ValueError: it is not a value of that type, or not exactly; the message says where.
    """
    while isinstance(value, pa.DictionaryScalar | pa.RunEndEncodedScalar):
        value = value.value
    if (
        isinstance(value, pa.Scalar)
        and value.is_valid
        and not pa.types.is_nested(value.type)
        and not isinstance(target, StructType | ArrayType | MapType)
    ):
        return _one(value, target, session_tz, ())  # Python may be unable to represent the time.
    plain = _plain(value, target, session_tz, ())
    return scalar_of(plain, to_arrow_type(target))


def exact_array(data: Any, target: DataType, *, session_tz: str = "UTC") -> Any:
    """Arrow data converted to a column's type: `exact_scalar` for each of its values.

    Args:
        data: an array or a chunked one. Nested parts may only be widened, and a struct needs every
            field.
        target: the column's type.
        session_tz: see `exact_scalar`.

    Raises:
        ValueError: a value does not fit the type exactly.
    """
    arrow = to_arrow_type(target)
    if data.type.equals(arrow):
        return data
    if pa.types.is_null(data.type):
        return pa.chunked_array([pa.nulls(len(data), arrow)])
    if is_encoded(data.type):
        return pa.chunked_array(
            [
                decoded(each, partial(_values, target=target, zone=session_tz))
                for each in _chunks(data)
            ],
            type=arrow,
        )
    if pa.types.is_nested(data.type) or pa.types.is_nested(arrow):
        _check_fields(data.type, target, ())
        schema = StructType((StructField("value", target),))
        return cast_table(pa.table({"value": data}), schema).column("value")
    try:
        found = _leaf(without_views(data), target, session_tz)
    except NotInCoreError as exc:
        raise ValueError(str(exc)) from None
    except pa.ArrowException as exc:
        raise ValueError(f"it would not be the same as {target}: {exc}") from exc
    if found is None:
        raise ValueError(f"{data.type} is not a {target}")
    return found.cast(arrow)


def _chunks(data: Any) -> list[Any]:
    whole = data.chunks if isinstance(data, pa.ChunkedArray) else [data]
    return [piece for each in whole for piece in bounded(each)]


def _values(values: Any, target: DataType, zone: str) -> Any:
    found = exact_array(values, target, session_tz=zone)
    return one_array(found) if isinstance(found, pa.ChunkedArray) else found


def _check_fields(arrow: Any, target: DataType, path: tuple[str, ...]) -> None:
    """Refuse a struct that lacks fields, at any depth: they would become null."""
    if is_encoded(arrow):
        _check_fields(arrow.value_type, target, path)
        return
    match target:
        case StructType() if pa.types.is_struct(arrow):
            given = {each.name.lower(): each.type for each in arrow}
            missing = [name for name in target.names if name.lower() not in given]
            if missing:
                raise _misfit(path, f"no value for {', '.join(missing)}; give null explicitly")
            for field in target:
                inner = (*path, field.name)
                _check_fields(given[field.name.lower()], field.data_type, inner)
        case ArrayType(element) if is_list(arrow):
            _check_fields(arrow.value_type, element, (*path, "element"))
        case MapType() if pa.types.is_map(arrow):
            _check_fields(arrow.key_type, target.key_type, (*path, "key"))
            _check_fields(arrow.item_type, target.value_type, (*path, "value"))


def _leaf(data: Any, target: DataType, zone: str) -> Any:
    """The data in a type that Arrow casts to the target without loss; `None` if there is none."""
    source = data.type
    name = target.name if isinstance(target, PrimitiveType) else ""
    if _is_number(source):
        return _number(data, target)
    if pa.types.is_date(source):
        return _day(data, target, zone)
    if pa.types.is_timestamp(source):
        return _time(data, target, zone)
    texts = pa.types.is_string(source) or pa.types.is_large_string(source)
    if texts:
        return data if name == "string" else None
    fixed = pa.types.is_fixed_size_binary(source) or pa.types.is_large_binary(source)
    if fixed or pa.types.is_binary(source):
        return data if name == "binary" else None
    return None


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _number(data: Any, target: DataType) -> Any:
    source, arrow = data.type, to_arrow_type(target)
    if isinstance(target, PrimitiveType) and target.name in INTEGERS:
        # Arrow refuses what is not a whole number, and what is too large.
        return data.cast(arrow)
    if isinstance(target, PrimitiveType) and target.name in _FLOATS:
        if pa.types.is_decimal(source):
            data = _by_text(data, pa.float64())
        return data.cast(arrow) if pa.types.is_integer(source) else _nearest(data, arrow)
    if not isinstance(target, DecimalType):
        return None
    if pa.types.is_integer(source):
        # Arrow requires 19 digits for any int64; the values may have fewer.
        return data.cast(pa.decimal128(38, target.scale))
    if not pa.types.is_floating(source):
        return data
    # Arrow misreads the text of a number beyond 128 bits.
    limit = scalar_of(10.0 ** (target.precision - target.scale), pa.float64())
    _refuse(data, pc.greater_equal(pc.abs(data), limit))
    return _by_text(data, arrow)


def _by_text(data: Any, arrow: Any) -> Any:
    """Converts between decimals and floating point: 0.1 is 0.1, twenty digits don't fit a double.

    Arrow's own cast is a digit off for some: 0.043 is not the double nearest to it.
    """
    found = data.cast(pa.string()).cast(arrow)
    back = found.cast(pa.string()).cast(data.type)
    _refuse(data, pc.not_equal(back, data))
    return found


def _nearest(data: Any, arrow: Any) -> Any:
    """Floating point of another width, if numbers stay finite and nothing becomes zero."""
    if pa.types.is_float16(data.type):
        return data.cast(pa.float32())  # which holds them all
    found = data.cast(arrow, safe=False)
    lost = pc.and_(pc.is_finite(data), pc.invert(pc.is_finite(found)))
    lost = pc.or_(lost, pc.and_(pc.not_equal(data, 0), pc.equal(found, 0)))
    _refuse(data, lost)
    return found


def _exact(data: Any, found: Any) -> Any:
    _refuse(data, pc.not_equal(found.cast(data.type, safe=False), data))
    return found


def _refuse(data: Any, lost: Any) -> None:
    at = pc.index(lost, True).as_py()
    if at >= 0:
        raise pa.ArrowInvalid(f"{data[at].as_py()!r} is lost")


def _day(data: Any, target: DataType, zone: str) -> Any:
    if target not in (_DATE, _TIMESTAMP, _NTZ):
        return None
    days = data.cast(pa.date32())
    if pa.types.is_date64(data.type):
        _exact(data, days)
    return cast_data(days, _DATE, target, zone)


def _time(data: Any, target: DataType, zone: str) -> Any:
    if data.type.tz is not None:
        # Its wall clock, or its day, would be that of a zone that was never named.
        return data.cast(pa.timestamp("us", data.type.tz)) if target == _TIMESTAMP else None
    clock = data.cast(pa.timestamp("us"))
    if target == _DATE:
        return _exact(clock, clock.cast(pa.date32(), safe=False))
    if target not in (_TIMESTAMP, _NTZ):
        return None
    return cast_data(clock, _NTZ, target, zone)


# Values of Python ----------------------------------------------------------------------------


def _plain(value: Any, target: DataType, zone: str, path: tuple[str, ...]) -> Any:
    """A Python value from which `pyarrow.scalar` makes exactly this one."""
    if type(value).__name__ in MISSING:
        return None
    if isinstance(value, pa.Scalar) and (not value.is_valid or pa.types.is_nested(value.type)):
        value = value.as_py()
    if value is None:
        return None
    match target:
        case StructType():
            return _struct(value, target, zone, path)
        case ArrayType(element):
            inner = (*path, "element")
            return [_plain(each, element, zone, inner) for each in _list(value, path)]
        case MapType():
            return _map(value, target, zone, path)
        case _:
            return _as_python(_one(value, target, zone, path), path)


def _as_python(found: pa.Scalar[Any], path: tuple[str, ...]) -> Any:
    try:
        return found.as_py()
    except (OverflowError, ValueError) as exc:
        raise _misfit(path, str(exc)) from exc


def _one(value: Any, target: DataType, zone: str, path: tuple[str, ...]) -> pa.Scalar[Any]:
    try:
        data = (
            pa.repeat(value, 1)
            if isinstance(value, pa.Scalar)
            else pa.array([_named(value, target, zone)])
        )
        found: pa.Scalar[Any] = exact_array(data, target, session_tz=zone)[0]
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as exc:
        raise _misfit(path, str(exc)) from exc
    return found


def _named(value: Any, target: DataType, zone: str) -> Any:
    """The value with what its type leaves out: an instant gets the session's zone."""
    if getattr(value, "nanosecond", 0):
        raise ValueError(f"{value!r} has nanoseconds, which would be lost")
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        # Arrow assumes that an int has 64 bits, but a decimal's may have more.
        return Decimal(value)
    if target != _TIMESTAMP or not isinstance(value, date):
        return value
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001 # its zone comes next
    return value.replace(tzinfo=zone_of(zone)) if value.tzinfo is None else value


def _struct(value: Any, target: StructType, zone: str, path: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _misfit(path, f"{value!r} is not a mapping of the struct's field names to values")
    found: dict[str, Any] = {}
    for name, each in value.items():
        field = target.get(name) if isinstance(name, str) else None
        if field is None or field.name in found:
            wrong = "is not a field" if field is None else "is given twice"
            raise _misfit(path, f"{name!r} {wrong}; the fields are {', '.join(target.names)}")
        found[field.name] = _plain(each, field.data_type, zone, (*path, field.name))
    missing = [name for name in target.names if name not in found]
    if missing:
        raise _misfit(path, f"no value for {', '.join(missing)}; give None for null")
    return found


def _list(value: Any, path: tuple[str, ...]) -> Iterable[Any]:
    if isinstance(value, list | tuple):
        return value
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 0) == 1:
        return list(value)
    raise _misfit(path, f"{value!r} is not a list")


def _map(value: Any, target: MapType, zone: str, path: tuple[str, ...]) -> list[tuple[Any, Any]]:
    pairs = value.items() if isinstance(value, Mapping) else _list(value, path)
    found: dict[Any, Any] = {}
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or pair[0] is None:
            raise _misfit(path, f"{pair!r} is not a (key, value) pair")
        key = _plain(pair[0], target.key_type, zone, (*path, "key"))
        entry = scalar_of(key, to_arrow_type(target.key_type))
        if key is None or entry in found:
            raise _misfit(path, f"the key {pair[0]!r} is null, or given twice")
        found[entry] = key, _plain(pair[1], target.value_type, zone, (*path, "value"))
    return list(found.values())


def _misfit(path: tuple[str, ...], why: str) -> ValueError:
    return ValueError(f"at {dotted(path)}: {why}" if path else why)
