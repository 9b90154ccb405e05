"""Generated MERGEs end as they end in delta-spark: rows, schema, feed, metrics, errors.

delta-spark's side is a record of what it did (`support/merges/recorded.py`). lakelog plays all of
the cases without Spark, and on Spark a sample, drawn by the day's seed, each by jobs or, as far as
it can, without; a few are played by delta-spark once more. `make soak` plays many more.
"""

from __future__ import annotations

import random
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import pytest

from lakelog.spark.dml import without_spark as here
from lakelog.spark.dml.merge import merge_command as merge
from support.examples import SEED, SEED_OF_THE_DAY, examples
from support.merges.cases import CASES
from support.merges.differences import (
    CAST_OVERFLOW,
    DIFFERENCES,
    PAIRS,
    PAIRS_IN_CORE,
    compared,
    difference,
)
from support.merges.otherwise import RecordedOtherwise, said_otherwise
from support.merges.ours import run_on_spark
from support.merges.ours_in_core import run_in_core
from support.merges.outcome import lay_out, outcome_of
from support.merges.recorded import Recorded, played
from support.recorded_cases import played_as_recorded

if TYPE_CHECKING:
    from support.merges.cases import MergeCase
    from support.merges.outcome import Outcome

RECORDED, OTHERWISE = Recorded(), RecordedOtherwise()
CHOOSE = random.Random(SEED_OF_THE_DAY)
DRAWN = [
    (case, CHOOSE.choice(("here", "jobs")))
    for case in CHOOSE.sample(CASES, min(len(CASES), examples(8)))
]


def theirs_of(case: MergeCase) -> Outcome:
    """What delta-spark makes of a case, said in the way in which it takes it."""
    found = RECORDED.found(case)
    said = said_otherwise(case, found)
    return found if said is None else OTHERWISE.found(said)


def check(case: MergeCase, ours: Outcome, *, in_core: bool = False) -> str | None:
    """Hold an outcome against delta-spark's; the name of the difference, if there is one."""
    theirs = theirs_of(case)
    name = None if ours == theirs else difference(case, ours, theirs, in_core=in_core)
    assert name is None or name in DIFFERENCES
    mine, other = compared(ours, theirs, name)
    assert asdict(mine) == asdict(other), f"\n{case.story()}\n{name}"
    return name


@pytest.mark.soak
@pytest.mark.parametrize(
    ("case", "way"), DRAWN, ids=lambda each: getattr(each, "name", f"{each}-{SEED_OF_THE_DAY}")
)
def test_a_merge_ends_as_it_does_in_delta_spark(spark, tmp_path, case, way, monkeypatch):
    if way == "jobs":
        monkeypatch.setattr(here, "HERE_BYTES", -1)
        monkeypatch.setattr(merge, "HERE_BYTES", -1)
    path = tmp_path / case.name
    lay_out(case, path)
    check(case, outcome_of(lambda: run_on_spark(spark, case, path), path))


@pytest.mark.one_day_in(3, 1)
def test_without_spark_every_merge_ends_as_in_delta_spark(tmp_path):
    met = set()
    for case in CASES:
        path = tmp_path / case.name
        lay_out(case, path)
        ours = outcome_of(partial(run_in_core, case, path), path)
        name = check(case, ours, in_core=True)
        met |= {name, (theirs_of(case).error, ours.error)}
    # A difference that is none any more must go; the others are of rows that a Spark job meets.
    of_jobs = {
        ("DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE", ours)
        for ours in ("CAST_INVALID_INPUT", CAST_OVERFLOW, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    }
    of_jobs.add(("TASK_WRITE_FAILED", CAST_OVERFLOW))
    assert {*PAIRS, *PAIRS_IN_CORE} - of_jobs <= met
    assert {*DIFFERENCES} - {"a value that no row needs"} <= met


@pytest.mark.soak
@pytest.mark.one_day_in(3, 1)
def test_delta_spark_does_what_is_recorded(delta_spark, tmp_path):
    cases = random.Random(SEED or None).sample(CASES, min(len(CASES), examples(4)))
    with played_as_recorded(delta_spark):
        answers = played(cases, delta_spark, tmp_path)
    for case, found in zip(cases, answers, strict=True):
        assert asdict(found) == asdict(RECORDED.found(case)), f"\n{case.story()}"


def test_what_is_recorded_is_a_case():
    assert RECORDED.names() == {each.name for each in CASES}
    said = (said_otherwise(each, RECORDED.found(each)) for each in CASES)
    assert OTHERWISE.names() == {each.name for each in said if each}


def test_each_kind_of_clause_meets_each_kind_of_table():
    met = {(case.kind, each.kind, each.action) for case in CASES for each in case.clauses}
    kinds = {kind for kind, _, _ in met}
    clauses = {(each, action) for _, each, action in met}
    assert len(kinds) == 18
    assert len(met) >= 0.95 * len(kinds) * len(clauses)
