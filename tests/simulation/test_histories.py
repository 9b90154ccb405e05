"""Thousands of short histories of overlapping transactions, judged by the model.

What is drawn is a script: the jobs of two or three processes and the order of their storage
operations. On failure the smallest script that breaks a promise is told as a story.

So many are drawn as find the most hidden of the mutants, and half as many more (`docs/testing.md`
has their numbers); `make soak` draws others, and twice as many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, given, settings

from simulation.checks import play_and_check
from simulation.histories import BEHIND, DOUBTS, FENCES, RACES, TROUBLES, duels, scripts
from simulation.jobs import End, Order
from simulation.model import SERIALIZABLE, WRITE_SERIALIZABLE
from simulation.world import Do, Script, Step
from support.examples import examples
from support.faults import Fault

if TYPE_CHECKING:
    from support.days import OfTheDay

pytestmark = pytest.mark.soak

_PROFILE = settings(
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)


_DUELS = 700
"""So many of the first show the most hidden of the mutants; of the others the day draws some."""


def test_every_order_meets_every_other_as_the_rules_say(of_the_day: OfTheDay) -> None:
    found = [*duels()]
    for script in [*found[:_DUELS], *of_the_day(found[_DUELS:], 200, about="duels")]:
        play_and_check(script)


@pytest.mark.parametrize("level", [SERIALIZABLE, WRITE_SERIALIZABLE])
def test_what_commits_and_what_conflicts_is_what_the_isolation_level_promises(level: str) -> None:
    @settings(_PROFILE, max_examples=examples(50))
    @given(scripts(RACES, level=level))
    def play(script: Script) -> None:
        play_and_check(script)

    play()


@settings(_PROFILE, max_examples=examples(135))
@given(scripts(TROUBLES))
def test_crashes_and_lost_replies_lose_no_commit_and_double_none(script: Script) -> None:
    play_and_check(script)


@settings(_PROFILE, max_examples=examples(25))
@given(scripts(TROUBLES, exists=False))
def test_a_table_is_made_once_however_many_processes_make_it(script: Script) -> None:
    play_and_check(script)


@settings(_PROFILE, max_examples=examples(25))
@given(scripts(DOUBTS))
def test_a_write_in_doubt_is_never_called_failed(script: Script) -> None:
    play_and_check(script)


@pytest.mark.parametrize("exists", [True, False])
def test_nothing_is_committed_where_log_cleanup_was(exists: bool) -> None:
    @settings(_PROFILE, max_examples=examples(45))
    @given(scripts(FENCES, exists=exists))
    def play(script: Script) -> None:
        play_and_check(script)

    play()


@settings(_PROFILE, max_examples=examples(45))
@given(scripts(BEHIND, again=True))
def test_what_a_process_made_is_not_built_on_once_it_is_gone(script: Script) -> None:
    play_and_check(script)


def ends(script: Script) -> dict[str, End]:
    return {job.name: job.end for job in play_and_check(script).jobs}


def test_each_way_to_end_is_reached() -> None:
    race = [Step(0, Do.ALL_THINK), Step(0, Do.FINISH)]
    append, delete = [Order("append", "0")], [Order("delete", "0")]
    assert ends(Script([append, delete], race, SERIALIZABLE)) == {
        "A1": End.COMMITTED,
        "B1": End.CONFLICT,
    }
    assert ends(Script([append, delete], race, WRITE_SERIALIZABLE)) == {
        "A1": End.COMMITTED,
        "B1": End.COMMITTED,
    }
    for fault, end in {
        Fault.CRASH: End.CRASHED,
        Fault.LANDS_CRASH: End.CRASHED,
        Fault.OSERROR: End.FAILED,
        Fault.LANDS_OSERROR: End.COMMITTED,
        Fault.LANDS_UNKNOWN: End.COMMITTED,
        Fault.LANDS_EXISTS: End.COMMITTED,
        Fault.LOST_UNKNOWN: End.COMMITTED,
        Fault.LATE_UNKNOWN: End.COMMITTED,
        Fault.SPURIOUS_EXISTS: End.COMMITTED,
    }.items():
        steps = [Step(0, Do.WRITE), Step(0, Do.ONE, fault)]
        assert ends(Script([append], steps, SERIALIZABLE)) == {"A1": end}
    silence = [Step(0, Do.WRITE), *[Step(0, Do.ONE, Fault.LOST_UNKNOWN)] * 40]
    assert ends(Script([append], silence, SERIALIZABLE)) == {"A1": End.UNKNOWN}
