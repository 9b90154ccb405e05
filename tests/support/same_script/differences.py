"""Where a step of lakelog's ends otherwise than delta-spark's, on purpose, and why.

A difference names its steps and what is different there; each of these must be different, and
nothing else may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["DIFFERENCES", "Difference", "differing", "listed_for", "unlisted"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One, with its reason."""

    reason: str
    what: tuple[str, ...]
    """Patterns of what differs, as `differing` names it."""
    on: tuple[str, ...]
    """The names of the steps."""

    def meets(self, found: Iterable[str]) -> bool:
        """Whether something is different in this way."""
        return any(fnmatchcase(at, each) for at in found for each in self.what)


DIFFERENCES: Final[dict[str, Difference]] = {}


def listed_for(case: str) -> list[str]:
    """The names of the differences on a step."""
    return [name for name, each in DIFFERENCES.items() if case in each.on]


def unlisted(case: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """What is different without being listed."""
    listed = [DIFFERENCES[name] for name in listed_for(case)]
    return {at: v for at, v in found.items() if not any(each.meets([at]) for each in listed)}


def differing(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What is different in two outcomes: a path -> lakelog's and delta-spark's.

    Of errors the path has both conditions, `error: DELTA_THEIRS, DELTA_OURS`.
    """
    found: dict[str, tuple[Any, Any]] = {}
    conditions = theirs.get("error"), ours.get("error")
    if conditions != (None, None):
        if conditions[0] != conditions[1]:
            found[f"error: {conditions[0]}, {conditions[1]}"] = conditions[::-1]
    else:
        _differing("answer", ours["answer"], theirs["answer"], found)
    _differing("", ours["tables"], theirs["tables"], found)
    return found


def _differing(at: str, ours: Any, theirs: Any, found: dict[str, tuple[Any, Any]]) -> None:
    if ours == theirs:
        return
    inner = _parts(ours), _parts(theirs)
    if not all(inner):
        found[at] = ours, theirs
        return
    mine, other = inner
    for name in sorted({*mine, *other}):
        _differing(f"{at}/{name}".lstrip("/"), mine.get(name), other.get(name), found)


def _parts(value: Any) -> dict[str, Any]:
    """What is in a value: of lists only those of objects are looked into."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {str(each.get("name", at)): each for at, each in enumerate(value)}
    return {}
