"""MERGE cases played by lakelog without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.core import merge
from support.merges.kinds import arrow

if TYPE_CHECKING:
    from pathlib import Path

    from support.merges.cases import MergeCase


def run_in_core(case: MergeCase, path: Path) -> dict[str, Any]:
    """Run the MERGE of a case on the table at a path; returns what Spark's would return."""
    rows = arrow(case.source, case.source_schema())
    builder = merge(
        str(path),
        rows,
        case.condition,
        target_alias="t",
        source_alias="s",
        with_schema_evolution=case.evolution,
    )
    for each in case.clauses:
        add = getattr(builder, f"when_{_WHENS[each.kind]}_{each.action}")
        given = (each.values,) if each.action in ("update", "insert") else ()
        builder = add(*given, where=each.condition)
    counts = builder.execute().metrics
    found = [counts.get(f"numTargetRows{each}", 0) for each in ("Updated", "Deleted", "Inserted")]
    names = ("affected", "updated", "deleted", "inserted")
    return {f"num_{n}_rows": c for n, c in zip(names, (sum(found), *found), strict=True)}


_WHENS = {"matched": "matched", "not_matched": "not_matched", "by_source": "not_matched_by_source"}
