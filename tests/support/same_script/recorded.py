"""What each step got from delta-spark, and what that left, written down: `support.recorded_cases`.

A step that is new or changed has no record; this makes it:

    cd tests && python -m support.same_script.recorded
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from support.delta_spark import python_package
from support.merges.kinds import KINDS
from support.recorded_cases import RecordedCases, record_missing
from support.same_script import script, tables
from support.same_script.outcome import left_in, state_of
from support.same_script.steps import STEPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.delta_spark_peer import DeltaSparkPeer

_SCRIPT: Final = Path(str(script.__file__))
_ALL: Final = "".join(Path(str(each.__file__)).read_text("utf-8") for each in (script, tables))


@dataclass(frozen=True, slots=True)
class Step:
    """A step on a kind of table."""

    kind: str
    does: str
    text: str

    @property
    def name(self) -> str:
        """Of the case."""
        return f"{self.kind}: {self.does}"

    def digest(self) -> str:
        """What changes when anything changes that an engine is shown."""
        kind = KINDS.get(self.kind, KINDS["plain"])
        return hashlib.sha256(f"{_ALL} {kind} {self.text}".encode()).hexdigest()[:16]


CASES: Final = tuple(Step(kind, does, text) for (kind, does), text in STEPS.items())


class RecordedAnswers(RecordedCases["Step", dict[str, Any]]):
    """Of each step the answer, and what it left."""

    file = Path(__file__).with_name("recorded.jsonl")
    module = "support.same_script.recorded"
    field = "outcome"

    def to_json(self, found: dict[str, Any]) -> dict[str, Any]:
        return found

    def from_json(self, value: dict[str, Any]) -> dict[str, Any]:
        return value


class Tables:
    """Tables for steps, which are laid out once a kind.

    Args:
        folder: where they are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._states: dict[str, dict[str, Any]] = {}

    def folder_for(self, case: Step) -> Path:
        """A folder with the table of a step."""
        made = self._folder / "made" / case.kind
        if case.kind not in self._states:
            tables.lay_out(case.kind, made)
            self._states[case.kind] = state_of(made)
        folder = self._folder / re.sub(r"\W", "_", case.name)
        shutil.copytree(made, folder / "t")
        return folder

    def outcome(self, case: Step, folder: Path, said: dict[str, Any]) -> dict[str, Any]:
        """What a step said and left, as JSON has it."""
        left = left_in(folder, self._states[case.kind])
        return dict(json.loads(json.dumps({**said, "tables": left})))


def played(
    cases: Sequence[Step], delta_spark: DeltaSparkPeer, folder: Path
) -> list[dict[str, Any]]:
    """Let delta-spark run steps, in one call, on tables below a folder."""
    made = Tables(folder / f"{cases[0].digest()}")
    folders = [made.folder_for(each) for each in cases]
    jobs = [[str(at), case.text] for at, case in zip(folders, cases, strict=True)]
    said = delta_spark.script(_SCRIPT, "theirs", python_package(), json.dumps(jobs))
    return [made.outcome(*each) for each in zip(cases, folders, said, strict=True)]


def main() -> int:
    """Record what has no record."""
    return record_missing(RecordedAnswers(), CASES, played, batch_size=10)


if __name__ == "__main__":
    sys.exit(main())
