"""Variant values without Spark: a struct of two binaries, and reassembling shredded ones.

A variant is `metadata`, the names that its objects use, and `value`, the value in Parquet's variant
encoding (apache/parquet-format, VariantEncoding.md). A shredded file keeps values of the expected
types in columns of their own, `typed_value`, and the rest in `value` (VariantShredding.md). Readers
here give the two binaries in either case; what is written is never shredded, as every reader of
the format must understand.
"""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import array_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


ARROW_VARIANT = pa.struct(
    [
        # Spark reads no file in which one of them may be null.
        pa.field("metadata", pa.binary(), nullable=False),
        pa.field("value", pa.binary(), nullable=False),
    ]
)

_NAMES = {"metadata", "value"}

_NULL = b"\x00"

_OBJECT, _ARRAY, _SHORT = 2, 3, 1

FIXED_SIZES = {
    **dict.fromkeys((0, 1, 2), 0),
    3: 1,
    4: 2,
    5: 4,
    6: 8,
    7: 8,
    8: 5,
    9: 9,
    10: 17,
    11: 4,
    12: 8,
    13: 8,
    14: 4,
    17: 8,
    18: 8,
    19: 8,
    20: 16,
}
"""Number of a primitive type -> bytes after its header. Binary and string store theirs."""

_MOST_SHORT = 63


def has_variants(schema: pa.Schema) -> bool:
    """Whether a column of the schema is a variant, or has one in it."""
    return any(_has_variants(each.type) for each in schema)


def _has_variants(kind: pa.DataType) -> bool:
    if kind == ARROW_VARIANT:
        return True
    return any(_has_variants(kind.field(i).type) for i in range(kind.num_fields))


