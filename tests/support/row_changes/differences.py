"""Where a DELETE or UPDATE of lakelog ends otherwise than delta-spark's, on purpose, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.merges.outcome import Outcome

__all__ = ["DIFFERENCES", "compared", "difference"]

DIFFERENCES: Final = {
    "another reason first": (
        "Several things are wrong with the command, and the two look for them in different orders; "
        "or Spark's own analyzer has another name for what is wrong."
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
_FILES: Final = ("numRemovedFiles",)
_LAID_OUT: Final = (
    "numRemovedFiles",
    "numCopiedRows",
    "numDeletionVectorsAdded",
    "numDeletionVectorsRemoved",
    "numDeletionVectorsUpdated",
)


def difference(ours: Outcome, theirs: Outcome, *, is_first: bool) -> str | None:
    """The name of the difference between two outcomes of a step, if they may differ so."""
    if ours.error and theirs.error:
        return "another reason first"
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
        case "another reason first":
            return replace(ours, error=""), replace(theirs, error="")
        case "a constant that no row needs":
            return replace(ours, error=theirs.error), theirs
        case "files counted where no row is":
            return _without(ours, _FILES), _without(theirs, _FILES)
        case "files of another layout before":
            return _without(ours, _LAID_OUT), _without(theirs, _LAID_OUT)
    return ours, theirs


def _without(outcome: Outcome, names: Sequence[str]) -> Outcome:
    left = {k: v for k, v in outcome.metrics.items() if k not in names}
    return replace(outcome, metrics=left)
