"""Generated DELETEs and UPDATEs end as they end in delta-spark, as `test_merges` has it for MERGE.

Each case is played in one of three ways, drawn too: in this process, by a Spark job whose new rows
are fetched, and by jobs alone.
"""

from __future__ import annotations

import random
from dataclasses import asdict
from functools import partial

import pytest

from lakelog.spark.dml import copies, delete_update, here
from support.examples import SEED, examples
from support.merges.outcome import outcome_of
from support.row_changes.cases import CASES
from support.row_changes.differences import DIFFERENCES, compared, difference
from support.row_changes.ours import run_on_spark
from support.row_changes.recorded import Recorded, lay_out, played

RECORDED = Recorded()
CHOOSE = random.Random(SEED)
DRAWN = [
    (case, CHOOSE.choice(("here", "few", "many")))
    for case in CHOOSE.sample(CASES, min(len(CASES), examples(9)))
]


@pytest.mark.parametrize(("case", "way"), DRAWN, ids=lambda each: getattr(each, "name", each))
def test_rows_are_changed_as_by_delta_spark(spark, tmp_path, case, way, monkeypatch):
    if way != "here":
        monkeypatch.setattr(here, "HERE_BYTES", -1)
    if way == "many":
        monkeypatch.setattr(delete_update, "_FEW_ROWS", -1)
        monkeypatch.setattr(copies, "_HERE_BYTES", -1)
    path = tmp_path / case.name
    lay_out(case, path)
    is_first = True
    for step, theirs in zip(case.steps, RECORDED.found(case), strict=True):
        ours = outcome_of(partial(run_on_spark, spark, step, path), path)
        name = difference(ours, theirs, is_first=is_first) if ours != theirs else None
        assert name is None or name in DIFFERENCES
        mine, other = compared(ours, theirs, name)
        assert asdict(mine) == asdict(other), f"\n{case.story()}\n{step.sql()}\n{name}"
        is_first = is_first and not ours.committed


@pytest.mark.soak
def test_delta_spark_does_what_is_recorded(delta_spark, tmp_path):
    cases = random.Random(SEED or None).sample(CASES, min(len(CASES), examples(4)))
    for case, found in zip(cases, played(cases, delta_spark, tmp_path), strict=True):
        told = [asdict(each) for each in RECORDED.found(case)]
        assert [asdict(each) for each in found] == told, f"\n{case.story()}"


def test_what_is_recorded_is_a_case():
    assert RECORDED.names() == {each.name for each in CASES}
    assert sum(len(each.steps) for each in CASES) >= 100
