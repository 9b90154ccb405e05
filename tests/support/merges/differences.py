"""Where a MERGE of lakelog ends otherwise than delta-spark's, on purpose, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from support.merges.kinds import KINDS

if TYPE_CHECKING:
    from support.merges.cases import MergeCase
    from support.merges.outcome import Outcome

__all__ = ["DIFFERENCES", "compared", "difference"]

DIFFERENCES: Final = {
    "another reason first": (
        "Several things are wrong with the MERGE, and the two look for them in different orders; "
        "or Spark's own analyzer has another name for what is wrong."
    ),
    "columns that fill themselves": (
        "`*` from a source without a generated or identity column: delta-spark refuses it, lakelog "
        "fills the column as in any other write."
    ),
    "files that keep their rows": (
        "delta-spark rewrites files in which rows match and no clause applies to any; lakelog "
        "leaves them as they are, so that fewer rows are copied and fewer files removed."
    ),
}
_FEWER: Final = (
    "numTargetRowsCopied",
    "numOutputRows",
    "numTargetFilesRemoved",
    "numTargetDeletionVectorsAdded",
    "numTargetDeletionVectorsRemoved",
    "numTargetDeletionVectorsUpdated",
)


def difference(case: MergeCase, ours: Outcome, theirs: Outcome) -> str | None:
    """The name of the difference between two outcomes of a case, if they may differ so."""
    if ours.error and theirs.error:
        return "another reason first"
    if theirs.error and _fills_itself(case):
        return "columns that fill themselves"
    if _rewrites_less(ours, theirs):
        return "files that keep their rows"
    return None


def compared(ours: Outcome, theirs: Outcome, found: str | None) -> tuple[Outcome, Outcome]:
    """What must be equal in spite of a difference."""
    match found:
        case "another reason first":
            return replace(ours, error=""), replace(theirs, error="")
        case "columns that fill themselves":
            return theirs, theirs
        case "files that keep their rows":
            return replace(ours, metrics=theirs.metrics), theirs
    return ours, theirs


def _fills_itself(case: MergeCase) -> bool:
    """Whether `*` stands for a column that the source lacks and that is generated or numbered."""
    own = {f.name for f in KINDS[case.kind].extra} & {"g", "no"}
    lacks = own - {name.lower() for name in case.source_schema().names}
    return bool(lacks) and any(each.action.endswith("_all") for each in case.clauses)


def _rewrites_less(ours: Outcome, theirs: Outcome) -> bool:
    same = {name for name in theirs.metrics if name not in _FEWER}
    if any(ours.metrics.get(name) != theirs.metrics[name] for name in same):
        return False
    saved = theirs.metrics.get(_FEWER[0], 0) - ours.metrics.get(_FEWER[0], 0)
    output = theirs.metrics.get(_FEWER[1], 0) - ours.metrics.get(_FEWER[1], 0)
    fewer = all(ours.metrics.get(n, 0) <= theirs.metrics.get(n, 0) for n in _FEWER)
    return fewer and saved == output and ours.metrics != theirs.metrics
