"""Where a statement about a CHAR ends otherwise in lakelog than in delta-spark, and why."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from support.char_columns.cases import CharCase


@dataclass(frozen=True, slots=True)
class Difference:
    """One, with its reason."""

    reason: str
    on: str
    """A pattern of the names of cases."""
    ours: Any
    """What lakelog gives there."""

    def meets(self, case: CharCase, theirs: Any) -> bool:
        """Whether a case that ends so in delta-spark ends otherwise in lakelog."""
        named = fnmatchcase(case.name, self.on)
        return named and theirs not in (self.ours, "NOT_SUPPORTED_CHANGE_COLUMN")


def _rows(*rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(("id", "c", "v", "d", "s"), row, strict=True)) for row in rows]


_A = (1, "a  ", "a", "a    ", "a")
_B = (2, "b  ", "b ", "b    ", "b  ")
_C = (3, "abc", "abc", "abc  ", "abc")
_NULL = (4, None, None, None, None)
_Q = (7, "q  ", "q", None, None)

_CHANGED: Final = "Commands of lakelog fill up a CHAR where they compare it, as queries do."

DIFFERENCES: Final = (
    Difference(_CHANGED, "part* / UPDATE c = 'a'", _rows((*_A[:4], "u"), _B, _C, _NULL)),
    Difference(_CHANGED, "part* / DELETE c = 'a'", _rows(_B, _C, _NULL)),
    Difference(_CHANGED, "* / MERGE ON [cd]", _rows((*_A[:4], "m"), _B, _C, _NULL, _Q)),
    Difference(
        "lakelog stores a CHAR filled up, and so it stays.",
        "ALTER c / *[)G]",
        _rows(_A, _B, _C, _NULL, (9, "abcd", None, None, None)),
    ),
)


def expected(case: CharCase, theirs: Any) -> Any:
    """What lakelog makes of a case, given what delta-spark makes of it."""
    found = [each.ours for each in DIFFERENCES if each.meets(case, theirs)]
    return found[0] if found else theirs
