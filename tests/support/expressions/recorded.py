"""What every text means, written down, so that a change of meaning is seen.

A text that is new has no line; this makes it, and leaves the others as they are:

    cd tests && python -m support.expressions.recorded
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from support.expressions.doors import as_condition, as_filter, as_value, outcome
from support.expressions.texts import CONDITIONS, VALUES

FILE: Final = Path(__file__).with_name("recorded.jsonl")
DOORS: Final = {"filter": as_filter, "merge": as_condition, "value": as_value}


def read() -> dict[str, dict[str, Any]]:
    """Text -> door -> outcome."""
    lines = map(json.loads, FILE.read_text().splitlines()) if FILE.exists() else ()
    return {line.pop("text"): line for line in lines}


def main() -> int:
    """Record what has no line."""
    known = read()
    with FILE.open("w") as file:
        for text in dict.fromkeys((*CONDITIONS, *VALUES)):
            doors = ["value"] if text not in CONDITIONS else list(DOORS)
            found = known.get(text) or {door: outcome(DOORS[door], text) for door in doors}
            file.write(json.dumps({"text": text, **found}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
