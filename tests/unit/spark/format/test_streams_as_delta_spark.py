"""Each option of a stream, alone and with others: the rows or the condition that delta-spark gives.

Its answers are written down; see `support.streams.recorded`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.spark.format.data_source import LakelogSource
from support.streams.cases import OPTIONS, TABLES, condition, in_order, key_of, recorded

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("pyspark.sql.streaming.datasource")

_LOST = "delta-spark looks at the first version alone: what came without a feed passes for changes"
OTHERWISE = {
    key_of("lost feed", {"readChangeFeed": "true", "startingVersion": "0"}): _LOST,
    key_of("lost feed", {"readChangeFeed": "true", "startingVersion": "1"}): _LOST,
    key_of("plain", {"timestampAsOf": "2020-01-01"}): (
        "Spark asks for the columns before it says that it wants a stream: the time is before the "
        "first version"
    ),
    **{
        key_of("partitioned", {"excludeRegex": pattern}): (
            "a pattern of Java's that Python has no like of is refused, and never read as another"
        )
        for pattern in ("\\Qp=\\E", "p=[a-z&&[c]]")
    },
}
"""Case -> why lakelog answers in another way."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tables")
    for name, make in TABLES.items():
        make(str(root / name))
    return root


def _answer(path: Path, options: dict[str, str]) -> Any:
    """What a query to the end of what is there reads."""
    try:
        source = LakelogSource({"path": str(path), **options})
        schema = source.schema()
        reader: Any = source.streamReader(schema)
        reader.prepareForTriggerAvailableNow()
        at, batches = reader.initialOffset(), []
        while (end := reader.latestOffset(at, reader.getDefaultReadLimit())) != at:
            for task in reader.partitions(at, end):
                batches += reader.read(task)
            at = end
    except RuntimeError as exc:
        return condition(str(exc))
    return in_order(pa.Table.from_batches(batches)) if batches else []


def test_streams_answer_as_delta_sparks_do(tables: Path) -> None:
    theirs = recorded()
    assert set(theirs) == {key_of(*each) for each in OPTIONS}
    ours = {key_of(table, given): _answer(tables / table, given) for table, given in OPTIONS}
    differ = {key for key in ours if ours[key] != theirs[key]}
    assert {key: (ours[key], theirs[key]) for key in differ - set(OTHERWISE)} == {}
    assert differ == set(OTHERWISE)
