"""Sum up what a run with `LAKELOG_COVERAGE=FOLDER` left, and compare it with others.

    python tests/support/coverage_report.py FOLDER [--than FOLDER …]

With `--than`, files of which the first reaches less than all of them together are named, with the
lines and branches that it lost; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

Reached = dict[str, tuple[set[Any], set[Any]]]


def read(*folders: Path) -> tuple[Reached, Reached]:
    """What any process of these runs reached of each file, and what there is to reach."""
    reached: Reached = defaultdict(lambda: (set(), set()))
    there: Reached = defaultdict(lambda: (set(), set()))
    for path in (each for folder in folders for each in folder.glob("*.json")):
        for name, found in json.loads(path.read_text())["files"].items():
            for place, kind in enumerate(("lines", "branches")):
                done = {_hashable(each) for each in found[f"executed_{kind}"]}
                reached[name][place].update(done)
                there[name][place].update(done)
                there[name][place].update(_hashable(each) for each in found[f"missing_{kind}"])
    return reached, there


def _hashable(place: Any) -> Any:
    return tuple(place) if isinstance(place, list) else place


def _share(reached: Reached, there: Reached, root: str, place: int) -> str:
    names = [name for name in there if name.split("/")[0] == root]
    done = sum(len(reached[name][place]) for name in names)
    of = sum(len(there[name][place]) for name in names)
    return f"{done:,} of {of:,} ({100 * done / max(1, of):.1f} %)"


def main() -> int:
    parser = argparse.ArgumentParser(description="Sum up what the tests reached.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--than", type=Path, nargs="+", default=[])
    chosen = parser.parse_args()
    reached, there = read(chosen.folder)
    print("| root | lines | branches |\n|---|--:|--:|")
    for root in sorted({name.split("/")[0] for name in there}):
        lines, branches = (_share(reached, there, root, place) for place in (0, 1))
        print(f"| `{root}` | {lines} | {branches} |")
    lost = 0
    for name, found in sorted(read(*chosen.than)[0].items()):
        for place, kind in enumerate(("lines", "branches")):
            missed = sorted(found[place] - reached[name][place])
            if missed:
                lost += 1
                print(f"{name}: {len(missed)} {kind} less: {missed[:20]}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
