"""How many examples a random test draws, and from which seed.

`make test` draws as many as the mutants need to be found, with room to spare, and the same ones
each time; `make soak` draws others, from one seed after the other. Hypothesis takes that by
`--hypothesis-seed`, with `LAKELOG_SEED`; what draws with a generator of its own asks for it here.
"""

from __future__ import annotations

import datetime
import os

SEED = int(os.environ.get("LAKELOG_SEED", "0"))
_TODAY = datetime.datetime.now(datetime.UTC).date().toordinal()
# The first process of a run says it to the others, which may begin on the next day.
SEED_OF_THE_DAY = SEED or int(os.environ.setdefault("LAKELOG_DAY", str(_TODAY)))
"""For what draws a sample of generated cases, as many as `examples` says. Tests that draw by it
have it in their names, and as `LAKELOG_SEED` it repeats the draw. For others: `support.days`."""
_TIMES = float(os.environ.get("LAKELOG_EXAMPLES", "1"))


def examples(count: int) -> int:
    """So many in `make test`; `LAKELOG_EXAMPLES` times as many elsewhere, as in `make soak`."""
    return max(1, round(count * _TIMES))


def seeds(count: int) -> range:
    """Seeds for tests that draw once each: others for each `LAKELOG_SEED`."""
    return range(SEED * count, (SEED + 1) * count)
