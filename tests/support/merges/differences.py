"""Where a MERGE of lakelog ends otherwise than delta-spark's, on purpose, and why.

Each difference names the conditions that it excuses; rows, schema and whatever it does not name
must be equal all the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from support.merges.outcome import Outcome

if TYPE_CHECKING:
    from support.merges.cases import MergeCase

DIFFERENCES: Final = {
    "another reason first": (
        "Two things are wrong with the MERGE, and the two look for them in different orders."
    ),
    "another name of one reason": (
        "Spark's analyzer has a name of its own for what is wrong, by where it comes across it; at "
        "a query in a condition delta-spark ends in an internal error."
    ),
    "only Spark evaluates it": (
        "Without Spark there is an end to what is evaluated; the error says what it is, before "
        "anything is written."
    ),
    "a constant without a value": (
        "Without Spark, a constant that is no value of its column's type is refused before rows "
        "are read, also where no row gets it."
    ),
    "files that keep their rows": (
        "delta-spark rewrites files in which rows match and no clause applies to any; lakelog "
        "leaves them as they are, so that fewer rows are copied and fewer files removed."
    ),
    "a source that is counted twice": (
        "delta-spark reads a source that is not kept once for each of its two joins, and counts "
        "its rows each time."
    ),
    "nothing to commit": (
        "No row changes, and delta-spark commits all the same where it rewrote files whose rows "
        "match, or keeps count of an identity column, or refuses that where the table is "
        "append-only; lakelog commits only what changes something."
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
_ORDER, _NAME, _SPARK = (
    "another reason first",
    "another name of one reason",
    "only Spark evaluates it",
)
_UNKNOWN: Final = "DELTA_MERGE_UNRESOLVED_EXPRESSION"
_SEVERAL: Final = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
_SET_IDENTITY: Final = "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"
_INSERT_IDENTITY: Final = "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"
_TWICE: Final = "DELTA_DUPLICATE_COLUMNS_ON_INSERT"
CAST_OVERFLOW: Final = "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
_NO_CAST: Final = "DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION"
_AGGREGATE: Final = "DELTA_AGGREGATION_NOT_SUPPORTED"

Pairs: TypeAlias = dict[tuple[str | None, str | None], str]
"""Of conditions, delta-spark's and ours: why they differ."""

