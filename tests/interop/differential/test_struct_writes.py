"""Structs that differ from the table's end as they end in delta-spark, whatever writes them.

What lakelog makes of a draw of the cases, and of some that once went wrong, is held against what
delta-spark made of them.
"""

from __future__ import annotations

import json
import random

import pytest

import lakelog.spark as delta
from support.examples import SEED, SEED_OF_THE_DAY, examples
from support.recorded_cases import played_as_recorded
from support.struct_writes import script
from support.struct_writes.cases import CASES
from support.struct_writes.differences import DIFFERENCES, expected
from support.struct_writes.recorded import RecordedWrites, played

RECORDED = RecordedWrites()
ONCE_WRONG = (
    "insert / struct / names / conf",
    "insert / struct / less / as it is",
    "insert columns / struct / order / as it is",
    "insert unnamed / alike / swapped / as it is",
    "insert by name / struct / more / asked",
    "insertInto / map / more / asked",
    "saveAsTable / array / type / as it is",
    "merge columns / struct / less / asked",
    "merge columns / array / less / as it is",
    "stream / array / type / as it is",
    "insert / list / is null / as it is",
    "merge columns / values / is null / as it is",
)
DRAWN = [
    case
    for case in random.Random(SEED_OF_THE_DAY).sample(CASES, min(len(CASES), examples(8)))
    if case.name not in ONCE_WRONG
] + [case for case in CASES if case.name in ONCE_WRONG]


@pytest.fixture
def enabled(spark):
    delta.enable(spark)
    yield spark
    delta.disable(spark)


@pytest.mark.soak
@pytest.mark.timeout(240)
def test_structs_are_written_as_by_delta_spark(enabled, tmp_path):
    ours = script.played(enabled, str(tmp_path), json.dumps([each.job() for each in DRAWN]))
    wrong = []
    for case, mine in zip(DRAWN, json.loads(json.dumps(ours)), strict=True):
        theirs = RECORDED.found(case)
        wanted, difference = expected(case, theirs, RECORDED.found)
        assert difference is None or wanted != theirs, f"{case.name} differs in nothing"
        if mine != wanted:
            wrong.append(f"{case.name}\n  wanted: {wanted}\n  found:  {mine}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.soak
@pytest.mark.one_day_in(3)
def test_delta_spark_does_what_is_recorded(delta_spark, tmp_path):
    cases = random.Random(SEED or None).sample(CASES, min(len(CASES), examples(6)))
    with played_as_recorded(delta_spark):
        found = played(cases, delta_spark, tmp_path)
    assert found == [RECORDED.found(each) for each in cases]


def test_every_case_is_recorded_and_every_difference_is_met():
    assert RECORDED.names() == {each.name for each in CASES}
    assert set(ONCE_WRONG) <= RECORDED.names()
    met = [expected(each, RECORDED.found(each), RECORDED.found)[1] for each in CASES]
    assert [each for each in (None, *DIFFERENCES) if each not in met] == []
