from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

import lakelog.spark as delta
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import DeltaAnalysisError, TableExistsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.connect


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    delta.enable(spark)
    yield spark
    delta.disable(spark)


@pytest.mark.parametrize("source", ["delta", "lakelog", "DELTA"])
def test_a_script_for_delta_runs_unchanged(
    enabled: SparkSession, tmp_path: Path, source: str
) -> None:
    path = str(tmp_path / "t")
    rows = enabled.range(10).selectExpr("id", "id % 2 AS p")
    rows.write.format(source).partitionBy("p").save(path)
    rows.write.format(source).mode("append").option("userMetadata", "again").save(path)
    assert enabled.read.format(source).load(path).count() == 20
    assert enabled.read.format(source).option("versionAsOf", 0).load(path).count() == 10
    log = DeltaLog.for_table(path)
    assert log.snapshot.partition_columns == ["p"]
    assert [entry.user_metadata for entry in log.history()] == ["again", None]
    assert all((entry.engine_info or "").startswith("lakelog/") for entry in log.history())


def test_the_keywords_of_save_and_load_mean_what_they_mean_in_pyspark(
    enabled: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    rows = enabled.range(4).selectExpr("id", "id % 2 AS p")
    rows.write.save(path, format="delta", mode="overwrite", partitionBy="p", userMetadata="x")
    rows.write.option("path", path).save(format="delta", mode="append")
    assert enabled.read.load(path, format="delta", versionAsOf=0).count() == 4
    assert enabled.read.format("delta").option("path", path).load().count() == 8
    assert DeltaLog.for_table(path).snapshot.partition_columns == ["p"]


def test_the_default_mode_is_error_as_in_pyspark(enabled: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    enabled.range(1).write.format("delta").save(path)
    with pytest.raises(TableExistsError):
        enabled.range(1).write.format("delta").save(path)
    enabled.range(1).write.format("delta").mode("ignore").save(path)
    assert DeltaLog.for_table(path).snapshot.version == 0


def test_the_default_format_counts_where_none_is_named(
    enabled: SparkSession, tmp_path: Path
) -> None:
    path, key = str(tmp_path / "t"), "spark.sql.sources.default"
    enabled.conf.set(key, "delta")
    try:
        enabled.range(3).write.save(path)
        assert enabled.read.load(path).count() == 3
    finally:
        enabled.conf.unset(key)
    assert DeltaLog.for_table(path).snapshot.version == 0


def test_other_formats_are_untouched(enabled: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "p")
    rows = enabled.range(3).selectExpr("id", "id AS p")
    rows.write.format("parquet").partitionBy("p").mode("overwrite").save(path)
    assert enabled.read.format("parquet").load(path).count() == 3
    enabled.range(3).write.parquet(path + "2")
    assert enabled.read.parquet(path + "2").count() == 3
    assert enabled.read.schema("id INT").json(path + "2").columns == ["id"]
    assert not DeltaLog.for_table(path).table_exists()


def test_disable_gives_pysparks_methods_back(spark: SparkSession) -> None:
    reader = type(spark.read)
    before = dict(vars(reader))
    delta.enable(spark)
    delta.enable(spark)
    assert reader.load is not before["load"]
    delta.disable(spark)
    assert {k: v for k, v in vars(reader).items() if not k.startswith("__")} == {
        k: v for k, v in before.items() if not k.startswith("__")
    }
    delta.disable(spark)


def test_wrapped_methods_keep_their_documentation(enabled: SparkSession) -> None:
    assert "Loads data from a data source" in (type(enabled.read).load.__doc__ or "")


def test_what_a_delta_table_cannot_have_is_refused_by_name(
    enabled: SparkSession, tmp_path: Path
) -> None:
    rows = enabled.range(3)
    with pytest.raises(DeltaAnalysisError, match="bucketBy"):
        rows.write.format("delta").bucketBy(2, "id").save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def test_delta_is_left_alone_where_its_jar_is(
    enabled: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakelog.spark.format import claims
    from lakelog.spark.reading.reader import DeltaReader

    claims.forget_claims()
    monkeypatch.setattr(claims, "delta_is_claimed", lambda spark: True)
    path = str(tmp_path / "t")
    enabled.range(1).write.format("lakelog").save(path)
    monkeypatch.setattr(DeltaReader, "load", None)
    with contextlib.suppress(AnalysisException):
        # Spark's answer, whether or not a test before this has called `register`.
        enabled.read.format("delta").load(path)


def test_a_session_without_the_jar_does_not_claim_delta(spark: SparkSession) -> None:
    from lakelog.spark.format.claims import delta_is_claimed

    assert not delta_is_claimed(spark)