PAIRS: Final[Pairs] = {
    ("AMBIGUOUS_REFERENCE", _SET_IDENTITY): _ORDER,
    (_UNKNOWN, "DELTA_CONFLICT_SET_COLUMN"): _ORDER,
    (_UNKNOWN, _AGGREGATE): _ORDER,
    ("DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED", _SET_IDENTITY): _ORDER,
    ("PARSE_SYNTAX_ERROR", _SET_IDENTITY): _ORDER,
    (_SET_IDENTITY, _TWICE): _ORDER,
    (_SET_IDENTITY, _INSERT_IDENTITY): _ORDER,
    (_INSERT_IDENTITY, _TWICE): _ORDER,
    (_AGGREGATE, _TWICE): _ORDER,
    ("TASK_WRITE_FAILED", _TWICE): _ORDER,
    (_SEVERAL, "CAST_INVALID_INPUT"): _ORDER,
    (_SEVERAL, CAST_OVERFLOW): _ORDER,
    (_SEVERAL, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"): _ORDER,
    ("INTERNAL_ERROR", "DELTA_UNSUPPORTED_SUBQUERY"): _NAME,
    ("FIELD_NOT_FOUND", _UNKNOWN): _NAME,
    (_NO_CAST, "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"): _NAME,
    ("DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"): _NAME,
    ("UNSUPPORTED_EXPR_FOR_OPERATOR", _AGGREGATE): _NAME,
    ("TASK_WRITE_FAILED", CAST_OVERFLOW): _NAME,
}
"""delta-spark's condition, lakelog's -> the difference."""
PAIRS_IN_CORE: Final[Pairs] = {
    ("PARSE_SYNTAX_ERROR", "InvalidPredicateError"): _NAME,
    (CAST_OVERFLOW, "DeltaAnalysisError"): _NAME,
    ("TASK_WRITE_FAILED", "DeltaAnalysisError"): _NAME,
    (None, "DeltaAnalysisError"): "a constant without a value",
    **dict.fromkeys(
        (
            (theirs, "InvalidPredicateError")
            for theirs in (
                _UNKNOWN,
                _SEVERAL,
                "DELTA_CANNOT_MODIFY_APPEND_ONLY",
                "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
                "FIELD_NOT_FOUND",
                None,
            )
        ),
        _SPARK,
    ),
}
"""More of them, where there is no Spark; a class stands for an error without a condition."""
_BY_THE_PLAN: Final = ("CAST_OVERFLOW", CAST_OVERFLOW)
_FEWER: Final = (
    "numTargetRowsCopied",
    "numOutputRows",
    "numTargetFilesRemoved",
    "numTargetDeletionVectorsAdded",
    "numTargetDeletionVectorsRemoved",
    "numTargetDeletionVectorsUpdated",
)


def difference(
    case: MergeCase, ours: Outcome, theirs: Outcome, *, in_core: bool = False
) -> str | None:
    """The name of the difference between two outcomes of a case, if they may differ so.

    Args:
        case: the MERGE.
        ours: what lakelog made of it.
        theirs: what delta-spark made of it.
        in_core: whether lakelog had no Spark.
    """
    pair = theirs.error, ours.error
    if ours.error and pair in PAIRS:
        return PAIRS[pair]
    if ours.error and in_core and pair in PAIRS_IN_CORE:
        return PAIRS_IN_CORE[pair]
    if pair == (None, _TWICE) and any((c.condition or "").lower() == "false" for c in case.clauses):
        return "a clause that is never due"
    if not (ours.committed or ours.error):
        if theirs.error in _BY_THE_PLAN:
            return "a value that no row needs"
        if theirs.error == "DELTA_CANNOT_MODIFY_APPEND_ONLY" or (
            not theirs.error and not any(theirs.returned.values())
        ):
            return "nothing to commit"
    if _without_source_rows(ours) == _without_source_rows(theirs):
        twice = 2 * ours.metrics["numSourceRows"] == theirs.metrics["numSourceRows"]
        return "a source that is counted twice" if twice else None
    if _rewrites_less(ours, theirs):
        return "files that keep their rows"
    return None


def compared(ours: Outcome, theirs: Outcome, found: str | None) -> tuple[Outcome, Outcome]:
    """What must be equal in spite of a difference."""
    match found:
        case "another reason first" | "another name of one reason":
            return replace(ours, error=""), replace(theirs, error="")
        case (
            "only Spark evaluates it" | "a constant without a value" | "a clause that is never due"
        ):
            before = theirs if theirs.error else ours
            return replace(ours, error=""), Outcome(
                "", False, before.schema, before.rows, None, {}, {}, [], {}
            )
        case "nothing to commit":
            # What the table holds is the same.
            return ours, replace(
                ours, error=None, schema=theirs.schema, rows=theirs.rows, changes=None
            )
        case "a value that no row needs":
            return ours, replace(ours, schema=theirs.schema, rows=theirs.rows)
        case "a source that is counted twice":
            return _without_source_rows(ours), _without_source_rows(theirs)
        case "files that keep their rows":
            return replace(ours, metrics=theirs.metrics), theirs
    return ours, theirs


def _without_source_rows(outcome: Outcome) -> Outcome:
    left = {k: v for k, v in outcome.metrics.items() if k != "numSourceRows"}
    return replace(outcome, metrics=left)


def _rewrites_less(ours: Outcome, theirs: Outcome) -> bool:
    if ours.error or theirs.error:
        return False
    same = {name for name in theirs.metrics if name not in _FEWER}
    if any(ours.metrics.get(name) != theirs.metrics[name] for name in same):
        return False
    saved = theirs.metrics.get(_FEWER[0], 0) - ours.metrics.get(_FEWER[0], 0)
    output = theirs.metrics.get(_FEWER[1], 0) - ours.metrics.get(_FEWER[1], 0)
    fewer = all(ours.metrics.get(n, 0) <= theirs.metrics.get(n, 0) for n in _FEWER)
    return fewer and saved == output and ours.metrics != theirs.metrics
