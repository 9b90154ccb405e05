"""Whether values are of the types that the log has: what comes in through a public function.

JSON takes a number where the protocol has a text, and no reader does: the checkpoint after it
can't be written, and peers stop at that version. So a value is checked where somebody gives it,
and once more, whatever way it took, in the commit that would write it.
"""

from __future__ import annotations

import functools
import math
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakelog.core import actions as _actions
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.json_fields import JsonFields

if TYPE_CHECKING:
    from lakelog.core.actions import Action
    from lakelog.core.operations import Operation

__all__ = [
    "check_actions",
    "check_operation",
    "check_text",
    "check_texts",
    "check_whole",
    "checked_progress",
]

_LONG: Final = 1 << 63
_Check = Callable[[Any], bool]


def check_actions(actions: Iterable[Action | None]) -> None:
    """Refuse actions with a field of another type than the protocol gives it.

    Args:
        actions: of one commit; `None` is passed over.

    Raises:
        DeltaAnalysisError: names the action, its field, the value and the type.
    """
    # A commit may have a million files: fields whose builtin types were right once are right
    # again, and only what such a type leaves open is looked at for each.
    for action in actions:
        if not isinstance(action, JsonFields):
            continue
        kind: Any = action.__class__
        values = _values_of(kind)(action)
        types = (kind, *map(type, values))
        left = _LEFT_OPEN.get(types)
        if left is None:
            _check_fields(action, kind.__name__)
            if _BUILTIN.issuperset(types[1:]):
                _LEFT_OPEN[types] = _left_open(fields_of(kind), values)
            continue
        for index, check in left:
            if not check(values[index]):
                _check_fields(action, kind.__name__)
                break


def _left_open(known: Sequence[_Field], values: Sequence[Any]) -> list[tuple[int, _Check]]:
    """What of fields that are right has to be looked at in others of the same builtin types.

    A check may say no too often: the field is then checked as a whole.
    """
    quick: dict[type, _Check] = {
        str: str.isascii,
        int: lambda value: -_LONG <= value < _LONG,
        dict: _has_plain_texts,
        list: lambda value: not value,
    }
    found: list[tuple[int, _Check]] = []
    for at, (field, each) in enumerate(zip(known, values, strict=True)):
        if field.check is _is_map_with_nulls and type(each) is dict:
            found.append((at, _has_plain_texts_or_nulls))
        elif type(each) in quick:
            found.append((at, quick[type(each)]))
    return found


def _has_plain_texts(value: dict[Any, Any]) -> bool:
    for key, each in value.items():
        if type(key) is not str or type(each) is not str or not (key + each).isascii():
            return False
    return True


def _has_plain_texts_or_nulls(value: dict[Any, Any]) -> bool:
    for key, each in value.items():
        plain = each is None or (type(each) is str and each.isascii())
        if not plain or type(key) is not str or not key.isascii():
            return False
    return True


def check_operation(operation: Operation) -> None:
    """Refuse what a commit would say of itself in other types than the history has.

    Raises:
        DeltaAnalysisError: names the field, the value and the type.
    """
    _require(operation.name, _is_text, "Operation.name", "text")
    check_text(operation.user_metadata, "user_metadata")
    _require(operation.parameters, _is_json_object, "Operation.parameters", _JSON_OBJECT)
    _require(operation.metrics, _is_metrics, "Operation.metrics", "names -> numbers")
    check_texts(operation.tags, "Operation.tags")


def check_text(value: Any, name: str, *, needed: bool = False) -> None:
    """Refuse what is neither text nor, where it is not needed, `None`.

    Raises:
        DeltaAnalysisError: names the argument and the value.
    """
    if value is not None or needed:
        _require(value, _is_text, name, "text")


def check_whole(value: Any, name: str) -> None:
    """Refuse what is no whole number of 64 bits.

    Raises:
        DeltaAnalysisError: names the argument and the value.
    """
    _require(value, _is_long, name, "a whole number of 64 bits")


def check_texts(value: Any, name: str) -> None:
    """Refuse what is no mapping of texts to texts.

    Raises:
        DeltaAnalysisError: names the argument, and the entry where it is one.
    """
    _require(value, lambda each: isinstance(each, Mapping), name, "a mapping of texts to texts")
    for key, each in value.items():
        _require(key, _is_text, f"a key of {name}", "text")
        _require(each, _is_text, f"{name}[{key!r}]", "text")


