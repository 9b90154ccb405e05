"""What a user writes with Spark, for type checkers alone: it is checked, and never run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import lakelog.spark as delta
from lakelog.core.errors import DeltaError
from lakelog.spark import (
    DeltaMergeBuilder,
    DeltaReader,
    DeltaStreamReader,
    DeltaStreamWriter,
    DeltaTable,
    DeltaTableBuilder,
    DeltaWriter,
    DeltaWriterV2,
    IdentityGenerator,
    unwrap_error,
)

if TYPE_CHECKING:
    from lakelog.core import DeltaLog, OptimizeProgress, Progress

TABLE = "s3a://lake/flights"


def session() -> SparkSession:
    builder = delta.bridge(
        SparkSession.Builder().appName("flights"), conf={"spark.ui.enabled": "false"}
    )
    spark = builder.getOrCreate()
    delta.enable(spark)
    delta.register(spark, conf_keys=["spark.hadoop.fs.s3a.endpoint"])
    delta.disable(spark)
    return spark


def write(frame: DataFrame) -> None:
    writer: DeltaWriter = delta.write(frame)
    version: int | None = (
        writer.format("delta")
        .mode("overwrite")
        .option("mergeSchema", True)
        .options(userMetadata="why", maxRecordsPerFile=1000)
        .partitionBy("year", ["month"])
        .clusterBy("day")
        .replaceWhere("year = 2013")
        .save(TABLE)
    )
    print(version, delta.write(frame).mode("append").saveAsTable("lake.flights"))
    v2: DeltaWriterV2 = delta.write_to(frame, "lake.flights")
    v2.using("delta").tableProperty("delta.appendOnly", "true").partitionedBy("year").create()
    delta.write_to(frame, f"delta.`{TABLE}`").option("mergeSchema", "true").append()
    delta.write_to(frame, "lake.flights").overwrite(sf.col("year") == 2013)
    delta.write_to(frame, "lake.flights").overwritePartitions()
    delta.write_to(frame, "lake.flights").clusterBy("day").createOrReplace()


def read(spark: SparkSession) -> int:
    reader: DeltaReader = delta.read(spark)
    frame = reader.option("versionAsOf", 3).where("delay > 5").load(TABLE)
    frame.select("day").show()
    changes = delta.read(spark).options(readChangeFeed=True, startingVersion=1).load(TABLE)
    print(changes.columns, delta.read(spark).schema("day date").table("lake.flights").count())
    return frame.count()


def streams(spark: SparkSession) -> None:
    reader: DeltaStreamReader = delta.read_stream(spark)
    frame = reader.option("maxFilesPerTrigger", 10).load(TABLE)
    writer: DeltaStreamWriter = delta.write_stream(frame)
    query = (
        writer.outputMode("append")
        .queryName("copy")
        .option("checkpointLocation", "/lake/checkpoints/copy")
        .trigger(availableNow=True)
        .partitionBy("year")
        .start("/lake/copy")
    )
    print(query.awaitTermination(60), query.lastProgress)

    def upsert(batch: DataFrame, number: int) -> None:
        delta.write(batch).mode("append").save(TABLE)
        print(number)

    each = delta.once_per_batch(TABLE, upsert, name="flights")
    frame.writeStream.foreachBatch(each).start().stop()
    delta.write_stream(delta.read_stream(spark).table("lake.flights")).toTable("lake.copy").stop()


def sql(spark: SparkSession) -> None:
    delta.sql(spark, f"VACUUM delta.`{TABLE}` DRY RUN").show()
    delta.sql(spark, "SELECT * FROM lake.flights WHERE delay > :d", {"d": 5}).show()
    last: DataFrame | None = delta.sql_script(spark, "OPTIMIZE lake.flights; SHOW TABLES")
    if last is not None:
        last.show()


def tables(spark: SparkSession) -> DeltaTable:
    builder: DeltaTableBuilder[DeltaTable] = DeltaTable.createIfNotExists(spark)
    made = (
        builder.tableName("lake.flights")
        .location(TABLE)
        .comment("departures")
        .addColumn("id", "bigint", generatedAlwaysAs=IdentityGenerator(1, 1))
        .addColumn("day", "date", nullable=False, comment="of the departure")
        .addColumn("year", "int", generatedAlwaysAs="year(day)")
        .partitionedBy("year")
        .property("delta.appendOnly", "false")
        .execute()
    )
    print(DeltaTable.isDeltaTable(spark, TABLE), made.toDF().count())
    print(DeltaTable.replace(spark).location(TABLE).clusterBy("day").execute().detail().first())
    print(DeltaTable.convertToDelta(spark, "parquet.`/lake/old`", "year int"))
    DeltaTable.createOrReplace(spark).location(TABLE).addColumns(made.toDF().schema).execute()
    return DeltaTable.forName(spark, "lake.flights")


def change(spark: SparkSession, source: DataFrame) -> None:
    table = DeltaTable.forPath(spark, TABLE)
    table.delete("delay IS NULL")
    table.delete(sf.col("delay") < 0)
    table.update(sf.col("delay") > 60, {"delay": sf.lit(60)})
    table.update(set={"delay": "delay + 1"})
    merge: DeltaMergeBuilder = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merged = (
        merge.whenMatchedUpdate(set={"delay": "s.delay"}, condition="s.delay > 0")
        .whenMatchedUpdateAll(sf.col("s.delay") > 5)
        .whenMatchedDelete()
        .whenNotMatchedInsert(values={"id": "s.id", "delay": sf.lit(0)})
        .whenNotMatchedInsertAll()
        .whenNotMatchedBySourceUpdate(set={"delay": sf.lit(None)})
        .whenNotMatchedBySourceDelete("t.delay < 0")
        .withSchemaEvolution()
        .execute()
    )
    merged.show()


def report(progress: Progress) -> None:
    print(progress.done, progress.total)


def report_optimize(progress: OptimizeProgress) -> None:
    print(progress.bins_done)


def maintain(spark: SparkSession) -> None:
    table = DeltaTable.forPath(spark, TABLE)
    log: DeltaLog = table.log
    print(log.snapshot.version, log.snapshot.schema.names)
    table.history(10).select("version", "operation").show()
    table.detail().select("numFiles").show()
    table.optimize(progress=report_optimize).where("year = 2013").executeCompaction().show()
    table.optimize().executeZOrderBy("day", "delay").show()
    table.vacuum(168, dryRun=True, progress=report).show()
    table.restoreToVersion(3).show()
    table.restoreToTimestamp("2013-01-01").show()
    copy = table.clone("/lake/copy", isShallow=True).cloneAtVersion(1, "/lake/first")
    copy.cloneAtTimestamp("2013-01-01", "/lake/second", replace=True)
    copy.generate("symlink_format_manifest")
    version: int = table.addColumns("carrier string", after="day")
    print(version, table.renameColumn("carrier", "airline"), table.dropColumns("airline"))
    print(table.alterColumn("day", comment="of the departure"), table.syncIdentity("id"))
    print(table.addConstraint("late", "delay > 0"), table.dropConstraint("late", ifExists=True))
    print(
        table.setProperties({"delta.appendOnly": True}), table.unsetProperties("delta.appendOnly")
    )
    print(table.clusterBy("day"), table.replaceColumns("day date"))
    table.upgradeTableProtocol(3, 7)
    table.addFeatureSupport("deletionVectors")
    table.dropFeatureSupport("deletionVectors", truncateHistory=False)


def handle(spark: SparkSession) -> str | None:
    try:
        delta.read(spark).load(TABLE).count()
    except DeltaError as error:
        return str(error.fields.get("table"))
    except Exception as error:
        ours = unwrap_error(error)
        return None if ours is None else str(ours)
    return None
