"""Run what is too long for CI, one after the other, and print one table.

    python scripts/nightly.py [--minutes 30] [--only matrix floors]

What each run printed is in a log of the cache. One that fails does not stop the others.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from environments import CACHE
from interpreters import PROJECT
from release_smoke import table

if TYPE_CHECKING:
    from collections.abc import Iterable

RUNS = {
    "matrix": ("check-matrix",),
    "floors": ("check-floors",),
    "dbt": ("check-dbt",),
    "release": ("release",),
    "cluster": ("cluster",),
    "recipes": ("recipes",),
    "judges": ("judges",),
    "appenders": ("appenders",),
    "kit": ("kit",),
    "longer": ("longer",),
    "soak": ("soak",),
}
"""What a row is called, and what `make` is told for it."""


def main() -> int:
    """Print the table; 1 if any run failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", default="30", help="how long the soak takes")
    parser.add_argument("--only", nargs="+", choices=RUNS, default=list(RUNS), help="some of them")
    options = parser.parse_args()
    rows = []
    for name in options.only:
        arguments = [*RUNS[name], f"MINUTES={options.minutes}"]
        rows.append(run(name, ["make", "--no-print-directory", *arguments]))
    sys.stdout.write("\n".join(table(["run", "ended", "minutes", "last line"], rows)) + "\n")
    return int(any(row[1] != "well" for row in rows))


def run(name: str, command: Iterable[str]) -> tuple[str, ...]:
    """Run one command, into a log of the cache, and say how it ended as a row of the table.

    Args:
        name: of the row, and of the log.
        command: what to run, in the repository.
    """
    log = CACHE / "nightly" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.write(f"== {name}: {log}\n")
    sys.stdout.flush()
    began = time.monotonic()
    with log.open("w") as out:
        code = subprocess.run(
            [*command], cwd=PROJECT.parent, stdout=out, stderr=subprocess.STDOUT, check=False
        ).returncode
    ended = "well" if code == 0 else f"failed ({code})"
    minutes = f"{(time.monotonic() - began) / 60:.1f}"
    sys.stdout.write(f"== {name} ended {ended} after {minutes} minutes\n")
    sys.stdout.flush()
    said = [line for line in log.read_text().splitlines() if line and not line.startswith("make:")]
    last = said[-1].strip("= |").replace("|", "/")[:90] if said else ""
    return name, ended, minutes, last


if __name__ == "__main__":
    sys.exit(main())
