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


@dataclass(frozen=True, slots=True)
class Difference:
    """One, with its reason."""

    reason: str
    what: tuple[str, ...]
    """Patterns of what differs, as `differing` names it."""
    on: tuple[str, ...]
    """The names of the steps."""
    always: bool = True
    """Whether it must be met on each of them; one that depends on how Spark spreads rows need not
    be."""

    def meets(self, found: Iterable[str]) -> bool:
        """Whether something is different in this way."""
        return any(fnmatchcase(at, each) for at in found for each in self.what)


def _on(kinds: str, *steps: str) -> tuple[str, ...]:
    return tuple(f"{kind}: {step}" for step in steps for kind in kinds.split())


_EMPTY: Final = ("t", "tables")
"""A table to which nothing was done by one of the two."""

DIFFERENCES: Final[dict[str, Difference]] = {
    "another name of one reason": Difference(
        "Spark's analyzer, Python or Java comes across it first there, and has a name of its own "
        "for it; lakelog's says what is wrong with the table or the call.",
        (
            "error: ALL_PARTITION_COLUMNS_NOT_ALLOWED, DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
            "error: DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION, DELTA_U*",
            "error: DELTA_MISSING_DELTA_TABLE, DELTA_TABLE_ONLY_OPERATION",
            "error: DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP, "
            "DELTA_ALTER_TABLE_CHANGE_COL_NOT_SUPPORTED",
            "error: FIELD_ALREADY_EXISTS, DELTA_DUPLICATE_COLUMNS_FOUND",
            "error: Py4JJavaError, DELTA_EMPTY_DIRECTORY",
            "error: COLUMN_ALREADY_EXISTS, AMBIGUOUS_REFERENCE",
            "error: UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED, "
            "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
        ),
        (
            *_on("partitioned", "another partition"),
            *_on("nested", "update a struct", "update an element"),
            *_on("plain", "forName of a view", "a wider type"),
            *_on("plain", "ADD COLUMNS that is there", "convertToDelta of nothing"),
            *_on("plain", "a column twice", "clustered by what is not there"),
        ),
    ),
    "an error without a condition": Difference(
        "Where delta-spark raises a class of Java's without a condition, or Spark's condition for "
        "all that a catalog refuses, lakelog raises a class of its own.",
        (
            "error: IllegalArgumentException, DeltaAnalysisError",
            "error: IllegalArgumentException, DataFileMissingError",
            "error: UNSUPPORTED_TABLE_CHANGE, DeltaAnalysisError",
        ),
        _on(
            "plain",
            "upgradeTableProtocol of none",
            "vacuum(0) where that is allowed",
            "a property that is no number",
        ),
    ),
    "what lakelog takes": Difference(
        "delta-spark refuses `*` in a MERGE where a column generates itself, deep clones, a "
        "replacement by path with other columns, and to read a table that has none.",
        (
            "error: DELTA_MERGE_UNRESOLVED_EXPRESSION, None",
            "error: DELTA_UNSUPPORTED_DEEP_CLONE, None",
            "error: DELTA_CREATE_TABLE_SCHEME_MISMATCH, None",
            "error: DELTA_READ_TABLE_WITHOUT_COLUMNS, None",
            "tables",
        ),
        (
            *_on("generated", "whenMatchedUpdateAll", "whenNotMatchedInsertAll"),
            *_on("plain", "clone whole", "create without a column"),
            *_on(
                "plain vectors mapped clustered partitioned tracked",
                "createOrReplace",
            ),
            *_on("plain", "createOrReplace with other columns"),
        ),
    ),
    "nothing to commit": Difference(
        "The table has what is asked for, and delta-spark commits that once more; lakelog commits "
        "only what changes something.",
        ("t", "tables", "t/commits/1", "t/version"),
        (
            *_on("plain mapped vectors", "upgradeTableProtocol"),
            *_on("plain", "upgradeTableProtocol down", "addFeatureSupport again"),
            *_on("plain", "UNSET TBLPROPERTIES of none"),
        ),
    ),
    "names before they are needed": Difference(
        "delta-spark names the columns for moved row ids as soon as row tracking is supported; "
        "lakelog does when it is enabled, which is when rows have ids to keep.",
        ("t/properties", "t/row ids"),
        _on("plain", "addFeatureSupport that needs another"),
    ),
    "a drop that is no blind append": Difference(
        "lakelog commits DROP FEATURE as it does what can't be rebased, which never counts as an "
        "append that has read nothing.",
        ("t/commits/?/isBlindAppend",),
        (
            *_on("vectors tracked", "dropFeatureSupport"),
            *_on("plain", "dropFeatureSupport", "dropFeatureSupport of a reader"),
        ),
    ),
    "row ids that are not shown": Difference(
        "Row ids are kept, and not shown by `_metadata`, which is Spark's.",
        ("error: None, FIELD_NOT_FOUND",),
        _on("tracked", "row ids"),
    ),
    "a table that was opened before": Difference(
        "`toDF` of a table opened before its columns changed shows the old ones there, or fails; "
        "every call of lakelog's sees the newest version.",
        ("error: DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS, None",),
        _on("mapped", "RENAME COLUMN"),
    ),
    "a call that asks for nothing": Difference(
        "Z-order by no column rewrites the files, and a negative retention counts as none given; "
        "lakelog refuses both.",
        (
            "error: None, DeltaAnalysisError",
            "error: None, DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
            *_EMPTY,
        ),
        _on("plain", "executeZOrderBy nothing", "vacuum(-1)"),
    ),
    "an answer without columns": Difference(
        "Where RESTORE has nothing to do, its answer has no rows; delta-spark's has no columns "
        "either.",
        ("answer/columns",),
        _on("plain", "restoreToVersion of this one"),
    ),
    "files that keep their rows": Difference(
        "delta-spark rewrites files in which a clause applies to no row, and counts as removed "
        "those that only get another deletion vector; lakelog leaves the first and counts what it "
        "takes out.",
        (
            "t/files",
            "t/commits/0/metrics/numOutputRows",
            "t/commits/0/metrics/numRemovedFiles",
            "t/commits/0/metrics/numTargetFilesRemoved",
            "t/commits/0/metrics/numTargetRowsCopied",
        ),
        (
            *_on("vectors", "update"),
            *_on("plain", "whenNotMatchedBySourceUpdate", "whenNotMatchedBySourceDelete"),
        ),
    ),
    "files of no version": Difference(
        "A DELETE of every row of a file writes an empty one there, which the log does not list "
        "and VACUUM finds.",
        ("t/commits/1/metrics/numFilesToDelete", "t/commits/2/metrics/numDeletedFiles"),
        _on("plain", "vacuum(0) where that is allowed"),
    ),
    "files by tasks": Difference(
        "How many files new rows go to depends on the tasks that write them, and on whether a "
        "Spark job is needed at all.",
        ("t/files", "t/commits/0/metrics/numAddedFiles", "t/commits/0/metrics/numTargetFilesAdded"),
        _on(
            "plain",
            "update by Columns",
            "update by set",
            "whenMatchedUpdate if",
            "merge by a Column",
        ),
        always=False,
    ),
}


