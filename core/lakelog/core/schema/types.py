"""Delta's schema: the types, and their JSON (PROTOCOL.md, "Schema Serialization Format")."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Final, Protocol, TypeAlias

import orjson

_YEARS, _DAYS = "interval year to month", "interval day to second"
_DAY_FIELDS = ("day", "hour", "minute", "second")

_INTERVALS = {
    **dict.fromkeys(("interval year", "interval month", _YEARS), _YEARS),
    **{f"interval {each}": _DAYS for each in _DAY_FIELDS},
    **{f"interval {a} to {b}": _DAYS for a, b in combinations(_DAY_FIELDS, 2)},
}
"""As tables spell them -> as they are written (the protocol's RFC "Interval Types")."""

_PRIMITIVES = frozenset(
    (
        *("string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary"),
        *("date", "timestamp", "timestamp_ntz", "void", "variant", _YEARS, _DAYS),
    )
)

_DECIMAL = re.compile(r"decimal\(\s*(\d{1,9})\s*,\s*(-?\d{1,9})\s*\)")

_MOST_DIGITS = 38


class SupportsArrowSchema(Protocol):
    """What can export itself as a schema, a field or a type of Arrow: pyarrow's, and others'."""

    def __arrow_c_schema__(self) -> object: ...


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without parameters, by its name in the schema JSON: `long`, `timestamp_ntz`, …

    A table may have columns of types that this version does not know (`is_known`). They can't be
    read or written; the table's other columns can be read.
    """

    name: str

    def json_value(self) -> str:
        """The name."""
        return self.name

    def __str__(self) -> str:
        """Spark's SQL name (`bigint` for `long`)."""
        return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(
            self.name, self.name
        )


@dataclass(frozen=True, slots=True)
class DecimalType:
    """Exact decimal: at most 38 digits, `scale` of them after the point."""

    precision: int
    scale: int

    def json_value(self) -> str:
        """`decimal(p,s)`."""
        return f"decimal({self.precision},{self.scale})"

    def __str__(self) -> str:
        """`decimal(p,s)`."""
        return self.json_value()


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A list of values of one type."""

    element_type: DataType
    contains_null: bool = True

    def json_value(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "type": "array",
            "elementType": self.element_type.json_value(),
            "containsNull": self.contains_null,
        }

    def __str__(self) -> str:
        """`array<element>`."""
        return f"array<{self.element_type}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """A map; keys are never null."""

    key_type: DataType
    value_type: DataType
    value_contains_null: bool = True

    def json_value(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "type": "map",
            "keyType": self.key_type.json_value(),
            "valueType": self.value_type.json_value(),
            "valueContainsNull": self.value_contains_null,
        }

    def __str__(self) -> str:
        """`map<key,value>`."""
        return f"map<{self.key_type},{self.value_type}>"


@dataclass(frozen=True, slots=True)
class StructField:
    """A column, or a field of a struct."""

    name: str
    data_type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def json_value(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "name": self.name,
            "type": self.data_type.json_value(),
            "nullable": self.nullable,
            "metadata": dict(self.metadata),
        }

    def with_type(self, data_type: DataType) -> StructField:
        """The same field with another type."""
        return replace(self, data_type=data_type)


COLUMN_HEADS: Final = ("column", "type", "null", "comment")
"""Of a table of columns that a notebook shows."""


def column_cells(column: StructField) -> tuple[object, ...]:
    """What such a table says of a column."""
    null = "" if column.nullable else "NOT NULL"
    return column.name, column.data_type, null, column.metadata.get("comment")


@dataclass(frozen=True, slots=True)
class StructType:
    """The schema of a table, or a struct within it."""

    fields: tuple[StructField, ...] = ()
    _index: _Index | None = field(default=None, init=False, repr=False, compare=False)
    """Made when a name is first looked up, so that looking up all names takes one pass."""

    def __iter__(self) -> Iterator[StructField]:
        """The fields, in order."""
        return iter(self.fields)

    def __len__(self) -> int:
        """How many fields there are."""
        return len(self.fields)

    @property
    def names(self) -> list[str]:
        """The fields' names, in order."""
        return [f.name for f in self.fields]

    def _repr_html_(self) -> str:
        """For notebooks: the columns, nested ones in their types."""
        from lakelog.core.shown.notebook import html_page, html_table
        from lakelog.core.shown.texts import count_text

        caption = count_text(len(self.fields), "column")
        return html_page(html_table(caption, COLUMN_HEADS, self.fields, column_cells))

    def get(self, name: str) -> StructField | None:
        """The field of this name, by exact spelling first, else ignoring case."""
        exact, lowered = self._index or self._indexed()
        return exact.get(name) or lowered.get(name.lower())

    def _indexed(self) -> _Index:
        # Backwards, so that the first of several fields is the one found.
        backwards = self.fields[::-1]
        index = {f.name: f for f in backwards}, {f.name.lower(): f for f in backwards}
        object.__setattr__(self, "_index", index)
        return index

    def __reduce__(self) -> tuple[type[StructType], tuple[tuple[StructField, ...]]]:
        """Only the fields are pickled."""
        return StructType, (self.fields,)

    def json_value(self) -> dict[str, Any]:
        """The JSON object."""
        return {"type": "struct", "fields": [f.json_value() for f in self.fields]}

    def to_json(self) -> str:
        """The text of `metaData.schemaString`."""
        return orjson.dumps(self.json_value()).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> StructType:
        """Parse `metaData.schemaString`; the name of a type may be unknown.

        Raises:
            ValueError: not JSON, not a struct, or one without what a schema must have.
        """
        parsed = _from_json(orjson.loads(text), _any_name)
        if not isinstance(parsed, StructType):
            raise ValueError(f"a table's schema is a struct, not {parsed}")
        return parsed

    def __str__(self) -> str:
        """`struct<name:type,…>`."""
        inner = ",".join(f"{f.name}:{f.data_type}" for f in self.fields)
        return f"struct<{inner}>"


_Index: TypeAlias = tuple[dict[str, StructField], dict[str, StructField]]
"""The fields by their names, and by their names in lower case."""

DataType: TypeAlias = PrimitiveType | DecimalType | ArrayType | MapType | StructType


def type_from_json_value(value: Any) -> DataType:
    """Build a type from its JSON value.

    Raises:
        ValueError: a type that the protocol does not have.
    """
    return _from_json(value, _known_name)


def _from_json(value: Any, primitive: Callable[[str], DataType | None], depth: int = 0) -> DataType:
    if depth > _DEEPEST:
        raise ValueError(f"a table schema whose types are nested more than {_DEEPEST} times")
    depth += 1
    found = None
    if isinstance(value, str):
        found = primitive(value)
    elif isinstance(value, Mapping):
        match value.get("type"):
            case "struct":
                fields = _needed(value, "fields", list)
                found = StructType(tuple(_field(each, primitive, depth) for each in fields))
            case "array":
                found = ArrayType(
                    _from_json(_needed(value, "elementType"), primitive, depth),
                    _flag(value, "containsNull"),
                )
            case "map":
                found = MapType(
                    _from_json(_needed(value, "keyType"), primitive, depth),
                    _from_json(_needed(value, "valueType"), primitive, depth),
                    _flag(value, "valueContainsNull"),
                )
    if found is None:
        raise ValueError(f"unknown type in a table schema: {_shown(value)}")
    return found


def _field(value: Any, primitive: Callable[[str], DataType | None], depth: int) -> StructField:
    if not isinstance(value, Mapping):
        raise ValueError(f"a field of a schema is an object, not {_shown(value)}")
    metadata = value.get("metadata")
    if not isinstance(metadata, Mapping | None):
        raise ValueError(f"the metadata of a field is an object, not {_shown(metadata)}")
    return StructField(
        _needed(value, "name", str),
        _from_json(_needed(value, "type"), primitive, depth),
        _flag(value, "nullable"),
        metadata or {},
    )


def _needed(value: Mapping[str, Any], key: str, kind: type = object) -> Any:
    found = value.get(key)
    if found is None or not isinstance(found, kind):
        raise ValueError(f"a schema has {key}: {_shown(found)} in {_shown(value)}")
    return found


def _flag(value: Mapping[str, Any], key: str) -> bool:
    found = value.get(key)
    if not isinstance(found, bool | None):
        raise ValueError(f"a schema has {key}: {_shown(found)}, but it must be true or false")
    return found is not False


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"


_SHOWN = 120

_DEEPEST = 150
"""What works on types calls itself, and Python allows that a thousand times."""


def _known_name(name: str) -> DataType | None:
    if name in _PRIMITIVES:
        return PrimitiveType(name)
    if name in _INTERVALS:
        return PrimitiveType(_INTERVALS[name])
    if name == "decimal":
        return DecimalType(10, 0)
    if match := _DECIMAL.fullmatch(name):
        return DecimalType(int(match[1]), int(match[2]))
    return None


def _any_name(name: str) -> DataType | None:
    return _known_name(name) or PrimitiveType(name)


VARIANT = PrimitiveType("variant")

YEAR_MONTH = PrimitiveType(_YEARS)
"""A signed number of months."""

DAY_TIME = PrimitiveType(_DAYS)
"""A signed number of microseconds."""


def is_interval(data: DataType) -> bool:
    """Whether values are intervals: not ordered for readers, and without bounds in statistics."""
    return data in (YEAR_MONTH, DAY_TIME)


def holds_months(data: DataType) -> bool:
    """Whether values are, or have within them, intervals of months."""
    match data:
        case StructType():
            return any(holds_months(each.data_type) for each in data)
        case ArrayType(element):
            return holds_months(element)
        case MapType(key, value):
            return holds_months(key) or holds_months(value)
    return data == YEAR_MONTH


def is_known(data: DataType) -> bool:
    """Whether this version can read and write values of a type that has no parts."""
    if isinstance(data, DecimalType):
        return 0 <= data.scale <= data.precision <= _MOST_DIGITS and data.precision > 0
    return not isinstance(data, PrimitiveType) or data.name in _PRIMITIVES


def is_variant_like(data: DataType) -> bool:
    """Whether values of a type can be read as variants: `struct<metadata, value>` of binaries."""
    return (
        isinstance(data, StructType)
        and {each.name for each in data} == {"metadata", "value"}
        and all(each.data_type == PrimitiveType("binary") for each in data)
    )
