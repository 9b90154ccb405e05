"""Appenders under every fault at every step: what was acknowledged is there once, and nothing else.

See `appending`. Of what happens at which step a day has a sixth. The mutants are the code of
appenders with one thing wrong, which the same histories must find.
"""

from __future__ import annotations

import functools
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.dml.appending.segments import Segments
from simulation.appending import Go, Script, play, steps_of
from support.examples import SEED, examples
from support.faults import Fault
from support.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.days import OfTheDay

pytestmark = pytest.mark.soak

_RARE = ("LOST_UNKNOWN", "SPURIOUS_EXISTS", "LANDS_EXISTS", "LANDS_OSERROR")
"""Fates that are much like others, for `make soak`."""
_AT_LOOKS = (Fault.NONE, Fault.CRASH, Fault.OSERROR)
_AT_WRITES = tuple(Fault) if SEED else tuple(each for each in Fault if each.name not in _RARE)
_LONG = 500
_MEANWHILE: dict[str, list[Go | str]] = {
    "nothing": [],
    "another takes over": [Go(2, _LONG), "a late write arrives"],
    "the one before goes on": [Go(1, _LONG)],
    "the one before saves more": [Go(1, 2), Go(0, _LONG)],
    "another begins and a rival writes": [Go(2, 7), "a rival writes"],
    "the one before and another go on": [Go(2, 9), Go(1, _LONG), Go(0, 3), Go(2, _LONG)],
}


@functools.cache
def _saved_before() -> Go:
    """A process has saved one event, is about to save another, and stands still, as if gone."""
    steps = steps_of(Script([]), 1)
    saves = [at for at, step in enumerate(steps) if step[0] == "write" and _is_segment(step)]
    return Go(1, 1 + saves[2])


def _is_segment(step: tuple[str, str]) -> bool:
    return step[1].endswith(".segment")


def histories(meanwhile: str, saves: bool) -> Iterator[Script]:
    """One in trouble at each of its steps, with each fate."""
    before, mine = _saved_before(), (saves, True, True)
    for at, (operation, _) in enumerate(steps_of(Script([before], mine), 0)):
        for fate in _AT_WRITES if operation == "write" else _AT_LOOKS:
            if fate is not Fault.NONE or meanwhile != "nothing":
                yield Script([before, Go(0, 1 + at), Go(0, 1, fate), *_MEANWHILE[meanwhile]], mine)


@pytest.mark.parametrize("meanwhile", _MEANWHILE)
@pytest.mark.parametrize("saves", [True, False] if SEED else [True])
def test_one_in_trouble_at_any_step_loses_nothing_and_doubles_nothing(
    meanwhile: str, saves: bool, of_the_day: OfTheDay
) -> None:
    found = list(histories(meanwhile, saves))
    assert len(found) > 50
    for script in of_the_day(found, len(found) // 6, about=meanwhile):
        play(script)


def _scripts() -> st.SearchStrategy[Script]:
    who = st.integers(0, 2)
    fates = st.sampled_from([Fault.NONE, Fault.NONE, *Fault])
    goes = st.builds(Go, who, st.integers(1, 12), fates)
    events = st.sampled_from(["a late write arrives", "a rival writes"])
    return st.builds(
        Script,
        st.lists(st.one_of(goes, goes, goes, events), max_size=16),
        st.sampled_from([(True, True, True), (False, True, True), (True, False, False)]),
        st.sampled_from([(2, 0, 1), (1, 1), (3,)]),
    )


@settings(max_examples=examples(40))
@given(_scripts())
def test_any_troubles_lose_nothing_and_double_nothing(script: Script) -> None:
    play(script)


def _created_whoever_did(segments: Segments, position: int, identity: str, lines: Any) -> bool:
    _create(segments, position, identity, lines)
    return True


def _taken_over_at_once(segments: Segments, identity: str, after: int) -> Any:
    """The end is looked for once."""
    listed = segments.listed()
    position, _ = _take_over(segments, identity, after)
    return position, listed


def _all_forgotten(segments: Segments, committed: int) -> None:
    segments._next += 1  # so that the last one is not kept
    try:
        _forget(segments, committed)
    finally:
        segments._next -= 1


_create, _take_over, _forget = Segments._create, Segments.take_over, Segments.forget
_MUTANTS = {
    Mutant("a taken position is one's own", Segments, "_create", _created_whoever_did): (
        "the one before goes on"
    ),
    Mutant("the end is looked for once", Segments, "take_over", _taken_over_at_once): (
        "the one before saves more"
    ),
    Mutant("the end of the chain is deleted", Segments, "forget", _all_forgotten): (
        "another takes over"
    ),
}
"""And what happens meanwhile in the histories that show it."""


def _play_until_caught(meanwhile: str) -> None:
    found = [*histories(meanwhile, True)]
    # Those that show it are next to each other: in this order one of them comes sooner.
    random.Random(0).shuffle(found)
    for script in found:
        play(script)


@pytest.mark.parametrize("mutant", _MUTANTS, ids=str)
def test_the_histories_catch_appenders_by_which(mutant: Mutant) -> None:
    with mutant.patched(), pytest.raises(AssertionError):
        _play_until_caught(_MUTANTS[mutant])
