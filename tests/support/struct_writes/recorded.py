"""What delta-spark made of each write of structs, written down: `support.recorded_cases`.

A case that is new or changed has no record; this makes it:

    cd tests && python -m support.struct_writes.recorded
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.recorded_cases import RecordedCases, record_missing
from support.struct_writes import script
from support.struct_writes.cases import CASES, StructWrite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.delta_spark_peer import DeltaSparkPeer


class RecordedWrites(RecordedCases["StructWrite", Any]):
    """Of each write the schema and the rows after it, or the condition of its error."""

    file = Path(__file__).with_name("recorded.jsonl")
    module = "support.struct_writes.recorded"
    field = "outcome"

    def to_json(self, found: Any) -> Any:
        return found

    def from_json(self, value: Any) -> Any:
        return value


def played(cases: Sequence[StructWrite], delta_spark: DeltaSparkPeer, folder: Path) -> list[Any]:
    """Let delta-spark make writes, in one call, to tables below a folder."""
    jobs = json.dumps([case.job() for case in cases])
    at = tempfile.mkdtemp(dir=folder)
    return list(delta_spark.script(str(script.__file__), "played", at, jobs))


def main() -> int:
    """Record what has no record."""
    return record_missing(RecordedWrites(), CASES, played, batch_size=40)


if __name__ == "__main__":
    sys.exit(main())
