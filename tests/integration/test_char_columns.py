"""CHAR columns by Spark: one meaning of a comparison, whichever way a command goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import functions as sf

from lakelog.core import DeltaLog, Operation, create_table, write_arrow
from lakelog.spark import DeltaTable, register, sql, write, write_to
from lakelog.spark import read as reader

ROWS = (
    "VALUES (1, 'a', 'a', 'x'), (2, 'b', 'b', 'y'), (3, 'abc', 'abc', 'z'), (4, NULL, NULL, NULL)"
)


def table(spark, tmp_path, by="", properties=""):
    path = str(tmp_path / "t")
    clause = f"PARTITIONED BY ({by})" if by else ""
    sql(
        spark,
        f"CREATE TABLE delta.`{path}` (id INT, c CHAR(3), d CHAR(5), v STRING) USING delta "
        f"{clause} "
        f"TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true' {properties})",
    )
    sql(spark, f"INSERT INTO delta.`{path}` {ROWS}")
    return path


def read(spark, path):
    return reader(spark).load(path)


def found(path):
    return {row["id"]: (row["c"], row["v"]) for row in all_of(path)}


def all_of(path):
    return DeltaLog.for_table(path).snapshot.to_arrow().to_pylist()


@pytest.mark.one_day_in(3, 1)
@pytest.mark.parametrize("by", ["", "c"])
def test_a_merge_by_spark_matches_as_one_here_does(spark, tmp_path, by):
    paths = [table(spark, tmp_path / name, by) for name in ("here", "there", "columns")]
    source = spark.createDataFrame(
        [(1, "a", "n"), (2, "b     ", "n"), (7, "q", "n"), (3, "ab", "n")],
        "id INT, c STRING, v STRING",
    )
    on: Any
    clause: Any
    value: Any
    for path, other in zip(paths, ("", " AND sha1(s.v) IS NOT NULL", None), strict=True):
        target = DeltaTable.forPath(spark, path).alias("t")
        if other is None:
            on = sf.col("t.c") == sf.col("s.c")
            clause, value = sf.col("t.d") == sf.col("s.c"), sf.concat(sf.col("s.c"), sf.lit("!"))
        else:
            on = f"t.c = s.c{other}"
            clause, value = "t.d = s.c", "concat(s.c, '!')"
        merge = target.merge(source.alias("s"), on)
        merge = merge.whenMatchedUpdate(clause, {"v": value})
        merge.whenNotMatchedInsert(values={"id": "s.id", "c": "s.c", "v": "s.v"}).execute()
        pairs = [(row["id"], row["c"], row["v"]) for row in all_of(path)]
        assert sorted(pairs, key=str) == [
            (1, "a  ", "a!"),
            (2, "b  ", "b     !"),
            (3, "ab ", "n"),
            (3, "abc", "z"),
            (4, None, None),
            (7, "q  ", "n"),
        ], other
        again = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), on)
        again.whenNotMatchedInsert(values={"id": "s.id", "c": "s.c", "v": "s.v"}).execute()
        assert len(all_of(path)) == 6


@pytest.mark.connect
def test_a_source_that_has_a_char_itself_is_met_at_its_own_length(spark, tmp_path):
    path, other = table(spark, tmp_path / "t"), table(spark, tmp_path / "s")
    rows = read(spark, other).select("id", sf.col("d").alias("k")).alias("s")
    target = DeltaTable.forPath(spark, path).alias("t")
    on = sf.col("t.c") == sf.col("s.k")
    target.merge(rows, on).whenMatchedUpdate(set={"v": sf.lit("m")}).execute()
    assert [v for _, v in found(path).values()].count("m") == 3
    target.merge(rows, "t.c = s.k").whenMatchedDelete().execute()
    assert list(found(path)) == [4]


@pytest.mark.one_day_in(4, 3)
@pytest.mark.parametrize("by", ["", "c"])
def test_what_a_command_touches_is_what_a_query_finds(spark, tmp_path, by):
    path = table(spark, tmp_path, by)
    rows = read(spark, path)
    conditions = {
        "c = 'a'": [1],
        "c > 'a'": [2, 3],
        "c <> 'a'": [2, 3],
        "c IN ('a', 'b  ')": [1, 2],
        "c BETWEEN 'a' AND 'b'": [1, 3],
        "c NOT BETWEEN 'a' AND 'b'": [2],
        "c = d": [1, 2, 3],
        "c = v": [],
        "CASE c WHEN 'a' THEN true ELSE false END": [1],
        "upper(c) = 'A  '": [1],
        "upper(c) = 'A'": [],
        "sha1(c) = sha1('a  ')": [1],
    }
    register(spark)
    lazy = spark.read.format("lakelog").load(path)
    for where, ids in conditions.items():
        for frame in (rows, lazy):
            assert sorted(r.id for r in frame.where(where).select("id").collect()) == ids, where
        count = sql(spark, f"UPDATE delta.`{path}` SET v = 'u' WHERE {where}").first()
        assert count is not None
        assert count.num_affected_rows == len(ids), where
    DeltaTable.forPath(spark, path).delete(sf.col("c") == "b")
    assert sorted(found(path)) == [1, 3, 4]
    new = spark.createDataFrame([(8, "a", "a", "new")], "id INT, c STRING, d STRING, v STRING")
    write(new).mode("overwrite").option("replaceWhere", "c = 'a'").save(path)
    assert sorted(found(path)) == [3, 4, 8]
    if by:
        name = f"delta.`{path}`"
        write_to(new.withColumn("id", sf.lit(9)), name).overwrite(sf.col("c") == "a")
        assert sorted(found(path)) == [3, 4, 9]
        write_to(new.withColumn("id", sf.lit(10)), name).overwritePartitions()
        assert sorted(found(path)) == [3, 4, 10]


def test_files_of_a_writer_that_did_not_fill_up(spark, tmp_path):
    path = str(tmp_path / "short")
    create_table(path, "id long, c string, d string, v string", partition_by=["d"])
    rows = {"id": [1, 2], "c": ["a", "b"], "d": ["a", "b"], "v": ["a", "b"]}
    write_arrow(path, rows, mode="append")
    log = DeltaLog.for_table(path)
    txn = log.start_transaction()
    text = txn.metadata.schema_string
    for name, kind in (("c", "char(3)"), ("d", "char(5)")):
        bare = f'"name":"{name}","type":"string","nullable":true,"metadata":{{}}'
        assert bare in text
        text = text.replace(bare, bare[:-1] + f'"__CHAR_VARCHAR_TYPE_STRING":"{kind}"}}')
    txn.commit([replace(txn.metadata, schema_string=text)], Operation("TEST", {}))
    register(spark)
    for frame in (read(spark, path), spark.read.format("lakelog").load(path)):
        assert [r.id for r in frame.where("c = 'a' AND d = 'a'").collect()] == [1]
        assert [(r.c, r.d) for r in frame.where("d = 'b'").collect()] == [("b  ", "b    ")]
    source = spark.createDataFrame([("a",)], "k STRING").alias("s")
    target = DeltaTable.forPath(spark, path).alias("t")
    on = (sf.col("t.c") == sf.col("s.k")) & (sf.col("t.d") == sf.col("s.k"))
    target.merge(source, on).whenMatchedUpdate(set={"v": sf.lit("m")}).execute()
    assert found(path) == {1: ("a  ", "m"), 2: ("b  ", "b")}


@pytest.mark.connect
def test_a_struct_that_grew_keeps_its_new_field(spark, tmp_path):
    path = str(tmp_path / "s")
    name = f"delta.`{path}`"
    sql(
        spark,
        f"CREATE TABLE {name} (id INT, s STRUCT<c: CHAR(3)>, "
        "n INT GENERATED ALWAYS AS (length(s.c))) USING delta",
    )
    sql(spark, f"ALTER TABLE {name} ADD COLUMNS (s.z INT)")
    sql(spark, f"INSERT INTO {name} (id, s) VALUES (1, named_struct('c', 'a', 'z', 5))")
    (row,) = read(spark, path).collect()
    assert (row.s.c, row.s.z, row.n) == ("a  ", 5, 3)
