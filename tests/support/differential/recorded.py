"""What delta-spark made of each scenario, written down.

It depends on the scenario and on delta-spark's version alone, and a JVM takes a second for each. So
`make test` compares lakelog with what is written down, and delta-spark itself plays a sample of
them, drawn anew each run. A scenario that is new or changed has no record; this makes it:

    cd tests && python -m support.differential.recorded
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from support.delta_spark import DELTA, installed
from support.delta_spark_peer import DeltaSparkPeer
from support.differential.outcome import Outcome, outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from support.differential.scenario import Scenario

FILE: Final = Path(__file__).with_name("recorded.jsonl")


class NotRecordedError(LookupError):
    """The scenario is new, or not the one that was recorded."""


class Recorded:
    """The outcomes of delta-spark, by scenario."""

    def __init__(self) -> None:
        lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
        records = map(json.loads, lines)
        self._of: dict[str, dict[str, Any]] = {each["scenario"]: each for each in records}

    def names(self) -> set[str]:
        """Of all scenarios that have a record."""
        return set(self._of)

    def outcome(self, scenario: Scenario) -> Outcome:
        """How delta-spark ended the scenario.

        Raises:
            NotRecordedError: nobody has seen that yet.
        """
        record = self._of.get(scenario.name)
        if record is None or record["told"] != digest(scenario):
            raise NotRecordedError(
                f"delta-spark {DELTA} was not seen to play {scenario.name!r} as it is now: "
                f"cd tests && python -m support.differential.recorded"
            )
        return Outcome(**{**record["outcome"], "lines": tuple(record["outcome"]["lines"])})

    def record(self, played: Iterable[tuple[Scenario, Outcome]]) -> None:
        """Write these down, and forget all others."""
        lines = [
            {"scenario": each.name, "told": digest(each), "outcome": asdict(outcome)}
            for each, outcome in played
        ]
        lines.sort(key=lambda line: str(line["scenario"]))
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        FILE.write_text(text, encoding="utf-8")


def digest(scenario: Scenario) -> str:
    """What changes when anything changes that delta-spark is shown, or delta-spark itself."""
    table = None if scenario.table is None else scenario.table.lines
    shown = json.dumps([DELTA, table, scenario.steps], sort_keys=True)
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


def played(scenario: Scenario, delta_spark: DeltaSparkPeer, path: Path) -> Outcome:
    """Let delta-spark play it, on a table at a path that is not there yet."""
    scenario.lay_out(path)
    return outcome_of(lambda: delta_spark.transaction(path, scenario.steps), path)


def main() -> int:
    """Record what has no record."""
    from support.differential.scenarios import SCENARIOS

    recorded, found, seen = Recorded(), [], 0
    with tempfile.TemporaryDirectory() as folder, DeltaSparkPeer(installed()) as delta_spark:
        for number, scenario in enumerate(SCENARIOS):
            try:
                outcome = recorded.outcome(scenario)
            except NotRecordedError:
                outcome = played(scenario, delta_spark, Path(folder) / str(number))
                seen += 1
            found.append((scenario, outcome))
    recorded.record(found)
    print(f"{len(found)} scenarios, {seen} of them played by delta-spark {DELTA} just now")
    return 0


if __name__ == "__main__":
    sys.exit(main())
