"""Every conflict ends in lakelog as it ends in delta-spark's own `OptimisticTransaction`.

Both get tables with the same log, byte for byte, do the same steps, and meet the same commits of
others. What is compared: the version or the exception with its error condition, the provenance
that is written (isolation level, blind append, version read), and every line of the commit.
delta-spark's side is a record of what it did; a sample of it is played again in each run.
"""

from __future__ import annotations

import random

import pytest

from support.differential.differences import DIFFERENCES, Difference
from support.differential.generated import KINDS, covering_rows
from support.differential.ours import run_ours
from support.differential.outcome import outcome_of
from support.differential.recorded import Recorded, played
from support.differential.scenarios import SCENARIOS
from support.examples import SEED, examples

RECORDED = Recorded()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_a_conflict_ends_as_it_does_in_delta_spark(tmp_path, scenario):
    path = tmp_path / "ours"
    ours = outcome_of(lambda: run_ours(scenario, path), path)
    theirs = RECORDED.outcome(scenario)
    story = f"\n{scenario.story()}\n  lakelog: {ours}\n  delta-spark: {theirs}"
    known = _difference(scenario.name)
    if known is None:
        assert ours.verdict == theirs.verdict, story
        assert ours.lines == theirs.lines, story
        if ours.lines:
            assert ours.data_change == ours.changes_rows, story
            assert theirs.data_change in (None, ours.data_change), story
    else:
        assert ours.verdict == known.ours, story
        assert theirs.verdict == known.theirs, story


@pytest.mark.soak
@pytest.mark.one_day_in(3, 1)
def test_delta_spark_does_what_is_recorded(delta_spark, tmp_path):
    drawn = random.Random(SEED or None)
    sample = drawn.sample(SCENARIOS, min(len(SCENARIOS), examples(10)))
    for number, scenario in enumerate(sample):
        found = played(scenario, delta_spark, tmp_path / str(number))
        record = RECORDED.outcome(scenario)
        story = f"\n{scenario.story()}\n  recorded: {record}\n  now: {found}"
        assert found.verdict == record.verdict, story
        assert found.lines == record.lines, story
        assert found.data_change == record.data_change, story


def test_what_is_recorded_is_told_by_a_scenario():
    assert RECORDED.names() == {each.name for each in SCENARIOS}


def _difference(name: str) -> Difference | None:
    return next((each for each in DIFFERENCES.values() if name.endswith(each.scenarios)), None)


def test_every_choice_meets_every_other():
    rows = covering_rows()
    for i, some in enumerate(KINDS):
        for j, others in enumerate(KINDS[:i]):
            met = {(row[i], row[j]) for row in rows}
            assert met == {(one, other) for one in some for other in others}


def test_scenarios_have_names_of_their_own_and_known_differences_are_among_them():
    names = [each.name for each in SCENARIOS]
    assert len(names) == len(set(names))
    listed = [name for each in DIFFERENCES.values() for name in each.scenarios]
    assert all(any(name.endswith(end) for name in names) for end in listed)
    assert len(listed) == len(set(listed))
