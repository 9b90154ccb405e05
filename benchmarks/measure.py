"""Shared by the benchmarks: what a measurement is, and how it is printed."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Measurement:
    """Two lists of seconds from one run, and the target that their ratio is held against."""

    work: str
    peer: str
    ours: list[float]
    theirs: list[float]
    target: float
    higher_is_better: bool = False
    unit: str = "s"
    note: str = ""
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Median over median."""
        return statistics.median(self.ours) / statistics.median(self.theirs)

    @property
    def reached(self) -> bool:
        """Whether the target holds."""
        return self.ratio >= self.target if self.higher_is_better else self.ratio <= self.target

    def row(self) -> str:
        """A row of the results table."""
        sign = "≥" if self.higher_is_better else "≤"
        verdict = "yes" if self.reached else "**no**"
        return (
            f"| {self.work} | {self.peer} | {_figure(self.ours, self.unit)} "
            f"| {_figure(self.theirs, self.unit)} | {self.ratio:.2f} | {sign} {self.target:g} "
            f"| {verdict} | {self.note} |"
        )


HEADER = (
    "| work | peer | lakelog | peer's | ratio | target | reached | note |\n"
    "|---|---|--:|--:|--:|--:|---|---|"
)


def _figure(values: list[float], unit: str) -> str:
    median = statistics.median(values)
    if unit == "s" and median < 0.1:
        return f"{median * 1000:.2f} ms (n={len(values)})"
    return f"{median:.2f} {unit} (n={len(values)})"
