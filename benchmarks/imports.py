"""What importing the core costs in a fresh interpreter, beyond the interpreter itself."""

from __future__ import annotations

import statistics
import subprocess
import sys

CODE = (
    "import time; s = time.perf_counter(); {statement}; "
    "e = time.perf_counter() - s; import sys; "
    "assert 'pyspark' not in sys.modules; print(e)"
)
# The package loads its members at first use, so what a program pays is the second line.
STATEMENTS = (
    "import lakelog.core",
    "from lakelog.core import DeltaLog, Operation, OptimisticTransaction",
    "import pyarrow",
)


def measure(runs: int = 11) -> str:
    """A sentence for each statement: the median of `runs` fresh interpreters."""
    return "\n".join(f"- {_measured(statement, runs)}" for statement in STATEMENTS)


def _measured(statement: str, runs: int) -> str:
    command = [sys.executable, "-c", CODE.format(statement=statement)]
    seconds = [float(subprocess.check_output(command, text=True)) for _ in range(runs + 1)][1:]
    said = (
        f"`{statement}`: {statistics.median(seconds):.3f} s (median of {runs} fresh interpreters, "
        f"{min(seconds):.3f} to {max(seconds):.3f})"
    )
    if "lakelog" not in statement:
        return f"{said}, which is in the figures above."
    reached = statistics.median(seconds) <= 0.3
    return f"{said}; target 0.3 s, without pyspark: {'reached' if reached else '**not reached**'}."
