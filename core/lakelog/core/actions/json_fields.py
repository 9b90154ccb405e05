"""Dataclasses as JSON objects, without losing unknown fields."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["JsonFields"]

JsonObject: TypeAlias = dict[str, Any]


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda m: m.group(1).upper(), name)


class JsonFields:
    """Dataclass fields <-> JSON object, camelCase, absent for `None`, unknown kept in `extra`."""

    __slots__ = ()

    _renamed: ClassVar[Mapping[str, str]] = {}
    """Fields whose JSON name is not the camelCase of their own."""
    _always: ClassVar[frozenset[str]] = frozenset()
    """Fields that are written even when empty."""
    _nested: ClassVar[Mapping[str, type[JsonFields]]] = {}
    """Fields that are objects themselves."""
    _as_read: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    """Fields that other clients write in other types -> what converts them."""
    extra: Mapping[str, Any]

    @classmethod
    def _names(cls) -> dict[str, str]:
        """JSON name -> attribute; computed once a class."""
        cached: dict[str, str] | None = cls.__dict__.get("_names_cache")
        if cached is None:
            cached = {
                cls._renamed.get(f.name, _camel(f.name)): f.name
                for f in fields(cls)  # type: ignore[arg-type]  # subclasses are dataclasses
                if f.name != "extra"
            }
            cls._names_cache = cached  # type: ignore[attr-defined]  # a cache next to the fields
        return cached

    @classmethod
    def from_json_value(cls, value: Mapping[str, Any]) -> Self:
        """Build from the JSON object under the action's key.

        Raises:
            TypeError: a required field is missing.
        """
        names = cls._names()
        known: JsonObject = {}
        extra: JsonObject = {}
        for key, item in value.items():
            name = names.get(key)
            if name is None:
                extra[key] = item
            elif item is not None:
                nested = cls._nested.get(name)
                known[name] = nested.from_json_value(item) if nested else item
        for name in cls._as_read.keys() & known.keys():
            known[name] = cls._as_read[name](known[name])
        return cls(**{**known, "extra": extra})

    def to_json_value(self) -> JsonObject:
        """The JSON object to put under the action's key."""
        out: JsonObject = {}
        for key, name in self._names().items():
            item = getattr(self, name)
            if item is None:
                if name in self._always:
                    out[key] = None
            elif isinstance(item, JsonFields):
                out[key] = item.to_json_value()
            else:
                out[key] = item
        out.update(self.extra)
        return out
