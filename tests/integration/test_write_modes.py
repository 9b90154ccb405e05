"""What `save` does in each mode, and what it says in the log."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from deltalake import DeltaTable

import lakelog.spark as delta
from lakelog.core import DeltaLog, OptimisticTransaction
from lakelog.core.errors import (
    AppendOnlyError,
    DeltaAnalysisError,
    PostCommitHookFailedError,
    SchemaMismatchError,
    TableExistsError,
)
from lakelog.spark import read, write


def rows(path, order="id"):
    """The table's rows, as another client reads them."""
    return DeltaTable(path).to_pyarrow_table().sort_by(order).to_pylist()


def ids(path):
    return [row["id"] for row in rows(path)]


def last_commit(path):
    return DeltaTable(path).history(1)[0]


@pytest.fixture
def table(tmp_path):
    return str(tmp_path / "a table")


@pytest.mark.connect
def test_a_new_table_has_the_rows_and_the_schema_of_the_data(spark, table):
    version = write(spark.sql("SELECT 1L AS id, 'a' AS s, DATE'2020-01-01' AS d")).save(table)

    assert version == 0
    snapshot = DeltaLog.for_table(table).snapshot
    assert str(snapshot.schema) == "struct<id:bigint,s:string,d:date>"
    assert [row["s"] for row in rows(table)] == ["a"]


@pytest.mark.connect
def test_the_default_mode_refuses_a_table_that_exists_and_names_its_version(spark, table):
    write(spark.range(3)).save(table)

    with pytest.raises(TableExistsError, match=r"at version 0.*mode\('append'\)") as caught:
        write(spark.range(5)).save(table)

    assert caught.value.version == 0
    assert ids(table) == [0, 1, 2]


