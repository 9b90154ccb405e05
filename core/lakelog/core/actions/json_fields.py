"""Dataclasses as JSON objects, without losing unknown fields, and with each known one checked.

Whatever names an action's fields comes through here: commits, checkpoints, their sidecars,
compactions, version checksums, the change feed. So a field of a wrong type is found when it is
read, and named, and never where something counts on it.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

JsonObject: TypeAlias = dict[str, Any]


class MalformedFieldError(ValueError):
    """A field of an action that is not what the protocol has there; the message names it."""


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda m: m.group(1).upper(), name)


def _fits_long(value: int) -> bool:
    return -(1 << 63) <= value < 1 << 63


def _fits_int(value: int) -> bool:
    return -(1 << 31) <= value < 1 << 31


_TEXT = frozenset({str})
_TEXT_OR_NULL = frozenset({str, type(None)})


def _are_texts(value: Iterable[Any]) -> bool:
    return _TEXT.issuperset(map(type, value))


def _are_texts_or_nulls(value: dict[str, Any]) -> bool:
    return _TEXT_OR_NULL.issuperset(map(type, value.values()))


def _is_path(value: str) -> bool:
    return value != "" and "\0" not in value


def _are_all_texts(value: dict[str, Any]) -> bool:
    return _are_texts(value.values())


_Kind: TypeAlias = "tuple[type, Callable[[Any], bool] | None, str]"
"""What a field may be: a type of JSON (`True` is no number), what is left to check; in words."""
_Rule: TypeAlias = "tuple[type, Callable[[Any], bool] | None, str, type[JsonFields] | None]"
"""The same, and the class of a field that is an object itself."""

_RULES: dict[str, _Kind] = {
    "str": (str, None, "a string"),
    "int": (int, _fits_long, "a whole number of 64 bits"),
    "bool": (bool, None, "true or false"),
    "list[str]": (list, _are_texts, "a list of strings"),
    "Mapping[str, str]": (dict, _are_all_texts, "an object of strings"),
    "Mapping[str, str | None]": (dict, _are_texts_or_nulls, "an object of strings and nulls"),
    "Mapping[str, Any]": (dict, None, "an object"),
}
"""By annotation; what has another one is an object of its own."""

_INT: _Kind = (int, _fits_int, "a whole number of 32 bits")
_PATH: _Kind = (str, _is_path, "a path")


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
    _read_as: ClassVar[Mapping[str, Any]] = {}
    """Required fields that other clients leave out -> what that means."""
    _needed: ClassVar[frozenset[str]] = frozenset()
    """Fields that a log must have though they have a default here."""
    _ints: ClassVar[frozenset[str]] = frozenset()
    """Numbers of 32 bits."""
    _paths: ClassVar[frozenset[str]] = frozenset()
    """Texts that name a file."""
    _is_hearsay: ClassVar[bool] = False
    """Whether nothing depends on the fields, so that a malformed one is only kept in `extra`."""
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
    def _rules(cls) -> tuple[dict[str, _Rule], list[str]]:
        """JSON name -> what the field may be, and those that must be there; once a class."""
        cached: tuple[dict[str, _Rule], list[str]] | None = cls.__dict__.get("_rules_cache")
        if cached is None:
            known = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]  # as in `_names`
            names = cls._names()
            rules = {key: cls._rule(name, str(known[name].type)) for key, name in names.items()}
            needed = [key for key, name in names.items() if cls._is_needed(known[name])]
            cached = rules, needed
            cls._rules_cache = cached  # type: ignore[attr-defined]  # a cache next to the fields
        return cached

    @classmethod
    def _rule(cls, name: str, annotation: str) -> _Rule:
        if name in cls._nested:
            return dict, None, "an object", cls._nested[name]
        if name in cls._ints:
            return *_INT, None
        if name in cls._paths:
            return *_PATH, None
        return *_RULES[annotation.removesuffix(" | None")], None

    @classmethod
    def _is_needed(cls, field: Any) -> bool:
        has_default = field.default is not MISSING or field.default_factory is not MISSING
        return field.name in cls._needed or not (has_default or field.name in cls._read_as)

    @classmethod
    def check_json_value(cls, value: Any) -> None:
        """Check the JSON object under the action's key, field by field.

        Raises:
            MalformedFieldError: names the first field that is wrong or missing.
        """
        if type(value) is not dict:
            raise MalformedFieldError(f"it is {_shown(value)} and not an object")
        rules, needed = cls._rules()
        for key, item in value.items():
            if item is None or key not in rules:
                continue
            kind, check, what, nested = rules[key]
            if kind is int and type(item) is float and item.is_integer():
                item = int(item)  # some clients write 1.0
            if type(item) is not kind or (check is not None and not check(item)):
                raise MalformedFieldError(f"its {key} is {_shown(item)} and not {what}")
            if nested is not None:
                try:
                    nested.check_json_value(nested._converted(item))
                except MalformedFieldError as exc:
                    raise MalformedFieldError(f"of its {key}, {exc}") from None
        for key in needed:
            if value.get(key) is None:
                raise MalformedFieldError(f"it has no {key}, which is {rules[key][2]}")

    @classmethod
    def from_json_value(cls, value: Mapping[str, Any]) -> Self:
        """Build from the JSON object under the action's key.

        Raises:
            MalformedFieldError: a field is wrong, or a required one is missing.
        """
        value = cls._converted(value)
        aside: JsonObject = {}
        try:
            cls.check_json_value(value)
        except MalformedFieldError:
            if not cls._is_hearsay:
                raise
            value, aside = cls._apart(value)
        names = cls._names()
        known: JsonObject = dict(cls._read_as)
        extra: JsonObject = aside
        for key, item in value.items():
            name = names.get(key)
            if name is None:
                extra[key] = item
            elif item is not None:
                nested = cls._nested.get(name)
                if nested:
                    known[name] = nested.from_json_value(item)
                else:  # a float is whole, as it was checked
                    known[name] = int(item) if type(item) is float else item
        return cls(**{**known, "extra": extra})

    @classmethod
    def _converted(cls, value: Any) -> Any:
        """The object with what other clients write in other types in those of the protocol."""
        if not cls._as_read or type(value) is not dict:
            return value
        keys = {name: key for key, name in cls._names().items() if name in cls._as_read}
        return {
            **value,
            **{
                key: cls._as_read[name](value[key])
                for name, key in keys.items()
                if value.get(key) is not None
            },
        }

    @classmethod
    def _apart(cls, value: Any) -> tuple[JsonObject, JsonObject]:
        """The fields, and those of them that are malformed."""
        if type(value) is not dict:
            return {}, {}
        wrong: JsonObject = {}
        for key, item in value.items():
            try:
                cls.check_json_value({key: item})
            except MalformedFieldError:
                wrong[key] = item
        return {key: item for key, item in value.items() if key not in wrong}, wrong

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


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"


_SHOWN = 60
