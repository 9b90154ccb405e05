"""A catalog that lakelog asks as the current one: short names, and what lists it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

import lakelog.spark as delta
from lakelog.core import read_arrow
from lakelog.core.catalogs import one_call
from lakelog.core.errors import DeltaAnalysisError, DeltaError, TableNotFoundError
from lakelog.core.hooks.background import wait_for_all
from support.to_end import to_end
from support.unity_server import UnityServer, Ways, serving
from support.unity_tables import make_table, other_client_commits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

TOKEN = "t0ken-of-the-test"


@pytest.fixture
def server(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[UnityServer]:
    """The double, behind an enabled session whose conf knows the catalog `lake`.

    The token is in a file of the client's, which a classic session does not need, and a Connect
    one does: its server tells clients no key with such a name.
    """
    ways = Ways(checks_published=True)
    with serving(UnityServer(tmp_path / "unity", ways, token=TOKEN)) as served:
        delta.enable(spark)
        secret = {key: value for key, value in served.conf().items() if value == TOKEN}
        assert len(secret) == 1
        file = tmp_path / "lake.conf"
        file.write_text("".join(f"{key} {value}\n" for key, value in secret.items()))
        monkeypatch.setenv("LAKELOG_CONF_FILE", str(file))
        for key, value in served.conf().items():
            spark.conf.set(key, value)
        yield served
        spark.sql("USE spark_catalog")
        for key in served.conf():
            spark.conf.unset(key)
        delta.disable(spark)


@pytest.fixture
def lake(spark: SparkSession, server: UnityServer) -> SparkSession:
    make_table(server, "lake.sales.orders")
    make_table(server, "lake.old.orders")
    return spark


def ids(server: UnityServer, name: str = "lake.sales.orders") -> list[Any]:
    """Without Spark."""
    return sorted(read_arrow(name, conf=server.conf())["id"].to_pylist())


def seen(lake: SparkSession, query: str) -> list[Any]:
    return sorted(row[0] for row in lake.sql(query).collect())


@pytest.mark.connect
def test_names_of_one_and_two_parts_after_use(
    spark: SparkSession, lake: SparkSession, server: UnityServer, tmp_path: Path
) -> None:
    lake.sql("USE lake.sales")
    lake.sql("INSERT INTO orders VALUES (1), (2)")
    lake.sql("INSERT INTO old.orders SELECT id + 10 FROM orders")
    lake.sql(
        "MERGE INTO orders t USING old.orders o ON t.id = o.id - 10 "
        "WHEN MATCHED AND t.id = 2 THEN UPDATE SET id = 3 "
    )
    assert ids(server) == [1, 3]
    assert ids(server, "lake.old.orders") == [11, 12]
    assert seen(lake, "SELECT orders.id FROM orders WHERE orders.id > 1") == [3]
    assert seen(lake, "SELECT count(*) FROM old.orders") == [2]
    assert seen(lake, "WITH orders AS (SELECT 7 AS id) SELECT id FROM orders") == [7]
    assert [row.id for row in lake.table("old.orders").where("id = 11").collect()] == [11]
    assert lake.read.option("versionAsOf", 0).table("orders").count() == 0
    table = delta.DeltaTable.forName(lake, "orders")
    table.delete("id = 3")
    assert table.detail().collect()[0].name == "lake.sales.orders"
    lake.range(5, 6).write.mode("append").saveAsTable("orders")
    lake.range(6, 7).write.insertInto("sales.orders")
    lake.range(7, 8).writeTo("orders").append()
    assert ids(server) == [1, 5, 6, 7]
    lake.sql("CREATE TABLE made AS SELECT id FROM orders")
    lake.sql("CREATE TABLE old.empty (id BIGINT)")
    assert sorted(".".join(each) for each in server.tables) == [
        *("lake.old.empty", "lake.old.orders", "lake.sales.made", "lake.sales.orders"),
    ]
    lake.sql("ALTER TABLE made RENAME TO again")
    assert lake.catalog.tableExists("again")
    lake.sql("DROP TABLE again")
    assert not lake.catalog.tableExists("again")
    news = lake.readStream.table("orders").writeStream.trigger(availableNow=True)
    news = news.option("checkpointLocation", str(tmp_path / "checkpoint"))
    to_end(lambda: news.toTable("old.empty"))
    assert ids(server, "lake.old.empty") == [1, 5, 6, 7]

    lake.sql("USE old")
    assert seen(lake, "SELECT max(id) FROM orders") == [12]
    lake.sql("USE lake")
    with pytest.raises(TableNotFoundError, match=r"no schema lake\.default"):
        lake.table("orders")
    with pytest.raises(DeltaAnalysisError, match=r"SCHEMA_NOT_FOUND.*lake\.none"):
        lake.sql("USE lake.none")
    lake.sql("USE spark_catalog")
    with pytest.raises((PySparkException, DeltaError)):
        lake.table("orders").collect()
    assert seen(lake, "SELECT max(id) FROM lake.sales.orders") == [7]


@pytest.mark.connect
def test_what_is_sparks_comes_first_where_spark_says_so(
    spark: SparkSession, lake: SparkSession, server: UnityServer
) -> None:
    lake.sql("CREATE TABLE default.of_spark USING parquet AS SELECT 42 AS id")
    try:
        lake.sql("INSERT INTO lake.sales.orders VALUES (1)")
        lake.sql("USE lake.sales")
        lake.createDataFrame([(9,)], "id long").createOrReplaceTempView("orders")
        assert seen(lake, "SELECT id FROM orders") == [9]
        assert [row.id for row in lake.table("orders").collect()] == [9]
        assert seen(lake, "SELECT id FROM sales.orders") == [1]
        assert seen(lake, "DESCRIBE orders") == ["id"]
        lake.sql("DROP VIEW orders")
        assert seen(lake, "SELECT id FROM orders") == [1]
        lake.sql("CREATE OR REPLACE TEMP VIEW kept AS SELECT id FROM orders")
        assert seen(lake, "SELECT id FROM spark_catalog.default.of_spark") == [42]
        lake.sql("INSERT INTO spark_catalog.default.of_spark SELECT id FROM orders")
        for statement in (
            "CREATE TABLE wrong USING parquet AS SELECT id FROM orders",
            "CREATE TABLE wrong (id BIGINT) USING parquet",
            "CREATE VIEW wrong AS SELECT 1",
            "ANALYZE TABLE orders COMPUTE STATISTICS",
            "SHOW TABLE EXTENDED LIKE 'orders'",
            "DROP SCHEMA sales",
        ):
            with pytest.raises(DeltaAnalysisError, match=r"lake\.sales\.t"):
                lake.sql(statement)
        for use in (
            lambda: lake.range(1).write.format("parquet").saveAsTable("wrong"),
            lambda: lake.catalog.createTable("wrong", source="parquet"),
            lambda: lake.catalog.listTables(),
            lambda: lake.catalog.getTable("orders"),
        ):
            with pytest.raises(DeltaAnalysisError, match="lake"):
                use()
        lake.sql("USE spark_catalog")
        assert seen(lake, "SELECT id FROM of_spark") == [1, 42]
        assert seen(lake, "SELECT id FROM kept") == [1]
        # Other tests' temporary views may be among them.
        shown = {row.tableName for row in lake.sql("SHOW TABLES IN default").collect()}
        assert shown >= {"of_spark", "kept"}
        assert not shown & {"orders", "wrong"}
    finally:
        lake.sql("DROP TABLE IF EXISTS spark_catalog.default.of_spark")
        lake.catalog.dropTempView("kept")
        lake.catalog.dropTempView("orders")


@pytest.mark.connect
def test_catalogs_schemas_and_tables_are_listed(
    spark: SparkSession, lake: SparkSession, server: UnityServer
) -> None:
    make_table(server, "lake.sales.returns")
    server.add_schema("lake", "empty")
    assert {"lake", "spark_catalog"} <= set(seen(lake, "SHOW CATALOGS"))
    assert seen(lake, "SHOW CATALOGS LIKE 'la*'") == ["lake"]
    assert "lake" in {each.name for each in lake.catalog.listCatalogs()}
    assert seen(lake, "SHOW SCHEMAS IN lake") == ["empty", "old", "sales"]
    assert seen(lake, "SHOW NAMESPACES FROM lake LIKE 'S*|o*'") == ["old", "sales"]
    tables = [tuple(row) for row in lake.sql("SHOW TABLES IN lake.sales").collect()]
    assert sorted(tables) == [("sales", "orders", False), ("sales", "returns", False)]
    assert lake.sql("SHOW TABLES IN lake.empty").count() == 0
    with pytest.raises(DeltaAnalysisError, match=r"SHOW TABLES IN lake\.schema"):
        lake.sql("SHOW TABLES IN lake")
    with pytest.raises(TableNotFoundError, match="none"):
        lake.sql("SHOW TABLES IN lake.none")

    now = "SELECT concat(current_catalog(), '.', current_schema(), '.', current_database()) AS c"
    assert seen(lake, f"{now} FROM range(1)") == ["spark_catalog.default.default"]
    lake.catalog.setCurrentCatalog("lake")
    lake.catalog.setCurrentDatabase("sales")
    assert seen(lake, f"{now} FROM range(1)") == ["lake.sales.sales"]
    assert (lake.catalog.currentCatalog(), lake.catalog.currentDatabase()) == ("lake", "sales")
    assert [tuple(row) for row in lake.sql("SHOW CURRENT NAMESPACE").collect()] == [
        ("lake", "sales")
    ]
    assert [row.tableName for row in lake.sql("SHOW TABLES LIKE 'r*'").collect()] == ["returns"]
    assert [row.tableName for row in lake.sql("SHOW TABLES IN old").collect()] == ["orders"]
    assert seen(lake, "SHOW SCHEMAS") == ["empty", "old", "sales"]
    assert "default" in seen(lake, "SHOW SCHEMAS IN spark_catalog")
    described = {row[0]: row[1] for row in lake.sql("DESCRIBE TABLE EXTENDED orders").collect()}
    assert (described["id"], described["Provider"]) == ("bigint", "delta")
    lake.catalog.setCurrentCatalog("spark_catalog")
    assert lake.catalog.currentCatalog() == "spark_catalog"
    assert seen(lake, "SHOW SCHEMAS LIKE 'default'") == ["default"]


@pytest.mark.connect
def test_a_connect_client_has_its_token_in_a_file_of_its_own(
    spark: SparkSession,
    lake: SparkSession,
    server: UnityServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other_client_commits(server, server_folder(server), 1, name="lake.sales.orders")
    assert seen(lake, "SELECT id FROM lake.sales.orders") == [1]
    if not type(lake).__module__.startswith("pyspark.sql.connect"):
        return
    monkeypatch.setenv("LAKELOG_CONF_FILE", str(tmp_path / "none"))
    with pytest.raises(DeltaAnalysisError, match="LAKELOG_CONF_FILE names"):
        lake.table("lake.sales.orders")
    monkeypatch.delenv("LAKELOG_CONF_FILE")
    with pytest.raises(DeltaError, match="the file that LAKELOG_CONF_FILE names"):
        lake.table("lake.sales.orders")


def server_folder(server: UnityServer) -> Path:
    from pathlib import Path

    location = server.table("lake.sales.orders").location
    return Path(re.sub("^file://", "", location))


def test_a_session_that_is_not_enabled_keeps_sparks_names(
    classic_spark: SparkSession, server: UnityServer
) -> None:
    make_table(server, "lake.sales.orders")
    delta.disable(classic_spark)
    with pytest.raises(DeltaAnalysisError, match=r"call lakelog\.spark\.enable"):
        delta.sql(classic_spark, "USE lake.sales")
    assert seen_by(classic_spark, "SHOW TABLES IN lake.sales") == ["orders"]
    delta.enable(classic_spark)


def seen_by(spark: SparkSession, query: str) -> list[str]:
    return [row.tableName for row in delta.sql(spark, query).collect()]


def test_a_write_in_a_session_asks_once_and_commits(
    classic_spark: SparkSession, server: UnityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_call, "_SECONDS", 600.0)  # however slow the machine is
    make_table(server)
    rows, name = classic_spark.range(7, 8), "lake.s.t"
    insert, one = f"INSERT INTO {name} VALUES", f"SELECT * FROM {name} LIMIT 1"
    merge = f"MERGE INTO {name} t USING (SELECT 7L id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    for number, write in enumerate(
        (
            lambda: rows.write.mode("append").saveAsTable(name),
            lambda: rows.write.format("delta").mode("overwrite").saveAsTable(name),
            lambda: rows.write.insertInto(name),
            lambda: rows.writeTo(name).append(),
            lambda: classic_spark.sql(f"{insert} (7)"),
            lambda: classic_spark.sql(f"INSERT OVERWRITE {name} VALUES (7)"),
            lambda: classic_spark.sql(f"INSERT INTO {name} {one}"),
            lambda: classic_spark.sql(f"UPDATE {name} SET id = 8 WHERE id = 7"),
            lambda: classic_spark.sql(f"DELETE FROM {name} WHERE id = 8"),
            lambda: classic_spark.sql(f"{insert} (7)"),
            lambda: classic_spark.sql(merge),
        )
    ):
        assert wait_for_all(60)
        server.seen.clear()
        write()
        assert wait_for_all(60)
        beside = ("/metrics", "/config")  # of a commit, and once of a catalog
        asked = [each.action for each in server.seen if not each.path.endswith(beside)]
        behind = "set-latest-backfilled-version"  # when nobody waits
        assert [each for each in asked if each != behind] == ["GET", "add-commit"], number


def test_a_read_in_a_session_asks_once(classic_spark: SparkSession, server: UnityServer) -> None:
    make_table(server)
    for read in (
        lambda: classic_spark.table("lake.s.t").collect(),
        lambda: classic_spark.sql("SELECT * FROM lake.s.t").collect(),
        lambda: classic_spark.sql("SELECT count(*) FROM lake.s.t").collect(),
        lambda: delta.read(classic_spark).load("lake.s.t").collect(),
    ):
        read()
        server.seen.clear()
        read()
        assert [(each.method, each.path.rpartition("/")[2]) for each in server.seen] == [
            ("GET", "t")
        ]
