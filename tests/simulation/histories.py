"""Which histories are played: all duels of two orders, and longer ones that are drawn."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from simulation.jobs import KINDS, Order
from simulation.model import SERIALIZABLE, WRITE_SERIALIZABLE
from simulation.numbering import Numbered
from simulation.world import Do, Script, Step
from support.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NUMBERED: dict[str, tuple[int, ...]] = {
    "write once": (1, 2),
    "record progress": (1, 2),
    "set domain": (0, 1),
}
_NUMBERED |= {"upgrade": (0, 1), "set property": (0, 1, 2), "switch on": (0, 1)}
_WHOLE = (
    "aggregate",
    "evolve",
    "set property",
    "switch on",
    "upgrade",
    "record progress",
    "set domain",
    "create",
)
_ONE_PART = ("append", "append behind what is known", "replace partitions", "write once")


def _orders() -> list[Order]:
    """Every order there is, the plain ones first: shrinking goes that way."""
    orders = []
    for kind in [*KINDS, "update", "checkpoint"]:
        if kind in _WHOLE or kind in ("update", "checkpoint"):
            parts: tuple[str | None, ...] = (None,)
        else:
            parts = ("0", "1") if kind in _ONE_PART else ("0", "1", None)
        numbers = _NUMBERED.get(kind, (0,))
        orders += [Order(kind, part, number) for part in parts for number in numbers]
    return orders


ORDERS = _orders()
_RARE = ("set property", "switch on", "evolve", "upgrade", "create", "update", "checkpoint")
# A change of the metadata ends everybody's transactions: seldom is enough.
DRAWN = [order for order in ORDERS for _ in range(1 if order.kind in _RARE else 3)]
WHO = range(3)
_TOGETHER = Step(0, Do.ALL_THINK)
RACES = [Step(who, do) for do in (Do.FINISH, Do.THINK, Do.WRITE, Do.ONE) for who in WHO]
RACES += [_TOGETHER] * 6
_FAULTS = [
    Fault.LANDS_UNKNOWN,
    Fault.LOST_UNKNOWN,
    Fault.LATE_UNKNOWN,
    Fault.LANDS_EXISTS,
    Fault.SPURIOUS_EXISTS,
    Fault.LANDS_OSERROR,
    Fault.OSERROR,
    Fault.CRASH,
    Fault.LANDS_CRASH,
]
_TROUBLE = [Step(who, Do.ONE, fault) for fault in _FAULTS for who in WHO]
_EVENTS = [Step(0, Do.DELIVER), Step(0, Do.PAUSE), Step(0, Do.CLEAN_UP)]
TROUBLES = [*RACES, *RACES, *_TROUBLE, *_EVENTS]
FENCES = [*RACES, *_EVENTS * 4]
_FALL_BEHIND = tuple(
    Step(who, do)
    for who, do in [
        (0, Do.FINISH),
        (0, Do.THINK),
        (1, Do.FINISH),
        (1, Do.FINISH),
        (0, Do.CLEAN_UP),
        (0, Do.FINISH),
    ]
)
"""One commits and begins another transaction; others commit, and log cleanup removes the first."""
BEHIND: list[Step | tuple[Step, ...]] = [*FENCES, *[_FALL_BEHIND] * len(FENCES)]
_TWICE = [Order("append", "0"), Order("append behind what is known", "0")]
_DOUBTFUL = (Fault.NONE, Fault.LANDS_UNKNOWN, Fault.LOST_UNKNOWN, Fault.LATE_UNKNOWN)
_SECOND = (Fault.NONE, Fault.OSERROR, Fault.LANDS_OSERROR, Fault.SPURIOUS_EXISTS)


def _twice_in_trouble(first: Fault, second: Fault) -> tuple[Step, ...]:
    """A write, looks at what came of it and is there, a second write and look, late news."""
    fates = (first, Fault.NONE, Fault.NONE, second, Fault.NONE)
    return Step(0, Do.WRITE), *(Step(0, Do.ONE, fate) for fate in fates), Step(0, Do.DELIVER)


DOUBTS = [_twice_in_trouble(*pair) for pair in itertools.product(_DOUBTFUL, _SECOND)]


def _processes(orders: list[Order], most: int) -> st.SearchStrategy[list[list[Order]]]:
    jobs = st.lists(st.sampled_from(orders), min_size=1, max_size=most)
    return st.lists(jobs, min_size=2, max_size=3)


def scripts(
    steps: Sequence[Step | tuple[Step, ...]],
    *,
    level: str | None = None,
    longest: int = 24,
    exists: bool = True,
    again: bool = False,
) -> st.SearchStrategy[Script]:
    """Histories of two or three processes with up to three jobs each.

    Args:
        steps: what their schedules are made of.
        level: the table's isolation level; either one if `None`.
        longest: the length of the longest schedule.
        exists: whether the table is there at the beginning; if not, each begins with making it.
        again: whether each begins with two appends, the second one behind what it then knows.
    """
    orders = _processes(DRAWN, 3)
    if not exists:
        orders = orders.map(lambda found: [[Order("create", "1"), *each] for each in found])
    if again:
        orders = orders.map(lambda found: [[*_TWICE, *each] for each in found])
    levels = [SERIALIZABLE, WRITE_SERIALIZABLE] if level is None else [level]
    return st.builds(
        Script,
        orders=orders,
        steps=st.lists(st.sampled_from(steps), min_size=longest // 3, max_size=longest).map(_flat),
        level=st.sampled_from(levels),
        partitioned=st.sampled_from([True, True, True, False]),
        interval=st.sampled_from([1000] * 7 + [2]),
        exists=st.just(exists),
        numbered=st.sampled_from(Numbered),
    )


def _flat(steps: list[Step | tuple[Step, ...]]) -> list[Step]:
    return [one for each in steps for one in (each if isinstance(each, tuple) else (each,))]


def duels() -> Iterator[Script]:
    """Every order against every other, at both levels, with and without partitions.

    Both read the same version, and the first commits first. The partitions are alike, so that
    the first order is about `0` or the whole table. One in three has neither row ids nor commit
    times, one may get them, and one has them. They come in an order that has no order, and
    is the same each time.
    """
    orders = [order for order in ORDERS if order.kind in KINDS and order.kind != "create"]
    steps = [Step(0, Do.ALL_THINK), Step(0, Do.FINISH), Step(0, Do.FINISH)]
    kinds = itertools.cycle(Numbered)
    found = [
        Script([[one], [other]], steps, level, partitioned, numbered=next(kinds))
        for one, other in itertools.product(orders, orders)
        for level, partitioned in itertools.product(
            (SERIALIZABLE, WRITE_SERIALIZABLE), (True, False)
        )
        # Without partitions, one condition is as good as another.
        if one.part != "1" and (partitioned or other.part != "1")
    ]
    random.Random(0).shuffle(found)
    yield from found
