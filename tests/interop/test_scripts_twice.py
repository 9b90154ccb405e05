"""The same script twice, streams and SQL by names: delta-spark, and lakelog after `enable`."""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

import lakelog.spark as delta
from lakelog.core import DeltaLog
from support.streams import script
from support.to_end import TOO_SLOW, TRIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.peer_alone
SCRIPT = Path(str(script.__file__))
KNOWN = {
    # Spark's catalog answers before Delta is asked.
    "CREATE TABLE people (id BIGINT) USING delta": (
        "TABLE_OR_VIEW_ALREADY_EXISTS",
        "DELTA_TABLE_ALREADY_EXISTS",
    ),
}
"""Statement -> what delta-spark answers, and what we do."""


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    delta.enable(spark)
    yield spark
    delta.disable(spark)


def _twice(delta_spark: Any, spark: SparkSession, function: str, folder: Path) -> list[Any]:
    theirs, ours = folder / "theirs", folder / "ours"
    for each in (theirs, ours):
        each.mkdir()
    there = delta_spark.script(SCRIPT, function, theirs, alone=True)
    for left in reversed(range(TRIES)):
        try:
            here = runpy.run_path(str(SCRIPT))[function](spark, str(ours))
        except StreamingQueryException as exc:
            # As in `to_end`, which the script can't have: it runs in delta-spark's environment.
            if not left or TOO_SLOW not in str(exc):
                raise
            shutil.rmtree(ours)
            ours.mkdir()
        else:
            return [there, json.loads(json.dumps(here))]
    raise AssertionError("unreachable")


def _queries(folder: Path) -> dict[str, str]:
    """Checkpoint -> the id of its query."""
    found = folder.glob("checkpoints/*/metadata")
    return {each.parent.name: json.loads(each.read_text())["id"] for each in found}


def _offsets(folder: Path) -> dict[str, list[Any]]:
    """Checkpoint -> how far each batch went, as both clients write it."""
    found: dict[str, list[Any]] = {}
    for checkpoint in sorted(folder.glob("checkpoints/*")):
        batches = sorted(checkpoint.glob("offsets/[0-9]*"), key=lambda each: int(each.name))
        for batch in batches:
            offset = json.loads(batch.read_text().splitlines()[2])
            offset.pop("reservoirId")
            found.setdefault(checkpoint.name, []).append(offset)
    return found


def _logs(folder: Path) -> dict[str, Any]:
    """Table -> its history and the batches that it knows, with queries by their checkpoints."""
    names = {query: name for name, query in _queries(folder).items()}
    described = {}
    for log in sorted(folder.glob("**/_delta_log")):
        table = DeltaLog.for_table(log.parent)
        history = [
            {
                "operation": each.operation,
                "mode": each.parameters.get("outputMode") or each.parameters.get("mode"),
                "query": names.get(str(each.parameters.get("queryId"))),
                "batch": each.parameters.get("epochId"),
                "blind": each.is_blind_append,
                "isolation": each.isolation_level,
                "rows": each.metrics.get("numOutputRows"),
            }
            for each in table.history()
        ]
        known = {names.get(k, k): v for k, v in table.snapshot.transactions.items()}
        described[str(log.parent.relative_to(folder))] = history, known
    return described


@pytest.mark.timeout(280)
@pytest.mark.one_day_in(3)
def test_streams(delta_spark: Any, enabled: SparkSession, tmp_path: Path) -> None:
    try:
        there, here = _twice(delta_spark, enabled, "streams", tmp_path)
        theirs, ours = tmp_path / "theirs", tmp_path / "ours"
        offsets, logs = [[f(each) for each in (theirs, ours)] for f in (_offsets, _logs)]
    finally:
        enabled.sql("DROP DATABASE IF EXISTS twice CASCADE")
    assert there == here
    assert offsets[0] == offsets[1]
    assert logs[0] == logs[1]
    # A stream ignores `txnAppId`: what a table knows a query by is its own id.
    assert logs[1]["copy"][1] == {"copy": 3}
    assert logs[1]["own"][0][0]["blind"] is False


def test_names(delta_spark: Any, enabled: SparkSession, tmp_path: Path) -> None:
    there, here = _twice(delta_spark, enabled, "names", tmp_path)
    differing = [
        (statement, said, ours)
        for (statement, said), (_, ours) in zip(there, here, strict=True)
        if (said, ours) != KNOWN.get(statement, (ours, ours))
    ]
    assert not differing, "\n".join(f"{s}\n  theirs: {t}\n  ours:   {o}" for s, t, o in differing)
