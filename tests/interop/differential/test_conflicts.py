"""Every conflict ends in lakelog as it ends in delta-spark's own `OptimisticTransaction`.

Both get tables with the same log, byte for byte, do the same steps, and meet the same commits of
others. What is compared: the version or the exception with its error condition, the provenance
that is written (isolation level, blind append, version read), and every line of the commit.
"""

from __future__ import annotations

import pytest

from support.differential.creation_cases import CREATION_CASES
from support.differential.delta_older_suite import DELTA_OLDER_SUITE
from support.differential.delta_suites import DELTA_SUITES
from support.differential.differences import DIFFERENCES, Difference
from support.differential.generated import GENERATED, KINDS, covering_rows
from support.differential.level_cases import LEVEL_CASES
from support.differential.metadata_cases import METADATA_CASES
from support.differential.other_cases import OTHER_CASES
from support.differential.ours import run_ours
from support.differential.outcome import outcome_of
from support.differential.predicates import PREDICATES
from support.differential.protocol_cases import PROTOCOL_CASES
from support.differential.rebased_cases import REBASED_CASES
from support.differential.vector_cases import VECTOR_CASES

HAND_PICKED = [
    *DELTA_SUITES,
    *DELTA_OLDER_SUITE,
    *PREDICATES,
    *LEVEL_CASES,
    *METADATA_CASES,
    *PROTOCOL_CASES,
    *VECTOR_CASES,
    *REBASED_CASES,
    *CREATION_CASES,
    *OTHER_CASES,
]
SCENARIOS = [*HAND_PICKED, *GENERATED]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_a_conflict_ends_as_it_does_in_delta_spark(delta_spark, tmp_path, scenario):
    path = tmp_path / "ours"
    ours = outcome_of(lambda: run_ours(scenario, path), path)
    other = tmp_path / "theirs"
    scenario.lay_out(other)
    theirs = outcome_of(lambda: delta_spark.transaction(other, scenario.steps), other)
    told = f"\n{scenario.story()}\n  lakelog: {ours}\n  delta-spark: {theirs}"
    known = _difference(scenario.name)
    if known is None:
        assert ours.verdict == theirs.verdict, told
        assert ours.lines == theirs.lines, told
        if ours.lines:
            assert ours.data_change == ours.changes_rows, told
            assert theirs.data_change in (None, ours.data_change), told
    else:
        assert ours.verdict == known.ours, told
        assert theirs.verdict == known.theirs, told


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
