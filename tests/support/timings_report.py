"""Sum up what `pytest --timings=FOLDER` wrote, as tables in Markdown.

It needs nothing but Python, and reads what a run that was ended has left.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_ROWS = 25


def _lines(folder: Path) -> Iterable[dict[str, Any]]:
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue  # torn: its process was killed while it wrote


def _program(argv: list[str]) -> str:
    name = Path(argv[0]).name
    script = next((Path(w).name for w in argv[1:] if w.endswith(".py")), "")
    module = argv[argv.index("-m") + 1] if "-m" in argv[:-1] else ""
    return " ".join(filter(None, (name, script or module or ("-c" if "-c" in argv else ""))))


def _table(title: str, rows: Iterable[tuple[str, float, int]], limit: int = _ROWS) -> None:
    print(f"\n| {title} | seconds | times |\n|---|--:|--:|")
    for name, seconds, times in sorted(rows, key=lambda row: -row[1])[:limit]:
        print(f"| `{name}` | {seconds:.1f} | {times} |")


def slowest(folder: Path, count: int) -> list[tuple[float, str]]:
    """The tests that took longest, each with its seconds."""
    took: dict[str, float] = {}
    for line in _lines(folder):
        if line["kind"] == "test":
            took[line["id"]] = line["wall"]
    return sorted(((seconds, name) for name, seconds in took.items()), reverse=True)[:count]


def failed(folder: Path) -> list[str]:
    """The tests that failed so far; the folder has their last words."""
    return [line["id"] for line in _lines(folder) if line["kind"] == "failure"]


def unfinished(folder: Path) -> list[str]:
    """The tests that began and never ended: where a run was when it was ended."""
    begun: dict[str, None] = {}
    for line in _lines(folder):
        if line["kind"] == "begin":
            begun[line["id"]] = None
        elif line["kind"] == "test":
            begun.pop(line["id"], None)
    return list(begun)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="what --timings named")
    parser.add_argument("--slowest", type=int, metavar="N", help="only the N slowest tests")
    options = parser.parse_args(argv)
    if options.slowest is None:
        return _report(options.folder)
    for name in failed(options.folder):
        print(f"  failed     {name}")
    for name in unfinished(options.folder):
        print(f"  not ended  {name}")
    for seconds, name in slowest(options.folder, options.slowest):
        print(f"{seconds:8.1f} s  {name}")
    return 0


def _report(folder: Path) -> int:
    sums: dict[str, dict[str, list[float]]] = collections.defaultdict(
        lambda: collections.defaultdict(list)
    )
    programs: collections.Counter[str] = collections.Counter()
    machine: list[dict[str, Any]] = []
    cpu = 0.0
    for line in _lines(folder):
        match line["kind"]:
            case "test":
                parts = line["id"].split("::")[0].split("/")
                sums["folder"]["/".join(parts[:2])].append(line["wall"])
                sums["file"]["/".join(parts)].append(line["wall"])
                sums["test"][line["id"]].append(line["wall"])
                cpu += line["cpu"]
            case "phase":
                sums["phase"][line["when"]].append(line["wall"])
            case "fixture":
                sums["fixture"][f"{line['name']} ({line['scope']})"].append(line["wall"])
            case "program":
                programs[_program(line["argv"])] += 1
            case "machine":
                machine.append(line)
    if not sums:
        print(f"no timings in {folder}", file=sys.stderr)
        return 1
    starts = [m for m in machine if m["when"] == "start"]
    ends = [m for m in machine if m["when"] == "end"]
    if starts and ends:
        first, last = min(starts, key=lambda m: m["at"]), max(ends, key=lambda m: m["at"])
        wall = last["at"] - first["at"]
        print(f"{wall:.0f} s of wall time; {cpu:.0f} s of CPU in the workers themselves")
        if "busy" in first:
            busy, idle = last["busy"] - first["busy"], last["idle"] - first["idle"]
            print(f"processors busy for {busy:.0f} s, idle for {idle:.0f} s")
    for title in ("folder", "phase", "fixture", "file", "test"):
        _table(title, ((n, sum(v), len(v)) for n, v in sums[title].items()))
    print("\n| program started | times |\n|---|--:|")
    for name, times in programs.most_common(_ROWS):
        print(f"| `{name}` | {times} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
