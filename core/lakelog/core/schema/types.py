"""Delta's schema: the types, and their JSON (PROTOCOL.md, "Schema Serialization Format")."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import orjson

__all__ = [
    "VARIANT",
    "ArrayType",
    "DataType",
    "DecimalType",
    "MapType",
    "PrimitiveType",
    "StructField",
    "StructType",
    "is_variant_like",
    "type_from_json_value",
]


_PRIMITIVES = frozenset(
    (
        *("string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary"),
        *("date", "timestamp", "timestamp_ntz", "void", "variant"),
    )
)

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without parameters, by its name in the schema JSON: `long`, `timestamp_ntz`, …"""

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
        """Parse `metaData.schemaString`.

        Raises:
            ValueError: not JSON, not a struct, or a type that the protocol does not have.
        """
        parsed = type_from_json_value(orjson.loads(text))
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
    if isinstance(value, str):
        if value in _PRIMITIVES:
            return PrimitiveType(value)
        if value == "decimal":
            return DecimalType(10, 0)
        if match := _DECIMAL.fullmatch(value):
            return DecimalType(int(match[1]), int(match[2]))
    elif isinstance(value, Mapping):
        match value.get("type"):
            case "struct":
                return StructType(
                    tuple(
                        StructField(
                            f["name"],
                            type_from_json_value(f["type"]),
                            f.get("nullable", True),
                            f.get("metadata") or {},
                        )
                        for f in value["fields"]
                    )
                )
            case "array":
                return ArrayType(
                    type_from_json_value(value["elementType"]), value.get("containsNull", True)
                )
            case "map":
                return MapType(
                    type_from_json_value(value["keyType"]),
                    type_from_json_value(value["valueType"]),
                    value.get("valueContainsNull", True),
                )
    raise ValueError(f"unknown type in a table schema: {value!r}")


VARIANT = PrimitiveType("variant")


def is_variant_like(data: DataType) -> bool:
    """Whether values of a type can be read as variants: `struct<metadata, value>` of binaries."""
    return (
        isinstance(data, StructType)
        and {each.name for each in data} == {"metadata", "value"}
        and all(each.data_type == PrimitiveType("binary") for each in data)
    )
