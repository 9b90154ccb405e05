"""`clusterBy` of PySpark's writers, for Delta tables: new ones are clustered by those columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

import lakelog.spark as delta
from lakelog.core import DeltaLog
from lakelog.core.alter.clustered_by import shown_columns
from lakelog.core.errors import DeltaAnalysisError, DeltaError
from support.to_end import to_end

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def clustering(path: str) -> list[str]:
    return shown_columns(DeltaLog.for_table(path).snapshot)


@pytest.mark.connect
def test_writers_make_clustered_tables_and_keep_those_that_are_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.range(4).selectExpr("id", "id * 2 AS v")
    saved, named, streamed, to_table = (str(tmp_path / each) for each in "snmt")

    files = str(tmp_path / "files")
    frame.write.parquet(files)

    def writer(*columns: str) -> Any:
        return frame.write.format("delta").mode("append").clusterBy(*columns)

    def query(*columns: str, checkpoint: str) -> Any:
        rows = spark.readStream.schema("id bigint, v bigint").parquet(files)
        started = rows.writeStream.format("delta").clusterBy(*columns).trigger(availableNow=True)
        return started.option("checkpointLocation", str(tmp_path / checkpoint))

    delta.enable(spark)
    try:
        writer("id", "v").save(saved)
        writer("id", "V").save(saved)
        writer("v").option("path", named).saveAsTable("clustered_t")
        writer("v").saveAsTable("clustered_t")
        for _ in range(2):
            to_end(lambda: query("id", checkpoint="c1").start(streamed))
        made = query("v", checkpoint="c2").option("path", to_table)
        to_end(lambda: made.toTable("clustered_s"))
        for other in (
            lambda: writer("v").save(saved),
            lambda: writer("id").saveAsTable("clustered_t"),
            lambda: query("v", checkpoint="c3").start(streamed),
        ):
            with pytest.raises(DeltaAnalysisError, match="DELTA_CLUSTERING_COLUMNS_MISMATCH"):
                other()
        with pytest.raises((DeltaError, AnalysisException), match=r"(?i)cluster"):
            writer("id").partitionBy("v").save(str(tmp_path / "both"))
        with pytest.raises(DeltaError, match=r"(?i)cluster"):
            delta.write(frame).clusterBy("id").partitionBy("v").save(str(tmp_path / "both"))
        with pytest.raises(DeltaAnalysisError, match="clusterBy"):
            writer("v").insertInto("clustered_t")
    finally:
        spark.sql("DROP TABLE IF EXISTS clustered_t")
        spark.sql("DROP TABLE IF EXISTS clustered_s")
        delta.disable(spark)
    assert [clustering(each) for each in (saved, named, streamed, to_table)] == [
        ["id", "v"],
        ["v"],
        ["id"],
        ["v"],
    ]
    log = DeltaLog.for_table(saved)
    assert [each.operation for each in log.history()] == ["WRITE", "CREATE TABLE AS SELECT"]
    assert sum(add.num_records or 0 for add in DeltaLog.for_table(streamed).snapshot.files()) == 4
