"""How the CPU's time of each operation grows with the table: n, 2n and 4n of one thing.

    python benchmarks/growth.py [--factor 32] [--times 3] [WORD …]

The cases are those of `tests/support/growth`, which the tests run by counting lines of Python. Here
the tables are larger and the CPU's time counts, so that what C does within a line shows as well: a
search in a list, a table that Arrow copies once for each of its columns. The least of several runs
counts, the sizes taking turns; the exit code says whether all costs grew no faster than n·log n.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.growth.measuring import Costs, costs, cpu_seconds
from support.growth.operations import OPERATIONS
from support.growth.worlds import AXES, Axis, Worlds

LIMIT = 2.8
"""Of the curvature, which is 2 for linear costs, 2.2 for n·log n and 4 for quadratic ones: what
time measures is never as exact as what is counted."""
TOO_QUICK = 0.03
"""Seconds: a cost below that at 4n says nothing, and is no cost."""
HEADER = (
    "| table of n | operation | n | time at n, 2n, 4n | growth | reached |\n"
    "|---|---|--:|---|--:|---|"
)


class Growth(NamedTuple):
    """What one operation cost on one kind of table."""

    axis: Axis
    operation: str
    n: int
    costs: Costs

    @property
    def too_fast(self) -> bool:
        """Whether it grew faster than n·log n.

        What four times the table made less than four times as dear is not called that: where the
        doublings add little, their ratio is chance.
        """
        if self.costs.four <= 4 * self.costs.once:
            return False
        return self.told and self.costs.grow_too_fast(limit=LIMIT, slack=0.05)

    @property
    def told(self) -> bool:
        """Whether it took so long that its growth says something."""
        return self.costs.four > TOO_QUICK

    @property
    def times(self) -> str:
        """The three times."""
        return ", ".join(f"{1000 * each:.0f}" for each in self.costs) + " ms"

    @property
    def shown(self) -> str:
        """The growth."""
        return f"{self.costs.curvature:.2f}" if self.told else "–"

    def row(self) -> str:
        """A row of the whole table."""
        verdict = "**no**" if self.too_fast else "yes"
        return (
            f"| {self.axis.name} | {self.operation} | {self.n} | {self.times} | {self.shown} "
            f"| {verdict} |"
        )


def measure(
    folder: Path, factor: int = 32, times: int = 3, words: list[str] | None = None
) -> Iterator[Growth]:
    """Each case in turn; what grew too fast is measured again, since another program may have
    been in the way, and its least costs count."""
    for axis in AXES.values():
        worlds = Worlds(Path(tempfile.mkdtemp(dir=folder)))
        for each in OPERATIONS:
            if not each.fits(axis):
                continue
            if words and not all(word in f"{axis.name}: {each.name}" for word in words):
                continue
            n = axis.n * factor
            costs(each, axis, worlds, n=1, meter=cpu_seconds)
            found = Growth(axis, each.name, n, Costs(*[float("inf")] * 3))
            for _ in range(times):
                again = costs(each, axis, worlds, n=n, meter=cpu_seconds)
                found = found._replace(costs=Costs(*map(min, found.costs, again)))
                if not found.too_fast and found.costs.four < 10 * TOO_QUICK:
                    break
            yield found
        worlds.drop_all()


def summary(found: list[Growth]) -> str:
    """A row for each kind of table: its dearest operation, and the one that grew the fastest."""
    rows = [
        "| table of n | operations | n | dearest | time at n, 2n, 4n | growth | fastest growing "
        "| time at n, 2n, 4n | growth | reached |",
        "|---|--:|--:|---|---|--:|---|---|--:|---|",
    ]
    for name in dict.fromkeys(each.axis.name for each in found):
        here = [each for each in found if each.axis.name == name]
        dear = max(here, key=lambda each: each.costs.four)
        steep = max(here, key=lambda each: each.told * each.costs.curvature)
        reached = "**no**" if any(each.too_fast for each in here) else "yes"
        shown = " | ".join(f"{e.operation} | {e.times} | {e.shown}" for e in (dear, steep))
        rows.append(f"| {name} | {len(here)} | {dear.n} | {shown} | {reached} |")
    return "\n".join(rows)


def main() -> int:
    """Print every case; the exit code says whether one grew too fast."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only cases whose name has all of these words")
    parser.add_argument("--factor", type=int, default=32, help="times the size that tests count at")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    bad = 0
    print(HEADER)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for found in measure(Path(folder), args.factor, args.times, args.words):
            bad += found.too_fast
            print(found.row(), flush=True)
    print(f"\n{bad} grew faster than n·log n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