def checked_progress(
    app_id: Any,
    app_version: Any,
    names: tuple[str, str] = ("app_id", "app_version"),
) -> tuple[str, int] | None:
    """Which batch of which application a write is, where the caller says so.

    Args:
        app_id: as given.
        app_version: as given.
        names: what the caller calls the two.

    Raises:
        DeltaAnalysisError: one without the other, an id that is no text, or a version that is no
            whole number from 0 to 2^63 - 1: a table without the application is at -1, so that a
            lower one would never be written.
    """
    if app_id is None and app_version is None:
        return None
    if app_id is None or app_version is None:
        raise DeltaAnalysisError(f"{names[0]} and {names[1]} go together: give both, or neither")
    _require(app_id, _is_text, names[0], "text")
    _require(
        app_version,
        lambda each: _is_long(each) and each >= 0,
        names[1],
        "a whole number from 0 to 2^63 - 1",
    )
    return app_id, app_version


# Types ---------------------------------------------------------------------------------------

_JSON_OBJECT = "a mapping of texts to JSON values"


def _is_text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair is no text in any file.
        return False
    return True


def _is_long(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_LONG <= value < _LONG


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_text, value))


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        _is_text(key) and _is_text(each) for key, each in value.items()
    )


def _is_map_with_nulls(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    for key, each in value.items():
        if not _is_text(key) or not (each is None or _is_text(each)):
            return False
    return True


def _is_json(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    if isinstance(value, Mapping):
        return _is_json_object(value)
    whole = isinstance(value, int) and -_LONG <= value < 2 * _LONG
    return value is None or whole or isinstance(value, float) or _is_text(value)


def _is_json_object(value: Any) -> bool:
    if not value and isinstance(value, Mapping):
        return True
    return isinstance(value, Mapping) and all(
        _is_text(key) and _is_json(each) for key, each in value.items()
    )


def _is_metrics(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        _is_text(key) and (_is_text(each) or _is_number(each)) for key, each in value.items()
    )


def _is_number(value: Any) -> bool:
    """Whether a value, which becomes text, is a number: NumPy's whole ones, too."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


_TYPES: dict[str, tuple[_Check, str]] = {
    "str": (_is_text, "text"),
    "int": (_is_long, "a whole number of 64 bits"),
    "bool": (_is_flag, "True or False"),
    "list[str]": (_is_texts, "a list of texts"),
    "Mapping[str, str]": (_is_map, "a mapping of texts to texts"),
    "Mapping[str, str | None]": (_is_map_with_nulls, "a mapping of texts to texts or None"),
    "Mapping[str, Any]": (_is_json_object, _JSON_OBJECT),
}
"""What the annotations of the actions mean; a test holds that there are no others."""


class _Field(NamedTuple):
    name: str
    check: _Check
    what: str
    optional: bool


@functools.cache
def fields_of(kind: Any) -> tuple[_Field, ...]:
    """The fields of an action and what they hold.

    Raises:
        KeyError: an annotation that nobody told here.
    """
    found = []
    for each in fields(kind):
        text = str(each.type)
        optional = text.endswith(" | None")
        text = text.removesuffix(" | None")
        nested = getattr(_actions, text, None)
        if isinstance(nested, type) and issubclass(nested, JsonFields):
            found.append(_Field(each.name, _nested_check(nested), f"a {text}", optional))
        else:
            found.append(_Field(each.name, *_TYPES[text], optional))
    return tuple(found)


@functools.cache
def _values_of(kind: Any) -> Callable[[JsonFields], tuple[Any, ...]]:
    return operator.attrgetter(*(each.name for each in fields_of(kind)))


_BUILTIN: Final = frozenset({str, int, bool, dict, list, type(None)})
_LEFT_OPEN: Final[dict[tuple[type, ...], list[tuple[int, _Check]]]] = {}
"""An action's type and those of its fields, which were right -> what they leave open."""


def _nested_check(kind: type[JsonFields]) -> _Check:
    def check(value: Any) -> bool:
        if not isinstance(value, kind):
            return False
        _check_fields(value, kind.__name__)
        return True

    return check


def _check_fields(value: JsonFields, name: str) -> None:
    kind: Any = type(value)
    for each in fields_of(kind):
        given = getattr(value, each.name)
        if given is None and each.optional:
            continue
        if not each.check(given):
            raise _refusal(given, f"{name}.{each.name}", each.what)


def _require(value: Any, check: _Check, name: str, what: str) -> None:
    if not check(value):
        raise _refusal(value, name, what)


def _refusal(value: Any, name: str, what: str) -> DeltaAnalysisError:
    shown = repr(value)
    shown = shown if len(shown) <= 200 else f"{shown[:200]}…"
    return DeltaAnalysisError(
        f"{name} must be {what}, but it is {shown} ({type(value).__name__})",
        field=name,
        value=shown,
    )
