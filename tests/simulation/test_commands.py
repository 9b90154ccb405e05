"""The commands that change rows and files, alone and at once, against a model of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from simulation.checks import HistoryError
from simulation.command_mutants import COMMAND_MUTANTS
from simulation.commands import play_commands
from support.examples import seeds

if TYPE_CHECKING:
    from support.mutants import Mutant

_HISTORIES = 30
_MOST = 400
"""Histories that a mutant may outlive: what two threads do at once is not drawn by the seed, and
which history finds one that only a race shows differs from run to run."""


@pytest.mark.parametrize("seed", seeds(4))
def test_commands_alone_do_what_they_mean(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    play_commands(seed, monkeypatch.setattr, races=False)


@pytest.mark.one_day_in(2)
@pytest.mark.parametrize("seed", seeds(_HISTORIES))
def test_commands_at_once_do_what_each_means_in_its_place(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_commands(seed, monkeypatch.setattr)


@pytest.mark.parametrize("mutant", COMMAND_MUTANTS, ids=str)
@pytest.mark.one_day_in(2)
def test_the_histories_catch_commands_where(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play_until_caught() -> None:
        for seed in range(_MOST):
            play_commands(seed, monkeypatch.setattr)

    with mutant.patched(), pytest.raises(HistoryError):
        play_until_caught()
