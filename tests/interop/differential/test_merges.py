"""Generated MERGEs end as they end in delta-spark: rows, schema, feed, metrics, errors.

delta-spark's side is a record of what it did (`support/merges/recorded.py`). lakelog on Spark plays
a sample of the cases, drawn by the day's seed, and all of them in `make soak`, each by jobs or, as
far as it can, without; a few are played by delta-spark once more.
"""

from __future__ import annotations

import random
from dataclasses import asdict

import pytest

from lakelog.spark.dml import here
from support.examples import SEED, examples
from support.merges.cases import CASES
from support.merges.differences import DIFFERENCES, compared, difference
from support.merges.ours import run_on_spark
from support.merges.outcome import lay_out, outcome_of
from support.merges.recorded import Recorded, played

RECORDED = Recorded()
CHOOSE = random.Random(SEED)
DRAWN = [
    (case, CHOOSE.choice(("here", "jobs")))
    for case in CHOOSE.sample(CASES, min(len(CASES), examples(16)))
]


@pytest.mark.parametrize(("case", "way"), DRAWN, ids=lambda each: getattr(each, "name", each))
def test_a_merge_ends_as_it_does_in_delta_spark(spark, tmp_path, case, way, monkeypatch):
    if way == "jobs":
        monkeypatch.setattr(here, "HERE_BYTES", -1)
    path = tmp_path / case.name
    lay_out(case, path)
    ours = outcome_of(lambda: run_on_spark(spark, case, path), path)
    theirs = RECORDED.found(case)
    name = difference(case, ours, theirs) if ours != theirs else None
    assert name is None or name in DIFFERENCES
    mine, other = compared(ours, theirs, name)
    assert asdict(mine) == asdict(other), f"\n{case.story()}\n{name}"


@pytest.mark.soak
def test_delta_spark_does_what_is_recorded(delta_spark, tmp_path):
    cases = random.Random(SEED or None).sample(CASES, min(len(CASES), examples(4)))
    for case, found in zip(cases, played(cases, delta_spark, tmp_path), strict=True):
        assert asdict(found) == asdict(RECORDED.found(case)), f"\n{case.story()}"


def test_what_is_recorded_is_a_case():
    assert RECORDED.names() == {each.name for each in CASES}


def test_each_kind_of_clause_meets_each_kind_of_table():
    met = {(case.kind, each.kind, each.action) for case in CASES for each in case.clauses}
    kinds = {kind for kind, _, _ in met}
    clauses = {(each, action) for _, each, action in met}
    assert len(kinds) == 18
    assert len(met) >= 0.95 * len(kinds) * len(clauses)
