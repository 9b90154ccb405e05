"""What delta-spark made of each case, written down: `support.recorded_cases`.

A case that is new or changed has no record; this makes it:

    cd tests && python -m support.char_columns.recorded
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.char_columns import script
from support.char_columns.cases import CASES, CharCase
from support.recorded_cases import RecordedCases, record_missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.delta_spark_peer import DeltaSparkPeer


class RecordedChars(RecordedCases["CharCase", Any]):
    """Of each case the rows that its last statement gave, or the condition of its error."""

    file = Path(__file__).with_name("recorded.jsonl")
    module = "support.char_columns.recorded"
    field = "outcome"

    def to_json(self, found: Any) -> Any:
        return found

    def from_json(self, value: Any) -> Any:
        return value


def jobs(cases: Sequence[CharCase]) -> str:
    """As `script.played` takes them."""
    return json.dumps(
        [{"number": at, "statements": each.statements} for at, each in enumerate(cases)]
    )


def played(cases: Sequence[CharCase], delta_spark: DeltaSparkPeer, folder: Path) -> list[Any]:
    """Let delta-spark play cases, in one call, on tables below a folder."""
    at = tempfile.mkdtemp(dir=folder)
    return list(delta_spark.script(str(script.__file__), "played", at, jobs(cases)))


def main() -> int:
    """Record what has no record."""
    return record_missing(RecordedChars(), CASES, played, batch_size=30)


if __name__ == "__main__":
    sys.exit(main())
