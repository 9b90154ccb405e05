"""`_metadata` in statements that change rows: delta-spark refuses it, here it is the row's file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import lakelog.spark as delta
from lakelog.core import DeltaLog, write_arrow
from support.delta_spark_peer import DeltaSparkError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from support.delta_spark_peer import DeltaSparkPeer

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})
MAPPED = {"delta.columnMapping.mode": "name"}
SOURCE = "(SELECT 2L AS id) s ON t.id = s.id"
OLD = {1: "a", 2: "b", 3: "c"}


@pytest.mark.one_day_in(4)
@pytest.mark.parametrize("properties", [{}, MAPPED], ids=["plain", "mapped"])
@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("DELETE FROM {t} WHERE _metadata.file_size > 0 AND id < 3", {3: "c"}),
        ("UPDATE {t} SET name = string(_metadata.file_size > 0)", dict.fromkeys(OLD, "true")),
        (
            f"MERGE INTO {{t}} t USING {SOURCE} AND t._metadata.file_size > 0 "
            "WHEN MATCHED THEN DELETE",
            {1: "a", 3: "c"},
        ),
        (
            f"MERGE INTO {{t}} t USING {SOURCE} "
            "WHEN MATCHED THEN UPDATE SET name = string(t._metadata.file_size > 0) "
            "WHEN NOT MATCHED BY SOURCE AND _metadata.file_size < 0 THEN DELETE",
            {**OLD, 2: "true"},
        ),
    ],
)
def test_the_file_of_a_row_is_known_here_alone(
    delta_spark: DeltaSparkPeer,
    spark: SparkSession,
    tmp_path: Path,
    statement: str,
    rows: dict[int, str],
    properties: dict[str, str],
) -> None:
    path = str(tmp_path / "t")
    write_arrow(path, ROWS, properties=properties)
    text = statement.format(t=f"delta.`{path}`")
    with pytest.raises(DeltaSparkError):
        delta_spark.sql(text)
    delta.sql(spark, text)
    found = DeltaLog.for_table(path).snapshot.to_arrow().to_pylist()
    assert {row["id"]: row["name"] for row in found} == rows
