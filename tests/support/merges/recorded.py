"""What delta-spark made of each MERGE, written down.

It depends on the case and on delta-spark's version alone, and a JVM takes a second for each. So
lakelog is compared with what is written down, and delta-spark plays a sample again in each run. A
case that is new or changed has no record; this makes it:

    cd tests && python -m support.merges.recorded
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq

from support.delta_spark import DELTA, installed
from support.delta_spark_peer import DeltaSparkError, DeltaSparkPeer
from support.merges.kinds import arrow
from support.merges.outcome import Outcome, lay_out, outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from support.merges.cases import MergeCase

__all__ = ["QUICK", "Recorded", "played", "version_of"]

FILE: Final = Path(__file__).with_name("recorded.jsonl")
_BATCH: Final = 9
QUICK: Final = {
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.merge.materializeSource": "none",
    "spark.databricks.delta.writeChecksum.enabled": "false",
}
"""What changes how long a MERGE of a few rows takes, and nothing that is compared."""


class Recorded:
    """The outcomes of delta-spark, by case."""

    def __init__(self) -> None:
        lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
        records = map(json.loads, lines)
        self._of: dict[str, dict[str, Any]] = {each["case"]: each for each in records}

    def names(self) -> set[str]:
        """Of all cases that have a record."""
        return set(self._of)

    def outcome(self, case: MergeCase) -> Outcome:
        """How delta-spark ended the case.

        Raises:
            LookupError: nobody has seen that yet.
        """
        record = self._of.get(case.name)
        if record is None or record["told"] != f"{DELTA} {case.told()}":
            raise LookupError(
                f"delta-spark {DELTA} was not seen to play {case.name!r} as it is now: "
                f"cd tests && python -m support.merges.recorded"
            )
        return Outcome(**record["outcome"])

    def record(self, seen: Iterable[tuple[MergeCase, Outcome]]) -> None:
        """Write these down, and forget all others."""
        lines = [
            {"case": case.name, "told": f"{DELTA} {case.told()}", "outcome": asdict(outcome)}
            for case, outcome in seen
        ]
        lines.sort(key=lambda line: str(line["case"]))
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        FILE.write_text(text, encoding="utf-8")


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

    recorded = Recorded()
    outcomes: dict[str, Outcome] = {}
    missing = []
    for case in CASES:
        try:
            outcomes[case.name] = recorded.outcome(case)
        except LookupError:
            missing.append(case)
    with (
        tempfile.TemporaryDirectory() as folder,
        DeltaSparkPeer(installed(), QUICK, timeout=900) as delta_spark,
    ):
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            for case, outcome in zip(batch, played(batch, delta_spark, Path(folder)), strict=True):
                outcomes[case.name] = outcome
            recorded.record((c, outcomes[c.name]) for c in CASES if c.name in outcomes)
            print(f"{start + len(batch)} of {len(missing)}", flush=True)
    recorded.record((case, outcomes[case.name]) for case in CASES)
    print(f"{len(CASES)} cases, {len(missing)} of them played by delta-spark {DELTA} just now")
    return 0


if __name__ == "__main__":
    sys.exit(main())
