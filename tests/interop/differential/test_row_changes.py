"""Generated DELETEs and UPDATEs end as they end in delta-spark, as `test_merges` has it for MERGE.

All cases are played without Spark. A sample is played on Spark in one of three ways, drawn too: in
this process, by a Spark job whose new rows are fetched, and by jobs alone.
"""

from __future__ import annotations

import random
from dataclasses import asdict
from functools import partial

import pytest

from lakelog.spark.dml import copies, delete_update
from lakelog.spark.dml import without_spark as here
from support.examples import SEED, SEED_OF_THE_DAY, examples
from support.merges.outcome import outcome_of
from support.recorded_cases import played_as_recorded
from support.row_changes.cases import CASES
from support.row_changes.differences import (
    DIFFERENCES,
    PAIRS,
    PAIRS_IN_CORE,
    compared,
    difference,
)
from support.row_changes.ours import run_on_spark
from support.row_changes.ours_in_core import run_in_core
from support.row_changes.recorded import Recorded, lay_out, played

RECORDED = Recorded()
CHOOSE = random.Random(SEED_OF_THE_DAY)
DRAWN = [
    (case, CHOOSE.choice(("here", "few", "many")))
    for case in CHOOSE.sample(CASES, min(len(CASES), examples(6)))
]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("case", "way"), DRAWN, ids=lambda each: getattr(each, "name", f"{each}-{SEED_OF_THE_DAY}")
)
def test_rows_are_changed_as_by_delta_spark(spark, tmp_path, case, way, monkeypatch):
    if way != "here":
        monkeypatch.setattr(here, "HERE_BYTES", -1)
    if way == "many":
        monkeypatch.setattr(delete_update, "_FEW_ROWS", -1)
        monkeypatch.setattr(copies, "_HERE_BYTES", -1)
    play(case, tmp_path / case.name, partial(run_on_spark, spark))


def play(case, path, run, *, in_core=False):
    """Hold what each step does against delta-spark's, and give the differences that were met."""
    lay_out(case, path)
    is_first, met = True, set()
    for step, theirs in zip(case.steps, RECORDED.found(case), strict=True):
        ours = outcome_of(partial(run, step, path), path)
        name = None
        if ours != theirs:
            name = difference(ours, theirs, is_first=is_first, in_core=in_core)
        assert name is None or name in DIFFERENCES
        mine, other = compared(ours, theirs, name)
        assert asdict(mine) == asdict(other), f"\n{case.story()}\n{step.sql()}\n{name}"
        met |= {name, (theirs.error, ours.error)}
        is_first = is_first and not ours.committed
        if ours.committed != theirs.committed:
            break  # the next step would meet another table
    return met


def test_without_spark_rows_are_changed_as_by_delta_spark(tmp_path):
    met = set()
    for case in CASES:
        met |= play(case, tmp_path / case.name, run_in_core, in_core=True)
    assert {pair for pair in PAIRS if "CAST_OVERFLOW" not in (pair[1] or "")} <= met
    assert {*PAIRS_IN_CORE} <= met
    assert {*DIFFERENCES} - {"a constant that no row needs"} <= met


@pytest.mark.soak
@pytest.mark.one_day_in(3, 2)
def test_delta_spark_does_what_is_recorded(delta_spark, tmp_path):
    cases = random.Random(SEED or None).sample(CASES, min(len(CASES), examples(4)))
    with played_as_recorded(delta_spark):
        answers = played(cases, delta_spark, tmp_path)
    for case, found in zip(cases, answers, strict=True):
        expected = [asdict(each) for each in RECORDED.found(case)]
        assert [asdict(each) for each in found] == expected, f"\n{case.story()}"


def test_what_is_recorded_is_a_case():
    assert RECORDED.names() == {each.name for each in CASES}
    assert sum(len(each.steps) for each in CASES) >= 100