def listed_for(case: str) -> list[str]:
    """The names of the differences on a step."""
    return [name for name, each in DIFFERENCES.items() if case in each.on]


def unlisted(case: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """What is different without being listed."""
    listed = [DIFFERENCES[name] for name in listed_for(case)]
    return {at: v for at, v in found.items() if not any(each.meets([at]) for each in listed)}


def differing(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What is different in two outcomes: a path -> lakelog's and delta-spark's.

    Of errors the path has both conditions, `error: DELTA_THEIRS, DELTA_OURS`, or what lakelog's
    can't be caught as, `not a: ParseException`. Where delta-spark's has no condition, lakelog's may
    have one.
    """
    found: dict[str, tuple[Any, Any]] = {}
    conditions = theirs.get("error"), ours.get("error")
    if conditions != (None, None):
        kinds = ours.get("is", [])
        if conditions[0] != conditions[1] and conditions[0] not in kinds:
            found[f"error: {conditions[0]}, {conditions[1]}"] = (conditions[1], conditions[0])
        elif lacking := sorted({*theirs["is"]} - {*kinds}):
            found[f"not a: {', '.join(lacking)}"] = (kinds, theirs["is"])
        elif conditions[0] == conditions[1] and theirs.get("state", ours.get("state")) != ours.get(
            "state"
        ):
            found["state"] = ours.get("state"), theirs.get("state")
    else:
        _differing("answer", ours["answer"], theirs["answer"], found)
    _differing("", ours["tables"], theirs["tables"], found)
    return found


def _differing(at: str, ours: Any, theirs: Any, found: dict[str, tuple[Any, Any]]) -> None:
    if ours == theirs:
        return
    inner = _parts(ours), _parts(theirs)
    if not all(inner):
        found[at or "tables"] = ours, theirs
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