def test_a_folder_without_a_log_is_no_table_that_exists(spark, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")

    assert write(spark.range(1)).save(folder) == 0
    assert (folder / "notes.txt").read_text() == "mine"


def test_ignore_leaves_a_table_alone_and_makes_a_missing_one(spark, table):
    assert write(spark.range(3)).mode("ignore").save(table) == 0
    assert write(spark.range(5)).mode("ignore").save(table) is None
    assert ids(table) == [0, 1, 2]


def test_append_adds_rows_and_is_a_blind_append(spark, table):
    write(spark.range(2)).mode("append").save(table)

    assert write(spark.range(2, 4)).mode("append").save(table) == 1
    assert ids(table) == [0, 1, 2, 3]
    commit = last_commit(table)
    assert commit["operation"] == "WRITE"
    assert commit["operationParameters"]["mode"] == "Append"
    assert commit["isBlindAppend"] is True
    assert commit["operationMetrics"]["numOutputRows"] == "2"


def test_an_append_of_no_rows_commits_nothing(spark, table):
    write(spark.range(2)).save(table)

    assert write(spark.range(2).where("id > 7")).mode("append").save(table) is None
    assert DeltaTable(table).version() == 0


@pytest.mark.connect
def test_a_table_is_made_of_no_rows_too(spark, table):
    empty = spark.sql("SELECT 1L AS id, 'a' AS p").where("id = 2")

    assert write(empty).partitionBy("p").save(table) == 0
    assert rows(table) == []
    assert DeltaTable(table).metadata().partition_columns == ["p"]


def test_overwrite_replaces_every_row_and_keeps_the_old_version_readable(spark, table):
    write(spark.range(3)).save(table)

    assert write(spark.range(10, 12)).mode("overwrite").save(table) == 1
    assert ids(table) == [10, 11]
    assert DeltaTable(table, version=0).to_pyarrow_table().num_rows == 3
    metrics = last_commit(table)["operationMetrics"]
    assert int(metrics["numRemovedFiles"]) >= 1
    assert metrics["numOutputRows"] == "2"


@pytest.mark.connect
def test_a_table_may_be_overwritten_by_its_own_rows(spark, table):
    write(spark.range(4)).save(table)
    own = read(spark).load(table)

    write(own.where("id >= 2")).mode("overwrite").save(table)

    assert ids(table) == [2, 3]


def test_an_append_only_table_is_not_overwritten(spark, table):
    write(spark.range(3)).option("delta.appendOnly", True).save(table)

    with pytest.raises(AppendOnlyError, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        write(spark.range(1)).mode("overwrite").save(table)

    write(spark.range(3, 4)).mode("append").save(table)
    assert ids(table) == [0, 1, 2, 3]


@pytest.mark.connect
def test_properties_come_from_options_and_from_the_session(spark, table):
    key = "spark.databricks.delta.properties.defaults.checkpointInterval"
    spark.conf.set(key, "7")
    try:
        write(spark.range(1)).option("delta.logRetentionDuration", "interval 9 days").save(table)
    finally:
        spark.conf.unset(key)

    configuration = DeltaTable(table).metadata().configuration
    assert configuration["delta.checkpointInterval"] == "7"
    assert configuration["delta.logRetentionDuration"] == "interval 9 days"


def test_an_unknown_property_is_refused_before_anything_is_written(spark, table):
    with pytest.raises(DeltaAnalysisError, match="chekpointInterval"):
        write(spark.range(1)).option("delta.chekpointInterval", 3).save(table)

    assert not Path(table).exists()


def test_the_users_note_is_kept_with_the_commit(spark, table):
    write(spark.range(1)).option("userMetadata", "first load").save(table)

    assert last_commit(table)["userMetadata"] == "first load"


def test_a_known_transaction_is_not_written_twice(spark, table):
    def load(version):
        writer = write(spark.range(version, version + 1)).mode("append")
        return writer.options(txnAppId="nightly", txnVersion=version).save(table)

    assert [load(0), load(1), load(1), load(0), load(2)] == [0, 1, None, None, 2]
    assert ids(table) == [0, 1, 2]
    assert DeltaLog.for_table(table).start_transaction().txn_version("nightly") == 2


def test_rows_may_move_without_counting_as_a_change(spark, table):
    write(spark.range(4).repartition(2)).save(table)

    version = (
        write(spark.range(4).coalesce(1)).mode("overwrite").option("dataChange", False).save(table)
    )

    log = Path(table, "_delta_log", f"{version:020d}.json").read_text().splitlines()
    actions = [json.loads(line) for line in log]
    flags = [a[k]["dataChange"] for a in actions for k in ("add", "remove") if k in a]
    assert flags
    assert not any(flags)


def test_a_new_table_can_not_claim_that_no_data_changes(spark, table):
    with pytest.raises(DeltaAnalysisError, match="dataChange=false"):
        write(spark.range(1)).option("dataChange", False).save(table)


def test_save_takes_its_settings_as_arguments_too(spark, table):
    data = spark.sql("SELECT 1L AS id, 'a' AS p")

    write(data).save(table, format="delta", mode="append", partitionBy="p", userMetadata="args")

    assert last_commit(table)["userMetadata"] == "args"
    assert DeltaTable(table).metadata().partition_columns == ["p"]


def test_the_path_may_be_an_option_and_must_be_somewhere(spark, table):
    write(spark.range(1)).option("path", table).save()

    assert ids(table) == [0]
    with pytest.raises(DeltaAnalysisError, match="needs the path"):
        write(spark.range(1)).save()


def test_another_format_is_refused(spark):
    with pytest.raises(DeltaAnalysisError, match="'csv'"):
        write(spark.range(1)).format("csv")


@pytest.mark.connect
def test_a_relative_path_starts_where_sparks_does(spark, tmp_path, monkeypatch):
    asked = "SELECT java_method('java.lang.System', 'getProperty', 'user.dir')"
    path = os.path.relpath(tmp_path / "t", spark.sql(asked).first()[0])
    monkeypatch.chdir(tmp_path)
    write(spark.range(1)).save(path)

    write(spark.range(1, 2)).mode("append").save(f"file://{tmp_path}/t")

    assert ids(str(tmp_path / "t")) == [0, 1]
    assert read(spark).load(path).count() == 2
    assert delta.DeltaTable.isDeltaTable(spark, path)
    assert delta.DeltaTable.forPath(spark, path).toDF().count() == 2
    assert delta.read_stream(spark).load(path).columns == ["id"]
    spark.range(1).write.parquet(f"{path}/beside")
    assert (tmp_path / "t" / "beside").is_dir()


# Schemas ------------------------------------------------------------------------------------


def test_columns_are_matched_by_name_cast_upwards_and_filled_with_null(spark, table):
    write(spark.sql("SELECT 1L AS id, 'a' AS s, 1.5D AS d")).save(table)

    write(spark.sql("SELECT CAST(2 AS SMALLINT) AS ID, CAST(2 AS FLOAT) AS d")).mode("append").save(
        table
    )

    assert rows(table)[1] == {"id": 2, "s": None, "d": 2.0}


def test_a_difference_is_shown_column_by_column_and_nothing_is_written(spark, table):
    write(spark.sql("SELECT 1L AS id, 'a' AS s")).save(table)
    before = sorted(Path(table).rglob("*"))

    with pytest.raises(SchemaMismatchError) as caught:
        write(spark.sql("SELECT 'x' AS id, 1 AS extra")).mode("append").save(table)

    text = str(caught.value)
    assert "id" in text
    assert "extra" in text
    assert "mergeSchema" in text
    assert sorted(Path(table).rglob("*")) == before


@pytest.mark.connect
def test_merge_schema_adds_columns_nested_ones_too(spark, table):
    write(spark.sql("SELECT 1L AS id, named_struct('a', 1) AS s")).save(table)
    wider = spark.sql("SELECT 2L AS id, named_struct('b', 'x', 'a', 2) AS s, true AS extra")

    write(wider).mode("append").option("mergeSchema", True).save(table)

    # Not by deltalake: it reads files with fewer nested fields only on newer versions of pyarrow.
    assert DeltaLog.for_table(table).snapshot.to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "s": {"a": 1, "b": None}, "extra": None},
        {"id": 2, "s": {"a": 2, "b": "x"}, "extra": True},
    ]


