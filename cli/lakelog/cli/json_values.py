"""Values of JSON as the columns of a table have them: JSON has no decimals or bytes.

Nor has it times: an appender reads their texts itself.
"""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from lakelog.core.schema import ArrayType, DecimalType, MapType, StructType

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.schema import DataType

_NO_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")


def parse(text: bytes) -> Any:
    """A value of JSON, with exact numbers: what is no whole one is a `Decimal`.

    Raises:
        ValueError: it is not JSON, or an object has a name twice, of which readers disagree.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, parse_float=Decimal, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is there twice")
    return found


def reader(kind: DataType | None) -> Callable[[Any], Any]:
    """What reads a value of JSON for a column.

    A text that says no value of the type is left as it is, for the table to refuse. What reads
    raises a `ValueError` where the table would take what it can't read for another value.

    Args:
        kind: of the column; `None` for one that the table does not have.
    """
    if isinstance(kind, StructType):
        return _struct_reader(kind)
    if isinstance(kind, ArrayType):
        element = reader(kind.element_type)
        return lambda found: [*map(element, found)] if isinstance(found, list) else _plain(found)
    if isinstance(kind, MapType):
        key, value = reader(kind.key_type), reader(kind.value_type)
        return lambda found: (
            [(key(k), value(v)) for k, v in found.items()]
            if isinstance(found, dict)
            else _plain(found)
        )
    if isinstance(kind, DecimalType):
        return _decimal
    return _READERS.get(str(kind), _plain)


def _struct_reader(kind: StructType) -> Callable[[Any], Any]:
    readers = {field.name: reader(field.data_type) for field in kind}
    readers |= {name.lower(): each for name, each in reversed(readers.items())} | readers

    def read(found: Any) -> Any:
        if not isinstance(found, dict):
            return _plain(found)
        return {
            name: readers.get(name, readers.get(name.lower(), _plain))(each)
            for name, each in found.items()
        }

    return read


def _plain(found: Any) -> Any:
    """A value of no type of its own."""
    if isinstance(found, Decimal):
        number = float(found)
        if number in (float("inf"), float("-inf")):
            raise ValueError(f"has {found}, which is more than a double holds")
        return number
    if isinstance(found, list):
        return [*map(_plain, found)]
    if isinstance(found, dict):
        return {name: _plain(each) for name, each in found.items()}
    return found


def _decimal(found: Any) -> Any:
    if isinstance(found, bool) or not isinstance(found, int | str | Decimal):
        return _plain(found)
    try:
        return Decimal(found)
    except ArithmeticError:
        return found


def _double(found: Any) -> Any:
    return float(found) if found in _NO_NUMBERS and isinstance(found, str) else _plain(found)


def _binary(found: Any) -> Any:
    """Bytes of base64, as `lakelog sample` writes them."""
    if not isinstance(found, str):
        return _plain(found)
    try:
        return base64.b64decode(found, validate=True)
    except ValueError as exc:
        raise ValueError(f"has {found[:50]!r} for bytes, which is no base64: {exc}") from exc


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "binary": _binary,
    "float": _double,
    "double": _double,
}
