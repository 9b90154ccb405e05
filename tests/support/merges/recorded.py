"""What delta-spark made of each MERGE, written down: see `support.recorded_cases`.

A case that is new or changed has no record; this makes it:

    cd tests && python -m support.merges.recorded
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from support.delta_spark_peer import DeltaSparkError
from support.merges.kinds import arrow
from support.merges.outcome import Outcome, lay_out, outcome_of
from support.recorded_cases import RecordedCases, record_missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.delta_spark_peer import DeltaSparkPeer
    from support.merges.cases import MergeCase


class Recorded(RecordedCases["MergeCase", Outcome]):
    """The outcome of each MERGE."""

    file = Path(__file__).with_name("recorded.jsonl")
    module = "support.merges.recorded"
    field = "outcome"

    def to_json(self, found: Outcome) -> dict[str, Any]:
        return asdict(found)

    def from_json(self, value: dict[str, Any]) -> Outcome:
        return Outcome(**value)


def played(cases: Sequence[MergeCase], delta_spark: DeltaSparkPeer, folder: Path) -> list[Outcome]:
    """Let delta-spark play cases, in one call, on tables below a folder."""
    jobs = []
    for case in cases:
        path, source = folder / case.name, folder / f"{case.name}.parquet"
        lay_out(case, path)
        pq.write_table(arrow(case.source, case.source_schema()), source)
        jobs.append(
            {
                "path": str(path),
                "source": str(source),
                "condition": case.condition,
                "clauses": [asdict(each) for each in case.clauses],
                "evolution": case.evolution,
            }
        )
    before = [version_of(folder / case.name) for case in cases]
    answers = delta_spark.merges(jobs)
    return [
        outcome_of(partial(_said, answer), folder / case.name, version)
        for case, version, answer in zip(cases, before, answers, strict=True)
    ]


def version_of(path: Path) -> int:
    """The version that a table is at."""
    from lakelog.core import DeltaLog

    return DeltaLog.for_table(str(path)).snapshot.version


def _said(answer: dict[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        raise DeltaSparkError(answer["error"]["kind"], answer["error"]["message"])
    return dict(answer["metrics"][0])


def main() -> int:
    """Record what has no record."""
    from support.merges.cases import CASES

    return record_missing(Recorded(), CASES, played)


if __name__ == "__main__":
    sys.exit(main())
