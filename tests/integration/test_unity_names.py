"""Tables that Unity Catalog governs, by their names in a session, through the server's double."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as sf

import lakelog.spark as delta
from lakelog.core import DeltaLog, optimize, read_arrow, vacuum, write_arrow
from lakelog.core.errors import (
    CatalogError,
    DeltaAnalysisError,
    DeltaError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from support.to_end import to_end
from support.unity_server import UnityServer, Ways, serving
from support.unity_tables import make_table, other_client_commits, rows_file, write_commit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

TOKEN = "t0ken-of-the-test"
NAME = "lake.s.t"
BLOCKED = r"\[DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED\]"
FORBIDDEN = "[DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION]"


@pytest.fixture
def server(classic_spark: SparkSession, tmp_path: Path) -> Iterator[UnityServer]:
    """The double, behind an enabled session whose conf knows the catalog `lake`."""
    ways = Ways(checks_published=True)
    with serving(UnityServer(tmp_path / "unity", ways, token=TOKEN)) as served:
        delta.enable(classic_spark)
        for key, value in served.conf().items():
            classic_spark.conf.set(key, value)
        yield served
        for key in served.conf():
            classic_spark.conf.unset(key)
        delta.disable(classic_spark)


@pytest.fixture
def lake(classic_spark: SparkSession, server: UnityServer) -> SparkSession:
    return classic_spark


def ids(server: UnityServer, name: str = NAME) -> list[Any]:
    """Without Spark."""
    return sorted(read_arrow(name, conf=server.conf())["id"].to_pylist())


def seen(lake: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.sql(query).collect())


def test_a_table_is_read_by_its_name_at_any_version(
    lake: SparkSession, server: UnityServer
) -> None:
    folder = make_table(server)
    other_client_commits(server, folder, 1, 2)
    other_client_commits(server, folder, 3)
    stray = rows_file(folder, 99)
    write_commit(folder / f"_delta_log/{3:020d}.json", 1, stray)  # above what is ratified

    for frame in (
        lake.table(NAME),
        lake.read.table(NAME),
        lake.read.format("lakelog").load(NAME),
        delta.read(lake).table("`lake`.`s`.`t`"),
        delta.DeltaTable.forName(lake, NAME).toDF(),
        delta.sql(lake, f"SELECT * FROM {NAME}"),
    ):
        assert sorted(row.id for row in frame.collect()) == [1, 2, 3]
    assert seen(lake, f"SELECT t.id FROM {NAME} WHERE {NAME}.id > 1") == [(2,), (3,)]
    assert seen(lake, f"SELECT count(*) FROM {NAME}") == [(3,)]
    assert seen(lake, f"SELECT id FROM {NAME} VERSION AS OF 1") == [(1,), (2,)]
    assert seen(lake, f"SELECT a.id FROM {NAME} a JOIN {NAME}@v1 b ON a.id = b.id") == [(1,), (2,)]
    assert lake.read.option("versionAsOf", 0).table(NAME).count() == 0
    history = lake.sql(f"DESCRIBE HISTORY {NAME}").collect()
    assert [row.version for row in history] == [2, 1, 0]
    moment = history[1].timestamp.isoformat(sep=" ")
    assert seen(lake, f"SELECT id FROM {NAME} TIMESTAMP AS OF '{moment}'") == [(1,), (2,)]
    (detail,) = lake.sql(f"DESCRIBE DETAIL {NAME}").collect()
    assert (detail.name, detail.location, detail.numFiles) == (NAME, f"file:{folder}", 2)
    assert delta.DeltaTable.forName(lake, NAME).detail().collect()[0].name == NAME
    assert [row.col_name for row in lake.sql(f"DESCRIBE {NAME}").collect()] == ["id"]
    assert [each.name for each in lake.catalog.listColumns(NAME)] == ["id"]
    shown = {row.key: row.value for row in lake.sql(f"SHOW TBLPROPERTIES {NAME}").collect()}
    assert shown["delta.feature.catalogManaged"] == "supported"
    assert "LOCATION" not in lake.sql(f"SHOW CREATE TABLE {NAME}").collect()[0][0]
    assert delta.DeltaTable.isDeltaTable(lake, NAME)
    assert not delta.DeltaTable.isDeltaTable(lake, "lake.s.none")


def test_rows_are_changed_by_statements_and_each_change_is_ratified(
    lake: SparkSession, server: UnityServer
) -> None:
    make_table(server)
    lake.sql(f"ALTER TABLE {NAME} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    lake.sql(f"ALTER TABLE {NAME} ADD COLUMNS (s STRING)")
    lake.sql(f"INSERT INTO {NAME} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    lake.sql(f"INSERT INTO {NAME} (id) SELECT id + 3 FROM {NAME}")
    assert ids(server) == [1, 2, 3, 4, 5, 6]
    lake.sql(f"DELETE FROM {NAME} WHERE t.id = 2")
    lake.sql(f"UPDATE {NAME} SET s = 'z' WHERE {NAME}.id > 4")
    lake.createDataFrame([(1, "m"), (9, "n")], "id long, s string").createOrReplaceTempView("src")
    lake.sql(
        f"MERGE INTO {NAME} t USING src ON t.id = src.id WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    expected = [(1, "m"), (3, "c"), (4, None), (5, "z"), (6, "z"), (9, "n")]
    assert seen(lake, f"SELECT * FROM {NAME} WHERE s IS NOT NULL") == [
        each for each in expected if each[1] is not None
    ]
    assert lake.table(NAME).count() == len(expected)
    changed = lake.sql(f"SELECT * FROM table_changes('{NAME}', 7)").collect()
    kinds = {(row.id, row._change_type) for row in changed}
    assert kinds == {(1, "update_preimage"), (1, "update_postimage"), (9, "insert")}
    by_reader = lake.read.option("readChangeFeed", "true").option("startingVersion", 7)
    assert by_reader.table(NAME).count() == len(changed)
    lake.sql(f"INSERT OVERWRITE {NAME} SELECT 7, 'o'")
    assert ids(server) == [7]
    lake.sql(f"TRUNCATE TABLE {NAME}")
    assert ids(server) == []

    table = server.table(NAME)
    log = DeltaLog.for_table(NAME, server.conf())
    assert table.latest == log.update().version == 9
    assert [each["name"] for each in table.columns["fields"]] == ["id", "s"]
    assert table.properties["delta.enableChangeDataFeed"] == "true"
    lake.sql(f"ALTER TABLE {NAME} ALTER COLUMN s COMMENT 'said'")
    lake.sql(f"COMMENT ON TABLE {NAME} IS 'rows'")
    lake.sql(f"ALTER TABLE {NAME} ADD CONSTRAINT positive CHECK (id > 0)")
    lake.sql(f"ALTER TABLE {NAME} UNSET TBLPROPERTIES ('delta.enableChangeDataFeed')")
    assert "delta.enableChangeDataFeed" not in table.properties
    assert table.columns["fields"][1]["metadata"]["comment"] == "said"
    with pytest.raises(DeltaError, match="positive"):
        lake.sql(f"INSERT INTO {NAME} VALUES (-1, 'x')")


@pytest.mark.one_day_in(3)
@pytest.mark.parametrize("way", ["auto", "native", "arrow"])
def test_frames_are_written_by_name_by_whoever_writes_the_files(
    lake: SparkSession, server: UnityServer, way: str
) -> None:
    make_table(server)
    lake.conf.set("spark.lakelog.write.path", way)
    try:
        rows = lake.range(0, 4, 1, 2)
        rows.write.format("lakelog").mode("append").saveAsTable(NAME)
        rows.write.mode("append").saveAsTable(NAME)
        rows.write.format("delta").mode("append").save(NAME)
        rows.write.insertInto(NAME)
        delta.write(rows).mode("append").saveAsTable(NAME)
        rows.writeTo(NAME).append()
        assert ids(server) == sorted([*range(4)] * 6)
        rows.writeTo(NAME).overwrite(sf.col("id") < 4)
        rows.write.mode("ignore").saveAsTable(NAME)
        assert ids(server) == [0, 1, 2, 3]
        lake.range(10, 12).write.mode("overwrite").saveAsTable(NAME)
        assert ids(server) == [10, 11]
        lake.range(5).write.insertInto(NAME, overwrite=True)
        source = lake.range(3, 6).alias("s")
        source.mergeInto(NAME, sf.expr("t.id = s.id")).whenNotMatched().insertAll().merge()
        assert ids(server) == [0, 1, 2, 3, 4, 5]
        grown = lake.range(1).selectExpr("id", "'x' AS s")
        grown.write.mode("append").option("mergeSchema", "true").saveAsTable(NAME)
        assert [each["name"] for each in server.table(NAME).columns["fields"]] == ["id", "s"]
    finally:
        lake.conf.unset("spark.lakelog.write.path")
    with pytest.raises(TableExistsError):
        rows.write.format("delta").saveAsTable(NAME)
    with pytest.raises(DeltaAnalysisError, match="parquet"):
        rows.writeTo(NAME).using("parquet").append()


@pytest.mark.one_day_in(3, 1)
def test_streams_go_from_name_to_name(
    lake: SparkSession, server: UnityServer, tmp_path: Path
) -> None:
    folder = make_table(server)
    make_table(server, "lake.s.copy")
    other_client_commits(server, folder, 1, 2)

    def copied() -> None:
        writer = lake.readStream.table(NAME).writeStream.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        to_end(lambda: writer.toTable("lake.s.copy"))

    copied()
    other_client_commits(server, folder, 3)
    write_arrow(NAME, {"id": [4]}, mode="append", conf=server.conf())
    copied()
    table = server.table(NAME)
    newest, table.latest = table.latest, 1  # an answer that is older than the checkpoint
    waiting, table.commits = table.commits, {}
    copied()
    table.latest, table.commits = newest, waiting
    other_client_commits(server, folder, 5)
    copied()
    assert ids(server, "lake.s.copy") == [1, 2, 3, 4, 5]
    # What Spark keeps of the query has no secret.
    kept = [each for each in (tmp_path / "checkpoint").rglob("*") if each.is_file()]
    assert kept
    assert [each for each in kept if TOKEN.encode() in each.read_bytes()] == []


def test_the_changes_of_commits_that_nobody_published(
    lake: SparkSession, server: UnityServer, tmp_path: Path
) -> None:
    folder = make_table(server, properties={"delta.enableChangeDataFeed": "true"})
    other_client_commits(server, folder, 1, 2)
    other_client_commits(server, folder, 3)
    expected = [(1, 1, "insert"), (2, 1, "insert"), (3, 2, "insert")]
    columns = "id, _commit_version, _change_type"
    assert seen(lake, f"SELECT {columns} FROM table_changes('{NAME}', 0)") == expected
    assert seen(lake, f"SELECT {columns} FROM table_changes('{NAME}', 1, 1)") == expected[:2]

    feed = lake.readStream.option("readChangeFeed", "true").option("startingVersion", 1)
    writer = feed.table(NAME).selectExpr(*columns.split(", ")).writeStream
    writer = writer.trigger(availableNow=True).format("parquet")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))

    def streamed() -> list[tuple[Any, ...]]:
        to_end(lambda: writer.start(str(tmp_path / "changes")))
        found = lake.read.parquet(str(tmp_path / "changes"))
        return sorted(tuple(row) for row in found.collect())

    assert streamed() == expected
    other_client_commits(server, folder, 4)
    assert streamed() == [*expected, (4, 3, "insert")]
    assert sorted(server.table(NAME).commits) == [1, 2, 3]


def test_what_the_catalog_forbids_is_refused_as_without_spark(
    lake: SparkSession, server: UnityServer
) -> None:
    folder = make_table(server)
    lake.sql(f"INSERT INTO {NAME} VALUES (1)")
    for without, statements in {
        lambda: optimize(NAME, conf=server.conf()): [
            f"OPTIMIZE {NAME}",
            f"OPTIMIZE {NAME} ZORDER BY (id)",
        ],
        lambda: vacuum(NAME, conf=server.conf()): [f"VACUUM {NAME}", f"VACUUM {NAME} DRY RUN"],
    }.items():
        with pytest.raises(UnsupportedFeatureError, match=re.escape(FORBIDDEN)) as refused:
            without()
        for each in statements:
            with pytest.raises(UnsupportedFeatureError, match=f"^{re.escape(str(refused.value))}$"):
                lake.sql(each)
    for each in (
        f"REORG TABLE {NAME} APPLY (PURGE)",
        f"RESTORE TABLE {NAME} TO VERSION AS OF 0",
        f"ALTER TABLE {NAME} DROP FEATURE deletionVectors",
    ):
        with pytest.raises(UnsupportedFeatureError, match=re.escape(FORBIDDEN)):
            lake.sql(each)
    with pytest.raises(DeltaAnalysisError, match="can't be put in another folder"):
        lake.sql(f"ALTER TABLE {NAME} SET LOCATION '/elsewhere'")
    with pytest.raises(DeltaAnalysisError, match="DELTA_TABLE_LOCATION_MISMATCH"):
        lake.range(1).write.mode("append").option("path", "/elsewhere").saveAsTable(NAME)
    # A path is no way to it, although the session knows the log by its name.
    for read in (
        lambda: lake.read.format("delta").load(str(folder)),
        lambda: delta.DeltaTable.forPath(lake, str(folder)),
        lambda: lake.sql(f"INSERT INTO delta.`{folder}` VALUES (2)"),
    ):
        with pytest.raises(UnsupportedFeatureError, match=BLOCKED):
            read()
    assert ids(server) == [1]


def test_a_table_that_is_not_there_is_missed_by_its_name(
    lake: SparkSession, server: UnityServer
) -> None:
    make_table(server)
    for use in (
        lambda: lake.table("lake.s.none"),
        lambda: lake.sql("SELECT * FROM lake.s.none"),
        lambda: lake.sql("DELETE FROM lake.s.none"),
        lambda: lake.sql("DESCRIBE HISTORY lake.s.none"),
        lambda: lake.readStream.table("lake.s.none"),
        lambda: delta.DeltaTable.forName(lake, "lake.s.none"),
        lambda: lake.range(1).writeTo("lake.s.none").append(),
    ):
        with pytest.raises(TableNotFoundError, match=r"has no table lake\.s\.none"):
            use()
    lake.conf.set("spark.sql.catalog.lake.auth.token", "another-t0ken")
    with pytest.raises(CatalogError) as refused:
        lake.table(NAME)
    assert "another-t0ken" not in str(refused.value)


def test_a_name_may_be_given_to_another_table(lake: SparkSession, server: UnityServer) -> None:
    make_table(server)
    lake.sql(f"INSERT INTO {NAME} VALUES (1)")
    assert lake.table(NAME).count() == 1
    server.drop(NAME)
    with pytest.raises(TableNotFoundError):
        lake.table(NAME)
    make_table(server)
    assert lake.table(NAME).count() == 0
    lake.sql(f"INSERT INTO {NAME} VALUES (2), (3)")
    assert ids(server) == [2, 3]


def test_cached_rows_are_not_those_of_a_table_that_had_the_name(
    lake: SparkSession, server: UnityServer
) -> None:
    def made(row: int) -> None:
        make_table(server)
        write_arrow(NAME, {"id": [row]}, mode="append", conf=server.conf())

    made(1)
    lake.sql(f"CACHE TABLE {NAME}")
    assert seen(lake, f"SELECT id FROM {NAME}") == [(1,)]
    server.drop(NAME)
    made(2)  # of the same version
    assert seen(lake, f"SELECT id FROM {NAME}") == [(2,)]
    lake.catalog.dropTable(NAME)
    made(3)
    assert seen(lake, f"SELECT id FROM {NAME}") == [(3,)]
    lake.sql(f"UNCACHE TABLE IF EXISTS {NAME}")


def test_views_and_clones_of_a_governed_table(
    lake: SparkSession, server: UnityServer, tmp_path: Path
) -> None:
    make_table(server)
    lake.sql(f"INSERT INTO {NAME} VALUES (1), (2)")
    lake.table(NAME).createOrReplaceTempView("shown")
    lake.sql("DELETE FROM shown WHERE id = 1")
    assert ids(server) == [2]
    assert seen(lake, "SELECT id FROM shown") == [(2,)]
    delta.DeltaTable.forName(lake, NAME).toDF().createOrReplaceTempView("shown")
    lake.sql("INSERT INTO shown VALUES (5)")
    lake.sql(f"CREATE OR REPLACE TEMP VIEW asked AS SELECT * FROM {NAME}")
    assert seen(lake, "SELECT id FROM asked") == [(2,), (5,)]
    with pytest.raises(DeltaAnalysisError, match="another catalog than Spark's own"):
        lake.sql(f"CREATE VIEW kept AS SELECT * FROM {NAME}")
    lake.sql(f"CACHE TABLE {NAME}")
    lake.sql(f"INSERT INTO {NAME} VALUES (6)")
    assert seen(lake, f"SELECT id FROM {NAME}") == [(2,), (5,), (6,)]
    lake.sql(f"UNCACHE TABLE {NAME}")
    copy = str(tmp_path / "copy")
    lake.sql(f"CREATE TABLE delta.`{copy}` SHALLOW CLONE {NAME}")
    lake.sql(f"INSERT INTO delta.`{copy}` VALUES (7)")
    assert seen(lake, f"SELECT id FROM delta.`{copy}`") == [(2,), (5,), (6,), (7,)]
    like = str(tmp_path / "like")
    lake.sql(f"CREATE TABLE delta.`{like}` LIKE {NAME}")
    assert "catalogManaged" not in json.dumps(
        [row.asDict() for row in lake.sql(f"DESCRIBE DETAIL delta.`{like}`").collect()],
        default=str,
    )


def test_a_large_log_is_replayed_by_spark_with_what_is_not_published(
    lake: SparkSession, server: UnityServer
) -> None:
    folder = make_table(server)
    for each in range(3):
        other_client_commits(server, folder, each)
    lake.conf.set("spark.lakelog.replay", "spark")
    try:
        assert lake.table(NAME).count() == 3
    finally:
        lake.conf.unset("spark.lakelog.replay")


def test_tables_are_made_replaced_renamed_and_dropped(
    lake: SparkSession, server: UnityServer
) -> None:
    server.add_schema("lake", "s")
    lake.sql(
        f"CREATE TABLE {NAME} (id LONG NOT NULL, day DATE COMMENT 'of the order') USING delta "
        "PARTITIONED BY (day) COMMENT 'orders' TBLPROPERTIES ('x.y' = 'z')"
    )
    table = server.table(NAME)
    assert (table.partition_columns, table.properties["x.y"], table.latest) == (["day"], "z", 0)
    lake.sql(f"INSERT INTO {NAME} VALUES (1, DATE'2026-01-01')")
    with pytest.raises(TableExistsError, match="DELTA_TABLE_ALREADY_EXISTS"):
        lake.sql(f"CREATE TABLE {NAME} (id LONG)")
    lake.sql(f"CREATE TABLE IF NOT EXISTS {NAME} (id LONG)")
    assert ids(server) == [1]
    lake.sql(f"CREATE TABLE lake.s.u AS SELECT id + 1 AS id FROM {NAME}")
    assert ids(server, "lake.s.u") == [2]
    before = server.table("lake.s.u").id
    lake.sql("CREATE OR REPLACE TABLE lake.s.u AS SELECT id + 1 AS id, 'x' AS s FROM lake.s.u")
    assert (ids(server, "lake.s.u"), server.table("lake.s.u").id) == ([3], before)
    lake.sql("REPLACE TABLE lake.s.u (id LONG)")
    assert ids(server, "lake.s.u") == []
    with pytest.raises(TableNotFoundError, match="DELTA_CANNOT_REPLACE_MISSING_TABLE"):
        lake.sql("REPLACE TABLE lake.s.none (id LONG)")
    with pytest.raises(DeltaAnalysisError, match="DELTA_TABLE_LOCATION_MISMATCH"):
        lake.sql("CREATE TABLE lake.s.none (id LONG) USING delta LOCATION '/elsewhere'")

    assert lake.catalog.tableExists(NAME)
    lake.sql(f"ALTER TABLE {NAME} RENAME TO s.renamed")
    assert not lake.catalog.tableExists(NAME)
    assert seen(lake, "SELECT id FROM lake.s.renamed") == [(1,)]
    with pytest.raises(TableExistsError):
        lake.sql("ALTER TABLE lake.s.renamed RENAME TO u")
    lake.sql("DROP TABLE lake.s.renamed")
    lake.sql("DROP TABLE IF EXISTS lake.s.renamed")
    lake.catalog.dropTable("lake.s.u")
    with pytest.raises(TableNotFoundError):
        lake.sql("DROP TABLE lake.s.u")
    assert server.tables == {}


def test_frames_streams_and_builders_make_tables(
    lake: SparkSession, server: UnityServer, tmp_path: Path
) -> None:
    server.add_schema("lake", "s")
    rows = lake.range(3)
    rows.write.format("delta").saveAsTable(NAME)
    rows.writeTo("lake.s.v2").tableProperty("x.y", "z").create()
    assert server.table("lake.s.v2").properties["x.y"] == "z"
    rows.writeTo("lake.s.v2").createOrReplace()
    rows.write.format("delta").mode("append").save("lake.s.saved")
    delta.DeltaTable.create(lake).tableName("lake.s.built").addColumn("id", "long").execute()
    rows.write.insertInto("lake.s.built")
    writer = lake.readStream.table(NAME).writeStream.trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    to_end(lambda: writer.toTable("lake.s.streamed", format="delta"))
    lake.sql(f"CREATE TABLE lake.s.cloned DEEP CLONE {NAME}")
    for name in ("t", "v2", "saved", "built", "streamed", "cloned"):
        assert ids(server, f"lake.s.{name}") == [0, 1, 2], name
    with pytest.raises(TableNotFoundError, match="schema"):
        rows.write.format("delta").saveAsTable("lake.none.t")


@pytest.mark.one_day_in(3, 1)
def test_names_that_are_no_words(lake: SparkSession, server: UnityServer) -> None:
    server.add_schema("lake", "s")
    for odd in ("", "..", "a/b"):
        quoted = "`" + odd.replace("`", "``") + "`"
        for name in (f"lake.s.{quoted}", f"lake.{quoted}.t"):
            for use in (
                lambda name=name: lake.sql(f"CREATE TABLE {name} (id BIGINT)"),
                lambda name=name: lake.sql(f"SELECT * FROM {name}"),
                lambda name=name: lake.table(name),
                lambda name=name: lake.range(1).write.mode("append").saveAsTable(name),
                lambda name=name: lake.range(1).writeTo(name).append(),
                lambda name=name: delta.DeltaTable.forName(lake, name),
                lambda name=name: lake.readStream.table(name),
            ):
                with pytest.raises(DeltaAnalysisError, match=r"part of a name|none of them empty"):
                    use()
    for odd in ("select", "a-b", "a.b c", "a`b", "naïve-表", "a%2Fb", "x" * 255):
        server.add_schema("lake", odd)
        quoted = "`" + odd.replace("`", "``") + "`"
        for name in (f"lake.s.{quoted}", f"lake.{quoted}.t"):
            lake.sql(f"CREATE TABLE {name} (id BIGINT)")
            lake.sql(f"INSERT INTO {name} VALUES (1)")
            lake.range(2, 3).write.mode("append").saveAsTable(name)
            delta.DeltaTable.forName(lake, name).delete("id = 1")
            assert seen(lake, f"SELECT id FROM {name}") == [(2,)]
            assert [row.id for row in lake.table(name).collect()] == [2]
        lake.sql(f"USE lake.{quoted}")
        lake.sql("INSERT INTO t VALUES (3)")
        assert seen(lake, "SELECT id FROM t") == [(2,), (3,)]
        assert [row.tableName for row in lake.sql("SHOW TABLES").collect()] == ["t"]
        lake.sql("USE spark_catalog")
        assert odd in {row.tableName for row in lake.sql("SHOW TABLES IN lake.s").collect()}
        for name in (f"lake.s.{quoted}", f"lake.{quoted}.t"):
            lake.sql(f"DROP TABLE {name}")
    assert server.tables == {}
