"""One script of streams, for delta-spark and for lakelog: what a pipeline does, and what it finds.

It runs in delta-spark's own environment, too, and so imports nothing of the project's. What it says
of itself is `told`: names of steps with what can be compared.
"""

from __future__ import annotations

import re
from typing import Any

_CONDITION = re.compile(r"\[((?:DELTA|DIFFERENT)_[A-Z_]+)")


def streams(spark: Any, folder: str) -> dict[str, Any]:
    """Run the queries; tables and checkpoints are left in the folder."""
    told: dict[str, Any] = {}

    def at(name: str) -> str:
        return f"{folder}/{name}"

    def fill(name: str, *batches: str, **options: str) -> None:
        for rows in batches:
            frame = spark.sql(f"SELECT * FROM VALUES {rows} AS t(id, p)").coalesce(1)
            frame.write.format("delta").mode("append").options(**options).save(at(name))

    def read(name: str, **options: Any) -> Any:
        return spark.readStream.format("delta").options(**options).load(at(name))

    def run(writer: Any, checkpoint: str, target: str | None = None, table: str = "") -> int:
        """How many batches it took."""
        writer = writer.option("checkpointLocation", at(f"checkpoints/{checkpoint}"))
        writer = writer.trigger(availableNow=True)
        query = writer.toTable(table) if table else writer.start(target and at(target))
        query.awaitTermination()
        return len([each for each in query.recentProgress if each.numInputRows])

    def fails(*given: Any, **more: Any) -> str:
        try:
            run(*given, **more)
        except Exception as exc:
            found = _CONDITION.search(str(exc))
            return found[1] if found else str(exc)
        return "nothing"

    def rows(name: str) -> list[list[Any]]:
        frame = spark.read.format("delta").load(at(name))
        return sorted((list(row) for row in frame.collect()), key=repr)

    def note(step: str, name: str, *batches: Any) -> None:
        told[step] = [rows(name), *batches]

    # A source of some commits, read by few files a batch; the sink is partitioned.
    fill("in", "(1, 'a'), (2, 'b')", "(3, 'a')", "(4, 'c')")
    copy = read("in", maxFilesPerTrigger=1).selectExpr("id * 2 AS id", "p").writeStream
    copy = copy.format("delta").outputMode("append").partitionBy("p").queryName("copying")
    copy = copy.option("txnAppId", "mine").option("txnVersion", "7")
    note("copy", "copy", run(copy, "copy", "copy"))
    fill("in", "(5, 'a')")
    note("copy goes on", "copy", run(copy, "copy", "copy"))

    # By names, with limits of bytes, and a start that is not the first version.
    spark.sql("DROP DATABASE IF EXISTS twice CASCADE")
    spark.sql(f"CREATE DATABASE twice LOCATION '{at('twice')}'")
    since = read("in", startingVersion=1, maxBytesPerTrigger="1b").writeStream.format("delta")
    told["named batches"] = run(since, "named", table="twice.named")
    onward = spark.readStream.option("maxFilesPerTrigger", 1).table("twice.named")
    note("read by name", "onward", run(onward.writeStream.format("delta"), "onward", "onward"))

    # All of the state, in each batch.
    counts = read("in", maxFilesPerTrigger=2).groupBy("p").count().writeStream.format("delta")
    note("complete", "counts", run(counts.outputMode("complete"), "counts", "counts"))

    # A function for each batch: a MERGE, and a write that is known by its number.
    spark.sql("CREATE TABLE twice.merged (id INT, p STRING) USING delta")

    def upsert(batch: Any, number: int) -> None:
        batch.createOrReplaceTempView("news")
        batch.sparkSession.sql(
            "MERGE INTO twice.merged t USING news s ON t.p = s.p "
            "WHEN MATCHED THEN UPDATE SET id = t.id + s.id WHEN NOT MATCHED THEN INSERT *"
        )
        for _ in range(2):
            known = batch.write.format("delta").mode("append").option("txnAppId", "batches")
            known.option("txnVersion", number).save(at("known"))

    told["upsert batches"] = run(
        read("in", maxFilesPerTrigger=1).writeStream.foreachBatch(upsert), "upsert"
    )
    found = spark.sql("SELECT * FROM twice.merged ORDER BY p").collect()
    told["upserted"] = [list(row) for row in found]
    note("known by number", "known")

    # The changes of a table, and a table that has lost rows.
    spark.sql(
        f"CREATE TABLE delta.`{at('fed')}` (id INT, p STRING) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    fill("fed", "(1, 'a'), (2, 'b')")
    spark.sql(f"UPDATE delta.`{at('fed')}` SET p = 'z' WHERE id = 1")
    spark.sql(f"DELETE FROM delta.`{at('fed')}` WHERE id = 2")
    fill("fed", "(3, 'c')")
    changes = read("fed", readChangeFeed="true", startingVersion=0).drop("_commit_timestamp")
    note("changes", "changes", run(changes.writeStream.format("delta"), "changes", "changes"))
    told["a deletion"] = fails(read("fed", startingVersion=1).writeStream.format("delta"), "f", "f")
    passing = read("fed", startingVersion=1, skipChangeCommits="true").writeStream.format("delta")
    note("a deletion passed over", "passed", run(passing, "passed", "passed"))

    # New columns, a table that reads itself, and what is refused.
    wider = read("in").selectExpr("id", "p", "id > 2 AS more").writeStream.format("delta")
    told["too wide"] = bool(fails(wider, "wider", "onward"))
    merging = wider.option("mergeSchema", "true")
    note("wider", "onward", run(merging, "wider", "onward"))
    fill("own", "(1, 'a'), (2, 'b')")
    own = read("own").where("id < 10").selectExpr("id + 10 AS id", "p").writeStream
    note("reads itself", "own", run(own.format("delta"), "own", "own"))
    told["update"] = fails(read("in").writeStream.format("delta").outputMode("update"), "u", "u")
    return told


def names(spark: Any, folder: str) -> list[Any]:
    """One script of SQL on names: the rows of each statement, or the condition of its error."""
    told: list[Any] = []
    for statement in _BY_NAME.strip().split(";\n"):
        try:
            found = spark.sql(statement.replace("{folder}", folder)).collect()
        except Exception as exc:
            condition = re.search(r"\[([A-Z][A-Z_]+)", str(exc))
            told.append([statement, condition[1] if condition else str(exc)])
        else:
            shown = statement.startswith(("SELECT", "SHOW", "WITH", "DESCRIBE"))
            told.append([statement, [list(row) for row in found] if shown else "done"])
    return told


_BY_NAME = """
CREATE DATABASE scripted LOCATION '{folder}/scripted';
USE scripted;
CREATE TABLE people (id BIGINT, name STRING, p STRING) USING delta PARTITIONED BY (p) COMMENT 'x';
CREATE TABLE people (id BIGINT) USING delta;
INSERT INTO people VALUES (1, 'Ann', 'a'), (2, 'Bob', 'b');
INSERT INTO scripted.people BY NAME SELECT 'c' AS p, 3 AS id, 'Cy' AS name;
ALTER TABLE people ADD COLUMNS (age INT AFTER id);
ALTER TABLE people ADD CONSTRAINT old CHECK (age IS NULL OR age > 0);
UPDATE people SET age = 40 WHERE id = 1;
INSERT INTO people VALUES (9, -1, 'No', 'a');
DELETE FROM people WHERE id = 3;
CREATE TABLE news USING delta LOCATION '{folder}/news' AS SELECT 2L AS id, 'Bea' AS name;
MERGE INTO people t USING news s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name;
SELECT * FROM people ORDER BY id;
SELECT id, name FROM scripted.people VERSION AS OF 1 ORDER BY id;
WITH n AS (SELECT id FROM news) SELECT p.name FROM people p JOIN n USING (id);
SHOW COLUMNS IN people;
SHOW TBLPROPERTIES people ('delta.constraints.old');
INSERT OVERWRITE news SELECT 5L, 'Eve';
ALTER TABLE news SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
ALTER TABLE news RENAME COLUMN name TO called;
SELECT called FROM news;
RESTORE TABLE news TO VERSION AS OF 0;
SELECT name FROM scripted.news;
ALTER TABLE news RENAME TO older;
SELECT count(*) FROM older;
TRUNCATE TABLE older;
SELECT count(*) FROM older;
DROP TABLE older;
SELECT * FROM older;
DELETE FROM nobody;
DROP TABLE people;
DROP TABLE IF EXISTS people;
SELECT * FROM people;
USE default;
DROP DATABASE scripted CASCADE
"""
