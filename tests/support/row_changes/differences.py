"""Where a DELETE or UPDATE of lakelog ends otherwise than delta-spark's, on purpose, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from support.merges.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

DIFFERENCES: Final = {
    "another name of one reason": (
        "Spark's analyzer has a name of its own for what is wrong, by where it comes across it."
    ),
    "only Spark evaluates it": (
        "Without Spark there is an end to what is evaluated; the error says what it is, before "
        "anything is written."
    ),
    "a null is a condition": (
        "Without Spark the bare word null is a condition that is never true; Spark misses a type."
    ),
    "files counted where no row is": (
        "delta-spark counts files as removed that it rewrites though no row of them changes, and "
        "the ones that a condition on partition columns takes; lakelog counts those that it takes "
        "out."
    ),
    "files of another layout before": (
        "The step before wrote new rows to one file here and, by tasks, to several there: how many "
        "files, vectors and other rows the next one meets follows from that."
    ),
    "a constant that no row needs": (
        "Spark computes constants when it plans, so that delta-spark refuses a number that is too "
        "large for its column even where no row is to be updated; lakelog does where one is."
    ),
}
_NAME, _SPARK = "another name of one reason", "only Spark evaluates it"
_OVERFLOW: Final = "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
Pairs: TypeAlias = dict[tuple[str | None, str | None], str]
"""Of conditions, delta-spark's and ours: why they differ."""

PAIRS: Final[Pairs] = {
    ("UNSUPPORTED_EXPR_FOR_OPERATOR", "DELTA_AGGREGATION_NOT_SUPPORTED"): _NAME,
    ("TASK_WRITE_FAILED", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"): _NAME,
    ("TASK_WRITE_FAILED", _OVERFLOW): _NAME,
    ("CAST_OVERFLOW", _OVERFLOW): _NAME,
}
"""delta-spark's condition, lakelog's -> the difference."""
PAIRS_IN_CORE: Final[Pairs] = {
    ("PARSE_SYNTAX_ERROR", "InvalidPredicateError"): _NAME,
    ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "InvalidPredicateError"): _NAME,
    ("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "InvalidPredicateError"): _NAME,
    ("CAST_OVERFLOW", "DeltaAnalysisError"): _NAME,
    (_OVERFLOW, "DeltaAnalysisError"): _NAME,
    ("TASK_WRITE_FAILED", "DeltaAnalysisError"): _NAME,
    ("INVALID_NON_DETERMINISTIC_EXPRESSIONS", "InvalidPredicateError"): _SPARK,
    ("DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION", "InvalidPredicateError"): _SPARK,
    (None, "InvalidPredicateError"): _SPARK,
}
"""More of them, where there is no Spark; a class stands for an error without a condition."""
_FILES: Final = ("numRemovedFiles",)
_LAID_OUT: Final = (
    "numRemovedFiles",
    "numCopiedRows",
    "numDeletionVectorsAdded",
    "numDeletionVectorsRemoved",
    "numDeletionVectorsUpdated",
)


def difference(
    ours: Outcome, theirs: Outcome, *, is_first: bool, in_core: bool = False
) -> str | None:
    """The name of the difference between two outcomes of a step, if they may differ so.

    Args:
        ours: what lakelog made of it.
        theirs: what delta-spark made of it.
        is_first: whether no step before has changed the table.
        in_core: whether lakelog had no Spark.
    """
    pair = theirs.error, ours.error
    if ours.error and pair in PAIRS:
        return PAIRS[pair]
    if ours.error and in_core and pair in PAIRS_IN_CORE:
        return PAIRS_IN_CORE[pair]
    if in_core and pair == ("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", None):
        return "a null is a condition"
    if theirs.error == "CAST_OVERFLOW" and not ours.committed:
        return "a constant that no row needs"
    if _without(ours, _FILES) == _without(theirs, _FILES):
        return "files counted where no row is"
    if not is_first:
        return "files of another layout before"
    return None


def compared(ours: Outcome, theirs: Outcome, found: str | None) -> tuple[Outcome, Outcome]:
    """What must be equal in spite of a difference."""
    match found:
        case "another name of one reason":
            return replace(ours, error=""), replace(theirs, error="")
        case "only Spark evaluates it":
            before = theirs if theirs.error else ours
            return replace(ours, error=""), Outcome(
                "", False, before.schema, before.rows, None, {}, {}, [], {}
            )
        case "a constant that no row needs" | "a null is a condition":
            return replace(ours, error=theirs.error), theirs
        case "files counted where no row is":
            return _without(ours, _FILES), _without(theirs, _FILES)
        case "files of another layout before":
            return _without(ours, _LAID_OUT), _without(theirs, _LAID_OUT)
    return ours, theirs


def _without(outcome: Outcome, names: Sequence[str]) -> Outcome:
    left = {k: v for k, v in outcome.metrics.items() if k not in names}
    return replace(outcome, metrics=left)
