"""The WHEN clauses of a MERGE as data, and the rules for their order.

An expression is text or any object: its meaning is a matter of the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from lakelog.core.actions.operation import json_text
from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

When: TypeAlias = Literal["matched", "not matched", "not matched by source"]
"""The rows that a clause is about: pairs that match, rows of the source, rows of the target."""
_ACTIONS: Final[dict[When, tuple[str, ...]]] = {
    "matched": ("update", "delete"),
    "not matched": ("insert",),
    "not matched by source": ("update", "delete"),
}


@dataclass(frozen=True, slots=True)
class MergeClause:
    """`WHEN … [AND condition] THEN …`: of those for the same rows the first that holds applies."""

    when: When
    action: Literal["update", "insert", "delete"]
    condition: Any = None
    """`None` holds for every row."""
    values: Mapping[str, Any] | None = None
    """Of an update or insert, target column -> expression; `None` for all columns by name (`*`)."""

    def __post_init__(self) -> None:
        """Refuse what SQL has no clause for."""
        actions = _ACTIONS.get(self.when, ())
        if self.action not in actions:
            raise DeltaAnalysisError(
                f"WHEN {self.when.upper()} can't {self.action.upper()}; it can "
                f"{' or '.join(actions).upper() or 'do nothing'}"
            )
        if self.when == "not matched by source" and self.action == "update" and not self.values:
            raise DeltaAnalysisError(
                "WHEN NOT MATCHED BY SOURCE THEN UPDATE needs at least one column to set: there "
                "is no source row to take all columns from"
            )
        if self.values is not None and not self.values:
            raise DeltaAnalysisError(
                f"the {self.name} clause names no column; name one, or take all columns of the "
                "source"
            )

    @property
    def name(self) -> str:
        """What messages call it: `UPDATE`, `INSERT` or `DELETE`."""
        return self.action.upper()

    @property
    def takes_all(self) -> bool:
        """Whether it is `UPDATE SET *` or `INSERT *`."""
        return self.action != "delete" and self.values is None


def clauses_of(clauses: Sequence[MergeClause], when: When) -> list[MergeClause]:
    """Those that are about the same kind of rows, in their order."""
    return [each for each in clauses if each.when == when]


def check_clauses(clauses: Sequence[MergeClause]) -> None:
    """Refuse a MERGE that does nothing, or has a clause that is never reached.

    Raises:
        DeltaAnalysisError: there is no clause, or one without a condition comes before another of
            its kind.
    """
    if not clauses:
        raise DeltaAnalysisError(
            "[DELTA_MERGE_MISSING_WHEN] There must be at least one WHEN clause in a MERGE "
            "statement."
        )
    for when in _ACTIONS:
        for each in clauses_of(clauses, when)[:-1]:
            if each.condition is None:
                kind = when.upper()
                raise DeltaAnalysisError(
                    f"[DELTA_NON_LAST_{kind.replace(' ', '_')}_CLAUSE_OMIT_CONDITION] When there "
                    f"are more than one {kind} clauses in a MERGE statement, only the last {kind} "
                    f"clause can omit the condition: the clauses after this {each.name} would "
                    "never apply.",
                    clause=each.name,
                )


def takes_many_matches(clauses: Sequence[MergeClause]) -> bool:
    """Whether several source rows may match one target row.

    Delta's rule: they may where the row is deleted in any case, and where a MERGE only inserts.
    Else they may not, even if no clause applies to some of the pairs.
    """
    if all(each.when == "not matched" for each in clauses):
        return True
    matched = clauses_of(clauses, "matched")
    return len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None


def merge_parameters(
    condition: str, clauses: Sequence[MergeClause], text_of: Callable[[Any], str]
) -> dict[str, str]:
    """`operationParameters` of a MERGE.

    Args:
        condition: the SQL of the condition that rows are matched by.
        clauses: of the MERGE.
        text_of: gives the SQL of a clause's condition.
    """

    def shown(when: When) -> str:
        entries = []
        for each in clauses_of(clauses, when):
            predicate = {} if each.condition is None else {"predicate": text_of(each.condition)}
            entries.append({**predicate, "actionType": each.action})
        return json_text(entries)

    return {
        "predicate": json_text([condition]),
        "matchedPredicates": shown("matched"),
        "notMatchedPredicates": shown("not matched"),
        "notMatchedBySourcePredicates": shown("not matched by source"),
    }