@pytest.mark.connect
def test_auto_merge_of_the_session_is_obeyed(spark, table):
    write(spark.range(1)).save(table)
    spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    try:
        write(spark.sql("SELECT 1L AS id, 'x' AS extra")).mode("append").save(table)
    finally:
        spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")

    assert rows(table)[1]["extra"] == "x"


def test_overwrite_schema_replaces_schema_and_partitioning_and_keeps_the_tables_id(spark, table):
    write(spark.sql("SELECT 1L AS id, 'a' AS p")).partitionBy("p").save(table)
    before = DeltaTable(table).metadata().id

    data = spark.sql("SELECT 'x' AS id, 7 AS q")
    write(data).mode("overwrite").option("overwriteSchema", True).partitionBy("q").save(table)

    metadata = DeltaTable(table).metadata()
    assert metadata.id == before
    assert metadata.partition_columns == ["q"]
    assert rows(table) == [{"id": "x", "q": 7}]


def test_another_partitioning_is_refused_with_both_shown(spark, table):
    write(spark.sql("SELECT 1L AS id, 'a' AS p")).partitionBy("p").save(table)

    with pytest.raises(DeltaAnalysisError, match="partitioned by p, but the write asks for id"):
        write(spark.sql("SELECT 1L AS id, 'a' AS p")).partitionBy("id").mode("append").save(table)


def test_partition_columns_are_spelled_as_the_data_spells_them(spark, table):
    write(spark.sql("SELECT 1L AS id, 'a' AS Part")).partitionBy("pArT").save(table)

    assert DeltaTable(table).metadata().partition_columns == ["Part"]


def test_a_missing_partition_column_is_refused(spark, table):
    with pytest.raises(DeltaAnalysisError, match="partition column nope"):
        write(spark.range(1)).partitionBy("nope").save(table)


@pytest.mark.connect
def test_two_columns_of_one_name_are_refused(spark, table):
    with pytest.raises(DeltaAnalysisError, match="these do not: a, A"):
        write(spark.sql("SELECT 1 AS a, 2 AS A")).save(table)


@pytest.mark.connect
def test_a_void_column_stays_in_the_schema_until_it_gets_a_type(spark, table):
    untyped = spark.sql("SELECT 1L AS id, NULL AS x, struct(1 AS k, NULL AS v) AS s")
    write(untyped).save(table)
    write(untyped).mode("append").save(table)

    found = read(spark).load(table)
    assert found.schema.simpleString() == "struct<id:bigint,x:void,s:struct<k:int,v:void>>"
    assert [(row.id, row.x, row.s.k) for row in found.collect()] == [(1, None, 1)] * 2

    typed = spark.sql("SELECT 2L AS id, 'text' AS x")
    write(typed).mode("append").option("mergeSchema", "true").save(table)
    texts = sorted((row.id, row.x) for row in read(spark).load(table).collect())
    assert texts == [(1, None), (1, None), (2, "text")]


@pytest.mark.connect
@pytest.mark.parametrize("columns", ["", "NULL AS x", "NULL AS s, NULL AS id"])
def test_rows_that_no_file_could_hold_are_refused(spark, table, columns):
    data = spark.range(3).selectExpr(*columns.split(", ")) if columns else spark.range(3).select()
    with pytest.raises(DeltaAnalysisError, match="EMPTY_DATA"):
        write(data).save(table)
    assert not Path(table).exists()

    write(spark.range(2)).save(table)
    for mode in ("append", "overwrite"):
        for option in ("mergeSchema", "overwriteSchema"):
            with pytest.raises(DeltaAnalysisError, match="EMPTY_DATA"):
                write(data).mode(mode).option(option, "true").save(table)
    assert len(rows(table)) == 2


@pytest.mark.connect
def test_an_interval_is_refused_by_column(spark, table):
    with pytest.raises(DeltaAnalysisError, match="unsupported data types: i: interval"):
        write(spark.sql("SELECT INTERVAL 1 DAY AS i")).save(table)

    assert not Path(table).exists()


@pytest.mark.connect
def test_the_rows_of_a_wide_write_are_all_there(spark, table):
    data = spark.range(200_000).selectExpr("id", "id % 7 AS p", "CAST(id AS STRING) AS s")

    write(data).partitionBy("p").save(table)
    write(data.selectExpr("id + 200000 AS id", "p", "s")).mode("append").save(table)

    found = DeltaTable(table).to_pyarrow_table()
    assert found.num_rows == 400_000
    assert len(found["id"].unique()) == 400_000


def test_a_hook_that_fails_behind_the_commit_takes_no_file_away(spark, tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    commit = OptimisticTransaction.commit_if_needed

    def failing(self, actions, operation):
        commit(self, actions, operation)
        raise PostCommitHookFailedError("after it")

    monkeypatch.setattr(OptimisticTransaction, "commit_if_needed", failing)
    with pytest.raises(PostCommitHookFailedError):
        write(spark.range(3)).save(path)
    assert ids(path) == [0, 1, 2]
