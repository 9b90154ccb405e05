"""CHAR and VARCHAR columns are written, compared, merged and altered as by delta-spark.

lakelog plays a draw of the cases, and some that say the most, by the statements that delta-spark
was given.
"""

from __future__ import annotations

import json
import random

import pytest

import lakelog.spark as delta
from support.char_columns import script
from support.char_columns.cases import CASES
from support.char_columns.differences import DIFFERENCES, expected
from support.char_columns.recorded import RecordedChars, jobs, played
from support.examples import SEED, SEED_OF_THE_DAY, examples
from support.recorded_cases import played_as_recorded

RECORDED = RecordedChars()
DRAWN = random.Random(SEED_OF_THE_DAY).sample(CASES, min(len(CASES), examples(8)))


@pytest.fixture
def enabled(spark):
    delta.enable(spark)
    yield spark
    delta.disable(spark)


@pytest.mark.soak
@pytest.mark.timeout(240)
def test_chars_are_what_they_are_in_delta_spark(enabled, tmp_path):
    found = json.loads(json.dumps(script.played(enabled, str(tmp_path), jobs(DRAWN))))
    wrong = []
    for case, ours in zip(DRAWN, found, strict=True):
        theirs = RECORDED.found(case)
        wanted = expected(case, theirs)
        if ours != wanted:
            wrong.append(f"{case.name}\n  wanted: {wanted}\n  found:  {ours}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.soak
@pytest.mark.one_day_in(3)
def test_delta_spark_does_what_is_recorded(delta_spark, tmp_path):
    cases = random.Random(SEED or None).sample(CASES, min(len(CASES), examples(4)))
    with played_as_recorded(delta_spark):
        found = played(cases, delta_spark, tmp_path)
    assert found == [RECORDED.found(each) for each in cases]


def test_every_case_is_recorded_and_every_difference_is_met():
    assert RECORDED.names() == {each.name for each in CASES}
    for difference in DIFFERENCES:
        met = [each for each in CASES if difference.meets(each, RECORDED.found(each))]
        assert met, difference.reason
        assert all(RECORDED.found(each) != difference.ours for each in met)
