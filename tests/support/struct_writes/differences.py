"""Where a write of structs ends otherwise in lakelog than in delta-spark, on purpose, and why."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.struct_writes.cases import StructWrite


@dataclass(frozen=True, slots=True)
class Difference:
    """One, with its reason."""

    reason: str
    on: tuple[str, ...]
    """Patterns of the names of cases."""
    theirs: str | None = None
    """The condition of delta-spark's error; `None` for whatever it does."""
    ours: Any = None
    """The condition of lakelog's, or the schema and the rows that it leaves."""
    like: str | None = None
    """The way of writing by which delta-spark ends as lakelog does by this one."""

    def meets(self, case: StructWrite, theirs: Any) -> bool:
        """Whether a case that ends so in delta-spark ends in this way in lakelog."""
        named = any(fnmatchcase(case.name, each) for each in self.on)
        return named and self.theirs in (None, theirs)


DIFFERENCES: Final = (
    Difference(
        "Spark's analyzer comes across it in arrays; lakelog says which struct lacks fields.",
        ("insert* / less*", "overwrite / * / less*"),
        theirs="DATATYPE_MISMATCH",
        ours="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
    ),
    Difference(
        "So it does, and lakelog gives the names by position before it says what is new.",
        ("* / deep / more, no names / *", "insert unnamed / array / more / as it is"),
        theirs="DATATYPE_MISMATCH",
        ours="DELTA_METADATA_MISMATCH",
    ),
    Difference(
        "An overflow has one name in lakelog, whatever writes it.",
        ("*",),
        theirs="CAST_OVERFLOW_IN_TABLE_INSERT",
        ours="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
    ),
    Difference(
        "lakelog shows all that differs in one table, and that is the condition's name.",
        ("save / *",),
        theirs="DELTA_FAILED_TO_MERGE_FIELDS",
        ours="DELTA_METADATA_MISMATCH",
    ),
    Difference(
        "Spark's writer hides what its task met; lakelog finds the value.",
        ("merge * / no number / *",),
        theirs="TASK_WRITE_FAILED",
        ours="CAST_INVALID_INPUT",
    ),
    Difference(
        "lakelog adds what is new there, as it does where the columns have names.",
        ("insert unnamed / array / more / asked",),
        theirs="DATATYPE_MISMATCH",
        like="insert",
    ),
    Difference(
        "Positions contradict names; that a value fails is luck.",
        ("insert columns / * / order / *", "insert unnamed / * / order / *"),
        theirs="CAST_INVALID_INPUT",
        ours="INCOMPATIBLE_DATA_FOR_TABLE",
    ),
    Difference(
        "Without that luck delta-spark puts values into fields of other names.",
        (
            "insert* / alike / swapped, wider / *",
            "overwrite / alike / swapped, wider / *",
            "insert columns / alike / swapped / *",
            "insert unnamed / alike / swapped / *",
        ),
        ours="INCOMPATIBLE_DATA_FOR_TABLE",
    ),
    Difference(
        "delta-spark passes over the options of insertInto.",
        (
            "insertInto / * / more* / asked",
            "insertInto / * / null / asked",
            "insertInto / widened / * / asked",
        ),
        like="insert",
    ),
    Difference(
        "delta-spark writes nulls where the table says that there are none; readers trust it.",
        ("insert* / is null / *", "save* / is null / *", "merge * / is null / *"),
        ours="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
    ),
    Difference(
        "Spark's analyzer refuses elements that may be null; lakelog looks at what they are.",
        ("update / list / * null / *",),
        theirs="DATATYPE_MISMATCH",
        ours=["struct<id:int,s:array<int>>", [{"id": 1, "s": [1]}]],
    ),
    Difference(
        "So it does in a MERGE.",
        ("merge columns / list / may be null / *",),
        theirs="DATATYPE_MISMATCH",
        ours=["struct<id:int,s:array<int>>", [{"id": 1, "s": [1]}, {"id": 2, "s": [1]}]],
    ),
)


def expected(
    case: StructWrite, theirs: Any, found: Callable[[StructWrite], Any]
) -> tuple[Any, Difference | None]:
    """What lakelog makes of a case, and the difference that this is.

    Args:
        case: the case.
        theirs: what delta-spark makes of it.
        found: gives that of another case.
    """
    for each in DIFFERENCES:
        if each.meets(case, theirs):
            return (each.ours or found(case.by(each.like or case.way))), each
    return theirs, None
