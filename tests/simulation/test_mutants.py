"""The simulated histories find what they are there to find.

Each mutant is the core with one thing wrong. Which histories are played is the same each time, and
no more of them than in the tests of the core as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, given, settings

from simulation.checks import HistoryError, play_and_check
from simulation.histories import duels, scripts
from simulation.mutants import MUTANTS, CoreMutant

if TYPE_CHECKING:
    from simulation.world import Script

_PROFILE = settings(
    max_examples=200,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
)


def play_until_caught(mutant: CoreMutant) -> None:
    if mutant.steps is None:
        for script in duels():
            play_and_check(script)
        return

    @settings(_PROFILE)
    @given(scripts(mutant.steps, exists=mutant.exists, again=mutant.again))
    def play(script: Script) -> None:
        play_and_check(script)

    play()


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
@pytest.mark.one_day_in(4, 2)
def test_the_histories_catch_a_core_in_which(mutant: CoreMutant) -> None:
    with mutant.patched(), pytest.raises(HistoryError):
        play_until_caught(mutant)


def test_a_broken_promise_is_reported_as_a_story() -> None:
    blind = next(mutant for mutant in MUTANTS if mutant.name == "appends never conflict")
    with blind.patched(), pytest.raises(HistoryError) as caught:
        play_until_caught(blind)
    story = str(caught.value).splitlines()
    assert "ConcurrentAppendException" in story[0]
    assert story[2] == "The history:"
    assert any(line.startswith("A1 begins: ") for line in story)
    assert "    A1: writes 1.json: made, NONE" in story
    assert any(line.startswith("B1 ends: ") for line in story)
