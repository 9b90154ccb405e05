"""Whether values are of the types that the log has: what comes in through a public function.

JSON takes a number where the protocol has a string, and no reader does: the checkpoint after it
can't be written, and peers stop at that version. So a value is checked where the caller passes it,
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

from lakelog.core.actions import objects as _actions
from lakelog.core.actions.json_fields import JsonFields
from lakelog.core.arguments import (
    BEYOND_LONG,
    check_text,
    check_texts,
    is_long,
    is_text,
    refusal,
    require,
)

if TYPE_CHECKING:
    from lakelog.core.actions.objects import Action
    from lakelog.core.actions.operation import Operation

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
        int: lambda value: -BEYOND_LONG <= value < BEYOND_LONG,
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
    if not (type(operation.name) is str and operation.name.isascii()):
        require(operation.name, is_text, "Operation.name", "text")
    if operation.user_metadata is not None:
        check_text(operation.user_metadata, "user_metadata")
    given = operation.parameters
    is_plain = type(given) is dict and _has_plain_texts(given)
    if not (is_plain or _is_json_object(given)):
        raise refusal(operation.parameters, "Operation.parameters", _JSON_OBJECT)
    if not _is_metrics(operation.metrics):
        raise refusal(operation.metrics, "Operation.metrics", "names -> numbers")
    if operation.tags or not isinstance(operation.tags, Mapping):
        check_texts(operation.tags, "Operation.tags")


_JSON_OBJECT = "a mapping of strings to JSON values"


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(is_text, value))


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        is_text(key) and is_text(each) for key, each in value.items()
    )


def _is_map_with_nulls(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    for key, each in value.items():
        if not is_text(key) or not (each is None or is_text(each)):
            return False
    return True


def _is_json(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    if isinstance(value, Mapping):
        return _is_json_object(value)
    whole = isinstance(value, int) and -BEYOND_LONG <= value < 2 * BEYOND_LONG
    return value is None or whole or isinstance(value, float) or is_text(value)


def _is_json_object(value: Any) -> bool:
    if not value and isinstance(value, Mapping):
        return True
    return isinstance(value, Mapping) and all(
        is_text(key) and _is_json(each) for key, each in value.items()
    )


def _is_metrics(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        is_text(key) and (is_text(each) or _is_number(each)) for key, each in value.items()
    )


def _is_number(value: Any) -> bool:
    """Whether a value, which becomes text, is a number, including NumPy's integers."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


_TYPES: dict[str, tuple[_Check, str]] = {
    "str": (is_text, "a string"),
    "int": (is_long, "a 64-bit integer"),
    "bool": (_is_flag, "True or False"),
    "list[str]": (_is_texts, "a list of strings"),
    "Mapping[str, str]": (_is_map, "a mapping of strings to strings"),
    "Mapping[str, str | None]": (_is_map_with_nulls, "a mapping of strings to strings or None"),
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
        KeyError: an annotation that `_TYPES` does not have.
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
            raise refusal(given, f"{name}.{each.name}", each.what)
