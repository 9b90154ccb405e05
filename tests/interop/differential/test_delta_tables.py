"""Every method of `delta.tables` does in lakelog what it does in delta-spark, by kinds of tables.

One script (`support/same_script/steps.py`) is run by both, each step on a table of its own:
compared are its answer or its error's condition, and what it left: rows, schema, protocol,
properties, change feed, history with parameters and metrics, row ids. delta-spark's side is a
record. Where the two differ on purpose is in `support/same_script/differences.py`.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

import lakelog.spark as delta
from support.examples import SEED, examples
from support.recorded_cases import played_as_recorded
from support.same_script.differences import DIFFERENCES, differing, listed_for, unlisted
from support.same_script.recorded import CASES, RecordedAnswers, Tables, played
from support.same_script.script import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from support.same_script.recorded import Step

RECORDED = RecordedAnswers()
QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""What changes how long a step on a few rows takes, and nothing that is compared."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(tmp_path_factory.mktemp("same_script"))


@pytest.fixture(scope="module")
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    before = {key: spark.conf.get(key) or "" for key in QUICK}
    for key, value in QUICK.items():
        spark.conf.set(key, value)
    delta.enable(spark)
    yield spark
    delta.disable(spark)
    for key, value in before.items():
        spark.conf.set(key, value)


@pytest.mark.soak
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            each, id=each.name, marks=pytest.mark.one_day_in(3 if each.kind == "plain" else 8)
        )
        for each in CASES
    ],
)
def test_a_method_does_what_it_does_in_delta_spark(
    enabled: SparkSession, tables: Tables, case: Step
) -> None:
    theirs = RECORDED.found(case)
    folder = tables.folder_for(case)
    ours = tables.outcome(case, folder, run(enabled, delta, str(folder), case.text))
    found = differing(ours, theirs)
    left = unlisted(case.name, found)
    assert not left, _shown(case, left)
    # A difference that is none any more must go.
    listed = [each for each in listed_for(case.name) if DIFFERENCES[each].always]
    gone = [each for each in listed if not DIFFERENCES[each].meets(found)]
    assert not gone, f"no more on {case.name}: {gone}"


def test_each_listed_difference_is_of_a_step() -> None:
    names = {each.name for each in CASES}
    for difference in DIFFERENCES.values():
        assert {*difference.on} <= names
    assert RECORDED.names() == names


def test_a_difference_is_named_by_its_place() -> None:
    ours = {"answer": "a", "tables": {"t": {"commits": [{"metrics": {"rows": "1"}}], "files": 2}}}
    theirs = {"answer": "a", "tables": {"t": {"commits": [{"metrics": {"rows": "2"}}]}}}
    assert differing(ours, ours) == {}
    assert differing(ours, theirs) == {"t/commits/0/metrics/rows": ("1", "2"), "t/files": (2, None)}
    refused = {"error": "DELTA_X", "tables": {}}
    assert differing(ours, refused).keys() == {"error: DELTA_X, None", "tables"}


@pytest.mark.soak
@pytest.mark.one_day_in(3, 2)
@pytest.mark.needs("delta_tables")
def test_delta_spark_does_what_is_recorded(delta_spark: Any, tmp_path: Path) -> None:
    cases = random.Random(SEED or None).sample(CASES, min(len(CASES), examples(4)))
    with played_as_recorded(delta_spark):
        answers = played(cases, delta_spark, tmp_path)
    for case, found in zip(cases, answers, strict=True):
        left = set(differing(found, RECORDED.found(case)))
        if "enableRowTracking = true" in case.text:
            left -= {"t/row ids"}  # which of the files gets its ids first is chance
        assert not left, case.name


def _shown(case: Step, found: dict[str, tuple[Any, Any]]) -> str:
    lines = [
        f"{at}\n  lakelog:     {ours}\n  delta-spark: {them}" for at, (ours, them) in found.items()
    ]
    return "\n".join([f"\n{case.name}", case.text.strip(), *lines])