def variant_array(array: Any) -> Any:
    """Variants as `ARROW_VARIANT`.

    Args:
        array: a struct of `metadata` and `value`, and of `typed_value` where it is
            shredded, in any order.

    Raises:
        ValueError: it is not a struct of metadata and value, or a value is not as the encoding
            says.
    """
    if isinstance(array.type, pa.ExtensionType):
        array = array.storage
    names = {each.name for each in array.type} if pa.types.is_struct(array.type) else set()
    if not _NAMES - {"value"} <= names <= _NAMES | {"typed_value"}:
        raise ValueError("it is not a struct of metadata and value")
    valid = array.is_valid()
    parts = _parts(array)
    metadata = parts["metadata"].cast(pa.binary())
    value = parts["value"].cast(pa.binary()) if "value" in names else None
    if "typed_value" in names:
        value = _reassembled(metadata, value, parts["typed_value"], valid)
    filled = [_filled(each, valid) for each in (metadata, value)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(filled, fields=list(ARROW_VARIANT), mask=mask)


def _filled(child: Any, parents: Any) -> Any:
    """Without nulls: those below a null mean nothing, and other values are not variants."""
    if child is None:
        raise ValueError("it has neither a value nor a typed_value")
    if not child.null_count:
        return child
    import pyarrow.compute

    pc: Any = pyarrow.compute
    if pc.any(pc.and_(child.is_null(), parents)).as_py():
        raise ValueError("its metadata or its value is null although the variant is not")
    return pc.fill_null(child, b"")


def _reassembled(metadata: Any, value: Any, typed: Any, there: Any) -> Any:
    pairs = zip(metadata.to_pylist(), there.to_pylist(), strict=True)
    names = [_dictionary(each) if known else None for each, known in pairs]
    found = _values(names, value, typed)
    # A variant that exists but has neither is the variant null.
    return array_of([_NULL if each is None else each for each in found], pa.binary())


def _dictionary(metadata: bytes) -> tuple[list[str], dict[str, int]]:
    """The names in a variant's metadata, and their numbers."""
    if not metadata or metadata[0] & 0x0F != 1:
        raise ValueError("its metadata has an unknown version")
    size = (metadata[0] >> 6) + 1
    count = _number(metadata, 1, size)
    ends = [_number(metadata, 1 + size * (i + 1), size) for i in range(count + 1)]
    start = 1 + size * (count + 2)
    names = [metadata[start + a : start + b].decode() for a, b in itertools.pairwise(ends)]
    return names, {name: i for i, name in enumerate(names)}


def _values(names: Any, value: Any, typed: Any) -> list[bytes | None]:
    """One value a row; `None` where there is neither a value nor a typed one."""
    rest: list[bytes | None] = [None] * len(names) if value is None else value.to_pylist()
    if typed is None:
        return rest
    kind = typed.type
    if pa.types.is_struct(kind):
        shredded = _objects(names, rest, typed)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        shredded = _arrays(names, typed)
    else:
        shredded = _primitives(typed)
    return [a if b is None else b for a, b in zip(rest, shredded, strict=True)]


def _child(names: Any, group: Any) -> list[bytes | None]:
    """The values of a shredded field or element: a group of `value` and `typed_value`."""
    parts = _parts(group)
    return _values(names, parts.get("value"), parts.get("typed_value"))


def _parts(group: Any) -> dict[str, Any]:
    """The fields of a struct by name, each null where the struct is."""
    return dict(zip((each.name for each in group.type), group.flatten(), strict=True))


def _objects(names: Any, rest: Sequence[bytes | None], typed: Any) -> list[bytes | None]:
    fields = {name: _child(names, each) for name, each in _parts(typed).items()}
    found: list[bytes | None] = []
    for row, valid in enumerate(typed.is_valid().to_pylist()):
        if not valid or names[row] is None:
            found.append(None)
            continue
        spelled, numbers = names[row]
        members = {name: text for name, of in fields.items() if (text := of[row]) is not None}
        if (left := rest[row]) is not None:
            members = {**_members(left, spelled), **members}
        found.append(_object(members, numbers))
    return found


def _arrays(names: Any, typed: Any) -> list[bytes | None]:
    starts = typed.offsets.to_pylist()
    owners = [row for row in range(len(typed)) for _ in range(starts[row], starts[row + 1])]
    elements = typed.values.slice(starts[0], starts[-1] - starts[0])
    flat = _child([names[row] for row in owners], elements)
    found: list[bytes | None] = []
    for row, valid in enumerate(typed.is_valid().to_pylist()):
        of = flat[starts[row] - starts[0] : starts[row + 1] - starts[0]]
        found.append(_array([_NULL if each is None else each for each in of]) if valid else None)
    return found


def _primitives(typed: Any) -> list[bytes | None]:
    stored, encode = _encoder(typed.type)
    values = typed if stored is None else typed.cast(stored)
    return [None if each is None else encode(each) for each in values.to_pylist()]


def _encoder(kind: Any) -> tuple[pa.DataType | None, Callable[[Any], bytes]]:
    """The type to cast the column to first, and the function that encodes its values."""
    types = pa.types
    if types.is_boolean(kind):
        return None, lambda value: bytes([(1 if value else 2) << 2])
    if kind in _PACKED:
        number, form = _PACKED[kind]
        return None, lambda value: bytes([number << 2]) + struct.pack(form, value)
    if types.is_date32(kind):
        return pa.int32(), lambda value: bytes([11 << 2]) + struct.pack("<i", value)
    if types.is_timestamp(kind):
        number = (12 if kind.tz else 13) if kind.unit == "us" else (18 if kind.tz else 19)
        return pa.int64(), lambda value: bytes([number << 2]) + struct.pack("<q", value)
    if types.is_time64(kind):
        return pa.int64(), lambda value: bytes([17 << 2]) + struct.pack("<q", value)
    if types.is_decimal(kind):
        size = 4 if kind.precision <= 9 else 8 if kind.precision <= 18 else 16
        return None, lambda value: _decimal(value, kind.scale, size)
    if types.is_string(kind) or types.is_large_string(kind):
        return None, _string
    if types.is_binary(kind) or types.is_large_binary(kind):
        return None, lambda value: bytes([15 << 2]) + len(value).to_bytes(4, "little") + value
    if types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        return None, lambda value: bytes([20 << 2]) + value
    raise ValueError(f"it is shredded into {kind}, which the encoding does not allow")


_PACKED = {
    pa.int8(): (3, "<b"),
    pa.int16(): (4, "<h"),
    pa.int32(): (5, "<i"),
    pa.int64(): (6, "<q"),
    pa.float64(): (7, "<d"),
    pa.float32(): (14, "<f"),
}


def _string(value: str) -> bytes:
    text = value.encode()
    if len(text) <= _MOST_SHORT:
        return bytes([len(text) << 2 | _SHORT]) + text
    return bytes([16 << 2]) + len(text).to_bytes(4, "little") + text


def _decimal(value: Any, scale: int, size: int) -> bytes:
    number = {4: 8, 8: 9, 16: 10}[size]
    sign, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    return bytes([number << 2, scale]) + unscaled.to_bytes(size, "little", signed=True)


def _object(members: Mapping[str, bytes], numbers: Mapping[str, int]) -> bytes:
    ordered = sorted(members)  # by code points, which is the order of UTF-8 bytes
    missing = [name for name in ordered if name not in numbers]
    if missing:
        raise ValueError(f"its metadata lacks the name {missing[0]!r}")
    ids = [numbers[name] for name in ordered]
    ends, data = _laid_out([members[name] for name in ordered])
    large, count = _count(len(ids))
    id_size, size = _width(max(ids, default=0)), _width(ends[-1])
    header = (large << 4 | (id_size - 1) << 2 | (size - 1)) << 2 | _OBJECT
    numbered = b"".join(i.to_bytes(id_size, "little") for i in ids)
    return bytes([header]) + count + numbered + _offsets(ends, size) + data


def _array(elements: Sequence[bytes]) -> bytes:
    ends, data = _laid_out(elements)
    large, count = _count(len(elements))
    size = _width(ends[-1])
    header = (large << 2 | (size - 1)) << 2 | _ARRAY
    return bytes([header]) + count + _offsets(ends, size) + data


def _offsets(ends: Sequence[int], size: int) -> bytes:
    return b"".join(end.to_bytes(size, "little") for end in ends)


def _laid_out(values: Sequence[bytes]) -> tuple[list[int], bytes]:
    """The offset where each value begins and the last one ends, and the values joined."""
    ends = [0]
    for each in values:
        ends.append(ends[-1] + len(each))
    return ends, b"".join(values)


def _count(count: int) -> tuple[int, bytes]:
    large = count > 0xFF
    return int(large), count.to_bytes(4 if large else 1, "little")


def _width(most: int) -> int:
    return max(1, (most.bit_length() + 7) // 8)


def _members(value: bytes, names: Sequence[str]) -> dict[str, bytes]:
    """The fields of an encoded object."""
    if value[0] & 3 != _OBJECT:
        raise ValueError("it has shredded fields and also a value that is not an object")
    header = value[0] >> 2
    size, id_size, large = (header & 3) + 1, (header >> 2 & 3) + 1, header >> 4 & 1
    count_size = 4 if large else 1
    count = _number(value, 1, count_size)
    ids = 1 + count_size
    offsets = ids + count * id_size
    data = offsets + (count + 1) * size
    found = {}
    for i in range(count):
        start = data + _number(value, offsets + i * size, size)
        found[names[_number(value, ids + i * id_size, id_size)]] = value[
            start : start + _size(value, start)
        ]
    return found


def _size(value: bytes, start: int) -> int:
    """The size in bytes of the encoded value at a position."""
    header, basic = value[start] >> 2, value[start] & 3
    if basic == _SHORT:
        return 1 + header
    if basic in (_OBJECT, _ARRAY):
        size = (header & 3) + 1
        id_size = (header >> 2 & 3) + 1 if basic == _OBJECT else 0
        large = header >> 4 & 1 if basic == _OBJECT else header >> 2 & 1
        count_size = 4 if large else 1
        count = _number(value, start + 1, count_size)
        last = start + 1 + count_size + count * (id_size + size)
        return last + size + _number(value, last, size) - start
    if header in (15, 16):
        return 5 + _number(value, start + 1, 4)
    if header not in FIXED_SIZES:
        raise ValueError(f"it holds a value of the unknown type {header}")
    return 1 + FIXED_SIZES[header]


def _number(data: bytes, start: int, size: int) -> int:
    return int.from_bytes(data[start : start + size], "little")
