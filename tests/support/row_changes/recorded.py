"""What delta-spark made of each DELETE and UPDATE, written down as for MERGE.

A case that is new or changed has no record; this makes it:

    cd tests && python -m support.row_changes.recorded
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from support.delta_spark import DELTA, installed
from support.delta_spark_peer import DeltaSparkError, DeltaSparkPeer
from support.merges.kinds import KINDS
from support.merges.outcome import Outcome, outcome_of
from support.merges.recorded import QUICK, version_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from support.row_changes.cases import ChangeCase

__all__ = ["Recorded", "lay_out", "played"]

FILE: Final = Path(__file__).with_name("recorded.jsonl")
_BATCH: Final = 9


class Recorded:
    """The outcomes of delta-spark, by case: one of each step."""

    def __init__(self) -> None:
        lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
        records = map(json.loads, lines)
        self._of: dict[str, dict[str, Any]] = {each["case"]: each for each in records}

    def names(self) -> set[str]:
        """Of all cases that have a record."""
        return set(self._of)

    def outcomes(self, case: ChangeCase) -> list[Outcome]:
        """How delta-spark ended each step.

        Raises:
            LookupError: nobody has seen that yet.
        """
        record = self._of.get(case.name)
        if record is None or record["told"] != f"{DELTA} {case.told()}":
            raise LookupError(
                f"delta-spark {DELTA} was not seen to play {case.name!r} as it is now: "
                f"cd tests && python -m support.row_changes.recorded"
            )
        return [Outcome(**each) for each in record["outcomes"]]

    def record(self, seen: Iterable[tuple[ChangeCase, list[Outcome]]]) -> None:
        """Write these down, and forget all others."""
        lines = [
            {
                "case": case.name,
                "told": f"{DELTA} {case.told()}",
                "outcomes": [asdict(each) for each in outcomes],
            }
            for case, outcomes in seen
        ]
        lines.sort(key=lambda line: str(line["case"]))
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        FILE.write_text(text, encoding="utf-8")


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

    recorded = Recorded()
    outcomes: dict[str, list[Outcome]] = {}
    missing = []
    for case in CASES:
        try:
            outcomes[case.name] = recorded.outcomes(case)
        except LookupError:
            missing.append(case)
    with (
        tempfile.TemporaryDirectory() as folder,
        DeltaSparkPeer(installed(), QUICK, timeout=900) as delta_spark,
    ):
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            for case, found in zip(batch, played(batch, delta_spark, Path(folder)), strict=True):
                outcomes[case.name] = found
            recorded.record((c, outcomes[c.name]) for c in CASES if c.name in outcomes)
            print(f"{start + len(batch)} of {len(missing)}", flush=True)
    recorded.record((case, outcomes[case.name]) for case in CASES)
    print(f"{len(CASES)} cases, {len(missing)} of them played by delta-spark {DELTA} just now")
    return 0


if __name__ == "__main__":
    sys.exit(main())
