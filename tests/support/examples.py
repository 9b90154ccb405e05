"""How many examples a random test draws, and from which seed.

`make test` draws as many as the mutants need to be found, with room to spare, and the same ones
each time; `make soak` draws others, from one seed after the other. Hypothesis takes that by
`--hypothesis-seed`, with `LAKELOG_SEED`; what draws with a generator of its own asks for it here.
"""

from __future__ import annotations

import datetime
import os
import random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

_T = TypeVar("_T")

SEED = int(os.environ.get("LAKELOG_SEED", "0"))
_TODAY = datetime.datetime.now(datetime.UTC).date().toordinal()
# The first process of a run says it to the others, which may begin on the next day.
SEED_OF_THE_DAY = SEED or int(os.environ.setdefault("LAKELOG_DAY", str(_TODAY)))
"""For what draws a sample of fixed cases: all of them come up within some weeks. Tests that draw by
it have it in their names, and as `LAKELOG_SEED` it repeats the draw."""
_TIMES = float(os.environ.get("LAKELOG_EXAMPLES", "1"))


def examples(count: int) -> int:
    """So many in `make test`; `LAKELOG_EXAMPLES` times as many elsewhere, as in `make soak`."""
    return max(1, round(count * _TIMES))


def of_the_day(cases: Sequence[_T], count: int = 1, *, about: str = "") -> list[_T]:
    """So many of the cases, others each day; all of them with a seed, as in `make soak`.

    Args:
        cases: what may be drawn.
        count: how many.
        about: what they are cases of, so that it is drawn for itself.
    """
    if SEED or count >= len(cases):
        return list(cases)
    return random.Random(f"{SEED_OF_THE_DAY} {about}").sample(cases, count)


def seeds(count: int) -> range:
    """Seeds for tests that draw once each: others for each `LAKELOG_SEED`."""
    return range(SEED * count, (SEED + 1) * count)
