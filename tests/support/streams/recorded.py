"""Let delta-spark play the cases, and write down what it answers.

cd tests && python -m support.streams.recorded
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from support.delta_spark import installed
from support.delta_spark_peer import DeltaSparkError, DeltaSparkPeer
from support.streams.cases import COLUMNS, OPTIONS, RECORDED, TABLES, condition, key_of


def _answer(peer: DeltaSparkPeer, table: Path, work: Path, options: dict[str, str]) -> Any:
    try:
        return sorted(peer.stream_rows(table, work / "checkpoint", options, COLUMNS))
    except DeltaSparkError as exc:
        return condition(str(exc))


def main() -> None:
    """Play all of them, each on a checkpoint of its own."""
    found = {}
    with (
        tempfile.TemporaryDirectory(prefix="streams-") as folder,
        DeltaSparkPeer(installed(), timeout=900) as peer,
    ):
        root = Path(folder)
        for name, make in TABLES.items():
            make(str(root / name))
        for number, (table, options) in enumerate(OPTIONS):
            answer = _answer(peer, root / table, root / str(number), options)
            found[key_of(table, options)] = answer
            print(key_of(table, options), answer, flush=True)
    lines = (f"{json.dumps(key)}: {json.dumps(answer)}" for key, answer in sorted(found.items()))
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
