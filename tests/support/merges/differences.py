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
    "nothing to commit": (
        "No row changes, and delta-spark commits all the same where it rewrote files whose rows "
        "match, or keeps count of an identity column, or refuses that where the table is "
        "append-only; lakelog commits only what changes something."
    ),
    "the default of a column": (
        "delta-spark's methods end in an internal error at the word DEFAULT, which its SQL knows; "
        "here both know it."
    ),
    "a query as a value": (
        "delta-spark's methods end in an internal error at a query within a value, which its SQL "
        "takes; here both do."
    ),
    "a condition without a type": (
        "delta-spark takes the bare word null for a condition that is never true; lakelog refuses "
        "it as in DELETE and UPDATE, and takes CAST(NULL AS BOOLEAN)."
    ),
    "a value that no row needs": (
        "Spark computes constants when it plans, so that delta-spark refuses a number that is too "
        "large for its column even where no row gets it; lakelog does where one does, if no Spark "
        "job runs."
    ),
    "a clause that is never due": (
        "delta-spark does not look at what a clause does whose condition is the word false; "
        "lakelog refuses what is wrong in it."
    ),
}
_BY_THE_PLAN: Final = ("CAST_OVERFLOW",)
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
    if ours.error and any((each.condition or "").lower() == "false" for each in case.clauses):
        return "a clause that is never due"
    if theirs.error == "INTERNAL_ERROR" and _says_default(case):
        return "the default of a column"
    if theirs.error == "INTERNAL_ERROR" and _asks(case):
        return "a query as a value"
    untyped = any((each.condition or "").lower() == "null" for each in case.clauses)
    if untyped and "DATATYPE_MISMATCH" in (ours.error or ""):
        return "a condition without a type"
    if not (ours.committed or ours.error):
        if theirs.error and any(each in theirs.error for each in _BY_THE_PLAN):
            return "a value that no row needs"
        if theirs.error == "DELTA_CANNOT_MODIFY_APPEND_ONLY" or (
            not theirs.error and not any(theirs.returned.values())
        ):
            return "nothing to commit"
    if _rewrites_less(ours, theirs):
        return "files that keep their rows"
    return None


def compared(ours: Outcome, theirs: Outcome, found: str | None) -> tuple[Outcome, Outcome]:
    """What must be equal in spite of a difference."""
    match found:
        case "another reason first":
            return replace(ours, error=""), replace(theirs, error="")
        case (
            "columns that fill themselves"
            | "a clause that is never due"
            | "a condition without a type"
            | "the default of a column"
            | "a query as a value"
        ):
            return theirs, theirs
        case "nothing to commit":
            # What the table holds is the same.
            return ours, replace(
                ours, error=None, schema=theirs.schema, rows=theirs.rows, changes=None
            )
        case "a value that no row needs":
            return ours, replace(ours, schema=theirs.schema, rows=theirs.rows)
        case "files that keep their rows":
            return replace(ours, metrics=theirs.metrics), theirs
    return ours, theirs


def _fills_itself(case: MergeCase) -> bool:
    """Whether `*` stands for a column that the source lacks and that is generated or numbered."""
    own = {f.name for f in KINDS[case.kind].extra} & {"g", "no"}
    lacks = own - {name.lower() for name in case.source_schema().names}
    return bool(lacks) and any(each.action.endswith("_all") for each in case.clauses)


def _says_default(case: MergeCase) -> bool:
    return any(value.upper() == "DEFAULT" for c in case.clauses for value in c.values.values())


def _asks(case: MergeCase) -> bool:
    return any("(SELECT" in value for c in case.clauses for value in c.values.values())


def _rewrites_less(ours: Outcome, theirs: Outcome) -> bool:
    same = {name for name in theirs.metrics if name not in _FEWER}
    if any(ours.metrics.get(name) != theirs.metrics[name] for name in same):
        return False
    saved = theirs.metrics.get(_FEWER[0], 0) - ours.metrics.get(_FEWER[0], 0)
    output = theirs.metrics.get(_FEWER[1], 0) - ours.metrics.get(_FEWER[1], 0)
    fewer = all(ours.metrics.get(n, 0) <= theirs.metrics.get(n, 0) for n in _FEWER)
    return fewer and saved == output and ours.metrics != theirs.metrics
