from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.datasource import DataSourceReader

import lakelog.spark as delta
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import (
    ConstraintViolationError,
    DeltaAnalysisError,
    DeltaError,
    SchemaMismatchError,
    TableNotFoundError,
    VersionNotFoundError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.connect


@pytest.fixture
def source(spark: SparkSession) -> SparkSession:
    delta.register(spark)
    return spark


def ids(df: DataFrame) -> list[Any]:
    return sorted(row.id for row in df.select("id").collect())


def original(call: Callable[[], object]) -> DeltaError:
    """The lakelog error behind what Spark raises for a call."""
    with pytest.raises(PySparkException) as caught:
        call()
    found = delta.unwrap_error(caught.value)
    assert isinstance(found, DeltaError)
    return found


def make(spark: SparkSession, path: str, *, parts: int = 3) -> None:
    """A partitioned table: ids 0-99 with `p` = `id % 2`, then 100-199, …; two files each."""
    for part in range(parts):
        rows = spark.range(part * 100, part * 100 + 100, 1, 1)
        rows = rows.selectExpr("id", "id % 2 AS p", "cast(id AS string) AS s")
        delta.write(rows).mode("append").partitionBy("p").save(path)


def test_appends_and_reads_a_table(source: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = source.range(0, 10, 1, 2).selectExpr("id", "id % 2 AS p")
    rows.write.format("lakelog").mode("append").option("partitionBy", "p").save(path)
    rows.write.format("lakelog").mode("append").option("userMetadata", "again").save(path)
    log = DeltaLog.for_table(path)
    assert log.snapshot.partition_columns == ["p"]
    assert log.history()[0].user_metadata == "again"
    assert all(add.stats and add.num_records for add in log.snapshot.files())
    assert ids(source.read.format("lakelog").load(path)) == sorted([*range(10)] * 2)


def test_overwrite_replaces_every_row(source: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    make(source, path, parts=1)
    rows = source.range(5).selectExpr("id", "id % 2 AS p", "'x' AS s")
    rows.write.format("lakelog").mode("overwrite").save(path)
    assert ids(delta.read(source).load(path)) == [0, 1, 2, 3, 4]


def test_every_type_comes_back_as_the_main_path_gives_it(
    source: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    rows = source.sql(
        """SELECT CAST(1 AS byte) b, CAST(2 AS short) s, 3 i, 4L l, CAST(1.5 AS float) f,
        double('NaN') d, 1.23BD dec, 'é' t, X'00FF' bin, true bo, DATE'1815-12-10' da,
        TIMESTAMP'1960-02-29 23:59:59.999999' ts, TIMESTAMP_NTZ'2020-01-01 00:00:00.000001' tn,
        array(1, NULL) ar, map('k', named_struct('x', 1, 'y', CAST(NULL AS string))) m,
        named_struct('in', array(named_struct('z', DATE'2000-01-01'))) st,
        CAST(NULL AS int) nul, NULL v, named_struct('k', 1, 'v', NULL) sv"""
    )
    rows.write.format("lakelog").mode("append").save(path)
    delta.write(rows).mode("append").save(path)
    got = source.read.format("lakelog").load(path)
    assert got.schema == delta.read(source).load(path).schema
    first, second = (str(row) for row in got.collect())
    assert first == second == str(rows.collect()[0])


def test_rows_that_no_file_could_hold_are_refused(source: SparkSession, tmp_path: Path) -> None:
    for columns in ([], ["NULL AS x"]):
        rows = source.range(3).selectExpr(*columns) if columns else source.range(3).select()
        with pytest.raises(PySparkException, match="EMPTY_DATA"):
            rows.write.format("lakelog").mode("append").save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def test_a_temporary_view_is_read_and_inserted_into(source: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    make(source, path, parts=1)
    source.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING lakelog OPTIONS (path '{path}')")
    assert source.sql("SELECT count(*) AS n FROM v WHERE p = 1").collect()[0].n == 50
    source.sql("INSERT INTO v VALUES (1000, 1, 'x')")
    assert DeltaLog.for_table(path).snapshot.version == 1
    assert source.sql("SELECT s FROM v WHERE id = 1000").collect()[0].s == "x"


def test_nothing_is_written_by_way_of_an_older_version(
    source: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    make(source, path, parts=1)
    made = datetime.fromtimestamp(DeltaLog.for_table(path).history()[0].timestamp / 1000, UTC)
    digits = f"{made:%Y%m%d%H%M%S}{made.microsecond // 1000:03}"
    for options in (
        f"path '{path}', versionAsOf '0'",
        f"path '{path}', TimestampAsOf '{made:%Y-%m-%d %H:%M:%S.%f}'",
        f"path '{path}@v0'",
        f"path '{path}@{digits}'",
    ):
        source.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING lakelog OPTIONS ({options})")
        for insert in ("INTO", "OVERWRITE"):
            with pytest.raises(PySparkException, match="HISTORICAL_VERSION"):
                source.sql(f"INSERT {insert} v VALUES (1000, 1, 'x')")
    assert [each.name for each in tmp_path.iterdir()] == ["t"]
    assert DeltaLog.for_table(path).update().version == 0
    make(source, f"{path}@v5", parts=1)
    source.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING lakelog OPTIONS (path '{path}@v5')")
    source.sql("INSERT INTO v VALUES (1000, 1, 'x')")
    assert DeltaLog.for_table(f"{path}@v5").update().version == 1


def test_filters_skip_files_by_partition_and_statistics(
    source: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    make(source, path)
    log = DeltaLog.for_table(path)
    doomed = [a for a in log.snapshot.files() if a.partition_values["p"] == "0"]
    doomed += log.snapshot.files("id >= 100 AND p = 1")
    # Spark 4.0 tells Python sources nothing of filters; the rows must be right there too.
    for add in doomed if hasattr(DataSourceReader, "pushFilters") else ():
        (tmp_path / "t" / add.path).unlink(missing_ok=True)
    df = source.read.format("lakelog").load(path)
    assert ids(df.where("p = 1 AND id < 50 AND s LIKE '4%'")) == [41, 43, 45, 47, 49]
    assert ids(df.where("p IN (1, 7) AND id IN (5, 6)")) == [5]


def test_older_versions_and_columns_are_options(source: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    make(source, path)
    reader = source.read.format("lakelog")
    assert reader.option("versionAsOf", 0).load(path).count() == 100
    assert source.read.format("lakelog").load(f"{path}@v1").count() == 200
    df = source.read.format("lakelog").option("columns", "s, ID").load(path)
    assert df.columns == ["s", "id"]
    assert df.where("id = 3").collect()[0].s == "3"
    late = source.read.format("lakelog").option("timestampAsOf", "2100-01-01T00:00:00Z")
    assert "2100" in str(original(lambda: late.load(path).count()))


def test_an_empty_table_gives_no_rows(source: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    delta.write(source.range(0)).save(path)
    df = source.read.format("lakelog").load(path)
    assert df.columns == ["id"]
    assert df.collect() == []


def test_errors_keep_their_class_and_fields(source: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")

    def load() -> object:
        return source.read.format("lakelog").load(path).collect()

    assert isinstance(original(load), TableNotFoundError)
    make(source, path, parts=1)

    def load_version() -> object:
        return source.read.format("lakelog").option("versionAsOf", 9).load(path).collect()

    assert isinstance(original(load_version), VersionNotFoundError)

    def save() -> None:
        rows = source.range(1).selectExpr("id", "id AS other")
        rows.write.format("lakelog").mode("append").save(path)

    assert isinstance(original(save), SchemaMismatchError)
    assert DeltaLog.for_table(path).snapshot.version == 0


def test_an_error_of_somebody_else_has_no_original(source: SparkSession) -> None:
    with pytest.raises(AnalysisException) as caught:
        source.sql("SELECT nope FROM range(1)").collect()
    assert delta.unwrap_error(caught.value) is None


def test_what_the_api_cannot_do_names_the_call_that_can(
    source: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    make(source, path, parts=1)
    rows = source.range(1).selectExpr("id", "id AS p", "'x' AS s")
    for name, value in (("replaceWhere", "p = 1"), ("partitionOverwriteMode", "dynamic")):
        writer = rows.write.format("lakelog").mode("overwrite").option(name, value)
        assert "lakelog.spark.write(df)" in str(original(lambda w=writer: w.save(path)))  # type: ignore[misc]  # a default binds the loop's value
    found = original(lambda: source.read.format("lakelog").load().count())
    assert isinstance(found, DeltaAnalysisError)
    assert "TEMPORARY VIEW" in str(found)


def test_a_rule_of_the_table_is_never_broken(source: SparkSession, tmp_path: Path) -> None:
    from dataclasses import replace

    from lakelog.core.actions.operation import Operation

    path = str(tmp_path / "t")
    make(source, path, parts=1)
    log = DeltaLog.for_table(path)
    txn = log.start_transaction()
    text = txn.metadata.schema_string.replace(
        '"name":"id","type":"long","nullable":true', '"name":"id","type":"long","nullable":false'
    )
    assert text != txn.metadata.schema_string
    txn.update_metadata(replace(txn.metadata, schema_string=text))
    txn.commit([], Operation.manual())
    rows = source.range(1).selectExpr("CAST(NULL AS bigint) AS id", "id AS p", "'x' AS s")

    def save() -> None:
        rows.write.format("lakelog").mode("append").save(path)

    assert isinstance(original(save), ConstraintViolationError)
    assert log.update().version == 1


def test_a_batch_that_was_committed_is_not_committed_again(
    source: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    for _ in range(2):
        writer = source.range(3).write.format("lakelog").mode("append")
        writer.option("txnAppId", "job").option("txnVersion", 7).save(path)
    assert ids(source.read.format("lakelog").load(path)) == [0, 1, 2]
