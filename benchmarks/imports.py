"""What `import lakelog.core` costs in a fresh interpreter, beyond the interpreter itself."""

from __future__ import annotations

import statistics
import subprocess
import sys

CODE = (
    "import time; s = time.perf_counter(); import lakelog.core; "
    "e = time.perf_counter() - s; import sys; "
    "assert 'pyspark' not in sys.modules; print(e)"
)


def measure(runs: int = 11) -> str:
    """A line of prose: the median of `runs` fresh interpreters."""
    seconds = [
        float(subprocess.check_output([sys.executable, "-c", CODE], text=True))
        for _ in range(runs + 1)
    ][1:]
    median = statistics.median(seconds)
    verdict = "reached" if median <= 0.3 else "**not reached**"
    return (
        f"`import lakelog.core`: {median:.3f} s (median of {runs} fresh interpreters, "
        f"{min(seconds):.3f} to {max(seconds):.3f}), without pyspark; target 0.3 s: {verdict}."
    )
