"""What delta-spark made of each DELETE and UPDATE, written down as for MERGE.

A case that is new or changed has no record; this makes it:

    cd tests && python -m support.row_changes.recorded
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.delta_spark_peer import DeltaSparkError
from support.merges.kinds import KINDS
from support.merges.outcome import Outcome, outcome_of
from support.merges.recorded import version_of
from support.recorded_cases import RecordedCases, record_missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.delta_spark_peer import DeltaSparkPeer
    from support.row_changes.cases import ChangeCase


class Recorded(RecordedCases["ChangeCase", list[Outcome]]):
    """The outcomes of each case: one of each step."""

    file = Path(__file__).with_name("recorded.jsonl")
    module = "support.row_changes.recorded"
    field = "outcomes"

    def to_json(self, found: list[Outcome]) -> list[dict[str, Any]]:
        return [asdict(each) for each in found]

    def from_json(self, value: list[dict[str, Any]]) -> list[Outcome]:
        return [Outcome(**each) for each in value]


def lay_out(case: ChangeCase, path: Path) -> None:
    """Make the table of a case."""
    KINDS[case.kind].lay_out(path, case.files)


def played(
    cases: Sequence[ChangeCase], delta_spark: DeltaSparkPeer, folder: Path
) -> list[list[Outcome]]:
    """Let delta-spark play cases on tables below a folder, each step of all in one call."""
    found: list[list[Outcome]] = [[] for _ in cases]
    for case in cases:
        lay_out(case, folder / case.name)
    for step in range(max(len(each.steps) for each in cases)):
        jobs = [
            {"path": str(folder / case.name), **asdict(case.steps[step])}
            for case in cases
            if step < len(case.steps)
        ]
        at = [i for i, case in enumerate(cases) if step < len(case.steps)]
        before = [version_of(folder / cases[i].name) for i in at]
        answers = delta_spark.row_changes(jobs)
        for i, version, answer in zip(at, before, answers, strict=True):
            path = folder / cases[i].name
            found[i].append(outcome_of(partial(_said, answer), path, version))
    return found


def _said(answer: dict[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        raise DeltaSparkError(answer["error"]["kind"], answer["error"]["message"])
    return {}


def main() -> int:
    """Record what has no record."""
    from support.row_changes.cases import CASES

    return record_missing(Recorded(), CASES, played)


if __name__ == "__main__":
    sys.exit(main())
