"""Which lines and branches of our code the tests reach: `make coverage`.

Each process of pytest's leaves a file in the folder `LAKELOG_COVERAGE`, those over Spark Connect
included; what Spark's workers and other programs run is not seen. `coverage_report.py` sums them
up. SlipCover counts a line once and then gets out of the way, so a run takes little longer.

It has to come before pytest's other plugins, one of which imports us: `-p support.covered`.
"""

from __future__ import annotations

import atexit
import json
import os
import uuid
from pathlib import Path
from typing import Any

from support.silent_probe import let_probes_travel

ROOTS = ("logstores", "core", "spark", "cli", "contrib")
_HOME = Path(__file__).parents[2]


def _begin(folder: Path) -> None:
    import slipcover

    files = slipcover.FileMatcher([str(_HOME / root) for root in ROOTS])
    let_probes_travel()
    seen: Any = slipcover.Slipcover(branch=True)
    slipcover.ImportManager(seen, files).__enter__()
    # A process that was forked from this one counts for itself.
    owner = os.getpid()

    def leave() -> None:
        if os.getpid() == owner:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{uuid.uuid4()}.json").write_text(json.dumps(seen.get_coverage()))

    atexit.register(leave)


if os.environ.get("LAKELOG_COVERAGE"):
    _begin(Path(os.environ["LAKELOG_COVERAGE"]).absolute())
