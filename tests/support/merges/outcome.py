"""What became of a table by a MERGE, in a form that is the same for every engine."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lakelog.core import DeltaLog, table_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from support.merges.cases import MergeCase

_CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_UNKNOWN_THERE: Final = re.compile(r"Cannot find main error class '(\w+)'")
"""PySpark looks for texts of conditions among Spark's own, and complains of Delta's instead."""
_COUNTED: Final = (
    "numSourceRows",
    "numTargetRowsInserted",
    "numTargetRowsUpdated",
    "numTargetRowsMatchedUpdated",
    "numTargetRowsNotMatchedBySourceUpdated",
    "numTargetRowsDeleted",
    "numTargetRowsMatchedDeleted",
    "numTargetRowsNotMatchedBySourceDeleted",
    "numTargetRowsCopied",
    "numOutputRows",
    "numTargetFilesRemoved",
    "numTargetDeletionVectorsAdded",
    "numTargetDeletionVectorsRemoved",
    "numTargetDeletionVectorsUpdated",
    "numDeletedRows",
    "numUpdatedRows",
    "numCopiedRows",
    "numRemovedFiles",
    "numDeletionVectorsAdded",
    "numDeletionVectorsRemoved",
    "numDeletionVectorsUpdated",
)
"""The metrics that do not depend on how rows are spread over tasks, or on the clock."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a MERGE ended."""

    error: str | None
    """The condition of the error; the class of one that has none."""
    committed: bool
    schema: list[str]
    rows: list[str]
    changes: list[str] | None
    """The change feed of the commit, where the table has one."""
    returned: dict[str, int]
    """What `execute` gave back."""
    metrics: dict[str, int]
    """What the history shows."""
    names: list[str]
    """Of the metrics in the history."""
    parameters: dict[str, Any]
    """The operation's, without what the engine makes of texts."""


def lay_out(case: MergeCase, path: Path) -> None:
    """Make the table of a case."""
    from support.merges.kinds import KINDS

    KINDS[case.kind].lay_out(path, case.files)


def verdict(error: Exception) -> str:
    """An error's condition, or its class."""
    found = _UNKNOWN_THERE.search(str(error)) or _CONDITION.search(str(error))
    return found[1] if found else type(error).__name__


def outcome_of(
    run: Callable[[], Mapping[str, Any]], path: Path, before: int | None = None
) -> Outcome:
    """Run a MERGE on a table, and look at what it left.

    Args:
        run: does so, and returns its metrics.
        path: the table's.
        before: the version that the table was at; default: the one that it is at now.
    """
    if before is None:
        before = DeltaLog.for_table(str(path)).snapshot.version
    error, returned = None, {}
    try:
        returned = {k: int(v) for k, v in run().items()}
    except Exception as exc:
        error = verdict(exc)
    log = DeltaLog.for_table(str(path))
    snapshot = log.snapshot
    committed = snapshot.version > before
    found: Any = next(iter(log.history(1))) if committed else None
    feed = None
    if committed and snapshot.properties.change_data_feed:
        read = table_changes(log, snapshot.version).read_all()
        feed = _texts(read.drop_columns(["_commit_version", "_commit_timestamp"]))
    metrics = {} if found is None else {k: int(v) for k, v in found.metrics.items()}
    return Outcome(
        error=error,
        committed=committed,
        schema=[f"{f.name}: {f.data_type}" for f in snapshot.read_schema],
        rows=_texts(_unnumbered(snapshot.to_arrow())),
        changes=feed,
        returned=returned,
        metrics={k: metrics[k] for k in _COUNTED if k in metrics},
        names=sorted(metrics),
        parameters={} if found is None else _plain_parameters(found.parameters),
    )


def _unnumbered(rows: Any) -> Any:
    """Rows, but for the numbers of an identity column: they depend on the tasks."""
    return rows.drop_columns(["no"]) if "no" in rows.column_names else rows


def _texts(rows: Any) -> list[str]:
    rows = _unnumbered(rows)
    return sorted(
        json.dumps(_plain(row), ensure_ascii=False, default=str) for row in rows.to_pylist()
    )


def _plain(value: Any) -> Any:
    if isinstance(value, float) and (math.isnan(value) or value == 0):
        return "NaN" if math.isnan(value) else 0.0
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


def _plain_parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    """Of the clauses what they do, and whether under a condition."""
    found: dict[str, Any] = {}
    for name, text in given.items():
        value = json.loads(text)
        if name.endswith("Predicates"):
            value = [[each["actionType"], "predicate" in each] for each in value]
        elif name == "predicate":
            value = len(value)
        found[name] = value
    return found
